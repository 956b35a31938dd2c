//! Statistics of a sample of times.

use serde::Serialize;

/// The distribution of a sample, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// The number of values.
    pub values: usize,
    /// The mean.
    pub mean_ns: f64,
    /// The minimum, the percentiles 1 to 99, and the maximum.
    pub percentiles_ns: Vec<f64>,
}

impl Spread {
    /// From these values.
    pub(crate) fn of(mut values: Vec<i64>) -> Self {
        values.sort_unstable();
        let Some(last) = values.len().checked_sub(1) else { return Self::default() };
        let percentiles = (0..=100).map(|percent| values[last * percent / 100] as f64);
        let sum: i128 = values.iter().map(|&value| i128::from(value)).sum();
        Self {
            values: values.len(),
            mean_ns: sum as f64 / values.len() as f64,
            percentiles_ns: percentiles.collect(),
        }
    }

    /// A percentile; NaN without values.
    pub fn percentile(&self, percent: usize) -> f64 {
        self.percentiles_ns.get(percent).copied().unwrap_or(f64::NAN)
    }

    /// The mean; NaN without values.
    pub fn mean(&self) -> f64 {
        if self.values == 0 { f64::NAN } else { self.mean_ns }
    }

    /// The median.
    pub fn median(&self) -> f64 {
        self.percentile(50)
    }

    /// The interquartile range.
    pub fn quartile_range(&self) -> f64 {
        self.percentile(75) - self.percentile(25)
    }

    /// The same, with this subtracted from each value.
    #[must_use]
    pub(crate) fn less(&self, by: f64) -> Self {
        let percentiles_ns = self.percentiles_ns.iter().map(|value| value - by).collect();
        Self { values: self.values, mean_ns: self.mean_ns - by, percentiles_ns }
    }
}
