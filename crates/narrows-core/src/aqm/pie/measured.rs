//! PIE by Little's law: the delay is the backlog divided by the rate at which the queue drains, measured at its
//! departures (RFC 8033, section 4.3; Linux's `pie_process_dequeue`).
//!
//! A measurement begins when at least 16 KiB are left in the queue, and ends when as many have departed. Its rate enters
//! a moving average. The next one begins at once if 16 KiB are still left.
//!
//! ```text
//! rate ← 7/8·rate + 1/8·bytes/time         delay = backlog / rate
//! ```
//!
//! As long as no rate has been measured, the delay counts as zero, and nothing is dropped. Choices: the weight of 1/8 is
//! Linux's; the RFC has 1/2. Linux takes only the time of measurements from the burst allowance; here it is the time
//! since the allowance was renewed, as in [`Pie`]. The backlog changes only when a packet moves, so all updates between
//! two packets have the same delay. If no packet moves for 10,000 updates, the probability stays where it is.

use alloc::sync::Arc;

use super::{Pie, PieConfig};
use crate::aqm::periodic::Periodic;
use crate::aqm::{Aqm, AqmSettings, Judgement, Waiting};
use crate::pool::PacketRef;
use crate::queue::{Context, Wire};
use crate::time::{Duration, Time};

/// Bytes that are left when a measurement begins, and that depart during it.
const THRESHOLD: u64 = 16_384;
const WEIGHT: f64 = 1.0 / 8.0;

/// The measurement of a queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Departures {
    /// The bytes in the queue since the last packet moved.
    pub(super) backlog: u64,
    /// The average rate in bytes per second; 0 before the first measurement has ended.
    rate: f64,
    /// When the present measurement began, and the bytes that have departed since.
    cycle: Option<(Time, u64)>,
}

impl Departures {
    /// The estimated queueing delay.
    pub(super) fn delay(&self) -> Duration {
        match self.rate > 0.0 {
            // Saturates far above any delay that a controller distinguishes.
            true => Duration::from_nanos((self.backlog as f64 / self.rate * 1e9) as u64),
            false => Duration::ZERO,
        }
    }

    /// A packet of this many bytes departs; `backlog` still counts it.
    pub(super) fn depart(&mut self, now: Time, length: u32) {
        self.backlog = self.backlog.saturating_sub(length.into());
        let fresh = || Some((now, 0)).filter(|_| self.backlog >= THRESHOLD);
        let Some((since, departed)) = self.cycle.or_else(fresh) else { return };
        let departed = departed + u64::from(length);
        let span = now.since(since);
        if departed < THRESHOLD || span == Duration::ZERO {
            self.cycle = Some((since, departed));
            return;
        }
        let rate = departed as f64 / span.seconds();
        self.rate = if self.rate == 0.0 { rate } else { self.rate + WEIGHT * (rate - self.rate) };
        self.cycle = fresh();
    }
}

/// Number of updates with the same delay that are performed one by one.
const MOST_ALIKE: u32 = 10_000;

/// PIE with a measured departure rate, for one FIFO.
#[derive(Clone, Debug)]
pub struct MeasuredPie {
    pie: Pie,
    departures: Departures,
}

impl MeasuredPie {
    /// A policy for one queue. Pass an `Arc` to share the parameters.
    pub fn new(config: impl Into<Arc<PieConfig>>) -> Self {
        Self { pie: Pie::new(config), departures: Departures::default() }
    }

    /// Catches up with the updates up to `now`, before the packet of this instant moves.
    fn advance(&mut self, now: Time, waiting: Waiting) -> Duration {
        self.pie.begin(now);
        self.departures.backlog = waiting.backlog.bytes;
        let (due, delay) = (self.pie.number(now), self.departures.delay());
        for _ in 0..MOST_ALIKE {
            let before = (self.pie.probability, self.pie.old_delay);
            if self.pie.updates >= due {
                return delay;
            }
            self.pie.updates += 1;
            self.pie.update(delay);
            if (self.pie.probability, self.pie.old_delay) == before {
                break;
            }
        }
        self.pie.leave_out(due - self.pie.updates, delay);
        self.pie.updates = due;
        delay
    }
}

impl Aqm for MeasuredPie {
    fn settings(&self) -> Option<AqmSettings> {
        self.pie.settings()
    }

    fn arrive(
        &mut self,
        now: Time,
        packet: PacketRef,
        waiting: Waiting,
        context: &mut Context<'_>,
    ) -> Judgement {
        let delay = self.advance(now, waiting);
        self.pie.judge(packet, delay, waiting, context)
    }

    fn depart(
        &mut self,
        now: Time,
        packet: PacketRef,
        waiting: Waiting,
        context: &mut Context<'_>,
    ) -> Judgement {
        self.advance(now, waiting);
        self.departures.depart(now, context.pool.get(packet).length);
        Judgement::Pass
    }

    fn set_wire(&mut self, now: Time, _wire: Wire) {
        self.pie.begin(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Backlog;

    const MILLISECOND: u64 = 1_000_000;

    /// A packet of 1024 bytes a millisecond: 16 of them are 16 KiB in 15 ms from the first on, and in 16 ms from then on.
    #[test]
    fn the_rate_is_an_average_over_16_kib_each() {
        let mut departures = Departures { backlog: 100 * 1024, ..Departures::default() };
        let mut depart = |at: u64| departures.depart(Time::from_nanos(at * MILLISECOND), 1024);
        (0..15).for_each(&mut depart);
        assert_eq!(departures.delay(), Duration::ZERO);
        let mut depart = |at: u64| departures.depart(Time::from_nanos(at * MILLISECOND), 1024);
        depart(15);
        let first = 16_384.0 / 0.015;
        assert_eq!(departures.rate, first);
        // 84 packets are left.
        let delay = (84.0 * 1024.0 / first * 1e9) as u64;
        assert_eq!(departures.delay(), Duration::from_nanos(delay));
        (16..32).for_each(|at| departures.depart(Time::from_nanos(at * MILLISECOND), 1024));
        let second = 16_384.0 / 0.016;
        assert_eq!(departures.rate, first + (second - first) / 8.0);
        // The measurement that finds less than 16 KiB left is the last.
        (32..96).for_each(|at| departures.depart(Time::from_nanos(at * MILLISECOND), 1024));
        assert_eq!((departures.backlog, departures.cycle), (4 * 1024, None));
    }

    /// A stall of a century is made up for in bounded time, with a delay that leads nowhere fast.
    #[test]
    fn updates_are_made_up_for() {
        let mut measured = MeasuredPie::new(PieConfig::default());
        measured.departures.rate = 1e6;
        let waits = |bytes| Waiting { backlog: Backlog { packets: 1, bytes }, oldest: Some(Time::ZERO) };
        measured.advance(Time::ZERO, waits(15_001));
        let century = Time::ZERO + Duration::from_secs(100 * 365 * 86_400);
        assert_eq!(measured.advance(century, waits(15_001)), Duration::from_micros(15_001));
        assert_eq!(measured.pie.updates, measured.pie.number(century));
        assert!(measured.pie.probability > 0.0 && measured.pie.probability < 0.1);
    }
}
