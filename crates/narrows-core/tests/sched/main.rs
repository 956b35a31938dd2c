//! What must hold of every scheduler, of the flows that they share, and of the queue that is made of them.

mod contract;
#[path = "../counting/mod.rs"]
mod counting;
mod drr;
mod flows;
mod kinds;
mod memory;
mod nested;
mod orders;
mod parking;
mod scheduled;
mod shares;
