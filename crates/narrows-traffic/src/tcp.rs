//! TCP hosts in virtual time: smoltcp's sockets, whose segments cross the engine as packets.
//!
//! A [`Host`] has an address and answers what arrives at the instant of its arrival; it takes no time for it. Each
//! connection has an [`End`] at either host. Segments are real: with sequence numbers, checksums and the options that
//! smoltcp sends (maximum segment size, window scale, SACK permitted and one SACK block), in packets that may not be cut.
//!
//! smoltcp counts time in microseconds. An arrival counts as of the last whole one, so that timers which it starts are up
//! to a microsecond early; segments leave at the very instant of what made them leave, to the nanosecond.
//!
//! What this sender is not: docs/model.md.

mod end;
mod segment;
mod wire;

pub(crate) use end::{End, Host};
pub(crate) use segment::Segment;
pub use segment::ethernet_header;
