//! Named distributions with parameters: their densities, and their scenario syntax.
//!
//! Distribution functions and quantiles come from the engine (`narrows_core::model::Distribution`), through the
//! scenario syntax; this file only has what a likelihood needs. With the parameters m, s, μ̃, σ, k, θ, a as named
//! below:
//!
//! | distribution | ln f(x) |
//! |---|---|
//! | normal | `−((x − m)/s)²/2 − ln s − ln √(2π)` |
//! | log-normal | `−((ln x − ln μ̃)/σ)²/2 − ln x − ln σ − ln √(2π)`, x > 0 |
//! | exponential | `−x/m − ln m`, x ≥ 0 |
//! | gamma | `(k − 1)·ln x − x/θ − k·ln θ − ln Γ(k)`, x > 0 |
//! | Weibull | `ln(k/θ) + (k − 1)·ln(x/θ) − (x/θ)^k`, x > 0 |
//! | Pareto | `ln k + k·ln a − (k + 1)·ln x`, x ≥ a |
//! | uniform | `−ln(high − low)`, low ≤ x ≤ high |

use narrows_core::Duration;
use narrows_core::model::{Distribution, DistributionError};

/// ln √(2π).
const LN_ROOT_TAU: f64 = 0.918_938_533_204_672_8;

/// A distribution with its parameters. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// Normal.
    Normal {
        /// m.
        mean: f64,
        /// s.
        sd: f64,
    },
    /// Log-normal: the logarithm is normal.
    LogNormal {
        /// μ̃; its logarithm is the mean of the logarithm.
        median: f64,
        /// σ, the standard deviation of the logarithm: dimensionless.
        sigma: f64,
    },
    /// Exponential: memoryless.
    Exponential {
        /// m.
        mean: f64,
    },
    /// Gamma.
    Gamma {
        /// k, dimensionless.
        shape: f64,
        /// θ.
        scale: f64,
    },
    /// Weibull.
    Weibull {
        /// k, dimensionless.
        shape: f64,
        /// θ.
        scale: f64,
    },
    /// Pareto, type I.
    Pareto {
        /// k, dimensionless.
        shape: f64,
        /// a.
        minimum: f64,
    },
    /// Uniform.
    Uniform {
        /// The minimum.
        low: f64,
        /// The maximum.
        high: f64,
    },
}

/// A parameter: its name, and its value in scenario syntax.
pub(super) type Parameter = (&'static str, Value);

/// A parameter's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    /// In nanoseconds.
    Time(f64),
    Number(f64),
}

impl Shape {
    /// ln f(x), of a density per nanosecond; −∞ outside the support.
    pub fn ln_density(&self, x: f64) -> f64 {
        let normal = |z: f64| -0.5 * z * z - LN_ROOT_TAU;
        match *self {
            Self::Normal { mean, sd } => normal((x - mean) / sd) - libm::log(sd),
            Self::LogNormal { .. } | Self::Gamma { .. } | Self::Weibull { .. } if x <= 0.0 => {
                f64::NEG_INFINITY
            }
            Self::LogNormal { median, sigma } => {
                normal(libm::log(x / median) / sigma) - libm::log(sigma) - libm::log(x)
            }
            Self::Exponential { mean } if x >= 0.0 => -x / mean - libm::log(mean),
            Self::Gamma { shape, scale } => {
                (shape - 1.0) * libm::log(x / scale) - x / scale - libm::log(scale) - libm::lgamma(shape)
            }
            Self::Weibull { shape, scale } => {
                let ratio = libm::log(x / scale);
                libm::log(shape / scale) + (shape - 1.0) * ratio - libm::exp(shape * ratio)
            }
            Self::Pareto { shape, minimum } if x >= minimum => {
                libm::log(shape / x) - shape * libm::log(x / minimum)
            }
            Self::Uniform { low, high } if (low..=high).contains(&x) => -libm::log(high - low),
            Self::Exponential { .. } | Self::Pareto { .. } | Self::Uniform { .. } => f64::NEG_INFINITY,
        }
    }

