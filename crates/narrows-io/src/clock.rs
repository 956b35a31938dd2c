//! The kernel's monotonic clock, and its offset from the wall clock.
//!
//! The kernel's receive timestamps are in wall-clock time (`CLOCK_REALTIME`); everything else here uses
//! `CLOCK_MONOTONIC`, which cannot be stepped. `WallClockOffset` converts between them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId as TimerClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::{ClockId, clock_gettime};

use crate::host::time_is_virtual;

/// An instant of `CLOCK_MONOTONIC`, in nanoseconds since some point before the host started.
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

/// The present reading of `CLOCK_MONOTONIC`; a call takes some 25 ns and makes no system call.
pub fn clock_monotonic() -> MonotonicTime {
    MonotonicTime(nanoseconds(ClockId::CLOCK_MONOTONIC))
}

/// The present wall clock, in nanoseconds since the start of 1970 (UTC). For display only: it may be stepped.
pub fn clock_realtime() -> u64 {
    nanoseconds(ClockId::CLOCK_REALTIME)
}

/// The CPU time of the calling thread, in nanoseconds.
pub fn thread_processor_time() -> u64 {
    nanoseconds(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

/// How often the kernel has taken the processor from the calling thread, for another one. Zero where it does not say.
pub fn times_preempted() -> u64 {
    let usage = getrusage(UsageWho::RUSAGE_THREAD);
    usage.map_or(0, |usage| usage.involuntary_context_switches().unsigned_abs())
}

/// The offset of the wall clock from the monotonic clock at one instant.
///
/// Stepping the wall clock changes it, so it is sampled for each batch of timestamps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WallClockOffset {
    /// `CLOCK_REALTIME − CLOCK_MONOTONIC`, in nanoseconds.
    offset: u64,
    /// When it was sampled: no timestamp is later. The maximum for a fixed offset.
    now: MonotonicTime,
}

impl WallClockOffset {
    /// A timestamp older than this on reading indicates a stepped wall clock, not a packet that waited so long.
    const OLDEST: u64 = 10_000_000_000;

    /// If reading three clocks takes longer than this, it is repeated: undisturbed it takes some 75 ns.
    const UNDISTURBED: u64 = 300;
    const TRIES: usize = 8;

    /// Samples the wall clock between two readings of the monotonic one, and takes their midpoint. A sample that was
    /// interrupted may be off by half its duration, so it is repeated; the shortest one counts.
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
            // A virtual clock stands still while nobody reads it: nothing interrupts.
            if took <= Self::UNDISTURBED || time_is_virtual() {
                break;
            }
        }
        tightest.1
    }

    /// The monotonic instant of a wall-clock timestamp from before this sample, even if implausible: if the wall
    /// clock was set in between, it is wrong by that amount.
    ///
    /// A timestamp ahead by less than a microsecond is within the sampling error and counts as "now".
    pub(crate) fn reading(self, wall_nanoseconds: u64) -> MonotonicTime {
        let stamp = wall_nanoseconds.wrapping_sub(self.offset);
        let ahead = stamp.saturating_sub(self.now.0);
        if ahead < 1_000 { MonotonicTime(stamp.min(self.now.0)) } else { MonotonicTime(stamp) }
    }

    /// The same; `None` if implausible: in the future, or older than ten seconds.
    pub(crate) fn monotonic(self, wall_nanoseconds: u64) -> Option<MonotonicTime> {
        let stamp = self.reading(wall_nanoseconds);
        let is_believed = stamp <= self.now && self.now.0 - stamp.0 <= Self::OLDEST;
        is_believed.then_some(stamp)
    }

    const KEPT: MonotonicTime = MonotonicTime(u64::MAX);
}

/// The offset of the wall clock, sampled once: both clocks run at the same rate, so only setting the wall clock
/// changes it, which the kernel reports. For hosts where reading a clock takes time.
#[derive(Debug)]
pub struct SteadyOffset {
    offset: WallClockOffset,
    /// Readable when the wall clock was set.
    set: TimerFd,
}

impl SteadyOffset {
    /// Samples it.
    ///
    /// # Errors
    /// If the kernel has no descriptor left.
    pub fn sample() -> io::Result<Self> {
        let flags = TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK;
        let set = TimerFd::new(TimerClockId::CLOCK_REALTIME, flags)?;
        let mut steady = Self { offset: WallClockOffset::sample(), set };
        steady.sample_anew()?;
        Ok(steady)
    }

    /// Samples it again after the wall clock was set.
    ///
    /// # Errors
    /// If the kernel refuses, for which it has no reason.
    pub fn sample_anew(&mut self) -> io::Result<()> {
        const NEVER: TimeSpec = TimeSpec::new(1 << 33, 0);
        let flags = TimerSetTimeFlags::TFD_TIMER_ABSTIME | TimerSetTimeFlags::TFD_TIMER_CANCEL_ON_SET;
        // Before sampling, so that nothing is missed. This call clears earlier notifications.
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
