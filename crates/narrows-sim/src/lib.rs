//! Virtual time: runs scenarios, captures and input logs through the engine as fast as the processor allows.
//!
//! - [`simulate`] runs a scenario: it feeds generated traffic and captures into the engine, applies the timeline, and
//!   produces a report and the outputs that [`SimOptions`] selects: a record for each packet
//!   ([`narrows_report::PacketRow`]), a time
//!   series ([`series`]), a capture ([`capture_out`]).
//! - [`replay`] feeds the inputs of a recorded run into the engine again and compares every verdict.
//!
//! Traffic may be responsive: an additive-increase sender waits for acknowledgements that cross the network; clients
//! and servers of applications wait for each other's segments and datagrams. Each instant at which something happens
//! is then processed before any later input.
//!
//! Sources are merged in order of time. At the same instant, changes come first, then packets of captures, then
//! generated packets; within each kind the order is by name, and then the source's own.

#![forbid(unsafe_code)]

pub mod capture_out;
mod changes;
mod compare;
mod drive;
mod error;
mod metered;
mod names;
mod observe;
mod output;
mod parallel;
mod replay;
pub mod series;
mod simulate;
mod watched;
mod whole;

pub use drive::Watch;
pub use error::SimError;
pub use narrows_frame::{Address, transport};
pub use observe::{Observer, Observers, SeriesObserver};
pub use output::Destination;
pub use replay::{ReplayResult, replay, replay_log, replay_watched};
pub use simulate::{
    AdjustLink, OtherQueue, SeriesOptions, SimOptions, SimResult, observe, observe_all, observe_watched,
    observe_with, simulate, simulate_watched,
};
pub use whole::Whole;

/// The examples of the crate's page at a registry.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
