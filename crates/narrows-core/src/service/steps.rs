//! A rate that follows a trace.
//!
//! The service is `C(t) = ∫ rate dt`, a polyline with corners at whole nanoseconds; a transmission that
//! starts at s ends at `C⁻¹(C(s) + work)`, rounded up. Each stretch of constant rate is computed in whole
//! billionths of a bit, as for a [`ConstantRate`], and the remainder goes to the next stretch. So a rate
//! change loses or gains nothing, however often the rate changes within a packet. A rate of zero is a wire
//! that is down for that long. [`Rate::UNLIMITED`] finishes all remaining work at once.
//!
//! ```
//! use narrows_core::service::{RateSteps, ServiceCurve, Work};
//! use narrows_core::{Duration, Rate, Time, steps::{After, Steps}};
//!
//! let rate = |bits| Rate::from_bits_per_second(bits);
//! let millis = |n: u64| Time::from_nanos(n * 1_000_000);
//! let points = vec![(millis(0), rate(8_000_000)), (millis(1), Rate::DOWN), (millis(3), rate(2_000_000))];
//! let curve = RateSteps::new(Steps::new(points, After::Hold)?);
//! // 1,250 bytes: 8,000 bits by 1 ms, nothing until 3 ms, the other 2,000 in another millisecond.
//! let finish = curve.finish(Time::ZERO, Work::bits(10_000)).expect("the wire comes up again");
//! assert_eq!(finish.at, millis(4));
//! # Ok::<(), narrows_core::steps::StepsError>(())
//! ```

use core::cell::Cell;

use super::{ConstantRate, Finish, ServiceCurve, Work};
use crate::steps::{After, Segment, Steps};
use crate::time::{Duration, Time};
use crate::units::Rate;

/// A rate that follows a trace: see [`Steps`].
#[derive(Debug)]
pub struct RateSteps {
    steps: Steps<Rate>,
    round: Option<Round>,
    /// Where the last transmission ended, and where the rate was last asked for: two cursors that both
    /// advance in time.
    sending: Cell<Segment>,
    seen: Cell<Segment>,
}

/// The service of one round of a repeating trace; not available if the rate is unlimited for some of the
/// round.
#[derive(Clone, Copy, Debug)]
struct Round {
    length: Duration,
    done: u128,
}

impl RateSteps {
    /// A wire with these rates.
    pub fn new(steps: Steps<Rate>) -> Self {
        let round = Round::of(&steps);
        Self { steps, round, sending: Cell::new(Segment::NOWHERE), seen: Cell::new(Segment::NOWHERE) }
    }

    /// The segment that contains an instant, searched from this cursor, which is moved there.
    fn seek(&self, cursor: &Cell<Segment>, at: Time) -> Segment {
        let mut segment = cursor.get();
        self.steps.seek(&mut segment, at);
        cursor.set(segment);
        segment
    }

    /// The round that begins at `at` in this segment, if one does. (Before its start a trace holds its first
    /// value, in a longer segment.)
    fn round_from(&self, segment: &Segment, at: Time) -> Option<Round> {
        let begins = segment.index() == 0 && segment.from == at;
        self.round.filter(|_| begins && segment.until.since(at) == self.steps.first_lasts())
    }
}

impl Round {
    fn of(steps: &Steps<Rate>) -> Option<Self> {
        let &After::Loop(length) = steps.after() else { return None };
        let points = steps.points();
        let untils = points.iter().skip(1).map(|point| point.0).chain([Time::ZERO + length]);
        let mut done = 0;
        for ((from, rate), until) in points.iter().zip(untils) {
            if *rate == Rate::UNLIMITED {
                return None;
            }
            // Below 2⁶⁴ bit/s for 2⁶⁴ ns in total: 128 bits.
            done += Work::done(*rate, until.since(*from)).0;
        }
        Some(Self { length, done })
    }
}

impl ServiceCurve for RateSteps {
    fn finish(&self, start: Time, work: Work) -> Option<Finish> {
        let (mut at, mut left) = (start, work.0);
        let mut segment = self.seek(&self.sending, start);
        loop {
            if let Some(round) = self.round_from(&segment, at) {
                if round.done == 0 {
                    return None; // down forever
                }
                // Skip whole rounds, but leave some work for the last one.
                let rounds = u64::try_from(left.saturating_sub(1) / round.done).unwrap_or(u64::MAX);
                if rounds > 0 {
                    let skipped = Duration::from_nanos(round.length.nanos().saturating_mul(rounds));
                    left -= u128::from(rounds) * round.done;
                    at = at + skipped;
                    if at == Time::NEVER {
                        return None; // beyond the end of time
                    }
                    segment = self.steps.segment(at);
                }
            }
            let rate = *self.steps.value(&segment);
            let most = Work::done(rate, segment.until.since(at)).0;
            if rate != Rate::DOWN && (left <= most || rate == Rate::UNLIMITED || segment.is_last()) {
                self.sending.set(segment);
                return ConstantRate(rate).finish(at, Work(left));
            }
            if segment.is_last() {
                return None;
            }
            left -= most;
            at = segment.until;
            segment = self.steps.next(&segment);
        }
    }

    fn served(&self, start: Time, end: Time) -> Work {
        let (mut at, mut done) = (start, 0u128);
        let mut segment = self.steps.segment(start);
        while at < end {
            if let Some(round) = self.round_from(&segment, at) {
                let rounds = end.since(at).nanos() / round.length.nanos();
                if rounds > 0 {
                    done = done.saturating_add(u128::from(rounds) * round.done);
                    at = at + Duration::from_nanos(rounds * round.length.nanos());
                    segment = self.steps.segment(at);
                    continue;
                }
            }
            let until = segment.until.min(end);
            done = done.saturating_add(Work::done(*self.steps.value(&segment), until.since(at)).0);
            at = until;
            segment = self.steps.next(&segment);
        }
        Work(done)
    }

    fn rate(&self, at: Time) -> Rate {
        *self.steps.value(&self.seek(&self.seen, at))
    }

    fn next_change(&self, at: Time) -> Time {
        self.seek(&self.seen, at).until
    }
}
