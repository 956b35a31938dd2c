//! What tests of samples share.

use narrows_core::{Seed, Stream};

/// A stream of draws.
pub(crate) fn stream(seed: u64) -> Stream {
    Stream::new(Seed(seed), "test", "delay")
}

/// The largest distance of the samples' distribution from `level` at these places, of (x, probability of x or less).
pub(crate) fn distance(samples: &[f64], places: &[(f64, f64)]) -> f64 {
    let mut counts = vec![0u64; places.len() + 1];
    for &sample in samples {
        counts[places.partition_point(|&(x, _)| x < sample)] += 1;
    }
    let (mut sum, mut most) = (0, 0.0f64);
    for (&count, &(_, p)) in counts.iter().zip(places) {
        sum += count;
        most = most.max((sum as f64 / samples.len() as f64 - p).abs());
    }
    most
}

/// What the distance of n independent samples exceeds in 1 of 1,000 cases (Kolmogorov's limit law).
pub(crate) fn critical(samples: usize) -> f64 {
    1.95 / (samples as f64).sqrt()
}

/// Pearson's χ² of counts against probabilities, and the largest value that is less than 4 standard errors above what is
/// to be expected: with d degrees of freedom, d + 4·√(2d), and a bit as its tail is longer than a normal one's.
pub(crate) fn chi_square(counts: &[u64], probabilities: &[f64]) -> (f64, f64) {
    let n = counts.iter().sum::<u64>() as f64;
    let parts = counts.iter().zip(probabilities);
    let part = |(&count, p): (&u64, &f64)| {
        let off = count as f64 - n * p;
        off * off / (n * p)
    };
    let chi = parts.map(part).sum();
    let freedom = (counts.len() - 1) as f64;
    (chi, freedom + 4.0 * (2.0 * freedom).sqrt() + 6.0)
}

/// Ranks from 0 on; among equals in the order in which they come.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|&a, &b| values[a].total_cmp(&values[b]).then(a.cmp(&b)));
    let mut ranks = vec![0.0; values.len()];
    for (rank, &place) in order.iter().enumerate() {
        ranks[place] = rank as f64;
    }
    ranks
}

/// The correlation of values with those that come `lag` later.
pub(crate) fn correlation(values: &[f64], lag: usize) -> f64 {
    let n = (values.len() - lag) as f64;
    let (early, late) = (&values[..values.len() - lag], &values[lag..]);
    let mean = |part: &[f64]| part.iter().sum::<f64>() / n;
    let (a, b) = (mean(early), mean(late));
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (x, y) in early.iter().zip(late) {
        ab += (x - a) * (y - b);
        aa += (x - a) * (x - a);
        bb += (y - b) * (y - b);
    }
    ab / (aa * bb).sqrt()
}

/// Spearman's rank correlation of values with those that come one later.
pub(crate) fn spearman(values: &[f64]) -> f64 {
    correlation(&ranks(values), 1)
}
