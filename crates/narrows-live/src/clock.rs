//! The one clock: instants of a run on the kernel's monotonic clock.

use std::cell::Cell;

use narrows_core::{Duration, Time};
use narrows_frame::WallTime;
use narrows_io::clock::{MonotonicTime, clock_monotonic, clock_realtime};

thread_local! {
    /// What the thread that holds its clock has read.
    static HELD: Cell<Option<Time>> = const { Cell::new(None) };
}

/// What the wall clock shows, in nanoseconds since 1970.
pub fn since_1970() -> u64 {
    clock_realtime()
}

/// Instants of a run, counted from its start.
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

    /// What the wall clock showed at the start of the run.
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

    /// Has this value read the clock once from one [`Clock::go_on`] of its thread to the next: where time is virtual it stands
    /// still meanwhile, but for what each reading costs.
    pub(crate) fn hold(&mut self) {
        self.is_held = true;
    }

    /// Time may have passed, as the thread has waited.
    pub(crate) fn go_on(&self) {
        HELD.set(None);
    }

    /// The same, where somebody has read the clock since.
    pub(crate) fn go_on_from(&self, reading: MonotonicTime) {
        HELD.set(Some(self.instant(reading)));
    }

    /// Looks without pause until this instant.
    pub(crate) fn spin_until(&self, at: Time) {
        while self.now() < at {
            std::hint::spin_loop();
        }
    }

    /// The instant of the run at a reading of the monotonic clock; a reading from before the start is the start.
    pub fn instant(&self, reading: MonotonicTime) -> Time {
        Time::from_nanos(reading.as_nanos().saturating_sub(self.start.as_nanos()))
    }

    /// The reading of the monotonic clock at an instant of the run.
    pub fn reading(&self, at: Time) -> MonotonicTime {
        MonotonicTime::from_nanos((at + Duration::from_nanos(self.start.as_nanos())).nanos())
    }
}
