//! The only clock: instants of a run on the kernel's monotonic clock.

use std::cell::Cell;

use narrows_core::{Duration, Time};
use narrows_frame::WallTime;
use narrows_io::clock::{MonotonicTime, clock_monotonic, clock_realtime};

thread_local! {
    /// The reading held by the thread that holds its clock.
    static HELD: Cell<Option<Time>> = const { Cell::new(None) };
}

/// The wall clock, in nanoseconds since 1970.
pub fn since_1970() -> u64 {
    clock_realtime()
}

/// Converts clock readings to instants of a run, counted from its start.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: MonotonicTime,
    started: WallTime,
    is_held: bool,
}

impl Clock {
    /// A run that starts now.
    pub fn start() -> Self {
        Self { start: clock_monotonic(), started: WallTime::from_nanos(clock_realtime()), is_held: false }
    }

    /// The wall clock at the start of the run.
    pub fn started(&self) -> WallTime {
        self.started
    }

    /// The instant now.
    pub fn now(&self) -> Time {
        if !self.is_held {
            return self.instant(clock_monotonic());
        }
        HELD.get().unwrap_or_else(|| {
            let now = self.instant(clock_monotonic());
            HELD.set(Some(now));
            now
        })
    }

    /// From now on the clock is read once between two calls of [`Clock::go_on`] in this thread: where time is virtual
    /// it stands still in between, apart from the cost of each reading.
    pub(crate) fn hold(&mut self) {
        self.is_held = true;
    }

    /// Time may have passed because the thread has waited.
    pub(crate) fn go_on(&self) {
        HELD.set(None);
    }

    /// The same, with a clock reading taken since.
    pub(crate) fn go_on_from(&self, reading: MonotonicTime) {
        HELD.set(Some(self.instant(reading)));
    }

    /// Busy-waits until this instant.
    pub(crate) fn spin_until(&self, at: Time) {
        while self.now() < at {
            std::hint::spin_loop();
        }
    }

    /// The instant of the run for a reading of the monotonic clock; readings before the start count as the start.
    pub fn instant(&self, reading: MonotonicTime) -> Time {
        Time::from_nanos(reading.as_nanos().saturating_sub(self.start.as_nanos()))
    }

    /// The reading of the monotonic clock for an instant of the run.
    pub fn reading(&self, at: Time) -> MonotonicTime {
        MonotonicTime::from_nanos((at + Duration::from_nanos(self.start.as_nanos())).nanos())
    }
}
