//! Selections in a row, and what can be said of them.

use narrows_core::model::selector::Selector;
use narrows_core::queue::Stand;
use narrows_core::{FlowKey, Probability, Seed, Stream, Time};

pub(crate) fn ratio(numerator: u64, denominator: u64) -> Probability {
    Probability::from_ratio(numerator, denominator).expect("no more than 1")
}

/// What becomes of so many packets in a row.
pub(crate) fn select(mut selector: impl Selector, seed: u64, packets: u64) -> Vec<bool> {
    let mut stand = Stand::new(Seed(seed));
    let packet = stand.insert(Time::ZERO, FlowKey::default(), 1000);
    let stream = Stream::new(Seed(seed), "link", "loss");
    let state = stand.pool().get(packet);
    (0..packets).map(|n| selector.selects(Time::from_nanos(n), state, &mut stream.nth(n))).collect()
}

/// A mean and its standard error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Estimate {
    pub(crate) mean: f64,
    pub(crate) error: f64,
}

impl Estimate {
    /// Of values that are independent.
    pub(crate) fn of(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|value| libm::pow(value - mean, 2.0)).sum::<f64>() / (n - 1.0);
        Self { mean, error: (variance / n).sqrt() }
    }

    /// Of values that depend on their neighbours: from the means of a hundred batches, each far longer than the
    /// dependence reaches.
    pub(crate) fn of_dependent(values: &[f64]) -> Self {
        let batch = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        Self::of(&values.chunks_exact(values.len() / 100).map(batch).collect::<Vec<_>>())
    }

    /// Within 4 standard errors.
    pub(crate) fn assert_is(self, expected: f64, what: &str) {
        let off = (self.mean - expected).abs();
        // What does not vary is exact, but for the rounding of what is expected.
        assert!(off <= 4.0 * self.error + 1e-9, "{what}: {self:?} for {expected}");
    }
}

/// The lengths of the runs of `which` that begin and end within the row.
pub(crate) fn runs(row: &[bool], which: bool) -> Vec<usize> {
    let mut runs: Vec<usize> =
        row.chunk_by(|a, b| a == b).map(|run| if run[0] == which { run.len() } else { 0 }).collect();
    runs.pop();
    runs.drain(..1);
    runs.retain(|&length| length > 0);
    runs
}

/// That the lengths are distributed so: by chi-square over the lengths that are expected at least twenty times, all longer
/// ones together. One such test in a thousand would fail by chance.
pub(crate) fn assert_lengths(lengths: &[usize], probability: impl Fn(usize) -> f64, what: &str) {
    let n = lengths.len() as f64;
    let (mut sum, mut degrees, mut below, mut at_least) = (0.0, 0.0f64, 0, 1.0);
    let mut add = |seen: usize, expected: f64| sum += libm::pow(seen as f64 - expected, 2.0) / expected;
    for length in 1.. {
        let p = probability(length);
        if n * p < 20.0 || n * (at_least - p) < 20.0 {
            break;
        }
        let seen = lengths.iter().filter(|&&l| l == length).count();
        add(seen, n * p);
        (below, at_least, degrees) = (below + seen, at_least - p, degrees + 1.0);
    }
    add(lengths.len() - below, n * at_least);
    if degrees == 0.0 {
        // One length only: nothing is left to chance.
        return assert!(sum < 1e-6, "{what}: {lengths:?}");
    }
    // Wilson and Hilferty's approximation of the quantile at 99.9 %.
    let part = 2.0 / (9.0 * degrees);
    let critical = degrees * libm::pow(1.0 - part + 3.09 * part.sqrt(), 3.0);
    assert!(sum < critical, "{what}: chi-square {sum} of {degrees} degrees, critical {critical}");
}
