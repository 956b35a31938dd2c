//! What a run says about itself, live or in virtual time.
//!
//! A [`Meter`] watches the events of an engine as they are polled and, in a live run, how late packets were released.
//! A [`Report`] puts together what the run was asked for ([`RunInfo`]), what the engine counted and what the meter
//! saw: for a program as JSON with stable field names, for a person as [`Report::text`].

#![forbid(unsafe_code)]

mod asked;
mod build;
mod class;
mod feed;
mod human;
mod info;
mod meter;
mod probe;
mod report;
mod text;

pub use asked::{OneWay, one_ways};
pub use class::{ClassInfo, ClassReport};
pub use feed::{FeedReport, FeedWriters};
pub use info::{DirectionInfo, Kind, RoundTrip, RunInfo};
pub use meter::{LATENESS_BOUNDS, Meter};
pub use probe::{ProbeMeter, ProbePacket, ProbeReport};
pub use report::{
    Conservation, Direction, Drop, Lateness, Losses, Pair, PortReport, Quantiles, Report, SCHEMA, Share,
    Throughput,
};
