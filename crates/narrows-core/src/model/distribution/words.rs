//! Distributions as text.

use alloc::format;
use core::fmt;

use super::shape::Shape;
use super::{BelowZero, Distribution};
use crate::time::Duration;

/// Nanoseconds for display; whole ones from a microsecond on.
pub(crate) struct Nanos(pub(crate) f64);

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0.0 { "-" } else { "" };
        let size = self.0.abs();
        if size.is_nan() {
            f.write_str("NaN")
        } else if size == f64::INFINITY {
            write!(f, "{sign}infinite")
        } else if size < 1_000.0 && size != libm::floor(size) {
            write!(f, "{sign}{:.3}ns", size)
        } else {
            write!(f, "{sign}{}", Duration::from_nanos((size + 0.5) as u64))
        }
    }
}

/// `normal, mean 10ms, sd 2ms, shifted by 5ms, below zero clamped`.
impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.raw.fmt(f)?;
        match self.below_zero {
            _ if self.raw.level_before(0.0).below <= 0.0 => Ok(()),
            BelowZero::Clamp => write!(f, ", below zero clamped"),
            BelowZero::Truncate => write!(f, ", below zero truncated"),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = || self.moments(f64::NEG_INFINITY, f64::INFINITY);
        match self {
            Self::Constant(value) => write!(f, "constant {}", Nanos(*value)),
            Self::Uniform { low, high } => write!(f, "uniform from {} to {}", Nanos(*low), Nanos(*high)),
            Self::Normal { mean, sd } => write!(f, "normal, mean {}, sd {}", Nanos(*mean), Nanos(*sd)),
            Self::LogNormal { mu, sigma } => {
                write!(f, "log-normal, median {}, sigma {}", Nanos(libm::exp(*mu)), Number(*sigma))
            }
            Self::Gamma { shape, scale } => {
                write!(f, "gamma, shape {}, scale {}", Number(*shape), Nanos(*scale))
            }
            Self::Weibull { shape: 1.0, scale } => write!(f, "exponential, mean {}", Nanos(*scale)),
            Self::Weibull { shape, scale } => {
                write!(f, "Weibull, shape {}, scale {}", Number(*shape), Nanos(*scale))
            }
            Self::Pareto { shape, minimum } => {
                write!(f, "Pareto, shape {}, minimum {}", Number(*shape), Nanos(*minimum))
            }
            Self::ParetoNormal { .. } => {
                let all = all();
                let sd = libm::sqrt(all.variance);
                write!(f, "Pareto-normal, mean {}, sd {}", Nanos(all.mean), Nanos(sd))
            }
            Self::Atoms(atoms) => {
                let (all, count) = (all(), atoms.count());
                let sd = libm::sqrt(all.variance);
                write!(f, "one of {count} values, mean {}, sd {}", Nanos(all.mean), Nanos(sd))
            }
            Self::Piecewise(pieces) => {
                let (all, count) = (all(), pieces.corners());
                let sd = libm::sqrt(all.variance);
                write!(f, "straight between {count} points, mean {}, sd {}", Nanos(all.mean), Nanos(sd))
            }
            Self::Mixture(mixture) => {
                write!(f, "mixture of ")?;
                for (number, (share, shape)) in mixture.parts().iter().enumerate() {
                    let comma = if number > 0 { ", " } else { "" };
                    write!(f, "{comma}{}% ({shape})", Number(share * 100.0))?;
                }
                Ok(())
            }
            Self::Shifted { inner, by } => write!(f, "{inner}, shifted by {}", Nanos(*by)),
            Self::Truncated(kept) => {
                write!(f, "{}", kept.inner())?;
                match (kept.low(), kept.high()) {
                    (low, f64::INFINITY) => write!(f, ", of which {} or more", Nanos(low)),
                    (f64::NEG_INFINITY, high) => write!(f, ", of which {} or less", Nanos(high)),
                    (low, high) => write!(f, ", of which {} to {}", Nanos(low), Nanos(high)),
                }
            }
        }
    }
}

/// A number with up to four digits after the point, without trailing zeros.
struct Number(f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:.4}", self.0);
        f.write_str(digits.trim_end_matches('0').trim_end_matches('.'))
    }
}
