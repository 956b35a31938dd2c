//! What delays come to: their distribution in numbers, and how often order, where it is kept, decides in its place.

use narrows_core::model::{Correlated, cumulative, quantile};
use narrows_core::{Duration, Order};
use serde::Serialize;

use super::{full_bytes, transmission};
use crate::direction::Direction;
use crate::value::{Correlation, Distribution, Normal, Shape, Uniform};

/// A distribution of delays in numbers, all in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DelayExplanation {
    /// The mean; nothing where it is infinite.
    pub mean_ns: Option<u64>,
    /// The standard deviation; nothing where it is infinite.
    pub sd_ns: Option<u64>,
    /// One packet in a hundred has less.
    pub p1_ns: u64,
    /// Half of the packets have less.
    pub p50_ns: u64,
    /// Nine packets in ten have less.
    pub p90_ns: u64,
    /// 99 packets in a hundred have less.
    pub p99_ns: u64,
    /// 999 packets in a thousand have less.
    pub p999_ns: u64,
}

impl DelayExplanation {
    /// Of the distribution that this direction draws from, if it draws.
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

/// The share of packets that is held back behind the one before, where order is kept and delays are drawn; of those that
/// follow one another closely, so that it is the most that there can be. With it: how far apart such packets are; nothing
/// where it does not matter.
pub(super) fn held_back(direction: &Direction) -> Option<(f64, Option<Duration>)> {
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

/// P(D₁ − D₂ > g) for the delays of two packets a time g apart, with Spearman's rank correlation `rank` in a Gaussian
/// copula.
fn overtakes(distribution: &Distribution, rank: f64, gap: Duration) -> f64 {
    let apart = gap.nanos() as f64;
    if rank == 0.0 && distribution.is_plain() {
        match distribution.shape {
            // D₁ − D₂ is normal with √2 times the standard deviation.
            Shape::Normal(Normal { sd, .. }) if sd.nanos() > 0 => {
                return cumulative(-apart / (std::f64::consts::SQRT_2 * sd.nanos() as f64));
            }
            // It is triangular on ± the width.
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
            // Below by more than rounding: the same delay does not overtake.
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
