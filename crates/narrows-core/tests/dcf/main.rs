//! The DCF against closed forms, against Bianchi's model, against a slow model that counts every slot of every station,
//! and in an engine.

mod air;
mod bianchi;
mod cell;
mod engine;
mod hidden;
mod hidden_model;
mod rates;
mod slow;
mod slow_model;
mod timing;
