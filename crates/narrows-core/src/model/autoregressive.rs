//! Correlated standard normal numbers: an autoregressive process of order 1, `z₀ = ε₀`,
//! `zₙ = ρ·zₙ₋₁ + √(1 − ρ²)·εₙ` with independent standard normal ε, so every zₙ is standard normal, including
//! the first.
//!
//! The requested correlation is the rank correlation of neighbours (Spearman's), which any non-decreasing
//! function of z preserves. For the normal distribution it is (6/π)·asin(ρ/2), hence `ρ = 2·sin(π·ρₛ/6)`.

use super::normal;
use crate::random::Draw;

/// The process and its last number.
#[derive(Clone, Debug)]
pub(super) struct Autoregressive {
    /// ρ and √(1 − ρ²).
    correlation: f64,
    innovation: f64,
    last: Option<f64>,
}

impl Autoregressive {
    /// A process with a rank correlation from −1 to 1; `None` outside that range.
    pub(super) fn new(spearman: f64) -> Option<Self> {
        if !(-1.0..=1.0).contains(&spearman) {
            return None;
        }
        // Rounding would leave a little randomness at the ends.
        let correlation = match spearman.abs() {
            1.0 => spearman,
            _ => 2.0 * libm::sin(core::f64::consts::PI * spearman / 6.0),
        };
        let innovation = libm::sqrt((1.0 - correlation) * (1.0 + correlation));
        Some(Self { correlation, innovation, last: None })
    }

    /// ρ and √(1 − ρ²).
    pub(super) const fn factors(&self) -> (f64, f64) {
        (self.correlation, self.innovation)
    }

    /// The next number.
    pub(super) fn advance(&mut self, draw: &mut Draw) -> f64 {
        let new = standard_normal(draw);
        let z = self.last.map_or(new, |last| self.correlation * last + self.innovation * new);
        self.last = Some(z);
        z
    }
}

/// An independent standard normal number.
pub(super) fn standard_normal(draw: &mut Draw) -> f64 {
    normal::quantile(draw.uniform())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spearmans_is_turned_into_pearsons() {
        for (spearman, pearson) in [(0.0, 0.0), (0.5, 0.517_638_090_205_041_5), (1.0, 1.0), (-1.0, -1.0)] {
            let process = Autoregressive::new(spearman).expect("it is in range");
            assert!((process.correlation - pearson).abs() < 1e-15);
            let one = process.correlation * process.correlation + process.innovation * process.innovation;
            assert!((one - 1.0).abs() < 1e-15);
        }
    }
}
