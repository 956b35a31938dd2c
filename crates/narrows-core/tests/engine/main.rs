//! What must hold of the engine, tested from outside the crate: over random networks, traffic, changes and polls;
//! against the configured distributions; against closed forms; and against one golden.

mod air_time;
mod bounds;
mod burst;
mod conservation;
mod drive;
mod filters;
mod foreign;
mod fragments;
mod golden;
mod independence;
mod late_polls;
mod matrices;
mod order;
mod plan;
mod policer;
mod random;
mod slots;
mod statistics;
mod transit;
mod transmitter;
