//! Bytes to packets and back.
//!
//! - [`parse`]: what the engine wants to know of a frame.
//! - [`edit`]: what the engine decided, done to the frame: marks, pieces, flipped bits.
//! - [`answer`]: frames that the network itself sends: address resolution, "packet too big".
//! - [`craft`]: frames made from nothing, for probes, virtual traffic and tests.
//!
//! Nothing here opens a socket or reads a clock, and no bytes, however malformed, make it panic.
#![forbid(unsafe_code)]

pub mod answer;
pub mod craft;
pub mod edit;
pub mod parse;

mod bytes;
mod checksum;
mod layer;
#[cfg(test)]
mod samples;

pub use layer::{LinkLayer, MacAddress};
