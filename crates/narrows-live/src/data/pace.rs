//! How the loop waits, on which processor it runs, and at which priority.

use std::io;

use narrows_core::{Duration, Time};
use narrows_io::clock::{SteadyOffset, thread_processor_time};
use narrows_io::host::time_is_virtual;
use narrows_io::scheduling::{self, Priority, RealTimeShare};

use super::{DataLoop, LoopError, exchange};

/// How the loop waits for the next event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// A timer until shortly before the event, then busy-waiting. How shortly depends on the recent lateness of
    /// timers.
    #[default]
    Hybrid,
    /// Busy-waiting.
    Spin,
    /// A timer only.
    Timer,
}

impl Wait {
    /// Its name in options.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hybrid => "hybrid",
            Self::Spin => "spin",
            Self::Timer => "timer",
        }
    }
}

/// The largest share of a processor that a packet thread may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessorShare {
    thousandths: u64,
}

impl ProcessorShare {
    /// From thousandths, 10 to 1000: below, hardly a packet would pass.
    pub fn from_thousandths(thousandths: u64) -> Option<Self> {
        (10..=1000).contains(&thousandths).then_some(Self { thousandths })
    }

    /// As a fraction.
    pub(crate) fn fraction(self) -> f64 {
        self.thousandths as f64 / 1000.0
    }

    /// How long to pause for each 1000 units awake.
    fn rest(self) -> u64 {
        (1000 - self.thousandths) * 1000 / self.thousandths
    }
}

/// Wait mode, processor, priority and share together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// How to wait.
    pub wait: Wait,
    /// The processor to pin the loop to.
    pub processor: Option<usize>,
    /// The scheduling priority.
    pub priority: Priority,
    /// The limit on processor time of each thread, if any.
    pub max_share: Option<ProcessorShare>,
}

/// Why the loop cannot run as requested.
#[derive(Debug, thiserror::Error)]
pub enum PaceError {
    /// More threads than processors.
    #[error(
        "--cpu names {named} processors for {threads} threads of the packet loop: name one for each, or let --shards be \
         {named}"
    )]
    TooFewProcessors {
        /// How many are given.
        named: usize,
        /// How many threads there would be.
        threads: usize,
    },
    /// The processor does not exist or cannot be used.
    #[error(
        "--cpu {processor}: cannot run on processor {processor} ({cause}); this process may use {}",
        list(usable)
    )]
    Processor {
        /// The requested one.
        processor: usize,
        /// The usable ones.
        usable: Vec<usize>,
        /// The kernel's error.
        cause: io::Error,
    },
    /// The priority cannot be set.
    #[error(
        "--priority {name}: not allowed ({cause}): this needs CAP_SYS_NICE over the host, which root has outside of \
         containers and user namespaces, or limits that allow it (`ulimit -r`, `ulimit -e`); leave it out, or run it as root"
    )]
    Priority {
        /// The requested one.
        name: &'static str,
        /// The kernel's error.
        cause: io::Error,
    },
    /// Real-time threads get no CPU time.
    #[error(
        "--priority real-time: this host gives real-time threads no time (kernel.sched_rt_runtime_us is 0): use --priority high"
    )]
    NoRealTime,
}

fn list(processors: &[usize]) -> String {
    let all: Vec<_> = processors.iter().map(usize::to_string).collect();
    all.join(", ")
}

/// Its name in options.
pub(crate) fn name(priority: Priority) -> &'static str {
    match priority {
        Priority::Usual => "usual",
        Priority::High => "high",
        Priority::RealTime => "real-time",
    }
}

