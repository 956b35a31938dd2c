//! Distributions, shares and means.

use std::ops::RangeInclusive;

use narrows_core::Duration;
use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

/// A distribution of durations. Quantiles have a relative error of at most half a part in a thousand; the other
/// values are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quantiles {
    /// Packets measured.
    pub packets: u64,
    /// The minimum.
    pub min_ns: u64,
    /// The p50 (median).
    pub p50_ns: u64,
    /// The p90.
    pub p90_ns: u64,
    /// The p99.
    pub p99_ns: u64,
    /// The p99.9.
    pub p999_ns: u64,
    /// The maximum.
    pub max_ns: u64,
    /// The mean.
    pub mean_ns: u64,
}

/// A distribution of durations: quantiles to half a part in a thousand up to one hour; min, max and mean exactly.
#[derive(Clone, Debug)]
pub(crate) struct Spread {
    histogram: Histogram,
    least: u64,
    greatest: u64,
    sum: u128,
}

impl Spread {
    /// One hour, in nanoseconds.
    const HIGHEST: u64 = 3_600_000_000_000;

    pub(crate) fn new() -> Self {
        Self { histogram: Histogram::default(), least: u64::MAX, greatest: 0, sum: 0 }
    }

    pub(crate) fn record(&mut self, span: Duration) {
        let nanos = span.nanos();
        self.histogram.record(nanos.min(Self::HIGHEST));
        self.least = self.least.min(nanos);
        self.greatest = self.greatest.max(nanos);
        self.sum += u128::from(nanos);
    }

    /// Adds another distribution.
    pub(crate) fn add(&mut self, other: &Self) {
        let_others_run();
        self.histogram.add(&other.histogram);
        self.least = self.least.min(other.least);
        self.greatest = self.greatest.max(other.greatest);
        self.sum += other.sum;
    }

    pub(crate) fn clear(&mut self) {
        self.histogram.clear();
        (self.least, self.greatest, self.sum) = (u64::MAX, 0, 0);
    }

    pub(crate) fn count(&self) -> u64 {
        self.histogram.values()
    }

    pub(crate) fn least(&self) -> Duration {
        Duration::from_nanos(if self.count() == 0 { 0 } else { self.least })
    }

    pub(crate) fn greatest(&self) -> Duration {
        Duration::from_nanos(self.greatest)
    }

    /// How many values lie between consecutive bounds, upper bound included; the first range starts at zero, the last
    /// is unbounded. A value within half a part in a thousand of a bound may be counted on its other side.
    pub(crate) fn counts<const BOUNDS: usize>(&self, bounds: &[Duration; BOUNDS]) -> Vec<u64> {
        let_others_run();
        let mut counts = vec![0; BOUNDS + 1];
        for (values, count) in self.histogram.steps() {
            let place = bounds.partition_point(|bound| bound.nanos() < middle(&values));
            counts[place] += count;
        }
        counts
    }

    /// Rounded to the nearest nanosecond.
    pub(crate) fn mean(&self) -> Duration {
        let count = u128::from(self.count().max(1));
        Duration::from_nanos(u64::try_from((self.sum + count / 2) / count).unwrap_or(u64::MAX))
    }

    /// The smallest recorded value that at least the share `q` of values does not exceed, to half a part in a
    /// thousand; exactly min and max at the ends.
    pub(crate) fn quantile(&self, q: f64) -> Duration {
        let [value] = self.quantiles([q]);
        value
    }

    /// As [`Spread::quantile`], for several in ascending order.
    pub(crate) fn quantiles<const N: usize>(&self, shares: [f64; N]) -> [Duration; N] {
        let mut steps = self.histogram.steps().into_iter();
        let (mut below, mut value) = (0, 0);
        shares.map(|share| {
            let rank = ((share * self.count() as f64).ceil() as u64).max(1);
            while below < rank
                && let Some((values, count)) = steps.next()
            {
                below += count;
                value = middle(&values).clamp(self.least, self.greatest);
            }
            Duration::from_nanos(value)
        })
    }
}

/// The value that stands for a step.
fn middle(values: &RangeInclusive<u64>) -> u64 {
    values.start() + (values.end() - values.start()).div_ceil(2)
}

pub(crate) fn sum_of<'a>(mut spreads: impl Iterator<Item = &'a Spread>) -> Option<Spread> {
    let mut sum = Spread::new();
    sum.add(spreads.next()?);
    spreads.for_each(|spread| sum.add(spread));
    Some(sum)
}

/// Ends a portion of the work on a report. A report has many distributions, and the threads that move packets may have
/// waited for this processor.
fn let_others_run() {
    std::thread::yield_now();
}

pub(crate) fn quantiles(spread: &Spread) -> Quantiles {
    let_others_run();
    let [p50_ns, p90_ns, p99_ns, p999_ns] = spread.quantiles([0.5, 0.9, 0.99, 0.999]).map(Duration::nanos);
    Quantiles {
        packets: spread.count(),
        min_ns: spread.least().nanos(),
        p50_ns,
        p90_ns,
        p99_ns,
        p999_ns,
        max_ns: spread.greatest().nanos(),
        mean_ns: spread.mean().nanos(),
    }
}

/// The mean to the nearest nanosecond; `None` for no packets.
pub(crate) fn mean(sum: Duration, packets: u64) -> Option<u64> {
    let mean = (u128::from(sum.nanos()) + u128::from(packets / 2)).checked_div(packets.into())?;
    u64::try_from(mean).ok()
}

pub(crate) fn share(part: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { part as f64 / of as f64 }
}
