//! Distributions of delays, in nanoseconds.
//!
//! Every distribution is sampled by inversion, X = Q(U), or as a mixture of such, from keyed random bits,
//! using only the four arithmetic operations, roots and the pinned libm: the same values on every machine. A
//! distribution is defined on the real line, so a normal distribution can be shifted or mixed before negative
//! delays are handled. Finally, values below zero are clamped or truncated ([`BelowZero`]).
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

/// A distribution of delays: see the module's description. A clone shares long lists with the original.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// The configured shape, on the real line.
    raw: Shape,
    below_zero: BelowZero,
    /// The shape sampled from; differs from `raw` if something is truncated below zero.
    shape: Shape,
}

/// How the part of a distribution below zero is handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BelowZero {
    /// A draw below zero becomes zero: zero gets all of that probability, and the mean rises.
    #[default]
    Clamp,
    /// Values below zero never occur, and all others become proportionally more probable.
    Truncate,
}

/// All time parameters and all draws lie within 2⁵³ ns of zero, 104 days.
pub(crate) const LONGEST: f64 = (1u64 << 53) as f64;

/// # Modification
impl Distribution {
    fn of(raw: Shape) -> Self {
        Self { shape: raw.clone(), raw, below_zero: BelowZero::Clamp }
    }

    /// Another shape with the same handling below zero.
    fn with(self, raw: Shape) -> Result<Self, DistributionError> {
        Self::of(raw).below_zero(self.below_zero)
    }

    /// Shifted by `by` nanoseconds: later if positive, earlier if negative.
    ///
    /// # Errors
    /// If truncation below zero leaves nothing, or the shift is longer than 104 days.
    pub fn shifted(self, by: i64) -> Result<Self, DistributionError> {
        let by = construct::place("shift", by as f64)?;
        let raw = construct::shifted(self.raw.clone(), by);
        self.with(raw)
    }

    /// Restricted to `minimum` to `maximum`, both included: values outside never occur, and the probability
    /// of the others grows in proportion. Without a minimum, values below zero are handled as before.
    ///
    /// # Errors
    /// If nothing is left.
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

    /// Sets the handling of values below zero, replacing any earlier setting. Applies to all shifts and
    /// truncations, earlier and later ones.
    ///
    /// # Errors
    /// If truncation leaves nothing.
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

/// # Properties
impl Distribution {
    /// The probability of a delay of `x` nanoseconds or less.
    pub fn cdf(&self, x: f64) -> f64 {
        if x < 0.0 { 0.0 } else { self.shape.level(x).below }
    }

    /// The probability of a delay of more than `x` nanoseconds: 1 − [`Distribution::cdf`], without loss of
    /// digits.
    pub fn survival(&self, x: f64) -> f64 {
        if x < 0.0 { 1.0 } else { self.shape.level(x).above }
    }

    /// The quantile: the minimum delay, in nanoseconds, that is not exceeded with probability `p`. At 0 and
    /// below, the minimum of the distribution; at 1 and above, its maximum, which may be infinite.
    pub fn quantile(&self, p: f64) -> f64 {
        self.at(Level::at(p.clamp(0.0, 1.0)))
    }

    fn at(&self, level: Level) -> f64 {
        self.shape.quantile(level).max(0.0)
    }

    /// The mean in nanoseconds, after clamping; may be infinite.
    pub fn mean(&self) -> f64 {
        self.moments().mean
    }

    /// The standard deviation in nanoseconds, after clamping; may be infinite.
    pub fn sd(&self) -> f64 {
        libm::sqrt(self.moments().variance)
    }

    fn moments(&self) -> Moments {
        let below = self.shape.level_before(0.0).below;
        let low = if below > 0.0 { 0.0 } else { f64::NEG_INFINITY };
        Moments::atom(below, 0.0).and(self.shape.moments(low, f64::INFINITY))
    }

    /// The atoms: delays, in nanoseconds, that have a positive probability, in ascending order, each with its
    /// probability.
    pub fn atoms(&self) -> Vec<(f64, f64)> {
        let mut list = self.shape.atoms();
        list.iter_mut().for_each(|(x, _)| *x = x.max(0.0));
        // Atoms among the values clamped to zero are already counted.
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

    /// The probability below zero, before clamping or truncation.
    pub fn share_below_zero(&self) -> f64 {
        self.raw.level_before(0.0).below
    }
}