    /// Its name in scenarios.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Normal { .. } => "normal",
            Self::LogNormal { .. } => "log-normal",
            Self::Exponential { .. } => "exponential",
            Self::Gamma { .. } => "gamma",
            Self::Weibull { .. } => "weibull",
            Self::Pareto { .. } => "pareto",
            Self::Uniform { .. } => "uniform",
        }
    }

    pub(super) fn parameters(&self) -> Vec<Parameter> {
        use Value::{Number, Time};
        match *self {
            Self::Normal { mean, sd } => vec![("mean", Time(mean)), ("sd", Time(sd))],
            Self::LogNormal { median, sigma } => vec![("median", Time(median)), ("sigma", Number(sigma))],
            Self::Exponential { mean } => vec![("mean", Time(mean))],
            Self::Gamma { shape, scale } | Self::Weibull { shape, scale } => {
                vec![("shape", Number(shape)), ("scale", Time(scale))]
            }
            Self::Pareto { shape, minimum } => vec![("shape", Number(shape)), ("minimum", Time(minimum))],
            Self::Uniform { low, high } => vec![("low", Time(low)), ("high", Time(high))],
        }
    }

    /// The engine's distribution, with the parameters as written in a scenario.
    pub(super) fn engine(&self) -> Result<Distribution, DistributionError> {
        let (time, number) = (rounded_time, rounded_number);
        match *self {
            Self::Normal { mean, sd } => Distribution::normal(time(mean), time(sd)),
            Self::LogNormal { median, sigma } => Distribution::log_normal_median(time(median), number(sigma)),
            Self::Exponential { mean } => Distribution::exponential(time(mean)),
            Self::Gamma { shape, scale } => Distribution::gamma(number(shape), time(scale)),
            Self::Weibull { shape, scale } => Distribution::weibull(number(shape), time(scale)),
            Self::Pareto { shape, minimum } => Distribution::pareto(number(shape), time(minimum)),
            Self::Uniform { low, high } => Distribution::uniform(time(low), time(high)),
        }
    }

    /// As a table in a scenario: `gamma = { shape = 2.5, scale = "1ms" }`.
    pub(super) fn entry(&self) -> String {
        let parameters: Vec<String> =
            self.parameters().iter().map(|(name, value)| format!("{name} = {}", value.toml())).collect();
        format!("{} = {{ {} }}", self.name(), parameters.join(", "))
    }
}

impl Value {
    pub(super) fn toml(self) -> String {
        match self {
            Self::Time(nanos) => format!("\"{}\"", time(nanos)),
            Self::Number(number) => self::number(number),
        }
    }

    /// As text for people.
    pub(super) fn words(self) -> String {
        match self {
            Self::Time(nanos) => short_time(nanos),
            Self::Number(number) => significant(number, 4),
        }
    }

    pub(super) fn raw(self) -> f64 {
        match self {
            Self::Time(value) | Self::Number(value) => value,
        }
    }
}

/// A time rounded as [`time`] writes it.
pub(super) fn rounded_time(nanos: f64) -> f64 {
    nanos.round()
}

/// A number rounded as [`number`] writes it.
pub(super) fn rounded_number(value: f64) -> f64 {
    number(value).parse().expect("a number that was just written")
}

/// A time in scenario syntax, rounded to a nanosecond.
pub(super) fn time(nanos: f64) -> String {
    let duration = Duration::from_nanos(nanos.abs().round() as u64);
    if nanos <= -0.5 { format!("-{duration}") } else { duration.to_string() }
}

/// A time with four or five digits, for people.
pub(super) fn short_time(nanos: f64) -> String {
    let size = nanos.abs();
    let (unit, name) = match size {
        _ if size < 1e3 => (1.0, "ns"),
        _ if size < 1e6 => (1e3, "us"),
        _ if size < 1e9 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    format!("{}{name}", significant(nanos / unit, 5))
}

/// A dimensionless number in scenario syntax: nine decimals.
pub(super) fn number(value: f64) -> String {
    let text = format!("{value:.9}");
    let text = text.trim_end_matches('0');
    // A TOML float needs a digit after its decimal point.
    if text.ends_with('.') { format!("{text}0") } else { text.into() }
}

/// A number with this many significant digits.
pub(super) fn significant(value: f64, digits: i32) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let exponent = libm::floor(libm::log10(value.abs())) as i32;
    let after = (digits - 1 - exponent).clamp(0, 12) as usize;
    let text = format!("{value:.after$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}
