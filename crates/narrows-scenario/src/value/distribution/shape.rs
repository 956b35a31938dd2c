//! The shapes of distributions: each has a line in [`Shape`], and a struct of its parameters that builds
//! the engine's distribution. Shapes from data in a list or a file are in [`data`](super::data).

use std::ops::Range;

use narrows_core::Duration;
use narrows_core::model::{Distribution as Model, DistributionError};

use super::data::{Bins, Points, Samples, Table as DistTable};
use super::mixture::{MIXTURE, MixturePart};
use super::{Distribution, Law};
use crate::keys::compound::Group;
use crate::keys::kind::Given;
use crate::keys::quantity::{PLAIN_NUMBER, Time};
use crate::keys::{Keyed, Row, alternatives, row};
use crate::node::Table;
use crate::problem::Problem;
use crate::units::Number;

alternatives! {
    /// Shape of a distribution.
    enum Shape: dyn Law, the shape of Distribution {
        Constant(Duration) = "constant" as Time::ANY, "Always the same.";
        Uniform(Uniform) = "uniform" as Uniform::FORM, "Every time from `low` to `high` is equally likely.";
        Normal(Normal) = "normal" as Normal::FORM, "Normal.";
        LogNormal(LogNormal) = "log-normal" as LogNormal::FORM, "Log-normal, by `mean` and `sd`, or by `median` and `sigma`.";
        Exponential(Exponential) = "exponential" as Exponential::FORM, "Exponential.";
        Gamma(Gamma) = "gamma" as Gamma::FORM, "Gamma, by `mean` and `sd`, or by `shape` and `scale`.";
        Weibull(Weibull) = "weibull" as Weibull::FORM, "Weibull.";
        Pareto(Pareto) = "pareto" as Pareto::FORM, "Pareto, of the first kind.";
        ParetoNormal(ParetoNormal) = "pareto-normal" as ParetoNormal::FORM, "NetEm's: (normal + 3 · Pareto)/4, with this mean and standard deviation.";
        Table(DistTable) = "table" as DistTable::FORM, "A table of deviates, as NetEm's `.dist` files are.";
        Samples(Samples) = "samples" as Samples::FORM, "As measured: each sample is equally likely.";
        Histogram(Bins) = "histogram" as Bins::FORM, "Uniform within each of several bins.";
        Cdf(Points) = "cdf" as Points::FORM, "Linear between points of the cumulative distribution.";
        Mixture(Vec<MixturePart>) = "mixture" as MIXTURE, "One of several, by weight.";
    }
}

impl Shape {
    /// The engine's distribution.
    pub(super) fn engine(&self) -> Result<Model, DistributionError> {
        self.common().engine()
    }

    /// Text for display, if the engine has none.
    pub(super) fn words(&self) -> Option<String> {
        self.common().words()
    }
}

fn nanos(time: Duration) -> f64 {
    time.nanos() as f64
}

impl Law for Duration {
    fn engine(&self) -> Result<Model, DistributionError> {
        Model::constant(nanos(*self))
    }
}

/// Uniform distribution, both ends included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uniform {
    /// Minimum.
    pub low: Duration,
    /// Maximum.
    pub high: Duration,
}

impl Uniform {
    const FORM: Group<Self> =
        Group::new("UniformDelay", "Both included.", "{ low = \"5ms\", high = \"15ms\" }");
}

impl Keyed for Uniform {
    const ROWS: &'static [Row<Self>] = &[
        row!("low", low, Time::ANY, "Minimum.").required(),
        row!("high", high, Time::ANY, "Maximum.").required(),
    ];

    fn check(&self, _: &Table, place: &Range<usize>) -> Result<(), Problem> {
        let Self { low, high } = self;
        if low > high {
            return Err(Problem::new(format!("`low` is {low}, above `high`, which is {high}")).at(place));
        }
        Ok(())
    }
}

impl Law for Uniform {
    fn engine(&self) -> Result<Model, DistributionError> {
        Model::uniform(nanos(self.low), nanos(self.high))
    }
}

/// Normal distribution, before negative values are set to zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Normal {
    /// The mean.
    pub mean: Duration,
    /// The standard deviation.
    pub sd: Duration,
}

