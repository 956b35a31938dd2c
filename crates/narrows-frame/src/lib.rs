//! Parses bytes into packets and renders packets back into bytes.
//!
//! - [`parse`]: reads what the engine needs from a frame's headers.
//! - [`edit`]: applies the engine's decisions to a frame: marks, fragmentation, bit errors.
//! - [`forward`]: reads what a router needs from a frame's headers.
//! - [`translate`], [`nat`]: address translation, its headers and its table.
//! - [`answer`]: builds the frames that the network itself sends: ARP/ND replies, "packet too big".
//! - [`craft`]: builds frames from scratch, for probes, virtual traffic and tests.
//! - [`capture`]: reads and writes pcap and pcapng files.
//! - [`log`]: records all inputs of a run, so that the run can be replayed.
//!
//! Nothing here opens a socket or reads a clock, and no input, however malformed, causes a panic.
#![forbid(unsafe_code)]

pub mod answer;
pub mod capture;
pub mod craft;
pub mod edit;
pub mod forward;
pub mod log;
pub mod nat;
pub mod parse;
pub mod translate;

mod bytes;
mod checksum;
mod file;
mod flow;
mod layer;
mod names;
#[cfg(test)]
mod samples;
mod wall;

pub use file::{ReadError, WriteError};
pub use flow::{Address, transport};
pub use layer::{LinkLayer, MacAddress};
pub use names::ElementNames;
pub use wall::WallTime;
