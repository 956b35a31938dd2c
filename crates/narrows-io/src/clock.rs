//! The kernel's monotonic clock, and how far the wall clock is from it.
//!
//! Receive stamps come from the kernel in wall-clock time (`CLOCK_REALTIME`); everything else here runs on
//! `CLOCK_MONOTONIC`, which no one can step. `WallClockOffset` joins the two.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId as TimerClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::{ClockId, clock_gettime};

use crate::host::time_is_virtual;

/// An instant of `CLOCK_MONOTONIC`, in nanoseconds since some point before this host started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MonotonicTime(u64);

impl MonotonicTime {
    /// The instant `nanoseconds` after the clock's zero.
    pub const fn from_nanos(nanoseconds: u64) -> Self {
        Self(nanoseconds)
    }

    /// Nanoseconds since the clock's zero.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
}

/// What `CLOCK_MONOTONIC` shows now; a call costs some 25 ns and makes no system call.
pub fn clock_monotonic() -> MonotonicTime {
    MonotonicTime(nanoseconds(ClockId::CLOCK_MONOTONIC))
}

/// What the wall clock shows now, in nanoseconds since the start of 1970 (UTC). Only for people: it may be stepped.
pub fn clock_realtime() -> u64 {
    nanoseconds(ClockId::CLOCK_REALTIME)
}

