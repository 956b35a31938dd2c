//! The shapes of distributions, and reading their parameters.

use narrows_core::Duration;
use narrows_core::model::{Distribution as Model, DistributionError};

use super::Distribution;
use super::data::{Bins, Points, Samples, Table as DistTable};
use crate::files::Files;
use crate::node::{Node, Table};
use crate::problem::{Found, Problem};
use crate::units::{self, Number};

/// What a distribution is like.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Shape {
    /// Always the same: a part of a mixture.
    Constant(Duration),
    /// Every time from `low` to `high` is equally likely.
    Uniform {
        /// The least.
        low: Duration,
        /// The most.
        high: Duration,
    },
    /// Normal.
    Normal {
        /// The mean.
        mean: Duration,
        /// The standard deviation.
        sd: Duration,
    },
    /// Log-normal, by its own mean and standard deviation.
    LogNormal {
        /// The mean.
        mean: Duration,
        /// The standard deviation.
        sd: Duration,
    },
    /// Log-normal, by its median and the standard deviation of its logarithm.
    LogNormalMedian {
        /// Half are below.
        median: Duration,
        /// The standard deviation of the natural logarithm.
        sigma: Number,
    },
    /// Exponential.
    Exponential {
        /// The mean.
        mean: Duration,
    },
    /// Gamma, by its mean and standard deviation.
    Gamma {
        /// The mean.
        mean: Duration,
        /// The standard deviation.
        sd: Duration,
    },
    /// Gamma, by its parameters: the mean is their product.
    GammaShape {
        /// k.
        shape: Number,
        /// θ.
        scale: Duration,
    },
    /// Weibull.
    Weibull {
        /// k.
        shape: Number,
        /// λ: a share 1 − 1/e is below.
        scale: Duration,
    },
    /// Pareto, of the first kind.
    Pareto {
        /// α; the mean is infinite up to 1, the standard deviation up to 2.
        shape: Number,
        /// The least.
        minimum: Duration,
    },
    /// NetEm's: a quarter of a normal and three quarters of a Pareto deviate, scaled and shifted.
    ParetoNormal {
        /// Where a deviate of zero lies.
        mean: Duration,
        /// What a deviate of one adds.
        sd: Duration,
    },
    /// A table of deviates, as NetEm's `.dist` files are.
    Table(DistTable),
    /// As measured: each sample is equally likely.
    Samples(Samples),
    /// Uniform within each of several bins.
    Histogram(Bins),
    /// Linear between points of the cumulative distribution.
    Cdf(Points),
    /// One of several, by weight.
    Mixture(Vec<(Number, Distribution)>),
}

/// The keys that stand for a shape.
pub(crate) const SHAPES: &[&str] = &[
    "constant",
    "uniform",
    "normal",
    "log-normal",
    "exponential",
    "gamma",
    "weibull",
    "pareto",
    "pareto-normal",
    "table",
    "samples",
    "histogram",
    "cdf",
    "mixture",
];

/// The most parts of a mixture.
const MOST_PARTS: usize = 1000;

impl Shape {
    /// Reads the parameters under the key `name`, which is one of [`SHAPES`].
    pub(super) fn read(name: &str, node: &Node, files: &Files) -> Result<Self, Problem> {
        let example = example(name);
        let help = |problem: Problem| problem.help(format!("write it like {example}"));
        let parameters = |keys: &[&str]| -> Result<&Table, Problem> {
            let table = node.table("a table of parameters").map_err(help)?;
            table.only(keys)?;
            Ok(table)
        };
        let time =
            |table: &Table, key| table.required(key, &node.span, units::time).map_err(|p| missing(p, help));
        let number =
            |table: &Table, key| table.required(key, &node.span, Number::read).map_err(|p| missing(p, help));
        // Two ways to say the same: which of them it is.
        let says = |table: &Table, keys: [&str; 2]| keys.iter().any(|key| table.get(key).is_some());
        Ok(match name {
            "constant" => Self::Constant(units::time(node)?),
            "uniform" => {
                let table = parameters(&["low", "high"])?;
                let (low, high) = (time(table, "low")?, time(table, "high")?);
                if low > high {
                    let title = format!("`low` is {low}, above `high`, which is {high}");
                    return Err(Problem::new(title).at(&node.span));
                }
                Self::Uniform { low, high }
            }
            "normal" => {
                let table = parameters(&["mean", "sd"])?;
                Self::Normal { mean: time(table, "mean")?, sd: time(table, "sd")? }
            }
            "log-normal" => {
                let table = parameters(&["mean", "sd", "median", "sigma"])?;
                if says(table, ["median", "sigma"]) {
                    either(table, ["median", "sigma"], ["mean", "sd"])?;
                    Self::LogNormalMedian { median: time(table, "median")?, sigma: number(table, "sigma")? }
                } else {
                    Self::LogNormal { mean: time(table, "mean")?, sd: time(table, "sd")? }
                }
            }
            "exponential" => {
                let table = parameters(&["mean"])?;
                Self::Exponential { mean: time(table, "mean")? }
            }
            "gamma" => {
                let table = parameters(&["mean", "sd", "shape", "scale"])?;
                if says(table, ["shape", "scale"]) {
                    either(table, ["shape", "scale"], ["mean", "sd"])?;
                    Self::GammaShape { shape: number(table, "shape")?, scale: time(table, "scale")? }
                } else {
                    Self::Gamma { mean: time(table, "mean")?, sd: time(table, "sd")? }
                }
            }
            "weibull" => {
                let table = parameters(&["shape", "scale"])?;
                Self::Weibull { shape: number(table, "shape")?, scale: time(table, "scale")? }
            }
            "pareto" => {
                let table = parameters(&["shape", "minimum"])?;
                Self::Pareto { shape: number(table, "shape")?, minimum: time(table, "minimum")? }
            }
            "pareto-normal" => {
                let table = parameters(&["mean", "sd"])?;
                Self::ParetoNormal { mean: time(table, "mean")?, sd: time(table, "sd")? }
            }
            "table" => Self::Table(DistTable::read(node, parameters(DistTable::KEYS)?, files)?),
            "samples" => Self::Samples(Samples::read(node, parameters(Samples::KEYS)?, files)?),
            "histogram" => Self::Histogram(Bins::read(node, parameters(Bins::KEYS)?, files)?),
            "cdf" => Self::Cdf(Points::read(node, parameters(Points::KEYS)?, files)?),
            "mixture" => Self::Mixture(mixture(node, files).map_err(help)?),
            _ => return Err(Problem::new(format!("{} is no distribution", Found(name))).at(&node.span)),
        })
    }

