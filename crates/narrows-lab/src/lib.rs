//! The scheduler lab: runs, times and judges schedulers without a network around them.

#![forbid(unsafe_code)]

mod algorithm;
pub mod bench;
pub mod compare;
pub mod differentiation;
pub mod dist;
pub mod fairness;
pub mod fluid;
pub mod plot;
pub mod run_comparison;
pub mod statistics;
mod watch;

pub use algorithm::{Algorithm, UnknownAlgorithm};
pub use watch::{Step, Watch};
