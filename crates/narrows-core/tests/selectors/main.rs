//! Which packets are hit, against closed forms and slow models of their own. Seeds are fixed, so a test that passes always
//! does.

mod bursts;
mod chain;
mod correlated;
mod corruption;
mod marks;
mod patterns;
mod sample;
