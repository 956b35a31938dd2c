//! Correlated selection: a fixed share of packets, where neighbouring packets tend to be selected or not
//! together.
//!
//! A Gaussian copula, autoregressive of order 1: `z₀ = ε₀`, `zₙ = ρ·zₙ₋₁ + √(1 − ρ²)·εₙ` with independent
//! standard normal ε; packet n is selected if `zₙ < Φ⁻¹(p)`. Every zₙ is standard normal, so every packet is
//! selected with exactly probability p, whatever the correlation. The parameter is Spearman's rank
//! correlation ρₛ of neighbouring z; the corresponding normal correlation is `ρ = 2·sin(π·ρₛ/6)`. The
//! correlation of the selections themselves is smaller: `(Φ₂(q, q; ρ) − p²)/(p·(1 − p))`, q = Φ⁻¹(p) and Φ₂
//! the bivariate normal distribution.
//!
//! This replaces NetEm's formula `x' = (1 − ρ)·x + ρ·last` on uniform x, which pulls x' to the middle: with
//! `loss 20% 40%` it loses 5.3 %, and with `loss 0.3% 25%`, the example of its manual, four packets in a
//! thousand million. [`netem`](crate::netem) implements that formula bit-exactly.
//!
//! ```
//! use narrows_core::Probability;
//! use narrows_core::model::selector::{Correlated, Selector};
//!
//! let loss = Correlated::new(Probability::from_ratio(1, 100).unwrap(), 0.25)?;
//! assert_eq!(loss.mean(), 0.01);
//! # Ok::<(), narrows_core::model::selector::SelectorError>(())
//! ```

use super::{Selector, SelectorError};
use crate::model::autoregressive::Autoregressive;
use crate::model::normal;
use crate::pool::PacketState;
use crate::random::Draw;
use crate::time::Time;
use crate::units::Probability;

/// Selects each packet with the same probability, with a rank correlation between neighbours.
#[derive(Clone, Debug)]
pub struct Correlated {
    probability: Probability,
    /// Φ⁻¹(p), infinite at the ends.
    threshold: f64,
    process: Autoregressive,
}

impl Correlated {
    /// Selects packets with `probability`, and with the rank correlation `spearman` between neighbours.
    ///
    /// # Errors
    /// If the correlation is not above −1 and below 1.
    pub fn new(probability: Probability, spearman: f64) -> Result<Self, SelectorError> {
        let process = Autoregressive::new(spearman).filter(|_| spearman.abs() < 1.0);
        let process = process.ok_or(SelectorError::Correlation(spearman))?;
        let threshold = match probability {
            Probability::ZERO => f64::NEG_INFINITY,
            Probability::ONE => f64::INFINITY,
            // From the smaller tail: as a float, 1 − 10⁻¹⁸ is 1, which has no finite quantile.
            rare if rare <= rare.complement() => normal::quantile(rare.as_f64()),
            often => -normal::quantile(often.complement().as_f64()),
        };
        Ok(Self { probability, threshold, process })
    }
}

impl Selector for Correlated {
    fn selects(&mut self, _: Time, _: &PacketState, draw: &mut Draw) -> bool {
        self.process.advance(draw) < self.threshold
    }

    fn mean(&self) -> f64 {
        self.probability.as_f64()
    }
}