impl Normal {
    const FORM: Group<Self> = Group::new(
        "NormalDelay",
        "Before what is below zero becomes zero.",
        "{ mean = \"10ms\", sd = \"2ms\" }",
    );
}

impl Keyed for Normal {
    const ROWS: &'static [Row<Self>] = &[
        row!("mean", mean, Time::ANY, "The mean.").required(),
        row!("sd", sd, Time::ANY, "The standard deviation.").required(),
    ];
}

impl Law for Normal {
    fn engine(&self) -> Result<Model, DistributionError> {
        Model::normal(nanos(self.mean), nanos(self.sd))
    }
}

/// Log-normal distribution, given by its mean and standard deviation, or by its median and the standard
/// deviation of its logarithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogNormal {
    /// The mean.
    pub mean: Option<Duration>,
    /// The standard deviation.
    pub sd: Option<Duration>,
    /// The median.
    pub median: Option<Duration>,
    /// The standard deviation of the natural logarithm.
    pub sigma: Option<Number>,
}

impl LogNormal {
    const FORM: Group<Self> = Group::new(
        "LogNormalDelay",
        "One pair or the other.",
        "{ mean = \"10ms\", sd = \"2ms\" } or { median = \"10ms\", sigma = 0.2 }",
    );
}

impl Keyed for LogNormal {
    const ROWS: &'static [Row<Self>] = &[
        row!("mean", mean, Given(Time::ANY), "The mean."),
        row!("sd", sd, Given(Time::ANY), "The standard deviation."),
        row!("median", median, Given(Time::ANY), "The median."),
        row!(
            "sigma",
            sigma,
            Given(PLAIN_NUMBER),
            "The standard deviation of the natural logarithm, 0 to 20."
        ),
    ];

    fn check(&self, table: &Table, place: &Range<usize>) -> Result<(), Problem> {
        either(table, place, ["median", "sigma"], ["mean", "sd"])
    }
}

impl Law for LogNormal {
    fn engine(&self) -> Result<Model, DistributionError> {
        match (self.median, self.sigma) {
            (Some(median), Some(sigma)) => Model::log_normal_median(nanos(median), sigma.as_f64()),
            _ => Model::log_normal(nanos(self.mean.unwrap_or_default()), nanos(self.sd.unwrap_or_default())),
        }
    }
}

/// Exponential distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exponential {
    /// Mean, which is also the standard deviation.
    pub mean: Duration,
}

impl Exponential {
    const FORM: Group<Self> = Group::new("ExponentialDelay", "One parameter.", "{ mean = \"10ms\" }");
}

impl Keyed for Exponential {
    const ROWS: &'static [Row<Self>] =
        &[row!("mean", mean, Time::ANY, "Mean, and standard deviation.").required()];
}

impl Law for Exponential {
    fn engine(&self) -> Result<Model, DistributionError> {
        Model::exponential(nanos(self.mean))
    }
}

/// Gamma distribution, given by its mean and standard deviation, or by shape and scale, whose product is
/// the mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gamma {
    /// The mean.
    pub mean: Option<Duration>,
    /// The standard deviation.
    pub sd: Option<Duration>,
    /// Shape k.
    pub shape: Option<Number>,
    /// Scale θ.
    pub scale: Option<Duration>,
}

impl Gamma {
    const FORM: Group<Self> = Group::new(
        "GammaDelay",
        "One pair or the other.",
        "{ mean = \"10ms\", sd = \"2ms\" } or { shape = 25, scale = \"400us\" }",
    );
}

impl Keyed for Gamma {
    const ROWS: &'static [Row<Self>] = &[
        row!("mean", mean, Given(Time::ANY), "The mean."),
        row!("sd", sd, Given(Time::ANY), "The standard deviation."),
        row!("shape", shape, Given(PLAIN_NUMBER), "k, 0.01 to 10⁹."),
        row!("scale", scale, Given(Time::ANY), "θ; the mean is k·θ."),
    ];

    fn check(&self, table: &Table, place: &Range<usize>) -> Result<(), Problem> {
        either(table, place, ["shape", "scale"], ["mean", "sd"])
    }
}

