//! Values over time: what a trace says, point by point.
//!
//! A value holds from its point to the next one. What comes after the last point is said, too ([`After`]). Points count
//! from the beginning of the trace; [`Steps::starting`] says which instant of the run that is. Nothing is ever added up
//! from round to round: the place in a trace that repeats is a remainder of whole nanoseconds, so an hour of rounds drifts
//! by nothing.
//!
//! The points are shared: a trace of a million points that ten links use is kept once. Who asks for instants that go on
//! keeps a [`Segment`] and has each answer in a few steps; any other instant takes a binary search.
//!
//! ```
//! use narrows_core::{Duration, Rate, Time, steps::{After, Steps}};
//!
//! let (slow, fast) = (Rate::from_bits_per_second(1_000_000), Rate::from_bits_per_second(8_000_000));
//! let second = Duration::from_secs(1);
//! let steps = Steps::new(vec![(Time::ZERO, slow), (Time::ZERO + second, fast)], After::Loop(second + second))?;
//! assert_eq!(steps.at(Time::from_nanos(2_500_000_000)), slow); // half a second into the second round
//! assert_eq!(steps.next_change(Time::from_nanos(2_500_000_000)), Time::from_nanos(3_000_000_000));
//! # Ok::<(), narrows_core::steps::StepsError>(())
//! ```

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::time::{Duration, Time};

/// Values over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Steps<T> {
    points: Arc<[(Time, T)]>,
    after: After<T>,
    /// When the trace begins, and at which of its own instants.
    start: Time,
    skipped: Duration,
}

/// What comes after the last point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After<T> {
    /// All of it again, so long after the beginning; longer than the last point is away from it.
    Loop(Duration),
    /// The last value for ever.
    Hold,
    /// So long after the beginning, another value for ever; longer than the last point is away from the beginning.
    End(Duration, T),
}

/// Why points are no [`Steps`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepsError {
    /// There are none.
    Empty,
    /// The first is not at zero.
    LateStart,
    /// The one of this number, from 0, does not come after the one before it.
    OutOfOrder(usize),
    /// What comes after the last point comes no later than that.
    EarlyEnd,
}

/// A stretch of time over which one value holds: a place in some [`Steps`], and a cache of the next answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// From this instant on.
    pub from: Time,
    /// Until before this one; [`Time::NEVER`] where the value stays.
    pub until: Time,
    /// The number of the point. One more than the last: what holds after the end.
    index: usize,
}

impl Segment {
    /// Nowhere yet: it holds no instant.
    pub const NOWHERE: Self = Self { from: Time::NEVER, until: Time::ZERO, index: 0 };

    /// Whether the instant lies in it.
    #[inline]
    pub const fn contains(&self, at: Time) -> bool {
        self.from.nanos() <= at.nanos() && (at.nanos() < self.until.nanos() || self.is_last())
    }

    /// Whether its value stays for ever.
    pub const fn is_last(&self) -> bool {
        self.until.nanos() == Time::NEVER.nanos()
    }

    /// The number of its point.
    pub(crate) const fn index(&self) -> usize {
        self.index
    }
}

/// So many points are passed one by one before a place is searched for.
const STRIDES: usize = 8;

impl<T> Steps<T> {
    /// Of points in order of time, the first at zero, and what comes after them.
    ///
    /// # Errors
    /// When there is no point, the first is not at zero, one is not later than the one before it, or the end comes before
    /// the last.
    pub fn new(points: Vec<(Time, T)>, after: After<T>) -> Result<Self, StepsError> {
        Self::shared(points.into(), after)
    }

    /// The same of points that others have, too.
    ///
    /// # Errors
    /// As of [`Steps::new`].
    pub fn shared(points: Arc<[(Time, T)]>, after: After<T>) -> Result<Self, StepsError> {
        let (Some(first), Some(last)) = (points.first(), points.last()) else {
            return Err(StepsError::Empty);
        };
        if first.0 != Time::ZERO {
            return Err(StepsError::LateStart);
        }
        if let Some(at) = points.windows(2).position(|pair| pair[1].0 <= pair[0].0) {
            return Err(StepsError::OutOfOrder(at + 1));
        }
        if let After::Loop(length) | After::End(length, _) = &after
            && Time::ZERO + *length <= last.0
        {
            return Err(StepsError::EarlyEnd);
        }
        Ok(Self { points, after, start: Time::ZERO, skipped: Duration::ZERO })
    }

    /// The same trace, of which the instant `skipped` after its beginning is at `start` of the run. Before `start` it
    /// stands still there. Of a trace that repeats, whole rounds skipped are as good as none.
    #[must_use]
    pub fn starting(mut self, start: Time, skipped: Duration) -> Self {
        // Less than a round leaves room for what passes afterwards. Without rounds the sum may well reach the end of time:
        // the trace is over then.
        let skipped = match &self.after {
            After::Loop(length) => Duration::from_nanos(skipped.nanos() % length.nanos()),
            After::Hold | After::End(..) => skipped,
        };
        (self.start, self.skipped) = (start, skipped);
        self
    }

    /// The same instants with values that follow from these.
    pub fn map<U>(&self, mut to: impl FnMut(&T) -> U) -> Steps<U> {
        Steps {
            points: self.points.iter().map(|(at, value)| (*at, to(value))).collect(),
            after: match &self.after {
                After::Loop(length) => After::Loop(*length),
                After::Hold => After::Hold,
                After::End(length, value) => After::End(*length, to(value)),
            },
            start: self.start,
            skipped: self.skipped,
        }
    }

