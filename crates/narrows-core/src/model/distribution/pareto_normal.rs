//! NetEm's "paretonormal": a quarter normal, three quarters Pareto.
//!
//! Source: the table generator of iproute2 (`netem/paretonormal.c`, from NISTnet). Its entries are (N(p) +
//! 3·P(p))/4 at the same p: a sum of quantile functions, not of independent draws. N is the standard normal
//! quantile, P(p) = ((1 − p)^(−1/3) − 3/2)·4/3 the quantile of a Pareto distribution of shape 3, shifted to a
//! mean of zero.
//!
//! Departures: the table caps P at 4, which makes the variance smaller than requested; here there is no cap.
//! The sum has a standard deviation of [`SD`] rather than 1; the scale is divided by it, so the result has
//! the requested standard deviation.

use super::level::Level;
use super::moments::Moments;
use super::root::root;
use crate::model::normal;

/// The standard deviation of (N + 3·P)/4: √((1 + 9·(4/3)²·3/4 + 6·Cov(N, P))/16), where the covariance,
/// 4/3·∫ z·φ(z)·(1 − Φ(z))^(−1/3) dz, is 0.783294331304447.
pub(crate) const SD: f64 = 1.051_777_245_541_644;

pub(crate) fn quantile(level: Level) -> f64 {
    at(level.normal(), level)
}

/// (z + 3·P)/4 with 3·P = 4·(1 − p)^(−1/3) − 6.
fn at(z: f64, level: Level) -> f64 {
    0.25 * z + 1.0 / libm::cbrt(level.above) - 1.5
}

/// By search: z ↦ z/4 + (1 − Φ(z))^(−1/3) − 3/2 increases strictly, faster than z/4.
pub(crate) fn level(x: f64) -> Level {
    if x == f64::NEG_INFINITY {
        return Level::NONE;
    }
    // The power is at least 1, and at most 2^(1/3) for z up to 0.
    let high = (4.0 * x + 2.0).min(FAR);
    let low = (4.0 * x + 0.96).clamp(-FAR, 0.0);
    if x >= at(FAR, Level::of_normal(FAR)) {
        return Level::ALL;
    }
    if high <= -FAR {
        return Level::NONE;
    }
    Level::of_normal(root(low.min(high), high, |z| at(z, Level::of_normal(z)) - x))
}

/// Beyond this, 1 − Φ leaves the range of floats.
const FAR: f64 = 37.0;

/// By Simpson's rule in z, from −10 to 20: beyond that x²·φ(z) is below 10⁻²².
pub(crate) fn moments(low: f64, high: f64) -> Moments {
    const STEPS: u32 = 6_000;
    let (start, end) = (level(low), level(high));
    let mass = end.from(start);
    let (from, to) = (start.normal().clamp(-10.0, 20.0), end.normal().clamp(-10.0, 20.0));
    if mass <= 0.0 || from >= to {
        return Moments::NOTHING;
    }
    let step = (to - from) / f64::from(STEPS);
    let (mut first, mut second) = (0.0, 0.0);
    for i in 0..=STEPS {
        let z = from + step * f64::from(i);
        let weight = match i {
            0 | STEPS => 1.0,
            i if i % 2 == 1 => 4.0,
            _ => 2.0,
        };
        let x = at(z, Level::of_normal(z));
        let mass = weight * normal::density(z);
        first += mass * x;
        second += mass * x * x;
    }
    Moments::raw(mass, first * step / 3.0, second * step / 3.0)
}
