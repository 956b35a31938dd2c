//! Maximum-likelihood estimates: the parameters under which a sample is most probable.
//!
//! In closed form for normal (mean, standard deviation), log-normal (the same of the logarithms), exponential (mean),
//! uniform (ends) and Pareto (`a = min`, `k = n/Σ ln(x/a)`). By Newton's method, to machine precision, for
//!
//! - gamma: `ln k − ψ(k) = ln x̄ − mean(ln x)`, `θ = x̄/k`; starting value as in Minka (2002, Estimating a Gamma
//!   Distribution);
//! - Weibull: `Σ xᵏ·ln x/Σ xᵏ − 1/k = mean(ln x)`, `θᵏ = mean(xᵏ)`; starting value from the spread of the logarithms.
//!
//! With a shift, the likelihood of gamma, Weibull and log-normal distributions is unbounded as the shift approaches
//! the smallest value (Hill 1963, doi:10.1080/01621459.1963.10500835). So the estimate, if there is one, is the
//! greatest *local* maximum with a shift of at least zero, of the likelihood as a function of the shift, with the
//! other parameters optimal for it. The search is over the distance from the shift to the smallest value, first in
//! steps of its logarithm, then by golden section.

use super::shape::Shape;
use crate::statistics::Sample;
use crate::statistics::special::{digamma, trigamma};

/// Kinds of distributions to fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Normal,
    LogNormal,
    Exponential,
    Gamma,
    Weibull,
    Pareto,
    Uniform,
}

/// Newton's method doubles its digits in each step; this is far more than needed.
const MOST_STEPS: usize = 100;
const ENOUGH: f64 = 1e-14;

impl Kind {
    /// The best fit of this kind for these values, not all of which are equal. The error is a part of a sentence.
    pub(super) fn best(self, values: &[f64]) -> Result<Shape, &'static str> {
        let count = values.len() as f64;
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let positive = matches!(self, Self::LogNormal | Self::Gamma | Self::Weibull | Self::Pareto);
        if positive && least <= 0.0 {
            return Err("a value is 0, which it does not have");
        }
        let mean = values.iter().sum::<f64>() / count;
        Ok(match self {
            Self::Normal => Shape::Normal { mean, sd: spread(values, mean) },
            Self::LogNormal => {
                let logs = logs(values);
                let middle = logs.iter().sum::<f64>() / count;
                Shape::LogNormal { median: libm::exp(middle), sigma: spread(&logs, middle) }
            }
            Self::Exponential => Shape::Exponential { mean },
            Self::Gamma => gamma(values, mean),
            Self::Weibull => weibull(values),
            Self::Pareto => {
                let logs: f64 = values.iter().map(|x| libm::log(x / least)).sum();
                Shape::Pareto { shape: count / logs, minimum: least }
            }
            Self::Uniform => {
                Shape::Uniform { low: least, high: values.iter().copied().fold(f64::NEG_INFINITY, f64::max) }
            }
        })
    }

    /// The best fit of this kind with a shift above zero, and the shift. The error is a part of a sentence.
    pub(super) fn best_shifted(self, sample: &Sample) -> Result<(f64, Shape), &'static str> {
        let least = sample.least();
        if self == Self::Exponential {
            // The likelihood only increases up to the smallest value.
            let mean = sample.mean() - least;
            return if least > 0.0 { Ok((least, Shape::Exponential { mean })) } else { Err("a value is 0") };
        }
        let few = thinned(sample.values());
        let at = |values: &[f64], gap: f64| {
            let shift = least - gap;
            let shifted: Vec<f64> = values.iter().map(|value| value - shift).collect();
            let shape = self.best(&shifted).ok()?;
            let likelihood = ln_likelihood(&shifted, |x| shape.ln_density(x));
            likelihood.is_finite().then_some((likelihood, shift, shape))
        };
        let nearest = (sample.greatest() - least) * NEAREST;
        if nearest <= 0.0 || least <= nearest {
            return Err("the least value is too near to zero");
        }
        let step = libm::log(least / nearest) / GRID as f64;
        let gap = |index: usize| least * libm::exp(-step * index as f64);
        let heights: Vec<f64> =
            (0..=GRID).map(|index| at(&few, gap(index)).map_or(f64::NEG_INFINITY, |found| found.0)).collect();
        let peaks = (1..GRID).filter(|&i| heights[i] > heights[i - 1] && heights[i] >= heights[i + 1]);
        let Some(peak) = peaks.max_by(|&a, &b| heights[a].total_cmp(&heights[b])) else {
            return Err(match heights[0] >= heights[1] {
                true => "it is best with no shift",
                false => "its likelihood has no maximum",
            });
        };
        if heights[0] > heights[peak] {
            return Err("it is best with no shift");
        }
        // The maximum for the subsample is close to that for all values: one step more on either side.
        let room = if few.len() < sample.len() { 2 } else { 1 };
        let (mut low, mut high) = (step * peak.saturating_sub(room) as f64, step * (peak + room) as f64);
        let height = |place: f64| {
            at(sample.values(), least * libm::exp(-place)).map_or(f64::NEG_INFINITY, |found| found.0)
        };
        let (mut left, mut right) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
        let (mut left_height, mut right_height) = (height(left), height(right));
        while high - low > PRECISION {
            if left_height > right_height {
                (high, right, right_height) = (right, left, left_height);
                left = high - GOLDEN * (high - low);
                left_height = height(left);
            } else {
                (low, left, left_height) = (left, right, right_height);
                right = low + GOLDEN * (high - low);
                right_height = height(right);
            }
        }
        let found = at(sample.values(), least * libm::exp(-(low + high) / 2.0));
        let (_, shift, shape) = found.ok_or("its likelihood has no maximum")?;
        Ok((shift, shape))
    }
}