impl DataLoop {
    /// Applies these settings to the calling thread, which will run the loop.
    pub(super) fn keep_pace(&mut self, pace: Pace) -> Result<(), LoopError> {
        if let Some(processor) = pace.processor {
            scheduling::pin(processor).map_err(|cause| PaceError::Processor {
                processor,
                usable: scheduling::usable_processors().unwrap_or_default(),
                cause,
            })?;
        }
        let refused = |cause| PaceError::Priority { name: name(pace.priority), cause };
        if pace.priority == Priority::RealTime {
            // If the kernel does not report its limit, assume the default.
            let usual = RealTimeShare { runtime: Some(950_000), period: 1_000_000 };
            let rest = RealTimeShare::read().unwrap_or(usual).rest();
            if rest >= 1000 {
                return Err(PaceError::NoRealTime.into());
            }
            self.rest = Rest::of(rest, Duration::ZERO, self.clock.now());
        }
        if let Some(max) = pace.max_share {
            let burst = if pace.priority == Priority::RealTime { Duration::ZERO } else { BURST };
            self.rest = Rest::of(max.rest().max(self.rest.share), burst, self.clock.now());
        }
        // In virtual time nothing starves; and the kernel extends the sleep of normal threads by a thousandth, to
        // coalesce timers.
        let priority = if time_is_virtual() { Priority::RealTime } else { pace.priority };
        scheduling::set_priority(priority).map_err(refused)?;
        scheduling::take_short_slices();
        if time_is_virtual() && pace.wait == Wait::Timer {
            self.clock.hold();
            self.poll_set.rely_on_waits();
            self.batch.convert_with(SteadyOffset::sample().map_err(LoopError::Wait)?);
            self.exchange = exchange::of(&self.lines, &self.poll_set);
        }
        self.pace = pace;
        Ok(())
    }
}

/// Pauses of a thread that would otherwise use too much of its processor. At real-time priority, the kernel would stop it for 50
/// ms at once; `--max-cpu` sets a limit of its own.
///
/// While the loop is awake it accrues a debt, a share of that time; any sleep pays it back. What exceeds the burst is slept
/// off when nothing is due for longer than that, and in any case before it becomes large.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    /// In thousandths of the time awake.
    share: u64,
    /// A debt that needs no pause.
    burst: Duration,
    /// The debt beyond it at which a pause can no longer be deferred.
    longest: Duration,
    /// The debt is computed up to this instant.
    since: Time,
    /// The debt in nanoseconds, times 1000.
    owed: u64,
    /// The total of pauses so far.
    pub(super) rested: Duration,
}

/// The debt at which a pause can no longer be deferred: packets are late by that much, plus the wake-up. Half of it is worth the
/// pause's two system calls.
const LONGEST: Duration = Duration::from_micros(100);
const LONGEST_LIMITED: Duration = Duration::from_millis(1);
/// What a thread with a limit may owe: short loads below the limit on average are carried without pauses.
const BURST: Duration = Duration::from_millis(10);

impl Rest {
    /// No pauses.
    pub(super) const fn none() -> Self {
        Self {
            share: 0,
            burst: Duration::ZERO,
            longest: LONGEST,
            since: Time::ZERO,
            owed: 0,
            rested: Duration::ZERO,
        }
    }

    /// Whether pauses are needed.
    pub(super) fn is_needed(&self) -> bool {
        self.share > 0
    }

    pub(super) fn of(share: u64, burst: Duration, now: Time) -> Self {
        // A limit that is not the kernel's can wait: fewer pauses cost less.
        let longest = if burst > Duration::ZERO { LONGEST_LIMITED } else { LONGEST };
        Self { share, burst, longest, since: now, ..Self::none() }
    }

    /// Until when to pause now, if at all, given that the next event is due at `next`.
    pub(super) fn due(&mut self, now: Time, next: Time) -> Option<Time> {
        if !self.is_needed() {
            return None;
        }
        self.owed = self.owed.saturating_add(now.since(self.since).nanos().saturating_mul(self.share));
        self.since = now;
        let owed = Duration::from_nanos((self.owed / 1000).saturating_sub(self.burst.nanos()));
        let has_time = next.since(now) > owed + owed;
        let shortest = Duration::from_nanos(self.longest.nanos() / 2);
        (owed >= self.longest || owed >= shortest && has_time).then(|| now + owed)
    }