    /// The engine's distribution.
    pub(super) fn engine(&self) -> Result<Model, DistributionError> {
        let nanos = |time: &Duration| time.nanos() as f64;
        match self {
            Self::Constant(at) => Model::constant(nanos(at)),
            Self::Uniform { low, high } => Model::uniform(nanos(low), nanos(high)),
            Self::Normal { mean, sd } => Model::normal(nanos(mean), nanos(sd)),
            Self::LogNormal { mean, sd } => Model::log_normal(nanos(mean), nanos(sd)),
            Self::LogNormalMedian { median, sigma } => {
                Model::log_normal_median(nanos(median), sigma.as_f64())
            }
            Self::Exponential { mean } => Model::exponential(nanos(mean)),
            Self::Gamma { mean, sd } => Model::gamma_mean(nanos(mean), nanos(sd)),
            Self::GammaShape { shape, scale } => Model::gamma(shape.as_f64(), nanos(scale)),
            Self::Weibull { shape, scale } => Model::weibull(shape.as_f64(), nanos(scale)),
            Self::Pareto { shape, minimum } => Model::pareto(shape.as_f64(), nanos(minimum)),
            Self::ParetoNormal { mean, sd } => Model::pareto_normal(nanos(mean), nanos(sd)),
            Self::Table(table) => table.engine(),
            Self::Samples(samples) => Model::samples(samples.times().to_vec()),
            Self::Histogram(bins) => Model::histogram(bins.bins().to_vec()),
            Self::Cdf(points) => Model::points(points.points().to_vec()),
            Self::Mixture(parts) => {
                let parts = parts.iter().map(|(weight, part)| (weight.as_f64(), part.engine().clone()));
                Model::mixture(parts.collect())
            }
        }
    }
}

/// An example of a shape, for people who got it wrong.
fn example(name: &str) -> &'static str {
    match name {
        "constant" => "constant = \"10ms\"",
        "uniform" => "uniform = { low = \"5ms\", high = \"15ms\" }",
        "normal" => "normal = { mean = \"10ms\", sd = \"2ms\" }",
        "log-normal" => {
            "log-normal = { mean = \"10ms\", sd = \"2ms\" } or { median = \"10ms\", sigma = 0.2 }"
        }
        "exponential" => "exponential = { mean = \"10ms\" }",
        "gamma" => "gamma = { mean = \"10ms\", sd = \"2ms\" } or { shape = 25, scale = \"400us\" }",
        "weibull" => "weibull = { shape = 1.5, scale = \"10ms\" }",
        "pareto" => "pareto = { shape = 3, minimum = \"10ms\" }",
        "pareto-normal" => "pareto-normal = { mean = \"10ms\", sd = \"2ms\" }",
        _ => {
            "mixture = [ { weight = 9, normal = { mean = \"10ms\", sd = \"1ms\" } }, { weight = 1, constant = \"50ms\" } ]"
        }
    }
}

/// Adds an example to what says that a key is missing.
fn missing(problem: Problem, help: impl Fn(Problem) -> Problem) -> Problem {
    if problem.is_about_a_missing_key() { help(problem) } else { problem }
}

/// Refuses keys of the other way to say the same.
fn either(table: &Table, these: [&str; 2], others: [&str; 2]) -> Result<(), Problem> {
    match others.iter().find_map(|key| table.key(key)) {
        Some(key) => Err(Problem::new(format!("`{}` beside `{}` or `{}`", key.name, these[0], these[1]))
            .at(&key.span)
            .help(format!("say `{}` and `{}`, or `{}` and `{}`", these[0], these[1], others[0], others[1]))),
        None => Ok(()),
    }
}

fn mixture(node: &Node, files: &Files) -> Result<Vec<(Number, Distribution)>, Problem> {
    let items = node.list("a list of distributions, each with its weight")?;
    if items.is_empty() || items.len() > MOST_PARTS {
        return Err(Problem::new(format!("a mixture of {} parts", items.len()))
            .at(&node.span)
            .help(format!("1 to {MOST_PARTS}")));
    }
    items.iter().map(|item| part(item, files)).collect()
}

fn part(node: &Node, files: &Files) -> Result<(Number, Distribution), Problem> {
    let table = node.table("a distribution and its weight")?;
    table.only(&[&["weight"], SHAPES, super::MODIFIERS].concat())?;
    let weight = table.required("weight", &node.span, |node| match Number::read(node)? {
        weight if weight.as_f64() > 0.0 => Ok(weight),
        _ => Err(node.expected("a weight above zero")),
    })?;
    Ok((weight, Distribution::read(node, table, files)?))
}
