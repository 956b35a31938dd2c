//! The shapes of distributions: cumulative probability, quantile, and moments over an interval.

mod mixture;

pub(crate) use mixture::Mixture;

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::atoms::Atoms;
use super::level::Level;
use super::moments::Moments;
use super::pareto_normal;
use super::piecewise::Piecewise;
use super::special;
use crate::model::normal;

/// A distribution on the real line, in nanoseconds; may include negative delays.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    Constant(f64),
    Uniform {
        low: f64,
        high: f64,
    },
    Normal {
        mean: f64,
        sd: f64,
    },
    /// The logarithm is normal.
    LogNormal {
        mu: f64,
        sigma: f64,
    },
    Gamma {
        shape: f64,
        scale: f64,
    },
    /// With a shape of 1, the exponential distribution.
    Weibull {
        shape: f64,
        scale: f64,
    },
    Pareto {
        shape: f64,
        minimum: f64,
    },
    /// `mean` + `scale`·X, where X has NetEm's shape.
    ParetoNormal {
        mean: f64,
        scale: f64,
    },
    Atoms(Atoms),
    Piecewise(Piecewise),
    Mixture(Mixture),
    Shifted {
        inner: Arc<Shape>,
        by: f64,
    },
    Truncated(Truncated),
}

/// A distribution, given that its value lies from `low` to `high`, both included.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Truncated {
    inner: Arc<Shape>,
    low: f64,
    high: f64,
    /// P(X < low) and P(X ≤ high).
    from: Level,
    to: Level,
}

impl Truncated {
    /// `None` if there is no probability between the two.
    pub(crate) fn new(inner: Shape, low: f64, high: f64) -> Option<Self> {
        let (from, to) = (inner.level_before(low), inner.level(high));
        (to.from(from) > 0.0).then(|| Self { inner: Arc::new(inner), low, high, from, to })
    }

    pub(crate) fn mass(&self) -> f64 {
        self.to.from(self.from)
    }

    pub(crate) fn inner(&self) -> &Shape {
        &self.inner
    }

    pub(crate) fn low(&self) -> f64 {
        self.low
    }

    pub(crate) fn high(&self) -> f64 {
        self.high
    }

    fn part(&self, x: f64, level: Level) -> Level {
        if x < self.low {
            return Level::NONE;
        }
        let mass = self.mass();
        let (below, above) = (level.from(self.from) / mass, self.to.from(level) / mass);
        Level { below: below.min(1.0), above: above.min(1.0) }
    }
}

impl Shape {
    /// P(X ≤ x), with its complement.
    pub(crate) fn level(&self, x: f64) -> Level {
        match self {
            Self::Constant(value) => {
                if x < *value {
                    Level::NONE
                } else {
                    Level::ALL
                }
            }
            &Self::Uniform { low, high } => {
                let width = high - low;
                let (below, above) = ((x - low) / width, (high - x) / width);
                Level { below: below.clamp(0.0, 1.0), above: above.clamp(0.0, 1.0) }
            }
            &Self::Normal { mean, sd } => Level::of_normal((x - mean) / sd),
            &Self::LogNormal { mu, sigma } if x > 0.0 => Level::of_normal((libm::log(x) - mu) / sigma),
            &Self::Gamma { shape, scale } => special::gamma(shape, x / scale),
            &Self::Weibull { shape, scale } if x > 0.0 => Level::of_hazard(power(x / scale, shape)),
            &Self::Pareto { shape, minimum } if x > minimum => {
                Level::of_hazard(shape * libm::log(x / minimum))
            }
            Self::LogNormal { .. } | Self::Weibull { .. } | Self::Pareto { .. } => Level::NONE,
            &Self::ParetoNormal { mean, scale } => pareto_normal::level((x - mean) / scale),
            Self::Atoms(atoms) => atoms.level(x),
            Self::Piecewise(pieces) => pieces.level(x),
            Self::Mixture(mixture) => mixture.level(|shape| shape.level(x)),
            Self::Shifted { inner, by } => inner.level(x - by),
            Self::Truncated(kept) if x >= kept.high => Level::ALL,
            Self::Truncated(kept) => kept.part(x, kept.inner.level(x)),
        }
    }

