//! Distributions as they stand in a file.

use narrows_core::model::BelowZero;

use super::{Distribution, Shape};
use crate::units;
use crate::value::inline::Inline;

impl Distribution {
    /// Adds the shape and what stands beside it to a table.
    pub(crate) fn write(&self, table: &mut Inline) {
        self.shape.write(table);
        table.quoted("shift", (self.shift != 0).then(|| units::signed_time_text(self.shift)));
        table.quoted("minimum", self.minimum);
        table.quoted("maximum", self.maximum);
        table.quoted("below-zero", (self.below_zero == BelowZero::Truncate).then_some("truncate"));
    }
}

impl Shape {
    fn write(&self, table: &mut Inline) {
        let mut parameters = Inline::default();
        let (key, value) = match self {
            Self::Constant(at) => return table.quoted("constant", Some(at)),
            Self::Uniform { low, high } => {
                parameters.quoted("low", Some(low));
                parameters.quoted("high", Some(high));
                ("uniform", parameters.finish())
            }
            Self::Normal { mean, sd }
            | Self::LogNormal { mean, sd }
            | Self::Gamma { mean, sd }
            | Self::ParetoNormal { mean, sd } => {
                parameters.quoted("mean", Some(mean));
                parameters.quoted("sd", Some(sd));
                let key = match self {
                    Self::LogNormal { .. } => "log-normal",
                    Self::Gamma { .. } => "gamma",
                    Self::ParetoNormal { .. } => "pareto-normal",
                    _ => "normal",
                };
                (key, parameters.finish())
            }
            Self::LogNormalMedian { median, sigma } => {
                parameters.quoted("median", Some(median));
                parameters.plain("sigma", Some(sigma));
                ("log-normal", parameters.finish())
            }
            Self::Exponential { mean } => {
                parameters.quoted("mean", Some(mean));
                ("exponential", parameters.finish())
            }
            Self::GammaShape { shape, scale } | Self::Weibull { shape, scale } => {
                parameters.plain("shape", Some(shape));
                parameters.quoted("scale", Some(scale));
                let key = if matches!(self, Self::Weibull { .. }) { "weibull" } else { "gamma" };
                (key, parameters.finish())
            }
            Self::Pareto { shape, minimum } => {
                parameters.plain("shape", Some(shape));
                parameters.quoted("minimum", Some(minimum));
                ("pareto", parameters.finish())
            }
            Self::Table(dist) => ("table", dist.text()),
            Self::Samples(samples) => ("samples", samples.text()),
            Self::Histogram(bins) => ("histogram", bins.text()),
            Self::Cdf(points) => ("cdf", points.text()),
            Self::Mixture(parts) => {
                let parts = parts.iter().map(|(weight, distribution)| {
                    let mut part = Inline::default();
                    part.plain("weight", Some(weight));
                    distribution.write(&mut part);
                    part.finish()
                });
                ("mixture", format!("[{}]", parts.collect::<Vec<_>>().join(", ")))
            }
        };
        table.plain(key, Some(value));
    }
}

/// For people.
impl std::fmt::Display for Distribution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words = match &self.shape {
            Shape::Uniform { low, high } if self.is_plain() => {
                return write!(f, "uniform from {low} to {high}");
            }
            Shape::Normal { mean, sd } if self.is_plain() => return write!(f, "normal, {mean} ± {sd}"),
            Shape::Table(table) => table.words(),
            Shape::Samples(samples) => samples.words(),
            Shape::Histogram(bins) => bins.words(),
            Shape::Cdf(points) => points.words(),
            _ => return write!(f, "{}", self.engine()),
        };
        // Of numbers in a list the engine knows only that there are some.
        f.write_str(&words)?;
        if self.shift != 0 {
            write!(f, ", shifted by {}", units::signed_time_text(self.shift))?;
        }
        match (self.minimum, self.maximum) {
            (None, None) => {}
            (Some(low), None) => write!(f, ", of which {low} or more")?,
            (None, Some(high)) => write!(f, ", of which {high} or less")?,
            (Some(low), Some(high)) => write!(f, ", of which {low} to {high}")?,
        }
        if self.below_zero == BelowZero::Truncate { write!(f, ", below zero truncated") } else { Ok(()) }
    }
}
