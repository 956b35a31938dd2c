//! Sampling from a distribution.

use alloc::boxed::Box;
use alloc::sync::Arc;

use super::interpolation::Interpolation;
use super::level::Level;
use super::shape::Shape;
use super::{Distribution, LONGEST};
use crate::random::Draw;
use crate::time::Duration;

/// Draws delays from a distribution, in whole nanoseconds.
///
/// By inversion, from one random number of 53 bits; a mixture takes one more to choose the part. The
/// quantiles of a gamma distribution, which are expensive to compute, come from an interpolation built once:
/// within 0.1 ns, or 1 part in 10⁹ if that is more, of the exact quantile of a probability within 10⁻⁶ of the
/// one drawn.
#[derive(Clone, Debug)]
pub struct Sampler(Kind);

#[derive(Clone, Debug)]
enum Kind {
    /// By formula.
    Closed(Shape),
    /// Interpolated, by the standard normal quantile of the random number.
    Interpolated(Arc<Interpolation>),
    /// A mixture: the first part whose cumulative share is not below the random number.
    One(Box<[(f64, Kind)]>),
}

impl Sampler {
    /// A sampler for a distribution. Building the interpolation may take some milliseconds.
    pub fn new(distribution: &Distribution) -> Self {
        Self(Kind::new(&distribution.shape))
    }

    /// The next delay.
    #[inline]
    pub fn sample(&self, draw: &mut Draw) -> Duration {
        whole(self.0.sample(draw))
    }
}

impl Kind {
    fn new(shape: &Shape) -> Self {
        match shape {
            Shape::Mixture(mixture) => {
                let mut sum = 0.0;
                let part = |(share, shape): &(f64, Shape)| {
                    sum += share;
                    (sum, Self::new(shape))
                };
                Self::One(mixture.parts().iter().map(part).collect())
            }
            shape if shape.is_closed() => Self::Closed(shape.clone()),
            shape => Self::Interpolated(Arc::new(Interpolation::new(|level| shape.quantile(level)))),
        }
    }

    #[inline]
    fn sample(&self, draw: &mut Draw) -> f64 {
        match self {
            Self::Closed(shape) => shape.quantile(Level::at(draw.uniform())),
            Self::Interpolated(quantiles) => quantiles.at(Level::at(draw.uniform()).normal()),
            Self::One(parts) => {
                let u = draw.uniform();
                // Anything that rounding leaves above the last sum belongs to the last part.
                let place = parts.partition_point(|(sum, _)| *sum < u).min(parts.len() - 1);
                parts[place].1.sample(draw)
            }
        }
    }
}

/// Rounded to nanoseconds. A cast from a float saturates: negative values become zero.
#[inline]
pub(crate) fn whole(nanos: f64) -> Duration {
    Duration::from_nanos((nanos.min(LONGEST) + 0.5) as u64)
}