    /// P(X < x), with its complement: different from [`Shape::level`] if there is an atom at x.
    pub(crate) fn level_before(&self, x: f64) -> Level {
        match self {
            Self::Constant(value) => {
                if x <= *value {
                    Level::NONE
                } else {
                    Level::ALL
                }
            }
            Self::Atoms(atoms) => atoms.level_before(x),
            Self::Piecewise(pieces) => pieces.level_before(x),
            Self::Mixture(mixture) => mixture.level(|shape| shape.level_before(x)),
            Self::Shifted { inner, by } => inner.level_before(x - by),
            Self::Truncated(kept) if x > kept.high => Level::ALL,
            Self::Truncated(kept) => kept.part(x, kept.inner.level_before(x)),
            _ => self.level(x),
        }
    }

    /// The minimum x with P(X ≤ x) ≥ `level`; at 0 and 1 the ends of the distribution, which may be infinite.
    #[inline]
    pub(crate) fn quantile(&self, level: Level) -> f64 {
        match self {
            Self::Constant(value) => *value,
            &Self::Uniform { low, high } => low * level.above + high * level.below,
            &Self::Normal { mean, sd } => mean + level.normal() * sd,
            &Self::LogNormal { mu, sigma } => libm::exp(mu + sigma * level.normal()),
            &Self::Gamma { shape, scale } => scale * special::gamma_quantile(shape, level),
            &Self::Weibull { shape: 1.0, scale } => scale * level.hazard(),
            // The power via its logarithm: half the time, and still 13 digits at a shape of 0.05.
            &Self::Weibull { shape, scale } => scale * libm::exp(libm::log(level.hazard()) / shape),
            &Self::Pareto { shape, minimum } => minimum * libm::exp(level.hazard() / shape),
            &Self::ParetoNormal { mean, scale } => mean + scale * pareto_normal::quantile(level),
            Self::Atoms(atoms) => atoms.quantile(level),
            Self::Piecewise(pieces) => pieces.quantile(level),
            Self::Mixture(mixture) => mixture.quantile(level),
            Self::Shifted { inner, by } => inner.quantile(level) + by,
            Self::Truncated(kept) => {
                kept.inner.quantile(level.between(kept.from, kept.to)).clamp(kept.low, kept.high)
            }
        }
    }

    /// Moments of the part from `low` to `high`, both included.
    pub(crate) fn moments(&self, low: f64, high: f64) -> Moments {
        let mass = || self.level(high).from(self.level_before(low));
        match self {
            &Self::Constant(value) => {
                if low <= value && value <= high {
                    Moments::atom(1.0, value)
                } else {
                    Moments::NOTHING
                }
            }
            &Self::Uniform { low: start, high: end } => {
                let (from, to) = (low.max(start), high.min(end));
                if from > to {
                    return Moments::NOTHING;
                }
                let width = to - from;
                Moments { mass: mass(), mean: from + 0.5 * width, variance: width * width / 12.0 }
            }
            &Self::Normal { mean, sd } => {
                normal_moments(mass(), (low - mean) / sd, (high - mean) / sd).linear(mean, sd)
            }
            &Self::LogNormal { mu, sigma } => {
                let end = |x: f64| if x > 0.0 { (libm::log(x) - mu) / sigma } else { f64::NEG_INFINITY };
                let (from, to) = (end(low), end(high));
                // In units of the median, to avoid early overflow.
                let moment = |k: f64| {
                    let shift = k * sigma;
                    let share = Level::of_normal(to - shift).from(Level::of_normal(from - shift));
                    libm::exp(0.5 * shift * shift) * share
                };
                Moments::raw(mass(), moment(1.0), moment(2.0)).linear(0.0, libm::exp(mu))
            }
            &Self::Gamma { shape, scale } if low <= 0.0 && high == f64::INFINITY => {
                Moments { mass: 1.0, mean: shape * scale, variance: shape * scale * scale }
            }
            &Self::Gamma { shape, scale } => {
                let share =
                    |k| special::gamma(shape + k, high / scale).from(special::gamma(shape + k, low / scale));
                let (first, second) = (shape * share(1.0), shape * (shape + 1.0) * share(2.0));
                Moments::raw(mass(), first, second).linear(0.0, scale)
            }
            &Self::Weibull { shape, scale } => {
                let end = |x: f64| if x > 0.0 { power(x / scale, shape) } else { 0.0 };
                let (from, to) = (end(low), end(high));
                let moment = |k: f64| {
                    let a = 1.0 + k / shape;
                    libm::tgamma(a) * special::gamma(a, to).from(special::gamma(a, from))
                };
                Moments::raw(mass(), moment(1.0), moment(2.0)).linear(0.0, scale)
            }
            &Self::Pareto { shape, minimum } => {
                let (from, to) = ((low / minimum).max(1.0), high / minimum);
                if to < from {
                    return Moments::NOTHING;
                }
                // ∫ x^k·shape·x^(−shape − 1) dx
                let moment = |k: f64| match k - shape {
                    0.0 => shape * libm::log(to / from),
                    e => shape / e * (libm::pow(to, e) - libm::pow(from, e)),
                };
                Moments::raw(mass(), moment(1.0), moment(2.0)).linear(0.0, minimum)
            }
            &Self::ParetoNormal { mean, scale } => {
                pareto_normal::moments((low - mean) / scale, (high - mean) / scale).linear(mean, scale)
            }
            Self::Atoms(atoms) => atoms.moments(low, high),
            Self::Piecewise(pieces) => pieces.moments(low, high),
            Self::Mixture(mixture) => mixture.moments(low, high),
            Self::Shifted { inner, by } => inner.moments(low - by, high - by).linear(*by, 1.0),
            Self::Truncated(kept) => {
                let (low, high) = (low.max(kept.low), high.min(kept.high));
                let part = kept.inner.moments(low, high).within(low, high);
                Moments { mass: (part.mass / kept.mass()).min(1.0), ..part }
            }
        }
    }

