//! Constructors of distributions.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::atoms::Atoms;
use super::piecewise::{Corner, Piecewise};
use super::shape::Mixture;
use super::shape::{Shape, Truncated};
use super::{BelowZero, Distribution, DistributionError, LONGEST, pareto_normal};
use crate::time::Duration;

/// # Construction
/// Times are in nanoseconds, within 104 days (2⁵³ ns) of zero. A width of zero gives a constant. Each
/// constructor returns an error if a parameter is out of its documented range.
impl Distribution {
    /// A constant delay.
    pub fn constant(value: f64) -> Result<Self, DistributionError> {
        Ok(Self::of(Shape::Constant(place("value", value)?)))
    }

    /// Every delay from `low` to `high` is equally likely.
    pub fn uniform(low: f64, high: f64) -> Result<Self, DistributionError> {
        let (low, high) = (place("low", low)?, place("high", high)?);
        if low > high {
            return Err(DistributionError::Range { low, high });
        }
        Ok(Self::of(unless(low == high, low, Shape::Uniform { low, high })))
    }

    /// The normal distribution.
    pub fn normal(mean: f64, sd: f64) -> Result<Self, DistributionError> {
        let (mean, sd) = (place("mean", mean)?, width("sd", sd)?);
        Ok(Self::of(unless(sd == 0.0, mean, Shape::Normal { mean, sd })))
    }

    /// The log-normal distribution with this mean and standard deviation: the logarithm is normal, with the variance
    /// σ² = ln(1 + (sd/mean)²) and the mean ln(mean) − σ²/2.
    pub fn log_normal(mean: f64, sd: f64) -> Result<Self, DistributionError> {
        let (mean, sd) = (positive("mean", mean)?, width("sd", sd)?);
        let variance = libm::log1p((sd / mean) * (sd / mean));
        let (mu, sigma) = (libm::log(mean) - 0.5 * variance, libm::sqrt(variance));
        Ok(Self::of(unless(sigma == 0.0, mean, Shape::LogNormal { mu, sigma })))
    }

    /// The log-normal distribution with this median, and this standard deviation of the natural logarithm, 0
    /// to 20.
    pub fn log_normal_median(median: f64, sigma: f64) -> Result<Self, DistributionError> {
        let median = positive("median", median)?;
        let sigma = number("sigma", sigma, (0.0, 20.0), "from 0 to 20")?;
        let mu = libm::log(median);
        Ok(Self::of(unless(sigma == 0.0, median, Shape::LogNormal { mu, sigma })))
    }

    /// The exponential distribution.
    pub fn exponential(mean: f64) -> Result<Self, DistributionError> {
        Ok(Self::of(Shape::Weibull { shape: 1.0, scale: positive("mean", mean)? }))
    }

    /// The gamma distribution: mean `shape`·`scale`, variance `shape`·`scale`². The shape is 0.01 to 10⁹.
    pub fn gamma(shape: f64, scale: f64) -> Result<Self, DistributionError> {
        let shape = number("shape", shape, (0.01, 1e9), "from 0.01 to 1e9")?;
        Ok(Self::of(Shape::Gamma { shape, scale: positive("scale", scale)? }))
    }

    /// The gamma distribution with this mean and standard deviation: shape (mean/sd)², scale sd²/mean.
    pub fn gamma_mean(mean: f64, sd: f64) -> Result<Self, DistributionError> {
        let (mean, sd) = (positive("mean", mean)?, positive("sd", sd)?);
        Self::gamma((mean / sd) * (mean / sd), sd / mean * sd)
    }

    /// The Weibull distribution, P(X > x) = e^−(x/scale)^shape. The shape is 0.05 to 1000.
    pub fn weibull(shape: f64, scale: f64) -> Result<Self, DistributionError> {
        let shape = number("shape", shape, (0.05, 1e3), "from 0.05 to 1000")?;
        Ok(Self::of(Shape::Weibull { shape, scale: positive("scale", scale)? }))
    }

    /// The Pareto distribution, P(X > x) = (minimum/x)^shape. The shape is 0.05 to 1000. The mean is infinite
    /// for a shape up to 1, the standard deviation for a shape up to 2.
    pub fn pareto(shape: f64, minimum: f64) -> Result<Self, DistributionError> {
        let shape = number("shape", shape, (0.05, 1e3), "from 0.05 to 1000")?;
        Ok(Self::of(Shape::Pareto { shape, minimum: positive("minimum", minimum)? }))
    }

