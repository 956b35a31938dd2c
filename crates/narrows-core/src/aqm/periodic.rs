//! Controllers that update at regular instants from a queue's delay. Missed updates are caught up at the next call.

use crate::time::{Duration, Time};

/// Updates at whole multiples of a period since the start of the run. An update at the instant of a packet comes
/// before it.
pub(super) trait Periodic {
    /// The time between updates; not zero.
    fn period(&self) -> Duration;

    /// The number of the last update that was made.
    fn updates(&mut self) -> &mut u64;

    /// Performs one update with this delay. Returns whether the following updates would only record their delay: if
    /// this delay is zero, for as long as it stays zero; otherwise, for as long as it grows with time.
    fn update(&mut self, delay: Duration) -> bool;

    /// Skips this many updates, which only record the delay. `delay` is the delay at the last of them.
    fn leave_out(&mut self, updates: u64, delay: Duration);

    /// The number of the last update at or before an instant.
    fn number(&self, at: Time) -> u64 {
        at.nanos() / self.period().nanos()
    }

    /// Catches up with the updates up to `now`. During all of them, the packet at the head was the one that began to
    /// wait at `oldest`. The number of steps is bounded by how long the controller takes to settle, not by the time
    /// since the last update.
    fn catch_up(&mut self, now: Time, oldest: Option<Time>) {
        let due = self.number(now);
        if *self.updates() >= due {
            return;
        }
        let period = self.period().nanos();
        let delay = |update: u64| {
            oldest.map_or(Duration::ZERO, |oldest| Time::from_nanos(update * period).since(oldest))
        };
        // Up to this update, the queue was empty or the delay zero.
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
