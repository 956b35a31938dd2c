//! Which delay ratios can be achieved, and which ones waiting-time priority gives.
//!
//! The total wait of some classes is minimal if they have strict priority over all others. So an order of service
//! with given mean waits exists only if, for every k, the first k classes together wait at least as long as under
//! strict priority for them; and all classes together wait the same in any order (L. Kleinrock's conservation law,
//! 1965; E. Coffman and I. Mitrani, 1980, for its converse). The law applies to bytes; since packet lengths are drawn
//! independently, it is applied to packets here. The strict priorities are simulated with the same packets.

use narrows_core::sched::{Fifo, Priority};

use super::run::{self, Waits};
use super::traffic::Arrival;

/// The minimum waits of the first classes.
#[derive(Clone, Debug)]
pub(super) struct Reach {
    /// The waits of all classes in order of arrival.
    all: Waits,
    /// The total wait of the first k classes if they have priority over all others, for k from 1.
    first: Vec<f64>,
}

impl Reach {
    pub(super) fn of(arrivals: &[Arrival], classes: usize) -> Self {
        let least = |first: usize| {
            let band = |class: u32| u32::from(class as usize >= first);
            let waits = run::waits(Priority::default(), arrivals, classes, band);
            waits.classes[..first].iter().map(|(sum, _)| sum).sum()
        };
        Self {
            all: run::waits(Fifo::default(), arrivals, classes, |_| 0),
            first: (1..classes).map(least).collect(),
        }
    }

    /// Whether waits in proportion to these parameters can be achieved. If the list is not sorted by parameter, the
    /// check still uses the first classes in the list, so it may wrongly say yes; callers sort the list.
    pub(super) fn has(&self, ddps: &[u32]) -> bool {
        let all: f64 = self.all.classes.iter().map(|(sum, _)| sum).sum();
        let part = |(&(_, packets), &ddp): (&(f64, u64), &u32)| packets as f64 * f64::from(ddp);
        let parts: Vec<f64> = self.all.classes.iter().zip(ddps).map(part).collect();
        let whole: f64 = parts.iter().sum();
        let asked = |first: usize| all * parts[..first].iter().sum::<f64>() / whole;
        self.first.iter().zip(1..).all(|(least, first)| asked(first) >= *least)
    }
}

/// The ratios to the first class's wait under waiting-time priority (g = 0) with Poisson arrivals and equal loads,
/// for any packet lengths: L. Kleinrock, "A delay dependent queue discipline", Naval Research Logistics Quarterly
/// 11, 1964. With priorities that grow as b = 1/δ, starting with the slowest class:
///
/// `W_p = (X − Σ_{i slower} ρ_i·W_i·(1 − b_i/b_p)) / (1 − Σ_{i quicker} ρ_i·(1 − b_p/b_i))`
///
/// where X is the wait in order of arrival, which cancels out.
pub(super) fn waiting_time_priority(ddps: &[u32], load: f64) -> Vec<f64> {
    let each = load / 100.0 / ddps.len() as f64;
    let mut order: Vec<usize> = (0..ddps.len()).collect();
    order.sort_by_key(|&class| std::cmp::Reverse(ddps[class]));
    let growth = |class: usize| 1.0 / f64::from(ddps[class]);
    let mut waits = vec![0.0; ddps.len()];
    for (place, &class) in order.iter().enumerate() {
        let (slower, quicker) = (&order[..place], &order[place + 1..]);
        let owed: f64 = slower.iter().map(|&i| each * waits[i] * (1.0 - growth(i) / growth(class))).sum();
        let overtaken: f64 = quicker.iter().map(|&i| each * (1.0 - growth(class) / growth(i))).sum();
        waits[class] = (1.0 - owed) / (1.0 - overtaken);
    }
    waits.iter().skip(1).map(|wait| wait / waits[0]).collect()
}