    /// The points.
    pub fn points(&self) -> &[(Time, T)] {
        &self.points
    }

    /// What comes after them.
    pub const fn after(&self) -> &After<T> {
        &self.after
    }

    /// The mean over time of what `of` says of the values: over a round, up to the end, or up to the last point where the
    /// last value holds. Of a single point, its value.
    pub fn mean(&self, of: impl Fn(&T) -> f64) -> f64 {
        let last = self.last().0;
        let end = match &self.after {
            After::Loop(length) | After::End(length, _) => Time::ZERO + *length,
            After::Hold => last,
        };
        if end == Time::ZERO {
            return of(&self.last().1);
        }
        let untils = self.points.iter().skip(1).map(|point| point.0).chain([end]);
        let sum: f64 = self
            .points
            .iter()
            .zip(untils)
            .map(|((from, value), until)| of(value) * until.since(*from).seconds())
            .sum();
        sum / end.seconds()
    }

    /// The value at `at`.
    pub fn at(&self, at: Time) -> T
    where
        T: Clone,
    {
        self.value(&self.segment(at)).clone()
    }

    /// When the value that holds at `at` gives way to the next point, which may have the same; never where it stays.
    pub fn next_change(&self, at: Time) -> Time {
        self.segment(at).until
    }

    /// The value that holds over a segment of these steps.
    #[inline]
    pub fn value(&self, segment: &Segment) -> &T {
        match (self.points.get(segment.index), &self.after) {
            (Some(point), _) => &point.1,
            (None, After::End(_, value)) => value,
            (None, _) => &self.last().1,
        }
    }

    /// Brings a segment to the instant `at`, from wherever it is.
    #[inline]
    pub fn seek(&self, segment: &mut Segment, at: Time) {
        if !segment.contains(at) {
            self.seek_far(segment, at);
        }
    }

    fn seek_far(&self, segment: &mut Segment, at: Time) {
        if segment.from <= at {
            for _ in 0..STRIDES {
                *segment = self.next(segment);
                if segment.contains(at) {
                    return;
                }
            }
        }
        *segment = self.segment(at);
    }

    /// The segment of an instant.
    pub fn segment(&self, at: Time) -> Segment {
        let place = self.skipped + at.since(self.start);
        let (round, within) = match self.after {
            After::Loop(length) => {
                let rounds = place.nanos() / length.nanos();
                (rounds * length.nanos(), place.nanos() % length.nanos())
            }
            After::Hold => (0, place.nanos()),
            After::End(length, _) if place >= length => {
                let from = self.beginning(length.nanos());
                return Segment { from, until: Time::NEVER, index: self.points.len() };
            }
            After::End(..) => (0, place.nanos()),
        };
        // The first point is at zero, so there is at least one.
        let index = self.points.partition_point(|point| point.0.nanos() <= within) - 1;
        let until = match self.until(index) {
            Time::NEVER => Time::NEVER,
            until => self.instant(round.saturating_add(until.nanos())),
        };
        let from = self.beginning(round + self.points[index].0.nanos());
        Segment { from, until, index }
    }

    /// The segment after one that is not the last.
    pub(crate) fn next(&self, segment: &Segment) -> Segment {
        if segment.is_last() {
            return *segment;
        }
        let index = match &self.after {
            After::Loop(_) if segment.index + 1 == self.points.len() => 0,
            _ => segment.index + 1,
        };
        let from = segment.until;
        let until = match (self.points.get(index), self.until(index)) {
            (Some(point), until) if until != Time::NEVER => from + until.since(point.0),
            _ => Time::NEVER,
        };
        Segment { from, until, index }
    }

    /// Until when, from the beginning of a round, the value of a point holds.
    fn until(&self, index: usize) -> Time {
        match (self.points.get(index + 1), &self.after) {
            (Some(point), _) => point.0,
            (None, After::Loop(length) | After::End(length, _)) => Time::ZERO + *length,
            (None, After::Hold) => Time::NEVER,
        }
    }

    /// How long the value of the first point holds, in every round.
    pub(crate) fn first_lasts(&self) -> Duration {
        self.until(0).since(Time::ZERO)
    }

    /// The instant of the run at which the trace is so many nanoseconds from its beginning, not before `start`.
    fn instant(&self, place: u64) -> Time {
        self.start + Duration::from_nanos(place.saturating_sub(self.skipped.nanos()))
    }

    /// From when on there is what begins there. What the trace is at its start holds before that, too.
    fn beginning(&self, place: u64) -> Time {
        if place <= self.skipped.nanos() { Time::ZERO } else { self.instant(place) }
    }

    fn last(&self) -> &(Time, T) {
        self.points.last().expect("there is a first point")
    }
}

impl fmt::Display for StepsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("it has no points"),
            Self::LateStart => f.write_str("its first point is not at zero"),
            Self::OutOfOrder(number) => {
                write!(f, "its point {} is out of the order of time", number + 1)
            }
            Self::EarlyEnd => f.write_str("its end is not later than its last point"),
        }
    }
}

impl core::error::Error for StepsError {}

#[cfg(test)]
mod tests;
