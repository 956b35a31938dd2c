//! A distribution given by a list of values: each is drawn in proportion to how often it occurs.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::level::Level;
use super::moments::Moments;

/// n values in order, each with a probability of 1/n. Repeated values stay repeated.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Atoms {
    values: Arc<[f64]>,
}

impl Atoms {
    /// From at least one value, in any order.
    pub(crate) fn new(mut values: Vec<f64>) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        Self { values: values.into() }
    }

    pub(crate) fn count(&self) -> usize {
        self.values.len()
    }

    pub(crate) fn level(&self, x: f64) -> Level {
        self.share(self.values.partition_point(|&value| value <= x))
    }

    pub(crate) fn level_before(&self, x: f64) -> Level {
        self.share(self.values.partition_point(|&value| value < x))
    }

    fn share(&self, below: usize) -> Level {
        let n = self.values.len();
        Level { below: below as f64 / n as f64, above: (n - below) as f64 / n as f64 }
    }

    /// The first value whose cumulative share reaches the level.
    #[inline]
    pub(crate) fn quantile(&self, level: Level) -> f64 {
        let last = self.values.len() - 1;
        let n = self.values.len() as f64;
        let place = if level.below <= level.above {
            (libm::ceil(level.below * n) as usize).saturating_sub(1).min(last)
        } else {
            last - (libm::floor(level.above * n) as usize).min(last)
        };
        self.values[place]
    }

    pub(crate) fn moments(&self, low: f64, high: f64) -> Moments {
        let start = self.values.partition_point(|&value| value < low);
        let end = self.values.partition_point(|&value| value <= high);
        if start >= end {
            return Moments::NOTHING;
        }
        let (part, first) = (&self.values[start..end], self.values[start]);
        let count = part.len() as f64;
        let mean = first + part.iter().map(|value| value - first).sum::<f64>() / count;
        let variance = part.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / count;
        Moments { mass: count / self.values.len() as f64, mean, variance }
    }

    pub(crate) fn list(&self) -> Vec<(f64, f64)> {
        let n = self.values.len() as f64;
        self.values.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as f64 / n)).collect()
    }
}
