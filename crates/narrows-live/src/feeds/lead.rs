//! How far a feed may run ahead of its packets, and when a reader waiting for room should check again.
//!
//! The lead is limited in values or in time. A limit in time means as many values as packets needed within that time
//! recently. Values needed include underruns, so a feed that started too short catches up.

use std::collections::VecDeque;

use narrows_core::Duration;

/// A lead in time allows at least this many values even if no packet arrived recently: the first packets of a burst
/// find some.
pub(super) const FEW: usize = 64;
/// The time over which the rate of packets is measured if the lead is in values.
const MEASURED: Duration = Duration::from_millis(10);
/// The number of marks kept within that time.
const MARKS: u64 = 8;
/// The minimum sleep of a reader on a timer.
const SHORTEST_NAP: Duration = Duration::from_micros(100);
/// If the sleep would be longer than this, the reader sleeps until the packet loop calls.
const LONGEST_NAP: Duration = Duration::from_millis(100);

/// How many values may be queued for packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lead {
    /// A fixed number.
    Values(usize),
    /// As many as packets needed within this time recently, at least [`FEW`] and at most the given number.
    Span(Duration, usize),
}

/// The recent rate at which packets need values.
#[derive(Debug)]
pub(super) struct Pace {
    /// Instants in nanoseconds, and how many values had been needed by then; the first is the newest one older than
    /// the measured time.
    marks: VecDeque<(u64, u64)>,
}

impl Lead {
    /// The maximum number of queued values at any rate.
    pub(super) fn most(self) -> usize {
        match self {
            Self::Values(most) | Self::Span(_, most) => most,
        }
    }

    fn measured(self) -> Duration {
        match self {
            Self::Values(_) => MEASURED,
            Self::Span(span, _) => span,
        }
    }
}

impl Pace {
    /// A feed of which nothing has been needed by `now`.
    pub(super) fn new(now: u64) -> Self {
        Self { marks: VecDeque::from([(now, 0)]) }
    }

    /// Records that `asked` values have been needed by `now`, since the start.
    pub(super) fn mark(&mut self, now: u64, asked: u64, lead: Lead) {
        let measured = lead.measured().nanos();
        let newest = self.marks.back().map_or(0, |mark| mark.0);
        if now.saturating_sub(newest) >= measured / MARKS {
            self.marks.push_back((now, asked));
        }
        let begin = now.saturating_sub(measured);
        while self.marks.get(1).is_some_and(|second| second.0 <= begin) {
            self.marks.pop_front();
        }
    }

    /// How many values may be queued for packets.
    pub(super) fn allowed(&self, now: u64, asked: u64, lead: Lead) -> usize {
        let Lead::Span(span, most) = lead else { return lead.most() };
        let (lately, time) = self.lately(now, asked);
        // In less time than the span, no more was needed than in all of it.
        let within =
            u128::from(lately) * u128::from(span.nanos()) / u128::from(time.max(span.nanos()).max(1));
        usize::try_from(within).unwrap_or(usize::MAX).max(FEW).min(most)
    }

    /// The time until `count` more values are needed at this rate; `None` if that is too long for a timer.
    pub(super) fn nap(&self, now: u64, asked: u64, count: u64) -> Option<Duration> {
        let (lately, time) = self.lately(now, asked);
        let nap = u128::from(count) * u128::from(time) / u128::from(lately.max(1));
        let nap = u64::try_from(nap).ok().map(Duration::from_nanos)?;
        (lately > 0 && nap <= LONGEST_NAP).then(|| nap.max(SHORTEST_NAP))
    }

    /// How many values were needed recently, and in how much time.
    fn lately(&self, now: u64, asked: u64) -> (u64, u64) {
        let (begin, before) = self.marks.front().copied().unwrap_or((now, asked));
        (asked.saturating_sub(before), now.saturating_sub(begin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const SPAN: Lead = Lead::Span(Duration::from_millis(100), 4096);

    /// After packets came at this many a millisecond, from the instant and count given, for so many milliseconds.
    fn after(
        pace: &mut Pace,
        (mut now, mut asked): (u64, u64),
        a_millisecond: u64,
        for_ms: u64,
    ) -> (u64, u64) {
        for _ in 0..for_ms {
            now += MS;
            asked += a_millisecond;
            pace.mark(now, asked, SPAN);
        }
        (now, asked)
    }

    #[test]
    fn a_lead_in_values_does_not_change() {
        let pace = Pace::new(0);
        assert_eq!(pace.allowed(0, 0, Lead::Values(100)), 100);
        assert_eq!(pace.allowed(MS, 1_000_000, Lead::Values(100)), 100);
    }

    #[test]
    fn a_lead_in_time_follows_the_pace() {
        let mut pace = Pace::new(0);
        assert_eq!(pace.allowed(0, 0, SPAN), FEW);
        let (now, asked) = after(&mut pace, (0, 0), 10, 1000);
        // 10 a millisecond over 100 ms; marks are an eighth of that apart, and what is between them is scaled.
        let allowed = pace.allowed(now, asked, SPAN);
        assert!((990..=1010).contains(&allowed), "{allowed}");
        let (now, asked) = after(&mut pace, (now, asked), 100, 300);
        assert_eq!(pace.allowed(now, asked, SPAN), 4096, "no more than the most");
        let (now, asked) = after(&mut pace, (now, asked), 0, 300);
        assert_eq!(pace.allowed(now, asked, SPAN), FEW, "no fewer than a few");
    }

    #[test]
    fn a_reader_that_slept_long_does_not_take_it_for_a_moment() {
        let mut pace = Pace::new(0);
        // A thousand within ten seconds are ten within 100 ms.
        pace.mark(10_000 * MS, 100_000, SPAN);
        let allowed = pace.allowed(10_000 * MS, 100_000, SPAN);
        assert_eq!(allowed, 1000);
        pace.mark(10_100 * MS, 100_000, SPAN);
        assert_eq!(pace.allowed(10_100 * MS, 100_000, SPAN), FEW);
    }

    #[test]
    fn naps_last_as_long_as_the_values_at_this_pace() {
        let mut pace = Pace::new(0);
        let values = Lead::Values(4096);
        pace.mark(10 * MS, 10_000, values);
        // A million a second.
        assert_eq!(pace.nap(10 * MS, 10_000, 2000), Some(Duration::from_millis(2)));
        assert_eq!(pace.nap(10 * MS, 10_000, 1), Some(SHORTEST_NAP));
        assert_eq!(pace.nap(10 * MS, 10_000, 1_000_000), None);
        assert_eq!(Pace::new(0).nap(MS, 0, 1), None, "nobody knows");
    }
}
