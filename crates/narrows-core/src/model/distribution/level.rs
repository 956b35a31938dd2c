//! A probability that keeps its precision at both ends.

use crate::model::normal;

/// A probability and its complement. Near 1 a float has few digits left for the difference to 1, so both are
/// stored: both tails of a distribution are as precise as its middle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Level {
    /// The probability of at most this value.
    pub(crate) below: f64,
    /// The probability of more than this value: 1 − `below`.
    pub(crate) above: f64,
}

impl Level {
    pub(crate) const NONE: Self = Self { below: 0.0, above: 1.0 };
    pub(crate) const ALL: Self = Self { below: 1.0, above: 0.0 };

    /// From a probability between 0 and 1.
    #[inline]
    pub(crate) fn at(below: f64) -> Self {
        Self { below, above: 1.0 - below }
    }

    /// Φ(z).
    #[inline]
    pub(crate) fn of_normal(z: f64) -> Self {
        if z <= 0.0 { Self::at(normal::cumulative(z)) } else { Self::at(normal::cumulative(-z)).complement() }
    }

    /// Φ⁻¹, infinite at the ends.
    #[inline]
    pub(crate) fn normal(self) -> f64 {
        match self {
            Self { below, .. } if below <= 0.0 => f64::NEG_INFINITY,
            Self { above, .. } if above <= 0.0 => f64::INFINITY,
            Self { below, above } if below <= above => normal::quantile(below),
            Self { above, .. } => -normal::quantile(above),
        }
    }

    pub(crate) fn complement(self) -> Self {
        Self { below: self.above, above: self.below }
    }

    /// The probability between a lower level and this one.
    pub(crate) fn from(self, lower: Self) -> f64 {
        let difference =
            if lower.below <= lower.above { self.below - lower.below } else { lower.above - self.above };
        difference.max(0.0)
    }

    /// The level this fraction of the way from `low` to `high`. No cancellation.
    #[inline]
    pub(crate) fn between(self, low: Self, high: Self) -> Self {
        Self {
            below: low.below * self.above + high.below * self.below,
            above: low.above * self.above + high.above * self.below,
        }
    }

    /// −ln of the upper tail.
    #[inline]
    pub(crate) fn hazard(self) -> f64 {
        if self.below < 0.5 { -libm::log1p(-self.below) } else { -libm::log(self.above) }
    }

    /// The level whose upper tail has this −ln, from 0 to infinity.
    #[inline]
    pub(crate) fn of_hazard(hazard: f64) -> Self {
        Self { below: -libm::expm1(-hazard), above: libm::exp(-hazard) }
    }
}
