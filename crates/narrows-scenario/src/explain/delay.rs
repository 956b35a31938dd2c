//! Delay statistics: percentiles of the distribution, and how often kept order determines the delay
//! instead.

use narrows_core::model::{Correlated, cumulative, quantile};
use narrows_core::{Duration, Order};
use serde::Serialize;

use super::{full_bytes, transmission};
use crate::direction::Direction;
use crate::value::{Correlation, Distribution, Normal, Shape, Uniform};

/// Statistics of a delay distribution, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DelayExplanation {
    /// Mean; `None` if infinite.
    pub mean_ns: Option<u64>,
    /// Standard deviation; `None` if infinite.
    pub sd_ns: Option<u64>,
    /// 1st percentile.
    pub p1_ns: u64,
    /// Median (p50).
    pub p50_ns: u64,
    /// 90th percentile.
    pub p90_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
}

impl DelayExplanation {
    /// Statistics of the distribution that this direction draws from, if any.
    pub(super) fn of(direction: &Direction) -> Option<Self> {
        if direction.follows_delay_trace() {
            return None;
        }
        let delay = direction.effective_delay();
        let (distribution, _) = delay.distribution()?;
        let at = |p| distribution.quantile(p).nanos();
        Some(Self {
            mean_ns: distribution.mean().map(Duration::nanos),
            sd_ns: distribution.sd().map(Duration::nanos),
            p1_ns: at(0.01),
            p50_ns: at(0.5),
            p90_ns: at(0.9),
            p99_ns: at(0.99),
            p999_ns: at(0.999),
        })
    }
}

/// The share of packets that are delayed to keep order, for random delays with kept order. It is computed
/// for packets that follow one another closely, and so is the maximum. Also returns the spacing of such
/// packets; `None` if it does not matter.
pub(super) fn delayed_to_keep_order(direction: &Direction) -> Option<(f64, Option<Duration>)> {
    if direction.settings.order == Order::Allow || direction.follows_delay_trace() {
        return None;
    }
    let delay = direction.effective_delay();
    let (distribution, correlation) = delay.distribution()?;
    let rank = match correlation {
        Some(Correlation::InTime(length)) => {
            let model = Correlated::in_time(distribution.engine().clone(), length)?;
            return Some((model.delayed_to_keep_order()?, None));
        }
        Some(Correlation::PerPacket(share)) => share.as_f64(),
        None => 0.0,
    };
    let shortest = direction.profile.as_ref().map(|used| used.profile.air_time().shortest());
    let gap = transmission(direction, full_bytes(direction), shortest.unwrap_or_default())?;
    Some((overtakes(distribution, rank, gap), Some(gap)))
}

/// P(D₁ − D₂ > g) for the delays of two packets sent g apart, with Spearman's rank correlation `rank` in a
/// Gaussian copula.
fn overtakes(distribution: &Distribution, rank: f64, gap: Duration) -> f64 {
    let apart = gap.nanos() as f64;
    if rank == 0.0 && distribution.is_plain() {
        match distribution.shape {
            // D₁ − D₂ is normal with √2 times the standard deviation.
            Shape::Normal(Normal { sd, .. }) if sd.nanos() > 0 => {
                return cumulative(-apart / (std::f64::consts::SQRT_2 * sd.nanos() as f64));
            }
            // D₁ − D₂ has a triangular distribution on ± the width.
            Shape::Uniform(Uniform { low, high }) if high > low => {
                let part = (1.0 - apart / (high - low).nanos() as f64).max(0.0);
                return part * part / 2.0;
            }
            _ => {}
        }
    }
    // ∫ P(D₂ < Q(u) − g | D₁ = Q(u)) du by the midpoint rule. Given z₁ = Φ⁻¹(u), z₂ is normal with mean ρ·z₁ and variance
    // 1 − ρ², and D₂ < d is z₂ < Φ⁻¹(F(d)).
    const STEPS: u32 = 1000;
    let rho = 2.0 * pinned_sine(std::f64::consts::PI * rank / 6.0);
    let rest = (1.0 - rho * rho).sqrt();
    let engine = distribution.engine();
    let sum: f64 = (0..STEPS)
        .map(|step| (f64::from(step) + 0.5) / f64::from(STEPS))
        .map(|u| {
            // Subtract more than the rounding error: equal delays do not overtake.
            let below = engine.cdf(engine.quantile(u) - apart - 0.5);
            match below {
                ..=0.0 => 0.0,
                1.0.. => 1.0,
                below => cumulative((quantile(below) - rho * quantile(u)) / rest),
            }
        })
        .sum();
    sum / f64::from(STEPS)
}

/// The sine of an angle from 0 to π/6, by its series: the tenth power is below 10⁻⁹ of it.
fn pinned_sine(x: f64) -> f64 {
    let square = x * x;
    x * (1.0 - square / 6.0 * (1.0 - square / 20.0 * (1.0 - square / 42.0 * (1.0 - square / 72.0))))
}
