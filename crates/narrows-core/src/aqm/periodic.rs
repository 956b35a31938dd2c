//! Controllers that act on a queue's delay at regular instants, made up for when someone next looks.

use crate::time::{Duration, Time};

/// Updates at the whole multiples of a period since the start of the run. One at the instant of a packet comes before it.
pub(super) trait Periodic {
    /// From one update to the next; not zero.
    fn period(&self) -> Duration;

    /// The number of the last update that was made.
    fn updates(&mut self) -> &mut u64;

    /// One update, which sees this delay. Whether the next ones would do nothing but take note of theirs: if this delay is
    /// zero, as long as it is, and otherwise as long as it grows with time.
    fn update(&mut self, delay: Duration) -> bool;

    /// So many updates do nothing but take note of the delay, which is this one at the last of them.
    fn leave_out(&mut self, updates: u64, delay: Duration);

    /// The number of the last update at or before an instant.
    fn number(&self, at: Time) -> u64 {
        at.nanos() / self.period().nanos()
    }

    /// Makes up for the updates up to `now`, over all of which the first packet in the queue was one that began to wait
    /// then. Takes as many steps as it takes the controller to come to rest, however long ago the last update was.
    fn catch_up(&mut self, now: Time, oldest: Option<Time>) {
        let due = self.number(now);
        if *self.updates() >= due {
            return;
        }
        let period = self.period().nanos();
        let delay = |update: u64| {
            oldest.map_or(Duration::ZERO, |oldest| Time::from_nanos(update * period).since(oldest))
        };
        // Up to there nothing waited, or not for any time.
        let idle = oldest.map_or(due, |oldest| self.number(oldest).min(due));
        for end in [idle, due] {
            while *self.updates() < end {
                let next = *self.updates() + 1;
                *self.updates() = next;
                if self.update(delay(next)) {
                    self.leave_out(end - next, delay(end));
                    *self.updates() = end;
                }
            }
        }
    }
}
