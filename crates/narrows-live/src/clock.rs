//! The one clock: instants of a run on the kernel's monotonic clock.

use narrows_core::{Duration, Time};
use narrows_frame::WallTime;
use narrows_io::clock::{MonotonicTime, clock_monotonic, clock_realtime};

/// Instants of a run, counted from its start.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: MonotonicTime,
    started: WallTime,
}

impl Clock {
    /// A run that starts now.
    pub fn start() -> Self {
        Self { start: clock_monotonic(), started: WallTime::from_nanos(clock_realtime()) }
    }

    /// What the wall clock showed at the start of the run.
    pub fn started(&self) -> WallTime {
        self.started
    }

    /// The instant now.
    pub fn now(&self) -> Time {
        self.instant(clock_monotonic())
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