impl Law for Gamma {
    fn engine(&self) -> Result<Model, DistributionError> {
        match (self.shape, self.scale) {
            (Some(shape), Some(scale)) => Model::gamma(shape.as_f64(), nanos(scale)),
            _ => Model::gamma_mean(nanos(self.mean.unwrap_or_default()), nanos(self.sd.unwrap_or_default())),
        }
    }
}

/// Weibull distribution: P(X > x) = exp(−(x/scale)^shape).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weibull {
    /// Shape k.
    pub shape: Number,
    /// Scale λ: a share 1 − 1/e of the values is below it.
    pub scale: Duration,
}

impl Weibull {
    const FORM: Group<Self> =
        Group::new("WeibullDelay", "P(X > x) = exp(−(x/scale)^shape).", "{ shape = 1.5, scale = \"10ms\" }");
}

impl Keyed for Weibull {
    const ROWS: &'static [Row<Self>] = &[
        row!("shape", shape, PLAIN_NUMBER, "k, 0.05 to 1000.").required(),
        row!("scale", scale, Time::ANY, "λ.").required(),
    ];
}

impl Law for Weibull {
    fn engine(&self) -> Result<Model, DistributionError> {
        Model::weibull(self.shape.as_f64(), nanos(self.scale))
    }
}

/// Pareto distribution: P(X > x) = (minimum/x)^shape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pareto {
    /// Shape α. The mean is infinite for α ≤ 1, the standard deviation for α ≤ 2.
    pub shape: Number,
    /// Minimum.
    pub minimum: Duration,
}

impl Pareto {
    const FORM: Group<Self> =
        Group::new("ParetoDelay", "P(X > x) = (minimum/x)^shape.", "{ shape = 3, minimum = \"10ms\" }");
}

impl Keyed for Pareto {
    const ROWS: &'static [Row<Self>] = &[
        row!(
            "shape",
            shape,
            PLAIN_NUMBER,
            "α, 0.05 to 1000; the mean is infinite up to 1, the standard deviation up to 2."
        )
        .required(),
        row!("minimum", minimum, Time::ANY, "Minimum.").required(),
    ];
}

impl Law for Pareto {
    fn engine(&self) -> Result<Model, DistributionError> {
        Model::pareto(self.shape.as_f64(), nanos(self.minimum))
    }
}

/// NetEm's Pareto-normal distribution: a quarter of a normal deviate plus three quarters of a Pareto
/// deviate, scaled and shifted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParetoNormal {
    /// Value of a zero deviate.
    pub mean: Duration,
    /// Increase of the value per unit of deviate.
    pub sd: Duration,
}

impl ParetoNormal {
    const FORM: Group<Self> =
        Group::new("ParetoNormalDelay", "(normal + 3 · Pareto)/4.", "{ mean = \"10ms\", sd = \"2ms\" }");
}

impl Keyed for ParetoNormal {
    const ROWS: &'static [Row<Self>] = &[
        row!("mean", mean, Time::ANY, "The mean.").required(),
        row!("sd", sd, Time::ANY, "The standard deviation.").required(),
    ];
}

impl Law for ParetoNormal {
    fn engine(&self) -> Result<Model, DistributionError> {
        Model::pareto_normal(nanos(self.mean), nanos(self.sd))
    }
}

/// Checks that a table has one pair of keys or the other. Errors for a table with neither ask for the
/// second pair.
fn either(table: &Table, place: &Range<usize>, one: [&str; 2], other: [&str; 2]) -> Result<(), Problem> {
    let has_one = one.iter().any(|key| table.get(key).is_some());
    let (these, those) = if has_one { (one, other) } else { (other, one) };
    if let Some(key) = those.iter().find_map(|key| table.key(key)) {
        return Err(Problem::new(format!("`{}` beside `{}` or `{}`", key.name, these[0], these[1]))
            .at(&key.span)
            .help(format!("say `{}` and `{}`, or `{}` and `{}`", these[0], these[1], those[0], those[1])));
    }
    match these.iter().find(|key| table.get(key).is_none()) {
        Some(key) => Err(Problem::new(format!("`{key}` is missing")).at(place)),
        None => Ok(()),
    }
}
