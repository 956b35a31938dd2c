//! Arrival times of frames at a port: the kernel's timestamps, where they are plausible.
//!
//! Every delay counts from these instants. Wrong ones make all delays wrong without any visible lateness, because
//! packets are released when the engine says. So a timestamp is checked against what is known without it: a frame
//! arrived before it was read, and after its port was last found empty. An implausible timestamp is not used, and a
//! run with one certifies nothing.

use narrows_core::{Duration, Time};
use narrows_io::clock::MonotonicTime;

use crate::clock::Clock;

/// A timestamp is at most this far ahead of the clock it is converted to: two clocks are compared to within some
/// microseconds.
const AHEAD: Duration = Duration::from_millis(1);
/// A frame can be read some microseconds after its timestamp. It is much later only if the kernel was stopped in
/// between, for example by a hypervisor.
const BEHIND: Duration = Duration::from_secs(1);

/// The state of one port.
#[derive(Debug)]
pub(super) struct Arrivals {
    /// The arrival time of the latest frame.
    last: Time,
    /// When nothing was left to read; before the first pass, when the port was opened, or earlier.
    empty: MonotonicTime,
}

/// The arrival time of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    pub(super) at: Time,
    /// Whether its timestamp is implausible: then the time of reading is used.
    pub(super) is_implausible: bool,
}

impl Arrivals {
    /// For a port that was opened at this time or later.
    pub(super) fn since(opened: MonotonicTime) -> Self {
        Self { last: Time::ZERO, empty: opened }
    }

    /// Everything that arrived by this instant has been read.
    pub(super) fn read_until(&mut self, instant: Time, clock: &Clock) {
        self.empty = clock.reading(instant);
    }

    /// The arrival time of a frame that was read by `now`.
    pub(super) fn of(&mut self, stamp: Option<MonotonicTime>, now: Time, clock: &Clock) -> Arrival {
        let is_implausible = stamp.is_some_and(|stamp| !self.can_be(stamp, clock.reading(now)));
        let stamp = stamp.filter(|_| !is_implausible);
        // Frames of one port are in order even if the wall clock is adjusted, and none is from the future.
        self.last = stamp.map_or(now, |stamp| clock.instant(stamp).min(now)).max(self.last);
        Arrival { at: self.last, is_implausible }
    }

    fn can_be(&self, stamp: MonotonicTime, now: MonotonicTime) -> bool {
        let [stamp, empty, now] = [stamp, self.empty, now].map(MonotonicTime::as_nanos);
        stamp <= now.saturating_add(AHEAD.nanos()) && stamp >= empty.saturating_sub(BEHIND.nanos())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn at(seconds: u64) -> Time {
        Time::from_nanos(seconds * SECOND)
    }

    /// A stamp that is off the reading at an instant by so many nanoseconds.
    fn stamp(clock: &Clock, at: Time, off: i64) -> Option<MonotonicTime> {
        Some(MonotonicTime::from_nanos(clock.reading(at).as_nanos().wrapping_add_signed(off)))
    }

    fn plausible(at: Time) -> Arrival {
        Arrival { at, is_implausible: false }
    }

    #[test]
    fn a_frame_came_when_its_stamp_says_and_without_one_when_it_was_read() {
        let clock = Clock::start();
        let mut arrivals = Arrivals::since(clock.reading(Time::ZERO));
        assert_eq!(
            arrivals.of(stamp(&clock, at(2), -5), at(3), &clock),
            plausible(Time::from_nanos(2 * SECOND - 5))
        );
        assert_eq!(arrivals.of(None, at(3), &clock), plausible(at(3)));
        // In order, and none of them later than it was read.
        assert_eq!(arrivals.of(stamp(&clock, at(2), 0), at(4), &clock), plausible(at(3)));
        assert_eq!(arrivals.of(stamp(&clock, at(4), 900_000), at(4), &clock), plausible(at(4)));
    }

    #[test]
    fn a_stamp_from_the_future_is_not_believed() {
        let clock = Clock::start();
        for ahead in [2_000_000, 60 * SECOND, u64::MAX / 2] {
            let mut arrivals = Arrivals::since(clock.reading(Time::ZERO));
            let arrival = arrivals.of(stamp(&clock, at(3), ahead as i64), at(3), &clock);
            assert_eq!(arrival, Arrival { at: at(3), is_implausible: true }, "{ahead}");
            // Nor does it hold up those behind it.
            assert_eq!(arrivals.of(stamp(&clock, at(4), 0), at(5), &clock), plausible(at(4)));
        }
    }

    #[test]
    fn a_stamp_from_before_the_port_was_empty_is_not_believed() {
        let clock = Clock::start();
        let mut arrivals = Arrivals::since(clock.reading(Time::ZERO));
        // Long ago, but nobody has looked since.
        assert_eq!(arrivals.of(stamp(&clock, at(1), 0), at(100), &clock), plausible(at(1)));
        arrivals.read_until(at(100), &clock);
        let off = |seconds: u64| -((seconds * SECOND) as i64);
        assert_eq!(arrivals.of(stamp(&clock, at(100), off(1)), at(101), &clock), plausible(at(99)));
        let before = arrivals.of(stamp(&clock, at(100), off(1) - 1), at(101), &clock);
        assert_eq!(before, Arrival { at: at(101), is_implausible: true });
        let before = arrivals.of(stamp(&clock, at(100), off(50)), at(102), &clock);
        assert_eq!(before, Arrival { at: at(102), is_implausible: true });
    }

    #[test]
    fn a_stamp_from_before_the_port_was_opened_is_not_believed() {
        let clock = Clock::start();
        let arrival = |off: i64| {
            let mut arrivals = Arrivals::since(clock.reading(at(30)));
            arrivals.of(stamp(&clock, at(30), off), at(31), &clock)
        };
        assert_eq!(arrival(-500_000_000), plausible(Time::from_nanos(29_500_000_000)));
        assert_eq!(arrival(-5_000_000_000), Arrival { at: at(31), is_implausible: true });
    }
}
