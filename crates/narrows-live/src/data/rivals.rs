//! Whether other programs want the processor on which a packet thread polls.
//!
//! Polling is free where nobody else wants the processor. Elsewhere each look that finds nothing takes time from a program,
//! perhaps from the one that the packets are for, and the scheduler takes the time back when it likes. A thread that polls
//! notices such rivals by two signs together: it was preempted, and it ran for less time than it was awake. Either alone
//! has other causes: interrupts take time, and programs that run for moments preempt.

use narrows_core::{Duration, Time};
use narrows_io::clock::{thread_processor_time, times_preempted};

/// How often the kernel is asked: two system calls.
const WINDOW: Duration = Duration::from_millis(10);
/// Rivals have preempted a thread so often in a window, and taken more than an eighth of it.
const PREEMPTED: u64 = 2;
const TAKEN: u64 = 8;
/// For how long rivals are assumed: a thread that does not poll cannot see them. Doubled while they are found again.
const HOLD: std::ops::RangeInclusive<u64> = 100_000_000..=1_600_000_000;

/// Watches the calling thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rivals {
    /// The present window began here, with these counts of the kernel.
    since: Time,
    before: Usage,
    /// How long the thread slept in it.
    slept: Duration,
    /// Whether the window before had rivals: a program that starts is none yet.
    suspected: bool,
    until: Time,
    /// How long to assume them when they are found next, in nanoseconds. More than the least while they are there.
    hold: u64,
    /// For how long packets were gathered because of them.
    pub(super) gathered: Duration,
}

/// What the kernel counts of a thread.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    /// Nanoseconds on a processor.
    ran: u64,
    preempted: u64,
}

impl Usage {
    fn now() -> Self {
        Self { ran: thread_processor_time(), preempted: times_preempted() }
    }
}

impl Rivals {
    /// None are known.
    pub(super) fn none() -> Self {
        Self {
            since: Time::ZERO,
            before: Usage::default(),
            slept: Duration::ZERO,
            suspected: false,
            until: Time::ZERO,
            hold: *HOLD.start(),
            gathered: Duration::ZERO,
        }
    }

    /// Whether there are any.
    pub(super) fn are_there(&mut self, now: Time) -> bool {
        // What they take shows only while none are assumed: a window begins then.
        let ends_hold = (self.since..=now).contains(&self.until);
        if now.since(self.since) >= WINDOW || ends_hold {
            self.look(now, Usage::now());
        }
        now < self.until
    }

    /// The thread slept for this long, of its own will.
    pub(super) fn slept(&mut self, time: Duration) {
        self.slept += time;
    }

    /// Ends a window.
    fn look(&mut self, now: Time, usage: Usage) {
        let window = now.since(self.since).nanos();
        let ran = usage.ran.saturating_sub(self.before.ran);
        let taken = window.saturating_sub(self.slept.nanos()).saturating_sub(ran);
        let preempted = usage.preempted.saturating_sub(self.before.preempted);
        if self.since >= self.until {
            let has_rivals = preempted >= PREEMPTED && taken > window / TAKEN;
            if !has_rivals {
                self.hold = *HOLD.start();
            } else if self.suspected || self.hold > *HOLD.start() {
                self.until = now + Duration::from_nanos(self.hold);
                self.hold = (2 * self.hold).min(*HOLD.end());
            }
            self.suspected = has_rivals;
        }
        (self.since, self.before, self.slept) = (now, usage, Duration::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: u64 = 1_000_000;

    /// How many of 10,000 windows of a thread count as having rivals. In each it sleeps, runs and is preempted for so many
    /// milliseconds and times; only while no rivals are known does it poll and lose time.
    fn crowded(slept: u64, ran: u64, preempted: u64) -> u64 {
        let mut rivals = Rivals::none();
        let (mut usage, mut found) = (Usage::default(), 0);
        for window in 1..=10_000 {
            let now = Time::from_nanos(window * 10 * MILLISECOND);
            if now < rivals.until {
                // It sleeps, and nobody needs to take anything.
                rivals.slept(Duration::from_nanos(9 * MILLISECOND));
                usage.ran += MILLISECOND;
            } else {
                rivals.slept(Duration::from_nanos(slept * MILLISECOND));
                usage.ran += ran * MILLISECOND;
                usage.preempted += preempted;
            }
            rivals.look(now, usage);
            found += u64::from(now < rivals.until);
        }
        found
    }

    #[test]
    fn a_thread_that_is_kept_waiting_has_rivals_nearly_all_the_time() {
        // One window of 160 looks for them again.
        assert!(crowded(0, 5, 3) > 9_900);
        assert!(crowded(6, 2, 2) > 9_900, "it sleeps mostly, and loses half of what it wants");
    }

    #[test]
    fn interrupts_and_programs_that_run_for_moments_are_no_rivals() {
        assert_eq!(crowded(0, 10, 0), 0, "nobody else");
        assert_eq!(crowded(0, 6, 0), 0, "interrupts");
        assert_eq!(crowded(0, 9, 30), 0, "preempted for moments");
        assert_eq!(crowded(8, 1, 10), 0, "it is hardly awake");
        assert_eq!(crowded(10, 0, 0), 0, "asleep");
    }

    #[test]
    fn rivals_that_have_gone_are_forgotten_and_found_anew_at_the_shortest() {
        let mut rivals = Rivals::none();
        let at = |milliseconds| Time::from_nanos(milliseconds * MILLISECOND);
        let usage = |ran, preempted| Usage { ran: ran * MILLISECOND, preempted };
        rivals.look(at(10), usage(2, 4));
        assert_eq!(rivals.until, at(0), "once is no reason");
        rivals.look(at(20), usage(4, 8));
        assert_eq!(rivals.until, at(120));
        rivals.look(at(120), usage(20, 8));
        rivals.look(at(130), usage(21, 12));
        assert_eq!(rivals.until, at(330), "again, for twice as long");
        rivals.look(at(330), usage(100, 12));
        rivals.look(at(340), usage(110, 12));
        rivals.look(at(350), usage(112, 16));
        rivals.look(at(360), usage(114, 20));
        assert_eq!(rivals.until, at(460), "after a window without them");
    }
}
