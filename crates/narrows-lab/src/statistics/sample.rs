//! Samples: values in ascending order.

/// Finite values in ascending order, at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    values: Vec<f64>,
}

impl Sample {
    /// Sorts the values. `None` if there are none, or one is not finite.
    pub fn new(mut values: Vec<f64>) -> Option<Self> {
        if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        values.sort_unstable_by(f64::total_cmp);
        Some(Self { values })
    }

    /// The values, in ascending order.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// How many there are.
    #[expect(clippy::len_without_is_empty, reason = "none is empty")]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// The minimum.
    pub fn least(&self) -> f64 {
        self.values[0]
    }

    /// The maximum.
    pub fn greatest(&self) -> f64 {
        self.values[self.values.len() - 1]
    }

    /// The arithmetic mean.
    pub fn mean(&self) -> f64 {
        let origin = self.values[self.values.len() / 2];
        // Relative to the median, which keeps precision if the values are far from zero and close together.
        origin + self.values.iter().map(|value| value - origin).sum::<f64>() / self.values.len() as f64
    }

    /// The sample standard deviation (divided by n − 1); 0 for one value.
    pub fn sd(&self) -> f64 {
        let mean = self.mean();
        let squares: f64 = self.values.iter().map(|value| (value - mean) * (value - mean)).sum();
        libm::sqrt(squares / (self.values.len() - 1).max(1) as f64)
    }

    /// The `p` quantile of the sample, with linear interpolation between values: Hyndman and Fan's type 7 (1996,
    /// Sample Quantiles in Statistical Packages), the default in numpy and R. `p` is clamped to 0…1.
    pub fn quantile(&self, p: f64) -> f64 {
        let last = self.values.len() - 1;
        let place = p.clamp(0.0, 1.0) * last as f64;
        let below = place.floor();
        let index = below as usize;
        let value = self.values[index];
        match self.values.get(index + 1) {
            Some(next) => value + (place - below) * (next - value),
            None => value,
        }
    }

    /// The smallest value that a share `p` of the sample does not exceed: one of its values, without interpolation.
    pub fn inverse_cdf(&self, p: f64) -> f64 {
        let rank = (p.clamp(0.0, 1.0) * self.values.len() as f64).ceil() as usize;
        self.values[rank.clamp(1, self.values.len()) - 1]
    }

    /// The quantiles of 1/4, 1/2 and 3/4.
    pub fn quartiles(&self) -> [f64; 3] {
        [0.25, 0.5, 0.75].map(|p| self.quantile(p))
    }

    /// The median.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// The share of values that are at most `x`.
    pub fn cdf(&self, x: f64) -> f64 {
        self.values.partition_point(|value| *value <= x) as f64 / self.values.len() as f64
    }
}