/// The minimum distance of the shift from the smallest value, as a share of the sample's range.
const NEAREST: f64 = 1e-4;
/// Steps in the search for maxima.
const GRID: usize = 40;
/// 1/φ.
const GOLDEN: f64 = 0.618_033_988_749_894_8;
/// The relative precision of the distance from the shift to the smallest value. The likelihood is flat there: its own
/// rounding errors are of this order.
const PRECISION: f64 = 1e-6;

/// The number of values used to find where to search.
const FEW: usize = 5000;

/// At most [`FEW`] of the ascending values, including the first and the last, at equal steps of rank.
pub(super) fn thinned(values: &[f64]) -> Vec<f64> {
    if values.len() <= FEW {
        return values.to_vec();
    }
    (0..FEW).map(|index| values[index * (values.len() - 1) / (FEW - 1)]).collect()
}

pub(super) fn ln_likelihood(values: &[f64], ln_density: impl Fn(f64) -> f64) -> f64 {
    values.iter().map(|&x| ln_density(x)).sum()
}

pub(super) fn logs(values: &[f64]) -> Vec<f64> {
    values.iter().map(|&x| libm::log(x)).collect()
}

/// The root mean square deviation from `mean`.
fn spread(values: &[f64], mean: f64) -> f64 {
    let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
    libm::sqrt(squares / values.len() as f64)
}

fn gamma(values: &[f64], mean: f64) -> Shape {
    // Relative to x̄, the magnitude of the values costs no precision: s = −mean(ln(x/x̄)) ≥ 0.
    let s = -values.iter().map(|x| libm::log(x / mean)).sum::<f64>() / values.len() as f64;
    let mut shape = (3.0 - s + libm::sqrt((s - 3.0) * (s - 3.0) + 24.0 * s)) / (12.0 * s);
    for _ in 0..MOST_STEPS {
        let step = (libm::log(shape) - digamma(shape) - s) / (1.0 / shape - trigamma(shape));
        let next = if step < shape { shape - step } else { shape / 2.0 };
        let settled = (next - shape).abs() <= ENOUGH * shape;
        shape = next;
        if settled {
            break;
        }
    }
    Shape::Gamma { shape, scale: mean / shape }
}

fn weibull(values: &[f64]) -> Shape {
    let logs = logs(values);
    let count = logs.len() as f64;
    let middle = logs.iter().sum::<f64>() / count;
    // Relative to the geometric mean.
    let centred: Vec<f64> = logs.iter().map(|log| log - middle).collect();
    // The standard deviation of ln x is π/(√6·k).
    let mut shape = std::f64::consts::PI / (libm::sqrt(6.0) * spread(&centred, 0.0));
    let mut mass = 0.0;
    for _ in 0..MOST_STEPS {
        let (mut sums, greatest) = ([0.0; 3], centred.iter().copied().fold(0.0, f64::max));
        for &log in &centred {
            // Scaled so that the greatest power is 1, which avoids overflow.
            let power = libm::exp(shape * (log - greatest));
            sums[0] += power;
            sums[1] += power * log;
            sums[2] += power * log * log;
        }
        mass = libm::log(sums[0] / count) / shape + greatest;
        let first = sums[1] / sums[0];
        let value = first - 1.0 / shape;
        let slope = sums[2] / sums[0] - first * first + 1.0 / (shape * shape);
        let next = shape - value / slope;
        let next = if next > 0.0 { next } else { shape / 2.0 };
        let settled = (next - shape).abs() <= ENOUGH * shape;
        shape = next;
        if settled {
            break;
        }
    }
    Shape::Weibull { shape, scale: libm::exp(middle + mass) }
}
