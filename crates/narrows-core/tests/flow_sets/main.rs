//! Flow sets: the flows of a scheduler that masks make on first use.

mod churn;
#[path = "../counting/mod.rs"]
mod counting;
mod late_polls;
mod memory;
mod model;
mod rules;
mod set;
mod shares;
mod stand;
