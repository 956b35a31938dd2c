//! Fits mixtures of two normal or two log-normal distributions by expectation maximisation (Dempster, Laird and Rubin
//! 1977, doi:10.1111/j.2517-6161.1977.tb01600.x).
//!
//! The two steps alternate: the share of each value that belongs to the first component, `r = w·f₁/(w·f₁ + (1 −
//! w)·f₂)`; then each component's weight, mean and standard deviation, weighted with these shares. The likelihood
//! never decreases. It is unbounded if a component shrinks onto a single value, so standard deviations are kept above
//! a thousandth of the sample's. As there may be several maxima, it starts from several divisions of the sample and
//! continues from the best one.

use super::estimate::{logs, thinned};
use super::shape::Shape;

/// The weight of the first of two normal components, and mean and standard deviation of both.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Two {
    weight: f64,
    means: [f64; 2],
    sds: [f64; 2],
}

/// The number of steps after which the starting points are compared.
const TRIAL: usize = 25;
/// Ends when the log-likelihood grows by less than this per value in a step.
const ENOUGH: f64 = 2.5e-10;
const MOST_STEPS: usize = 3000;
/// The minimum standard deviation, relative to the sample's.
const NARROWEST: f64 = 1e-3;
/// Fewer values cannot determine five parameters.
const FEWEST: usize = 12;

/// Two weights and shapes, by descending weight. `values` are ascending.
pub(super) fn best(values: &[f64], of_logs: bool) -> Result<[(f64, Shape); 2], &'static str> {
    if values.len() < FEWEST {
        return Err("too few values for its five parameters");
    }
    if of_logs && values[0] <= 0.0 {
        return Err("a value is 0, which it does not have");
    }
    let owned = if of_logs { logs(values) } else { values.to_vec() };
    let two = expectation_maximisation(&owned)?;
    let shape = |index: usize| match of_logs {
        true => Shape::LogNormal { median: libm::exp(two.means[index]), sigma: two.sds[index] },
        false => Shape::Normal { mean: two.means[index], sd: two.sds[index] },
    };
    let mut parts = [(two.weight, shape(0)), (1.0 - two.weight, shape(1))];
    if parts[0].0 < parts[1].0 {
        parts.swap(0, 1);
    }
    Ok(parts)
}

fn expectation_maximisation(values: &[f64]) -> Result<Two, &'static str> {
    let (mean, sd) = moments(values);
    let narrowest = sd * NARROWEST;
    let split = |share: f64| {
        let (low, high) = values.split_at((values.len() as f64 * share) as usize);
        let ((a, b), (c, d)) = (moments(low), moments(high));
        Two { weight: share, means: [a, c], sds: [b.max(narrowest), d.max(narrowest)] }
    };
    // A narrow core on a wide base, in addition to divisions into lower and upper values.
    let core = Two { weight: 0.5, means: [mean; 2], sds: [sd / 3.0, sd * 1.5] };
    let starts = [split(0.2), split(0.5), split(0.8), split(0.95), core];
    let few = thinned(values);
    let tried = starts
        .map(|start| (0..TRIAL).fold((start, f64::NEG_INFINITY), |(two, _), _| two.step(&few, narrowest)));
    let (two, _) = tried.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).ok_or("it was not found")?;
    // The result for the subsample is close to that for all values.
    let two = two.followed(&few, narrowest).followed(values, narrowest);
    match two.weight * (1.0 - two.weight) > 0.0 && two.sds.iter().all(|sd| *sd > narrowest) {
        true => Ok(two),
        false => Err("one of its components shrinks onto a single value"),
    }
}

fn moments(values: &[f64]) -> (f64, f64) {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
    (mean, libm::sqrt(squares / count))
}

impl Two {
    /// Iterates to the end.
    fn followed(self, values: &[f64], narrowest: f64) -> Self {
        let (mut two, mut before) = (self, f64::NEG_INFINITY);
        for _ in 0..MOST_STEPS {
            let (next, likelihood) = two.step(values, narrowest);
            if likelihood - before < ENOUGH * values.len() as f64 {
                break;
            }
            (two, before) = (next, likelihood);
        }
        two
    }

    /// One expectation and one maximisation step; returns also the likelihood before them, up to a constant.
    fn step(self, values: &[f64], narrowest: f64) -> (Self, f64) {
        let weights = [self.weight, 1.0 - self.weight];
        let scale = [0, 1].map(|c: usize| libm::log(weights[c] / self.sds[c]));
        // Squares are relative to the component's previous mean, which keeps precision if it is far from zero.
        let (mut likelihood, mut mass, mut first, mut second) = (0.0, [0.0; 2], [0.0; 2], [0.0; 2]);
        for &x in values {
            let off = [0, 1].map(|c: usize| x - self.means[c]);
            let log = [0, 1].map(|c: usize| scale[c] - 0.5 * (off[c] / self.sds[c]) * (off[c] / self.sds[c]));
            let greater = log[0].max(log[1]);
            let less = libm::exp(log[0].min(log[1]) - greater);
            likelihood += greater + libm::log(1.0 + less);
            let share = 1.0 / (1.0 + less);
            let parts = if log[0] >= log[1] { [share, 1.0 - share] } else { [1.0 - share, share] };
            for c in 0..2 {
                mass[c] += parts[c];
                first[c] += parts[c] * off[c];
                second[c] += parts[c] * off[c] * off[c];
            }
        }
        let moved = [0, 1].map(|c: usize| if mass[c] > 0.0 { first[c] / mass[c] } else { 0.0 });
        let next = Self {
            weight: mass[0] / (mass[0] + mass[1]),
            means: [0, 1].map(|c: usize| self.means[c] + moved[c]),
            sds: [0, 1].map(|c: usize| {
                let variance = if mass[c] > 0.0 { second[c] / mass[c] - moved[c] * moved[c] } else { 0.0 };
                libm::sqrt(variance.max(0.0)).max(narrowest)
            }),
        };
        (next, likelihood)
    }
}
