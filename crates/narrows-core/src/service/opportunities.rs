//! A wire that sends only at given instants: mahimahi's packet-delivery traces (Netravali et al., "Mahimahi:
//! accurate record-and-replay for HTTP", USENIX ATC 2015; `LinkQueue` in its `src/frontend/link_queue.cc`).
//!
//! Each instant of the trace is an opportunity to send a number of bytes (1504 in mahimahi), at that instant
//! or never: unused bytes are lost. A packet that does not fit uses the whole opportunity and continues at
//! the next one. What a packet leaves of its last opportunity goes to the packet behind it, if one is
//! waiting; several packets may leave at one instant. A trace repeats after its last instant, as in mahimahi,
//! so an opportunity at its end and one at its very beginning coincide in later rounds, and both count.
//!
//! With k(t) opportunities up to and including t, `C(t) = k(t)·bytes·8`: a step function, whose inverse is an
//! opportunity.
//!
//! A packet is served by opportunities strictly after the instant at which its service starts: mahimahi uses
//! up the opportunities at t before it accepts a packet that arrives at t. Mahimahi counts four bytes more
//! than the IP packet (a header of the TUN device); configure this explicitly (`Overhead { extra: 4, .. }`).
//!
//! Departures from mahimahi: a packet that arrives at an idle wire is on the wire at once and leaves the
//! queue to others; mahimahi dequeues it at its first opportunity. Until then a queue of n packets here fills
//! up when one of n + 1 does there. Mahimahi accepts no packet of more than 1504 bytes; here any length is
//! allowed.
//!
//! ```
//! use narrows_core::service::{Opportunities, ServiceCurve, Work};
//! use narrows_core::{Bytes, Duration, Time, steps::After};
//!
//! let millis = |n: u64| Time::from_nanos(n * 1_000_000);
//! // The trace "3 3 7": 16 ms are two rounds and 2 ms.
//! let trace = Opportunities::new([millis(3), millis(3), millis(7)], Bytes::new(1504), After::Loop(Duration::from_millis(7)))?;
//! let finish = trace.finish(millis(3), Work::bits(2_000 * 8)).expect("it goes on");
//! assert_eq!(finish.at, millis(10)); // 1504 bytes at 7 ms, the others at 7 + 3 ms
//! assert_eq!(finish.surplus, Work::bits((3 * 1504 - 2_000) * 8)); // two coincide there
//! # Ok::<(), narrows_core::steps::StepsError>(())
//! ```

use alloc::sync::Arc;
use core::cell::Cell;

use super::{ConstantRate, Finish, ServiceCurve, Work};
use crate::steps::{After, StepsError};
use crate::time::{Duration, Time};
use crate::units::{Bytes, Rate};

/// Billionths per bit, the unit of [`Work`].
const BILLION: u64 = 1_000_000_000;

/// Use-it-or-lose-it opportunities to send.
#[derive(Clone, Debug)]
pub struct Opportunities {
    /// In order; equal instants coincide.
    instants: Arc<[Time]>,
    bits: u64,
    after: After<Rate>,
    start: Time,
    skipped: Duration,
    /// The last answer: an instant, and the number of opportunities up to and including it.
    known: Cell<(Time, u64)>,
}

