//! A mean of values that follow one another in time, with a confidence interval: the method of batch means.
//!
//! Law, Simulation Modeling and Analysis (5th ed. 2015, section 9.5.3; first Law & Kelton 1982). Successive values are
//! correlated, so that the interval for independent ones is too narrow. Neighbours are put together in n ≤ 20 batches of
//! equal length, and the batches count as independent and normal. **That holds when a batch is much longer than
//! what correlates the values** (for a queue, its busy periods), and the process is in steady state: with short batches
//! the interval is too narrow, and a warm-up has to be left out before.
//!
//! A mean is a ratio r = ΣY/ΣX of what is counted (bits, packets × time, drops) and of what it is divided by (time,
//! packets). Its variance is that of the ratio estimator (Cochran, Sampling Techniques, 3rd ed. 1977, section 2.11):
//! with `e = (Y − rX)/X̄` of each batch, `Var r = Σe²/(n(n − 1))`. Where X is the same in all batches, this is the
//! variance of their means. The interval is `r ± t(n − 1)·√Var r`.
//!
//! The interval of a difference is Welch's (Biometrika 34, 1947), with the degrees of freedom of Satterthwaite:
//! `ν = (V₁ + V₂)²/(V₁²/(n₁ − 1) + V₂²/(n₂ − 1))`. Of two runs that met the same traffic, pairs of batches have more to
//! say: `Var = Σ(e₂ − e₁)²/(n(n − 1))`, with n − 1 degrees of freedom.
//!
//! ```
//! use narrows_lab::statistics::{BatchMeans, Part};
//!
//! let part = |sum| Part { sum, weight: 1.0 };
//! let first = BatchMeans::new(&[1.0, 2.0, 3.0].map(part)).unwrap();
//! let second = BatchMeans::new(&[5.0, 6.0, 7.0].map(part)).unwrap();
//! assert_eq!((first.mean(), first.batches()), (2.0, 3));
//! let interval = first.interval(0.95);
//! assert!((interval.half - 4.30265 / 3.0_f64.sqrt()).abs() < 1e-5);
//! assert!(first.difference_to(&second, 0.95).excludes_zero());
//! ```

use super::student::t_quantile;

/// Batches at the most: more add little to the interval, and are less independent.
const MOST_BATCHES: usize = 20;

/// A value of one interval of time: what was counted, and what it is divided by.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Part {
    /// What was counted.
    pub sum: f64,
    /// What the mean divides it by, at least 0.
    pub weight: f64,
}

/// A mean and what its batches were beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchMeans {
    mean: f64,
    /// e of each batch.
    deviations: Vec<f64>,
}

/// An interval for a mean or a difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Its middle.
    pub mean: f64,
    /// Half of its length.
    pub half: f64,
}

impl Interval {
    /// Its lower end.
    pub fn low(&self) -> f64 {
        self.mean - self.half
    }

    /// Its upper end.
    pub fn high(&self) -> f64 {
        self.mean + self.half
    }

    /// Whether zero lies outside.
    pub fn excludes_zero(&self) -> bool {
        self.mean.abs() > self.half
    }
}

/// How values are put together in batches. Those that fill none are left out at the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batching {
    /// How many batches there are.
    pub batches: usize,
    /// Values in each.
    pub length: usize,
}

impl Batching {
    /// Of so many values: up to 20 batches, of the length that leaves out fewer.
    pub fn of(values: usize) -> Self {
        let with = |length: usize| Self { batches: (values / length).min(MOST_BATCHES), length };
        let (shorter, longer) = ((values / MOST_BATCHES).max(1), values.div_ceil(MOST_BATCHES).max(1));
        match with(shorter).left_out(values) <= with(longer).left_out(values) {
            true => with(shorter),
            false => with(longer),
        }
    }

    /// How many of the values are left out.
    pub fn left_out(self, values: usize) -> usize {
        values - self.batches * self.length
    }
}

impl BatchMeans {
    /// Of values in order of time. `None` for fewer than two batches, or where there is nothing to divide by.
    pub fn new(values: &[Part]) -> Option<Self> {
        let batching = Batching::of(values.len());
        let batch = |batch: &[Part]| {
            batch.iter().fold(Part::default(), |sum, part| Part {
                sum: sum.sum + part.sum,
                weight: sum.weight + part.weight,
            })
        };
        let batches: Vec<Part> =
            values[batching.left_out(values.len())..].chunks(batching.length).map(batch).collect();
        let whole = batch(&batches);
        if batches.len() < 2 || whole.weight <= 0.0 {
            return None;
        }
        let mean = whole.sum / whole.weight;
        let usual = whole.weight / batches.len() as f64;
        let deviations = batches.iter().map(|batch| (batch.sum - mean * batch.weight) / usual).collect();
        Some(Self { mean, deviations })
    }

    /// The mean of all values, without those left out at the beginning.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// How many batches there are.
    pub fn batches(&self) -> usize {
        self.deviations.len()
    }

    /// The interval that has the mean of the process with this confidence.
    pub fn interval(&self, confidence: f64) -> Interval {
        interval(self.mean, variance(self.deviations.iter().copied()), self.freedom(), confidence)
    }

    /// The interval for the other mean minus this one, of independent runs: Welch's.
    pub fn difference_to(&self, other: &Self, confidence: f64) -> Interval {
        let of = |one: &Self| (variance(one.deviations.iter().copied()), one.freedom());
        let ((first, few), (second, fewer)) = (of(self), of(other));
        let both = first + second;
        let freedom = both * both / (first * first / few + second * second / fewer);
        interval(other.mean - self.mean, both, freedom, confidence)
    }

    /// The same of runs that met the same traffic in the same intervals: by pairs of batches. `None` where there are more
    /// batches of one than of the other.
    pub fn paired_difference_to(&self, other: &Self, confidence: f64) -> Option<Interval> {
        if self.batches() != other.batches() {
            return None;
        }
        let pairs = self.deviations.iter().zip(&other.deviations);
        let between = variance(pairs.map(|(first, second)| second - first));
        Some(interval(other.mean - self.mean, between, self.freedom(), confidence))
    }

    fn freedom(&self) -> f64 {
        (self.batches() - 1) as f64
    }
}

fn interval(mean: f64, variance: f64, freedom: f64, confidence: f64) -> Interval {
    // Without variance there are no degrees of freedom to speak of.
    let half = match variance > 0.0 {
        true => t_quantile(0.5 + confidence / 2.0, freedom) * libm::sqrt(variance),
        false => 0.0,
    };
    Interval { mean, half }
}

/// Of a mean, from the deviations of batches from it.
fn variance(deviations: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = deviations.len() as f64;
    deviations.map(|deviation| deviation * deviation).sum::<f64>() / (count * (count - 1.0))
}