    /// The thread paused, off its processor for this long.
    pub(super) fn rested(&mut self, off: Duration, now: Time) {
        self.rested += off;
        self.slept(off, now);
    }

    /// The thread was off its processor for this long, for any reason.
    pub(super) fn slept(&mut self, off: Duration, now: Time) {
        self.owed = self.owed.saturating_sub(off.nanos().saturating_mul(1000));
        // Falling asleep and waking up count as being awake.
        self.since = (self.since + off).min(now);
    }
}

/// Measures how long the calling thread is off its processor: waking up and falling asleep take time, which the
/// kernel counts as being awake.
#[derive(Clone, Copy, Debug)]
pub(super) struct Off {
    from: Time,
    used: u64,
}

impl Off {
    pub(super) fn since(from: Time) -> Self {
        Self { from, used: thread_processor_time() }
    }

    pub(super) fn until(self, now: Time) -> Duration {
        let used = thread_processor_time().saturating_sub(self.used);
        Duration::from_nanos(now.since(self.from).nanos().saturating_sub(used))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns of 1 µs for a second, the next event due `ahead` ns later; how long it paused in all and at most.
    fn second(share: u64, burst: Duration, ahead: u64) -> (u64, u64) {
        let mut rest = Rest::of(share, burst, Time::ZERO);
        let (mut now, mut all, mut most) = (Time::ZERO, 0, 0);
        while now < Time::from_nanos(1_000_000_000) {
            let before = now;
            if let Some(until) = rest.due(now, now + Duration::from_nanos(ahead)) {
                rest.rested(until.since(before), until);
                let paused = until.since(before).nanos();
                (now, all, most) = (until, all + paused, most.max(paused));
            }
            now = now + Duration::from_micros(1);
        }
        assert_eq!(rest.rested.nanos(), all);
        (all, most)
    }

    #[test]
    fn a_loop_that_never_sleeps_rests_its_share_in_short_pauses() {
        // 100 parts rested for 1000 awake are 90.9 of 1000 in all: more than the 50 that the kernel wants.
        for ahead in [0, 1_000_000] {
            let (all, most) = second(100, Duration::ZERO, ahead);
            assert!((90_000_000..92_000_000).contains(&all), "{all}");
            assert!(most <= 101_000, "{most}");
        }
        let (_, most) = second(100, Duration::ZERO, 1_000_000);
        assert!(most <= 51_000, "where there is time, a pause comes early: {most}");
        assert_eq!(second(0, Duration::ZERO, 0), (0, 0));
    }

    #[test]
    fn a_limit_bounds_the_share_of_a_loop_that_never_sleeps() {
        for (thousandths, awake) in [(10, 10), (250, 250), (500, 500), (900, 900), (1000, 1000)] {
            let most = ProcessorShare::from_thousandths(thousandths).unwrap();
            let (all, longest) = second(most.rest(), BURST, 0);
            let awake = awake * 1_000_000;
            // A second's share, and once what may be owed.
            let bounds = awake..=awake + BURST.nanos() + 1_000_000;
            assert!(bounds.contains(&(1_000_000_000 - all)), "{thousandths}: {all}");
            assert!(longest <= 1_100_000, "{thousandths}: {longest}");
        }
        for outside in [0, 9, 1001, u64::MAX] {
            assert_eq!(ProcessorShare::from_thousandths(outside), None);
        }
    }

    #[test]
    fn what_is_slept_anyway_is_not_rested_again() {
        let mut rest = Rest::of(60, Duration::ZERO, Time::ZERO);
        let mut now = Time::ZERO;
        for _ in 0..1000 {
            // Awake for 400 µs, which owes 24, and asleep for 100.
            let slept = now + Duration::from_micros(400);
            assert_eq!(rest.due(slept, slept), None);
            now = slept + Duration::from_micros(100);
            rest.slept(now.since(slept), now);
        }
        assert_eq!(rest.rested, Duration::ZERO);
    }
}
