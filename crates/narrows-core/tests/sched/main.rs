//! What must hold of every scheduler, of the flows that they share, and of the queue that is made of them; and that the
//! document on writing one says what its example does.

mod contract;
#[path = "../counting/mod.rs"]
mod counting;
mod document;
mod drr;
mod flows;
mod kinds;
mod memory;
mod nested;
mod orders;
mod parking;
mod scheduled;
mod shares;
