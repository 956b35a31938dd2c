//! Bit errors on the wire. Checksums are not updated.
//!
//! Bits are counted from the network header on: the link header, which another link layer would protect,
//! stays intact.

use alloc::boxed::Box;

use crate::model::Selector;
use crate::model::selector::{BitErrors, BitPattern};
use crate::pool::PacketState;
use crate::random::Draw;
use crate::time::Time;

/// Which bits are flipped.
#[derive(Debug)]
pub enum Corruption {
    /// One bit, at a uniformly random place, of each selected packet.
    Packets(Box<dyn Selector>),
    /// Each bit independently.
    BitErrors(BitErrors),
    /// Bits at predefined places.
    Pattern(BitPattern),
}

impl Corruption {
    /// Flips one bit of each selected packet.
    pub fn of(selector: impl Selector + 'static) -> Self {
        Self::Packets(Box::new(selector))
    }

    /// Calls `flip` with the number of each flipped bit of this packet, in ascending order.
    pub(crate) fn corrupt(
        &mut self,
        now: Time,
        packet: &PacketState,
        draw: &mut Draw,
        mut flip: impl FnMut(u32),
    ) {
        // Except for IPv6 jumbograms no packet has more than 65,575 bytes; a longer one is hit in its first
        // half gibibyte.
        let bits = packet.length.saturating_mul(8);
        match self {
            Self::Packets(selector) => {
                if selector.selects(now, packet, draw) && bits > 0 {
                    flip(draw.below(bits.into()) as u32);
                }
            }
            Self::BitErrors(errors) => errors.corrupt(bits, draw, flip),
            Self::Pattern(pattern) => pattern.corrupt(bits, flip),
        }
    }
}