    /// NetEm's (normal + 3·Pareto)/4 with this mean and standard deviation, without the cap of its table.
    pub fn pareto_normal(mean: f64, sd: f64) -> Result<Self, DistributionError> {
        let (mean, sd) = (place("mean", mean)?, width("sd", sd)?);
        let shape = Shape::ParetoNormal { mean, scale: sd / pareto_normal::SD };
        Ok(Self::of(unless(sd == 0.0, mean, shape)))
    }

    /// A NetEm distribution table: a delay of mean + sd·t/8192 for each entry t, all equally likely. Whether
    /// the result has the mean `mean` and the standard deviation `sd` depends on the table.
    pub fn table(entries: &[i16], mean: f64, sd: f64) -> Result<Self, DistributionError> {
        let (mean, sd) = (place("mean", mean)?, width("sd", sd)?);
        let values: Vec<f64> = entries.iter().map(|&t| mean + sd * (f64::from(t) / 8192.0)).collect();
        Self::values(values, "entries in the table")
    }

    /// An empirical distribution: one of these delays, all equally likely.
    pub fn samples(samples: Vec<Duration>) -> Result<Self, DistributionError> {
        let values = samples.iter().map(|sample| place("a sample", sample.nanos() as f64));
        Self::values(values.collect::<Result<_, _>>()?, "samples")
    }

    fn values(values: Vec<f64>, what: &'static str) -> Result<Self, DistributionError> {
        let first = *values.first().ok_or(DistributionError::Empty { what })?;
        let same = values.iter().all(|&value| value == first);
        Ok(Self::of(unless(same, first, Shape::Atoms(Atoms::new(values)))))
    }

    /// A histogram of bins (low, high, weight), in any order: uniform within each bin. Bins may touch or
    /// leave gaps, but must not overlap; a bin of zero width is an atom.
    pub fn histogram(bins: Vec<(Duration, Duration, f64)>) -> Result<Self, DistributionError> {
        let mut sum = 0.0;
        for (number, &(low, high, weight)) in bins.iter().enumerate() {
            sum += self::weight(number, weight)?;
            let (low, high) = (place("low", low.nanos() as f64)?, place("high", high.nanos() as f64)?);
            if low > high {
                return Err(DistributionError::Range { low, high });
            }
        }
        something(bins.len(), "bins", sum)?;
        let mut bins = bins;
        bins.sort_by_key(|&(low, high, _)| (low, high));
        // Summed in the order in which it is reached, so that the last corner is exactly at 1.
        let sum: f64 = bins.iter().fold(0.0, |sum, (_, _, weight)| sum + weight);
        let mut corners: Vec<Corner> = Vec::with_capacity(2 * bins.len());
        let mut reached = 0.0;
        for (number, &(low, high, weight)) in bins.iter().enumerate() {
            let (low, high) = (low.nanos() as f64, high.nanos() as f64);
            if corners.last().is_some_and(|last| last.x > low) {
                return Err(DistributionError::Overlap { bin: number + 1 });
            }
            corners.push(Corner { x: low, p: reached / sum });
            reached += weight;
            corners.push(Corner { x: high, p: reached / sum });
        }
        Ok(Self::of(piecewise(corners)))
    }

    /// A cumulative distribution function given by points (delay, probability of at most that delay), linear
    /// in between. Two points at one delay are a jump, and so is a first point above 0; the last point must
    /// be at 1.
    pub fn points(points: Vec<(Duration, f64)>) -> Result<Self, DistributionError> {
        let last = points.last().ok_or(DistributionError::Empty { what: "points" })?.1;
        let mut corners: Vec<Corner> = Vec::with_capacity(points.len());
        for (number, &(x, p)) in points.iter().enumerate() {
            let (x, p) = (place("a delay", x.nanos() as f64)?, probability(p)?);
            if let Some(before) = corners.last() {
                if x < before.x {
                    return Err(DistributionError::GoesBack { point: number + 1 });
                }
                if p < before.p {
                    let before = before.p;
                    return Err(DistributionError::GoesDown { point: number + 1, found: p, before });
                }
            }
            corners.push(Corner { x, p });
        }
        if last != 1.0 {
            return Err(DistributionError::NotComplete { found: last });
        }
        Ok(Self::of(piecewise(corners)))
    }

