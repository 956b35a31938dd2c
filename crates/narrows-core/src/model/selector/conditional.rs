//! Losses as likely as the losses just before say: netem-trace's (and rattan's) loss pattern.
//!
//! A list of probabilities: after i losses in a row the next packet is lost with the ith, counted from 0; beyond its end
//! the last holds. A packet that gets through starts the count anew, so a burst and the packet that ends it make a cycle:
//! with `sᵢ = p₀·p₁·…·pᵢ₋₁` the probability that a cycle has at least i losses and n the number of the last in the list,
//! a cycle has `W = s₀ + s₁ + … + sₙ₋₁ + sₙ/(1 − pₙ)` packets on average, of which one gets through. The share lost is
//! 1 − 1/W, the mean burst (W − 1)/p₀, and a run of packets that get through is geometric with mean 1/p₀.
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

/// Each packet with a probability that goes by how many before it were lost in a row.
#[derive(Clone, Debug)]
pub struct Conditional {
    after: Box<[Probability]>,
    /// Losses in a row so far, no more than the number of the last probability.
    losses: usize,
}

impl Conditional {
    /// After i losses in a row the next packet is lost with `after[i]`; the last holds for all beyond.
    ///
    /// # Errors
    /// When there is no probability.
    pub fn new(after: impl Into<Box<[Probability]>>) -> Result<Self, SelectorError> {
        let after = after.into();
        if after.is_empty() { Err(SelectorError::NoProbabilities) } else { Ok(Self { after, losses: 0 }) }
    }

    /// W, infinite where losses never end.
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
