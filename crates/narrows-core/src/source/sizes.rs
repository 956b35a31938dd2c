//! How many bytes an application sends: a size, or a distribution of sizes.
//!
//! Drawn sizes are rounded to whole bytes, at least 1. A Pareto distribution with a maximum `most` puts the
//! probability beyond the maximum at the maximum itself. Its mean is m·shape/(shape − 1) − m^shape·most^(1 −
//! shape)/(shape − 1), with m the minimum size: less than the mean without a maximum, which is the one
//! configured.

use alloc::vec::Vec;

use super::pareto;
use crate::random::Draw;
use crate::units::Bytes;

/// A size, or a distribution of sizes.
#[derive(Clone, Debug, PartialEq)]
pub enum Sizes {
    /// Constant.
    Fixed(Bytes),
    /// Exponential with this mean.
    Exponential(Bytes),
    /// Pareto: P(X > x) = (m/x)^shape for x ≥ m = mean·(shape − 1)/shape; shape above 1.
    Pareto {
        /// The mean without a maximum.
        mean: Bytes,
        /// The shape, above 1; at 2 and below the variance is infinite.
        shape: f64,
        /// The maximum size.
        most: Option<Bytes>,
    },
    /// Each size with a weight; not empty.
    Mix(Vec<(Bytes, u64)>),
}

impl Sizes {
    /// Draws a size.
    pub fn draw(&self, draw: &mut Draw) -> Bytes {
        let bytes = match self {
            Self::Fixed(bytes) => return *bytes,
            // Casts saturate.
            Self::Exponential(mean) => (-(mean.get() as f64) * libm::log(draw.uniform()) + 0.5) as u64,
            Self::Pareto { mean, shape, most } => {
                let bytes = (pareto(mean.get() as f64, *shape, draw) + 0.5) as u64;
                bytes.min(most.map_or(u64::MAX, Bytes::get))
            }
            Self::Mix(mix) => {
                let total = mix.iter().map(|(_, weight)| weight).sum();
                let mut at = draw.below(total);
                for &(bytes, weight) in mix {
                    if at < weight {
                        return bytes;
                    }
                    at -= weight;
                }
                0 // only for an empty mix
            }
        };
        Bytes::new(bytes.max(1))
    }

    /// The mean, in bytes.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Fixed(mean) | Self::Exponential(mean) | Self::Pareto { mean, most: None, .. } => {
                mean.get() as f64
            }
            Self::Pareto { mean, shape, most: Some(most) } => {
                let least = mean.get() as f64 * (shape - 1.0) / shape;
                let most = most.get() as f64;
                if most <= least {
                    return most;
                }
                let beyond = libm::pow(least / most, *shape) * most;
                (least * shape - beyond) / (shape - 1.0)
            }
            Self::Mix(mix) => {
                let total: u64 = mix.iter().map(|(_, weight)| weight).sum();
                let sum: f64 = mix.iter().map(|(bytes, weight)| bytes.get() as f64 * *weight as f64).sum();
                sum / total.max(1) as f64
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Seed, Stream};

    const KILO: Bytes = Bytes::new(10_000);

    fn mean_of(sizes: &Sizes, draws: u64) -> f64 {
        let stream = Stream::new(Seed(3), "sizes", "size");
        let sum: f64 = (0..draws).map(|n| sizes.draw(&mut stream.nth(n)).get() as f64).sum();
        sum / draws as f64
    }

    #[test]
    fn drawn_sizes_have_the_mean_that_is_told() {
        let mix = Sizes::Mix(Vec::from([(Bytes::new(100), 3), (Bytes::new(20_000), 1)]));
        let cut = Sizes::Pareto { mean: KILO, shape: 1.5, most: Some(Bytes::new(200_000)) };
        for sizes in [Sizes::Fixed(KILO), Sizes::Exponential(KILO), cut, mix] {
            let (mean, drawn) = (sizes.mean(), mean_of(&sizes, 40_000));
            // The greatest standard deviation is that of the cut Pareto, about 2.2 means: 4 standard errors are 4.4 %.
            assert!((drawn / mean - 1.0).abs() < 0.044, "{sizes:?}: {drawn} for {mean}");
        }
    }

    #[test]
    fn a_cut_is_a_cut() {
        let sizes = Sizes::Pareto { mean: KILO, shape: 1.2, most: Some(Bytes::new(50_000)) };
        let stream = Stream::new(Seed(3), "sizes", "size");
        let greatest = (0..10_000).map(|n| sizes.draw(&mut stream.nth(n))).max();
        assert_eq!(greatest, Some(Bytes::new(50_000)));
        // All of the mass is at the cut where the least size is above it.
        let all = Sizes::Pareto { mean: KILO, shape: 2.0, most: Some(Bytes::new(10)) };
        assert_eq!((all.mean(), mean_of(&all, 100)), (10.0, 10.0));
    }
}
