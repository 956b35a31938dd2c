//! CAKE as a link's queue: the shaper against its closed form, flows and hosts against their shares, tins against their
//! thresholds, and what is dropped.

mod acks;
mod drops;
mod filters;
mod flows;
mod lengths;
mod link;
mod shaper;
mod tins;
