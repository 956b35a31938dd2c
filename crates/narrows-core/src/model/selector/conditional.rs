//! Loss conditioned on the preceding losses: the loss pattern of netem-trace (and rattan).
//!
//! A list of probabilities: after i losses in a row the next packet is lost with the ith, counted from 0;
//! beyond the end of the list the last one applies. A received packet resets the count, so a burst and the
//! packet that ends it form a cycle. With `sᵢ = p₀·p₁·…·pᵢ₋₁` the probability that a cycle has at least i
//! losses, and n the index of the last probability, a cycle has `W = s₀ + s₁ + … + sₙ₋₁ + sₙ/(1 − pₙ)`
//! packets on average, one of which is received. The share lost is 1 − 1/W, the mean burst (W − 1)/p₀, and a
//! run of received packets is geometric with mean 1/p₀.
//!
//! ```
//! use narrows_core::Probability;
//! use narrows_core::model::selector::{Conditional, Selector};
//!
//! let percent = |n| Probability::from_ratio(n, 100).unwrap();
//! let loss = Conditional::new([percent(10), percent(50)])?;
//! assert!((loss.mean() - 1.0 / 6.0).abs() < 1e-12); // a cycle has 1 + 0.1/0.5 packets
//! # Ok::<(), narrows_core::model::selector::SelectorError>(())
//! ```

use alloc::boxed::Box;

use super::{Selector, SelectorError};
use crate::pool::PacketState;
use crate::random::Draw;
use crate::time::Time;
use crate::units::Probability;

/// Loses each packet with a probability that depends on how many before it were lost in a row.
#[derive(Clone, Debug)]
pub struct Conditional {
    after: Box<[Probability]>,
    /// Losses in a row so far, at most the index of the last probability.
    losses: usize,
}

impl Conditional {
    /// After i losses in a row the next packet is lost with probability `after[i]`; beyond the end of the
    /// list the last one applies.
    ///
    /// # Errors
    /// If the list is empty.
    pub fn new(after: impl Into<Box<[Probability]>>) -> Result<Self, SelectorError> {
        let after = after.into();
        if after.is_empty() { Err(SelectorError::NoProbabilities) } else { Ok(Self { after, losses: 0 }) }
    }

    /// W; infinite if losses never end.
    fn cycle(&self) -> f64 {
        let (mut packets, mut at_least) = (0.0, 1.0);
        for (number, probability) in (1..).zip(&self.after) {
            let probability = probability.as_f64();
            packets += if number < self.after.len() { at_least } else { at_least / (1.0 - probability) };
            at_least *= probability;
            if at_least == 0.0 {
                break;
            }
        }
        packets
    }
}

impl Selector for Conditional {
    fn selects(&mut self, _: Time, _: &PacketState, draw: &mut Draw) -> bool {
        let lost = draw.chance(self.after[self.losses]);
        self.losses = if lost { (self.losses + 1).min(self.after.len() - 1) } else { 0 };
        lost
    }

    fn mean(&self) -> f64 {
        1.0 - 1.0 / self.cycle()
    }

    fn mean_burst(&self) -> Option<f64> {
        let first = self.after[0];
        (!first.is_zero()).then(|| (self.cycle() - 1.0) / first.as_f64())
    }
}