    /// The atoms, in no particular order; the same value may occur twice.
    pub(crate) fn atoms(&self) -> Vec<(f64, f64)> {
        match self {
            &Self::Constant(value) => [(value, 1.0)].into(),
            Self::Atoms(atoms) => atoms.list(),
            Self::Piecewise(pieces) => pieces.atoms(),
            Self::Mixture(mixture) => mixture.atoms(),
            Self::Shifted { inner, by } => inner.atoms().into_iter().map(|(x, p)| (x + by, p)).collect(),
            Self::Truncated(kept) => {
                let mass = kept.mass();
                let inside = |&(x, _): &(f64, f64)| kept.low <= x && x <= kept.high;
                kept.inner.atoms().into_iter().filter(inside).map(|(x, p)| (x, p / mass)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Whether a quantile needs only a formula or a table lookup, no search.
    pub(crate) fn is_closed(&self) -> bool {
        match self {
            Self::Gamma { .. } | Self::Mixture(_) => false,
            Self::Shifted { inner, .. } => inner.is_closed(),
            Self::Truncated(kept) => kept.inner.is_closed(),
            _ => true,
        }
    }

    /// Whether quantiles go in steps, of which there may be many.
    pub(crate) fn is_stepped(&self) -> bool {
        match self {
            Self::Atoms(_) | Self::Piecewise(_) => true,
            Self::Shifted { inner, .. } => inner.is_stepped(),
            Self::Truncated(kept) => kept.inner.is_stepped(),
            _ => false,
        }
    }
}

/// x^e, cheap for the exponential distribution.
fn power(x: f64, e: f64) -> f64 {
    if e == 1.0 { x } else { libm::pow(x, e) }
}

/// Moments of the standard normal distribution between α and β.
fn normal_moments(mass: f64, alpha: f64, beta: f64) -> Moments {
    if mass <= 0.0 {
        return Moments::NOTHING;
    }
    let at = |z: f64| {
        let density = normal::density(z);
        if density > 0.0 { (density, z * density) } else { (0.0, 0.0) }
    };
    let ((start, start_slope), (end, end_slope)) = (at(alpha), at(beta));
    let mean = (start - end) / mass;
    let variance = 1.0 + (start_slope - end_slope) / mass - mean * mean;
    Moments { mass, mean, variance: variance.max(0.0) }
}
