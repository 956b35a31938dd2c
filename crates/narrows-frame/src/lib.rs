//! Bytes to packets and back.
//!
//! - [`parse`]: what the engine wants to know of a frame.
//! - [`edit`]: what the engine decided, done to the frame: marks, pieces, flipped bits.
//! - [`answer`]: frames that the network itself sends: address resolution, "packet too big".
//! - [`craft`]: frames made from nothing, for probes, virtual traffic and tests.
//! - [`capture`]: pcap and pcapng files, in and out.
//! - [`log`]: all that came into a run, so that it can be had again.
//!
//! Nothing here opens a socket or reads a clock, and no bytes, however malformed, make it panic.
#![forbid(unsafe_code)]

pub mod answer;
pub mod capture;
pub mod craft;
pub mod edit;
pub mod log;
pub mod parse;

mod bytes;
mod checksum;
mod file;
mod layer;
mod names;
#[cfg(test)]
mod samples;
mod wall;

pub use file::{ReadError, WriteError};
pub use layer::{LinkLayer, MacAddress};
pub use names::ElementNames;
pub use wall::WallTime;
