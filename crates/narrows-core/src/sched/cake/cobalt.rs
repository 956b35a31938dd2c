//! Cobalt, CAKE's queue management: CoDel and BLUE side by side.
//!
//! **CoDel** in a different form than RFC 8289's. A packet is late if its sojourn time exceeds `target`, the time of
//! four packets and, in `ingress` mode, that of two packets of each bulk flow. `drop_next` is the instant of the next
//! signal (a mark or a drop) while packets are late. When none is, the same instant counts down:
//!
//! ```text
//! a signal:              count ← count + 1,  drop_next ← drop_next + interval/√count
//! not late, and due:     count ← count − 1,  drop_next ← drop_next + interval/√count,  as often as due
//! ```
//!
//! So the rate of signals is remembered, and decays as slowly as it grew. 1/√count is a fraction of 32 bits: for counts
//! below 16 from a table, for others one Newton step from the root of the count before,
//! x ← x·(3 − count·x²)/2. The table has 1 for counts of 0 and 1. As in Linux, a new queue begins with a root of 0, so
//! that its first signal comes with the next late packet, not an interval later; after that, the first signal of an
//! episode waits for an interval.
//!
//! **BLUE** (Feng, Shin, Kandlur, Saha 2002): each overflow of the queue raises the probability to drop by 1/256, and
//! each service that finds it empty lowers it by 1/4096, both at most once per `target`. It drops even packets that
//! could be marked.

use crate::time::{Duration, Time};

/// The parameters of a tin's flows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameters {
    pub(super) target: Duration,
    pub(super) interval: Duration,
    /// The time of one longest packet at the tin's threshold rate.
    pub(super) packet_time: Duration,
}

/// The state of one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cobalt {
    count: u32,
    /// 2³²/√count.
    root: u32,
    /// BLUE's probability to drop, times 2³².
    probability: u32,
    dropping: bool,
    drop_next: Time,
    /// When the probability last changed.
    changed: Option<Time>,
}

/// What to do with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Judged {
    pub(super) drop: bool,
    pub(super) mark: bool,
}

const INCREMENT: u32 = 1 << 24;
const DECREMENT: u32 = 1 << 20;

/// 2³²/√count, rounded down.
const TABLE: [u32; 16] = {
    let mut table = [u32::MAX; 16];
    let mut count = 2;
    while count < 16 {
        table[count] = ((1u128 << 64) / count as u128).isqrt() as u32; // below 2³²
        count += 1;
    }
    table
};

/// One Newton step towards 2³²/√count.
const fn newton(root: u32, count: u32) -> u32 {
    let square = (root as u64 * root as u64) >> 32;
    // A quarter of 3 − count·x², below 2³²: the product fits.
    let rest = (3u64 << 32).saturating_sub(count as u64 * square) >> 2;
    ((rest * root as u64) >> 31) as u32
}

impl Cobalt {
    /// The queue was full, and its first packet has been dropped.
    pub(super) fn full(&mut self, with: &Parameters, now: Time) {
        if self.may_change(with, now) {
            self.probability = self.probability.saturating_add(INCREMENT);
            self.changed = Some(now);
        }
        (self.dropping, self.drop_next, self.count) = (true, now, self.count.max(1));
    }

    /// The queue was to be served and was empty.
    pub(super) fn empty(&mut self, with: &Parameters, now: Time) {
        if self.probability > 0 && self.may_change(with, now) {
            self.probability = self.probability.saturating_sub(DECREMENT);
            self.changed = Some(now);
        }
        self.dropping = false;
        if self.is_due(now) {
            self.set_count(self.count - 1);
            self.drop_next = self.after(self.drop_next, with);
        }
    }

    /// Whether nothing is remembered any more.
    pub(super) fn is_at_rest(&self, now: Time) -> bool {
        self.probability == 0 && self.count == 0 && now >= self.drop_next
    }

    /// Judges the packet at the head, which has waited for `sojourn`. `draw` gives 32 random bits.
    pub(super) fn judge(
        &mut self,
        with: &Parameters,
        now: Time,
        sojourn: Duration,
        bulk_flows: u32,
        markable: bool,
        draw: impl FnOnce() -> u32,
    ) -> Judged {
        let packets = |packets: u64| Duration::from_nanos(with.packet_time.nanos().saturating_mul(packets));
        let late =
            sojourn > with.target && sojourn > packets(2 * u64::from(bulk_flows)) && sojourn > packets(4);
        let due = self.is_due(now);
        let mut past = now > self.drop_next;
        if late && !self.dropping {
            self.drop_next = self.after(now, with);
        }
        if late && self.count == 0 {
            self.count = 1;
        }
        self.dropping = late;
        let signal = due && late;
        if signal {
            self.set_count(self.count.saturating_add(1));
            self.drop_next = self.after(self.drop_next, with);
            past = now > self.drop_next;
        } else if due {
            // At most once for each signal that there was.
            while self.is_due(now) {
                self.set_count(self.count - 1);
                self.drop_next = self.after(self.drop_next, with);
            }
            past = now > self.drop_next;
        }
        let unlucky = self.probability > 0 && draw() < self.probability;
        let drop = signal && !markable || unlucky;
        if self.count == 0 {
            // From now on, the instant at which the queue is at rest.
            self.drop_next = now + with.interval;
        } else if past && !drop {
            self.drop_next = now;
        }
        Judged { drop, mark: signal && markable }
    }

    fn is_due(&self, now: Time) -> bool {
        self.count > 0 && now >= self.drop_next
    }

    fn may_change(&self, with: &Parameters, now: Time) -> bool {
        self.changed.is_none_or(|changed| now.since(changed) > with.target)
    }

    fn set_count(&mut self, count: u32) {
        self.count = count;
        self.root = match TABLE.get(count as usize) {
            Some(root) => *root,
            None => newton(self.root, count),
        };
    }

    /// The control law.
    fn after(&self, from: Time, with: &Parameters) -> Time {
        let nanos = (u128::from(with.interval.nanos()) * u128::from(self.root)) >> 32;
        from + Duration::from_nanos(nanos as u64) // below the interval
    }
}

#[cfg(test)]
mod tests;
