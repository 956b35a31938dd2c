//! Probability, mean and variance of a part of a distribution.

/// For the part of a distribution that lies in some interval: its probability, and the conditional mean and
/// variance given that interval. An infinite mean comes with an infinite variance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Moments {
    pub(crate) mass: f64,
    pub(crate) mean: f64,
    pub(crate) variance: f64,
}

impl Moments {
    pub(crate) const NOTHING: Self = Self { mass: 0.0, mean: 0.0, variance: 0.0 };

    /// All probability at one point.
    pub(crate) fn atom(mass: f64, at: f64) -> Self {
        Self { mass, mean: at, variance: 0.0 }
    }

    /// From ∫ x dF and ∫ x² dF over the part.
    pub(crate) fn raw(mass: f64, first: f64, second: f64) -> Self {
        if mass <= 0.0 {
            return Self::NOTHING;
        }
        let mean = first / mass;
        let variance =
            if second.is_finite() { (second / mass - mean * mean).max(0.0) } else { f64::INFINITY };
        Self { mass, mean, variance }
    }

    /// Limits the moments to what is possible between `low` and `high`, for intervals so narrow that
    /// differences cancel.
    pub(crate) fn within(self, low: f64, high: f64) -> Self {
        if self.mass <= 0.0 || low > high {
            return self;
        }
        let half = 0.5 * (high - low);
        Self { mean: self.mean.clamp(low, high), variance: self.variance.min(half * half), ..self }
    }

    /// The moments of `scale`·X + `shift`.
    pub(crate) fn linear(self, shift: f64, scale: f64) -> Self {
        Self { mean: self.mean * scale + shift, variance: self.variance * scale * scale, ..self }
    }

    /// Two parts combined, by the law of total variance.
    pub(crate) fn and(self, other: Self) -> Self {
        let mass = self.mass + other.mass;
        if self.mass <= 0.0 || other.mass <= 0.0 {
            let part = if self.mass > 0.0 { self } else { other };
            return Self { mass, ..part };
        }
        let (share, rest) = (self.mass / mass, other.mass / mass);
        let mean = share * self.mean + rest * other.mean;
        let apart = self.mean - other.mean;
        let variance = share * self.variance + rest * other.variance;
        if !mean.is_finite() {
            return Self { mass, mean, variance: f64::INFINITY };
        }
        Self { mass, mean, variance: variance + share * rest * apart * apart }
    }
}
