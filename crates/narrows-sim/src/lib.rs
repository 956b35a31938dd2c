//! Virtual time: scenarios, captures and input logs through the engine as fast as the processor goes.
//!
//! - [`simulate`] runs a scenario: its generated traffic and captures in, its timeline applied, and out come a report and
//!   whatever [`SimOptions`] asks for: a record for each packet ([`packets`]), a time series
//!   ([`series`]), a capture ([`capture_out`]).
//! - [`replay`] hands the inputs of a recorded run in once more, and compares every verdict.
//!
//! Traffic may respond: an additive-increase sender waits for acknowledgements that cross the network, clients and servers
//! of applications for each other's segments and datagrams. Each instant at which something happens is then handled before
//! anything later is handed in.
//!
//! Sources are merged in the order of their instants. At one instant come changes, then packets of captures, then
//! generated ones; within each kind in the order of names, and then in their own.

#![forbid(unsafe_code)]

pub mod capture_out;
mod changes;
mod compare;
mod drive;
mod error;
mod names;
mod observe;
mod output;
pub mod packets;
mod replay;
pub mod series;
mod simulate;
mod watched;

pub use drive::Watch;
pub use error::SimError;
pub use names::{Address, transport};
pub use observe::{Observed, Observer, Observers, SeriesObserver};
pub use output::Destination;
pub use replay::{ReplayResult, replay, replay_watched};
pub use simulate::{
    AdjustLink, OtherQueue, SeriesOptions, SimOptions, SimResult, observe, observe_all, observe_watched,
    observe_with, simulate, simulate_watched,
};