impl Opportunities {
    /// Opportunities of `bytes` bytes at each of these instants, which must be in order; equal instants
    /// coincide. After the last one, `after` decides: they repeat, there are no more ([`After::Hold`]), or
    /// the wire has a rate from some instant on.
    ///
    /// # Errors
    /// If there is no instant or `bytes` is zero, the instants are not in order, or a round ends before the
    /// last instant. A round may end at the last instant, but not at zero.
    pub fn new(
        instants: impl Into<Arc<[Time]>>,
        bytes: Bytes,
        after: After<Rate>,
    ) -> Result<Self, StepsError> {
        let instants = instants.into();
        let Some(&last) = instants.last().filter(|_| bytes.get() > 0) else {
            return Err(StepsError::Empty);
        };
        if let Some(at) = instants.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err(StepsError::OutOfOrder(at + 1));
        }
        if let After::Loop(length) | After::End(length, _) = after
            && (Time::ZERO + length < last || length == Duration::ZERO)
        {
            return Err(StepsError::EarlyEnd);
        }
        Ok(Self {
            instants,
            bits: bytes.get().saturating_mul(8),
            after,
            start: Time::ZERO,
            skipped: Duration::ZERO,
            known: Cell::new((Time::NEVER, 0)),
        })
    }

    /// The same trace, with the instant `skipped` of the trace placed at `start` of the run. Before `start`
    /// there is no opportunity.
    #[must_use]
    pub fn starting(mut self, start: Time, skipped: Duration) -> Self {
        // Kept small enough that later offsets can be added. Skipping whole rounds has no effect, except for
        // the first: opportunities at the end of a round and at the beginning of the next coincide only if
        // there was a previous round.
        let skipped = match self.after {
            After::Loop(length) if skipped.nanos() / 2 >= length.nanos() => {
                length + Duration::from_nanos(skipped.nanos() % length.nanos())
            }
            _ => skipped,
        };
        (self.start, self.skipped) = (start, skipped);
        self.known = Cell::new((Time::NEVER, 0));
        self
    }

    /// The instants of the opportunities, in the trace's own time.
    pub fn instants(&self) -> &[Time] {
        &self.instants
    }

    /// How many opportunities there have been up to and including `at`, including skipped ones.
    fn count(&self, at: Time) -> u64 {
        let (known, count) = self.known.get();
        if known == at && at != Time::NEVER {
            return count; // `NEVER` marks an empty cache
        }
        // Before the start, an opportunity exactly at the start is still to come.
        let place = match at.nanos().checked_sub(self.start.nanos()) {
            Some(waited) => Some(self.skipped.nanos().saturating_add(waited)),
            None => self.skipped.nanos().checked_sub(1),
        };
        place.map_or(0, |place| self.count_in_trace(place))
    }

    /// As [`Opportunities::count`], in the trace's own time.
    fn count_in_trace(&self, place: u64) -> u64 {
        let (rounds, within) = match self.after {
            After::Loop(length) => (place / length.nanos(), place % length.nanos()),
            _ => (0, place),
        };
        let in_round = self.instants.partition_point(|at| at.nanos() <= within) as u64;
        rounds.saturating_mul(self.instants.len() as u64).saturating_add(in_round)
    }

    /// The instant of opportunity `number`, from 0; `None` if it does not exist.
    fn instant(&self, number: u64) -> Option<Time> {
        let all = self.instants.len() as u64;
        let (round, within) = (number / all, (number % all) as usize);
        let base = match self.after {
            After::Loop(length) => length.nanos().checked_mul(round)?,
            _ if round == 0 => 0,
            _ => return None,
        };
        let place = base.checked_add(self.instants[within].nanos())?;
        let at = self.start + Duration::from_nanos(place.saturating_sub(self.skipped.nanos()));
        Some(at).filter(|&at| at < Time::NEVER)
    }

    fn work(&self, opportunities: u64) -> u128 {
        Work::bits(self.bits).0.saturating_mul(opportunities.into())
    }

    /// The instant from which a rate applies, and that rate; `None` if that is beyond the end of time.
    fn end(&self) -> Option<(Time, Rate)> {
        match self.after {
            After::Loop(_) => None,
            After::Hold => self.instant(self.instants.len() as u64 - 1).map(|last| (last, Rate::DOWN)),
            After::End(length, rate) => Some((self.start + (length - self.skipped), rate)),
        }
        .filter(|&(end, _)| end < Time::NEVER)
    }
}

impl ServiceCurve for Opportunities {
    fn finish(&self, start: Time, work: Work) -> Option<Finish> {
        let before = self.count(start);
        // A packet of zero bits also takes an opportunity, and leaves all of it.
        let needed = match u64::try_from(work.0) {
            Ok(work) if self.bits < 1 << 34 => work.div_ceil(self.bits * BILLION),
            _ => u64::try_from(work.0.div_ceil(Work::bits(self.bits).0)).unwrap_or(u64::MAX),
        }
        .max(1);
        let last = before.saturating_add(needed) - 1;
        let end = self.end();
        if let Some(at) = self.instant(last).filter(|&at| at > start && end.is_none_or(|(end, _)| at <= end))
        {
            // All opportunities that coincide with it can be used; there may be millions.
            let count = if self.instant(last + 1) == Some(at) { self.count(at) } else { last + 1 };
            self.known.set((at, count));
            return Some(Finish { at, surplus: Work(self.work(count - before).saturating_sub(work.0)) });
        }
        let (end, rate) = end?;
        let from = end.max(start);
        let done = self.work(self.count(from).saturating_sub(before));
        ConstantRate(rate).finish(from, Work(work.0.saturating_sub(done)))
    }

    fn served(&self, start: Time, end: Time) -> Work {
        let by_opportunity = self.work(self.count(end).saturating_sub(self.count(start)));
        let by_rate = match self.end() {
            Some((from, rate)) => ConstantRate(rate).served(from.max(start), end.max(from)).0,
            None => 0,
        };
        Work(by_opportunity.saturating_add(by_rate))
    }

    /// The mean over the trace; after its end, the rate that follows.
    fn rate(&self, at: Time) -> Rate {
        if let Some((end, rate)) = self.end()
            && at >= end
        {
            return rate;
        }
        let length = match self.after {
            After::Loop(length) | After::End(length, _) => length.nanos(),
            After::Hold => self.instants[self.instants.len() - 1].nanos(),
        };
        let mean = self.work(self.instants.len() as u64) / u128::from(length.max(1));
        Rate::from_bits_per_second(u64::try_from(mean).unwrap_or(u64::MAX).min(u64::MAX - 1))
    }

    fn next_change(&self, at: Time) -> Time {
        self.end().map_or(Time::NEVER, |(end, _)| if at < end { end } else { Time::NEVER })
    }

    fn keeps_surplus(&self) -> bool {
        false
    }
}
