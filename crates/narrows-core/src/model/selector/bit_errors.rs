//! Independent bit errors.

use super::SelectorError;
use crate::random::Draw;
use crate::units::Probability;

/// Each bit is flipped with the same probability, independently of all others: of a packet of n bits, at
/// least one is flipped with probability `1 − (1 − e)ⁿ`.
///
/// The number of bits up to the next error is geometric, `P(G = k) = (1 − e)ᵏ·e`, and is drawn by inversion,
/// `G = ⌊ln U/ln(1 − e)⌋`: one draw per error and one more for the rest of the packet, whatever its length.
/// The rest of a gap at the end of a packet is discarded: the distribution is memoryless, and so each packet
/// uses only its own draws.
#[derive(Clone, Copy, Debug)]
pub struct BitErrors {
    rate: Probability,
    /// 1/ln(1 − e), negative.
    per_log: f64,
}

impl BitErrors {
    /// The maximum rate. Above it, no packet of any protocol would be recognizable, and the list of flipped
    /// bits would take more memory than the packets.
    pub const MOST: Probability = match Probability::from_ratio(1, 10) {
        Some(tenth) => tenth,
        None => Probability::ZERO,
    };

    /// Flips bits with probability `rate`.
    ///
    /// # Errors
    /// If `rate` is above [`BitErrors::MOST`].
    pub fn new(rate: Probability) -> Result<Self, SelectorError> {
        if rate > Self::MOST {
            return Err(SelectorError::BitErrors(rate));
        }
        Ok(Self { rate, per_log: 1.0 / libm::log1p(-rate.as_f64()) })
    }

    pub(crate) fn corrupt(&self, bits: u32, draw: &mut Draw, mut flip: impl FnMut(u32)) {
        if self.rate.is_zero() {
            return;
        }
        let mut next = 0u64;
        loop {
            // Up to about 2⁶³: a cast from a float saturates.
            next = next.saturating_add((libm::log(draw.uniform()) * self.per_log) as u64);
            if next >= bits.into() {
                return;
            }
            flip(next as u32); // less than `bits`
            next += 1;
        }
    }
}