    /// A mixture: each draw uses one of these distributions, with a probability proportional to its weight.
    /// Values below zero are clamped, except in parts that truncate, which do so individually.
    pub fn mixture(parts: Vec<(f64, Self)>) -> Result<Self, DistributionError> {
        let mut sum = 0.0;
        for (number, &(weight, _)) in parts.iter().enumerate() {
            sum += self::weight(number, weight)?;
        }
        something(parts.len(), "parts in the mixture", sum)?;
        let parts = parts.into_iter().filter(|&(weight, _)| weight > 0.0);
        let parts = parts.map(|(weight, part)| match part.below_zero {
            BelowZero::Clamp => (weight, part.raw),
            BelowZero::Truncate => (weight, part.shape),
        });
        let mut parts: Vec<_> = parts.collect();
        match parts.pop() {
            Some((_, only)) if parts.is_empty() => Ok(Self::of(only)),
            last => {
                parts.extend(last);
                Ok(Self::of(Shape::Mixture(Mixture::new(parts))))
            }
        }
    }
}

/// The part of a shape between two ends.
pub(super) fn truncated(shape: Shape, low: f64, high: f64) -> Result<Shape, DistributionError> {
    let nothing = DistributionError::NothingLeft { minimum: low, maximum: high };
    if (low, high) == (f64::NEG_INFINITY, f64::INFINITY) {
        return Ok(shape);
    }
    let Shape::Mixture(mixture) = shape else {
        return Truncated::new(shape, low, high).map(Shape::Truncated).ok_or(nothing);
    };
    // A mixture of the truncated parts, which is cheaper to sample than the truncated mixture.
    let part = |(share, shape): &(f64, Shape)| {
        let kept = Truncated::new(shape.clone(), low, high)?;
        Some((share * kept.mass(), Shape::Truncated(kept)))
    };
    let parts: Vec<_> = mixture.parts().iter().filter_map(part).filter(|(share, _)| *share > 0.0).collect();
    if parts.is_empty() { Err(nothing) } else { Ok(Shape::Mixture(Mixture::new(parts))) }
}

/// A shape shifted by `by`.
pub(super) fn shifted(shape: Shape, by: f64) -> Shape {
    match shape {
        Shape::Constant(value) => Shape::Constant(value + by),
        Shape::Shifted { inner, by: before } => Shape::Shifted { inner, by: before + by },
        Shape::Mixture(mixture) => {
            let part = |(share, shape): &(f64, Shape)| (*share, shifted(shape.clone(), by));
            Shape::Mixture(Mixture::new(mixture.parts().iter().map(part).collect()))
        }
        inner => Shape::Shifted { inner: Arc::new(inner), by },
    }
}

/// A shape, or a constant if it has no width.
fn unless(no_width: bool, value: f64, shape: Shape) -> Shape {
    if no_width { Shape::Constant(value) } else { shape }
}

fn piecewise(corners: Vec<Corner>) -> Shape {
    let all_at_once = corners.iter().all(|corner| corner.x == corners[0].x);
    unless(all_at_once, corners[0].x, Shape::Piecewise(Piecewise::new(corners)))
}

fn number(
    name: &'static str,
    found: f64,
    (low, high): (f64, f64),
    allowed: &'static str,
) -> Result<f64, DistributionError> {
    let within = low <= found && found <= high;
    within.then_some(found).ok_or(DistributionError::Parameter { name, found, allowed })
}

fn time(
    name: &'static str,
    found: f64,
    range: (f64, f64),
    allowed: &'static str,
) -> Result<f64, DistributionError> {
    number(name, found, range, allowed).map_err(|_| DistributionError::Time { name, found, allowed })
}

pub(super) fn place(name: &'static str, found: f64) -> Result<f64, DistributionError> {
    time(name, found, (-LONGEST, LONGEST), "within 104 days of zero")
}

fn width(name: &'static str, found: f64) -> Result<f64, DistributionError> {
    time(name, found, (0.0, LONGEST), "from zero to 104 days")
}

fn positive(name: &'static str, found: f64) -> Result<f64, DistributionError> {
    time(name, found, (f64::MIN_POSITIVE, LONGEST), "more than zero and at most 104 days")
}

fn probability(found: f64) -> Result<f64, DistributionError> {
    number("a cumulative probability", found, (0.0, 1.0), "from 0 to 1")
}

/// Checks the weight of the entry with this number, from 0.
fn weight(number: usize, found: f64) -> Result<f64, DistributionError> {
    let valid = (0.0..=f64::MAX).contains(&found);
    valid.then_some(found).ok_or(DistributionError::Weight { entry: number + 1, found })
}

fn something(entries: usize, what: &'static str, sum: f64) -> Result<(), DistributionError> {
    match (entries, sum) {
        (0, _) => Err(DistributionError::Empty { what }),
        (_, 0.0) => Err(DistributionError::NoWeight),
        (_, f64::INFINITY) => Err(DistributionError::Weight { entry: entries, found: sum }),
        _ => Ok(()),
    }
}
