//! TCP hosts in virtual time: smoltcp sockets whose segments cross the engine as packets.
//!
//! A [`Host`] has an address and responds to an arrival at the same instant, with no processing time. Each connection
//! has an [`End`] at either host. Segments are real: they have sequence numbers, checksums and the options that
//! smoltcp sends (maximum segment size, window scale, SACK permitted and one SACK block), in packets with "don't
//! fragment".
//!
//! smoltcp measures time in microseconds. An arrival counts as of the last whole microsecond, so timers that it
//! starts are up to a microsecond early. Segments leave exactly at the instant of their cause, to the nanosecond.
//!
//! docs/model.md lists the limitations of this sender.

mod buffers;
mod end;
mod segment;
mod wire;

pub(crate) use buffers::Buffers;
pub(crate) use end::{End, Host};
pub(crate) use segment::Segment;
pub use segment::ethernet_header;
