//! Distributions of delays, in nanoseconds.
//!
//! Every distribution is drawn from by inversion, X = Q(U), or as a mixture of such, from keyed random bits, with the four
//! operations, roots and the pinned libm only: the same values on every machine. The real line is where a distribution lives, so
//! that a normal distribution may be shifted or mixed before it is cut off; what lies below zero in the end is clamped or
//! truncated ([`BelowZero`]).
//!
//! ```
//! use narrows_core::Duration;
//! use narrows_core::model::{BelowZero, Distribution};
//!
//! let jitter = Distribution::gamma(4.0, 500_000.0)?.shifted(10_000_000)?;
//! assert_eq!((jitter.mean(), jitter.sd()), (12e6, 1e6));
//! let worst = Some(Duration::from_millis(15));
//! let cut = jitter.truncated(None, worst)?;
//! assert!(cut.mean() < 12e6 && cut.cdf(15e6) == 1.0);
//! let none = Distribution::normal(1e6, 1e5)?.truncated(Some(Duration::from_secs(1)), None);
//! assert_eq!(none.unwrap_err().to_string(), "no delay is left: none is 1s or more");
//! let normal = Distribution::normal(1e6, 1e6)?.below_zero(BelowZero::Truncate)?;
//! assert_eq!(normal.to_string(), "normal, mean 1ms, sd 1ms, below zero truncated");
//! # Ok::<(), narrows_core::model::DistributionError>(())
//! ```

mod atoms;
mod builtin;
mod construct;
mod error;
mod interpolation;
mod level;
mod moments;
mod pareto_normal;
mod piecewise;
mod root;
mod sampler;
mod shape;
mod special;
#[cfg(test)]
mod tests;
mod transform;
mod words;

pub use builtin::builtin_table;
pub use error::DistributionError;
pub use sampler::Sampler;
pub(crate) use sampler::whole;
pub(crate) use transform::Transform;

use alloc::vec::Vec;

use crate::time::Duration;
use level::Level;
use moments::Moments;
use shape::Shape;

/// A distribution of delays: see the module's description. A copy shares long lists with the original.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// What was asked for, on the real line.
    raw: Shape,
    below_zero: BelowZero,
    /// What is drawn from; differs from `raw` where something is truncated below zero.
    shape: Shape,
}

/// What becomes of the part of a distribution that lies below zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BelowZero {
    /// A draw below zero becomes zero: zero gets all of that probability, and the mean rises.
    #[default]
    Clamp,
    /// What is below zero never happens, and all else becomes more probable in proportion.
    Truncate,
}

/// All parameters that are times lie within 2⁵³ ns of zero, 104 days, as do all draws.
pub(crate) const LONGEST: f64 = (1u64 << 53) as f64;

/// # What becomes of it
impl Distribution {
    fn of(raw: Shape) -> Self {
        Self { shape: raw.clone(), raw, below_zero: BelowZero::Clamp }
    }

    /// With another shape, below zero as before.
    fn with(self, raw: Shape) -> Result<Self, DistributionError> {
        Self::of(raw).below_zero(self.below_zero)
    }

    /// All of it later by so many nanoseconds, or earlier.
    ///
    /// # Errors
    /// When nothing is left above zero that is to be truncated there, or the shift is longer than 104 days.
    pub fn shifted(self, by: i64) -> Result<Self, DistributionError> {
        let by = construct::place("shift", by as f64)?;
        let raw = construct::shifted(self.raw.clone(), by);
        self.with(raw)
    }

    /// Only what lies from `minimum` to `maximum`, both included, in proportion: what lies outside never happens. Without
    /// a minimum, what lies below zero stays what it is.
    ///
    /// # Errors
    /// When nothing is left.
    pub fn truncated(
        self,
        minimum: Option<Duration>,
        maximum: Option<Duration>,
    ) -> Result<Self, DistributionError> {
        let low = minimum.map_or(f64::NEG_INFINITY, |minimum| minimum.nanos() as f64);
        let high = maximum.map_or(f64::INFINITY, |maximum| maximum.nanos() as f64);
        if low > high {
            return Err(DistributionError::Range { low, high });
        }
        let raw = construct::truncated(self.raw.clone(), low, high)?;
        self.with(raw)
    }

    /// What becomes of what lies below zero, whatever was said of it before. Holds for all shifts and truncations,
    /// earlier ones and later ones.
    ///
    /// # Errors
    /// When it is to be truncated and nothing is left.
    pub fn below_zero(self, below_zero: BelowZero) -> Result<Self, DistributionError> {
        let shape = match below_zero {
            BelowZero::Truncate if self.raw.level_before(0.0).below > 0.0 => {
                construct::truncated(self.raw.clone(), 0.0, f64::INFINITY)?
            }
            _ => self.raw.clone(),
        };
        Ok(Self { raw: self.raw, below_zero, shape })
    }
}

/// # What it is like
impl Distribution {
    /// The probability of a delay of `x` nanoseconds or less.
    pub fn cdf(&self, x: f64) -> f64 {
        if x < 0.0 { 0.0 } else { self.shape.level(x).below }
    }

    /// The probability of a delay of more than `x` nanoseconds: 1 − [`Distribution::cdf`], with all its digits.
    pub fn survival(&self, x: f64) -> f64 {
        if x < 0.0 { 1.0 } else { self.shape.level(x).above }
    }

    /// The least delay, in nanoseconds, that is not exceeded with a probability of `p`; at 0 and below the shortest
    /// delay, at 1 and above the longest, which may be infinite.
    pub fn quantile(&self, p: f64) -> f64 {
        self.at(Level::at(p.clamp(0.0, 1.0)))
    }

    fn at(&self, level: Level) -> f64 {
        self.shape.quantile(level).max(0.0)
    }

    /// The mean in nanoseconds, after clamping, may be infinite.
    pub fn mean(&self) -> f64 {
        self.moments().mean
    }

    /// The standard deviation in nanoseconds, after clamping, may be infinite.
    pub fn sd(&self) -> f64 {
        libm::sqrt(self.moments().variance)
    }

    fn moments(&self) -> Moments {
        let below = self.shape.level_before(0.0).below;
        let low = if below > 0.0 { 0.0 } else { f64::NEG_INFINITY };
        Moments::atom(below, 0.0).and(self.shape.moments(low, f64::INFINITY))
    }

    /// The delays, in nanoseconds, that have a probability of their own, from the shortest on, with it.
    pub fn atoms(&self) -> Vec<(f64, f64)> {
        let mut list = self.shape.atoms();
        list.iter_mut().for_each(|(x, _)| *x = x.max(0.0));
        // Of what is clamped to zero the atoms are counted already.
        let discrete: f64 = list.iter().filter(|(x, _)| *x <= 0.0).map(|(_, p)| p).sum();
        let clamped = self.shape.level(0.0).below - discrete;
        if clamped > 1e-15 {
            list.push((0.0, clamped));
        }
        list.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        list.dedup_by(|(later, p), (first, sum)| {
            let same = later == first;
            if same {
                *sum += *p;
            }
            same
        });
        list
    }

    /// The probability below zero before it was clamped or truncated.
    pub fn share_below_zero(&self) -> f64 {
        self.raw.level_before(0.0).below
    }
}