/// The processor time that the calling thread has used, in nanoseconds.
pub fn thread_processor_time() -> u64 {
    nanoseconds(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

/// The wall clock's distance from the monotonic clock, as it was when sampled.
///
/// A stepped wall clock changes it, so it is sampled anew for each batch of stamps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WallClockOffset {
    /// `CLOCK_REALTIME − CLOCK_MONOTONIC`, in nanoseconds.
    offset: u64,
    /// When it was sampled: no stamp is later. The end of time where the offset is kept.
    now: MonotonicTime,
}

impl WallClockOffset {
    /// A stamp older than this when it is read is taken for a wall clock that was stepped, not for a packet
    /// that waited so long.
    const OLDEST: u64 = 10_000_000_000;

    /// How long reading three clocks may take before it is tried again: undisturbed it is some 75 ns.
    const UNDISTURBED: u64 = 300;
    const TRIES: usize = 8;

    /// Samples both clocks, the monotonic one before and after, and takes the middle. A sample that was interrupted, and
    /// may be off by half as long as that took, is tried again; of several the tightest counts.
    pub(crate) fn sample() -> Self {
        let mut tightest = (u64::MAX, Self { offset: 0, now: MonotonicTime(0) });
        for _ in 0..Self::TRIES {
            let before = nanoseconds(ClockId::CLOCK_MONOTONIC);
            let wall = nanoseconds(ClockId::CLOCK_REALTIME);
            let after = nanoseconds(ClockId::CLOCK_MONOTONIC);
            let took = after - before;
            if took < tightest.0 {
                let middle = before + took / 2;
                tightest = (took, Self { offset: wall.wrapping_sub(middle), now: MonotonicTime(after) });
            }
            tightest.1.now = MonotonicTime(after);
            // A virtual clock stands still while nobody reads it: nothing disturbs.
            if took <= Self::UNDISTURBED || time_is_virtual() {
                break;
            }
        }
        tightest.1
    }

    /// The monotonic instant of a wall-clock stamp that was made before this sample, however absurd: where the wall clock was
    /// set in between, it is wrong by as much.
    ///
    /// A stamp ahead by less than a microsecond is the sampling's own error and counts as "now".
    pub(crate) fn reading(self, wall_nanoseconds: u64) -> MonotonicTime {
        let stamp = wall_nanoseconds.wrapping_sub(self.offset);
        let ahead = stamp.saturating_sub(self.now.0);
        if ahead < 1_000 { MonotonicTime(stamp.min(self.now.0)) } else { MonotonicTime(stamp) }
    }

    /// The same; `None` if it cannot be one: from the future, or older than ten seconds.
    pub(crate) fn monotonic(self, wall_nanoseconds: u64) -> Option<MonotonicTime> {
        let stamp = self.reading(wall_nanoseconds);
        let is_believed = stamp <= self.now && self.now.0 - stamp.0 <= Self::OLDEST;
        is_believed.then_some(stamp)
    }

    const KEPT: MonotonicTime = MonotonicTime(u64::MAX);
}

/// The wall clock's distance, sampled once for good: both clocks run alike, so that only setting the wall clock changes it,
/// and the kernel tells of that. For where each look at a clock takes time.
#[derive(Debug)]
pub struct SteadyOffset {
    offset: WallClockOffset,
    /// Is readable when the wall clock was set.
    set: TimerFd,
}

impl SteadyOffset {
    /// Samples it.
    ///
    /// # Errors
    /// When the kernel has no descriptor left.
    pub fn sample() -> io::Result<Self> {
        let flags = TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK;
        let set = TimerFd::new(TimerClockId::CLOCK_REALTIME, flags)?;
        let mut steady = Self { offset: WallClockOffset::sample(), set };
        steady.sample_anew()?;
        Ok(steady)
    }

    /// Samples it again, once the wall clock was set.
    ///
    /// # Errors
    /// When the kernel refuses, which it has no reason for.
    pub fn sample_anew(&mut self) -> io::Result<()> {
        const NEVER: TimeSpec = TimeSpec::new(1 << 33, 0);
        let flags = TimerSetTimeFlags::TFD_TIMER_ABSTIME | TimerSetTimeFlags::TFD_TIMER_CANCEL_ON_SET;
        // Before the sample, so that nothing is missed. What it had to tell is told by this call.
        match self.set.set(Expiration::OneShot(NEVER), flags) {
            Ok(()) | Err(nix::Error::ECANCELED) => {}
            Err(errno) => return Err(errno.into()),
        }
        self.offset = WallClockOffset { now: WallClockOffset::KEPT, ..WallClockOffset::sample() };
        Ok(())
    }

    pub(crate) fn offset(&self) -> WallClockOffset {
        self.offset
    }
}

impl AsFd for SteadyOffset {
    /// Readable when the wall clock was set.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock).expect("these clocks exist on every Linux kernel");
    // Neither clock is negative: one starts at the epoch, the other at boot.
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_of_now_converts_to_now() {
        let before = clock_monotonic();
        let wall = nanoseconds(ClockId::CLOCK_REALTIME);
        let offset = WallClockOffset::sample();
        let stamp = offset.monotonic(wall).expect("a fresh stamp is sane");
        // The sample's error is below the time it took, which is before its own "now".
        assert!(stamp <= offset.now);
        assert!(stamp.as_nanos() + 1_000_000 > before.as_nanos());
    }

    #[test]
    fn absurd_stamps_are_refused() {
        let offset = WallClockOffset { offset: 1_000_000_000_000, now: MonotonicTime(50_000_000_000) };
        let wall_now = 1_050_000_000_000;
        assert_eq!(offset.monotonic(wall_now), Some(MonotonicTime(50_000_000_000)));
        assert_eq!(offset.monotonic(wall_now - 5), Some(MonotonicTime(49_999_999_995)));
        assert_eq!(offset.monotonic(wall_now + 500), Some(MonotonicTime(50_000_000_000)));
        assert_eq!(offset.monotonic(wall_now + 5_000_000), None, "from the future");
        assert_eq!(offset.monotonic(wall_now - 11_000_000_000), None, "too old");
        assert_eq!(offset.monotonic(0), None);
        // Who has to know by how much it is wrong gets it as it is.
        assert_eq!(offset.reading(wall_now + 5_000_000), MonotonicTime(50_005_000_000));
        assert_eq!(offset.reading(wall_now - 11_000_000_000), MonotonicTime(39_000_000_000));
    }
}
