//! Values over time, such as a trace gives them point by point.
//!
//! A value holds from its point to the next one; [`After`] defines what follows the last point. Points count
//! from the beginning of the trace; [`Steps::starting`] sets the instant of the run at which it begins.
//! Nothing accumulates from round to round: the position in a repeating trace is a remainder of whole
//! nanoseconds, so an hour of rounds does not drift.
//!
//! The points are shared: a trace of a million points that ten links use is stored once. A caller that asks
//! for advancing instants keeps a [`Segment`] and gets each answer in a few steps; any other instant takes a
//! binary search.
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
use core::ops::Deref;

use crate::time::{Duration, Time};

/// Values over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Steps<T> {
    points: Points<T>,
    after: After<T>,
    /// When the trace begins in the run, and at which of its own instants.
    start: Time,
    skipped: Duration,
}

/// Points in order of time, the first at zero. Copies share them, so that they are checked once, however many links use
/// them and however often a run changes to them.
#[derive(Debug, PartialEq)]
pub struct Points<T>(Arc<[(Time, T)]>);

impl<T> Points<T> {
    /// These points.
    ///
    /// # Errors
    /// If there is no point, the first is not at zero, or one is not later than the one before it.
    pub fn new(points: impl Into<Arc<[(Time, T)]>>) -> Result<Self, StepsError> {
        let points = points.into();
        if points.first().ok_or(StepsError::Empty)?.0 != Time::ZERO {
            return Err(StepsError::LateStart);
        }
        match points.windows(2).position(|pair| pair[1].0 <= pair[0].0) {
            Some(at) => Err(StepsError::OutOfOrder(at + 1)),
            None => Ok(Self(points)),
        }
    }
}

impl<T> Clone for Points<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Deref for Points<T> {
    type Target = [(Time, T)];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// What follows the last point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After<T> {
    /// The trace repeats with this period, which must be longer than the time of the last point.
    Loop(Duration),
    /// The last value holds forever.
    Hold,
    /// Another value holds forever from this time of the trace on, which must be later than the last point.
    End(Duration, T),
}

/// Why points do not form valid [`Steps`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepsError {
    /// There are no points.
    Empty,
    /// The first point is not at zero.
    LateStart,
    /// The point with this number, from 0, does not come after the one before it.
    OutOfOrder(usize),
    /// The end of the trace is not later than its last point.
    EarlyEnd,
}

/// A stretch of time over which one value holds: a position in some [`Steps`], and a cache of the next
/// answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The segment begins at this instant.
    pub from: Time,
    /// The segment ends before this instant; [`Time::NEVER`] if the value holds forever.
    pub until: Time,
    /// The number of the point. One more than the last for the value after the end.
    index: usize,
}

impl Segment {
    /// No position yet: it contains no instant.
    pub const NOWHERE: Self = Self { from: Time::NEVER, until: Time::ZERO, index: 0 };

    /// Whether the segment contains the instant.
    #[inline]
    pub const fn contains(&self, at: Time) -> bool {
        self.from.nanos() <= at.nanos() && (at.nanos() < self.until.nanos() || self.is_last())
    }

    /// Whether the value holds forever.
    pub const fn is_last(&self) -> bool {
        self.until.nanos() == Time::NEVER.nanos()
    }

    /// The number of its point.
    pub(crate) const fn index(&self) -> usize {
        self.index
    }
}

/// How many points [`Steps::seek`] passes one by one before it searches.
const STRIDES: usize = 8;

impl<T> Steps<T> {
    /// Steps from points in order of time, the first at zero, and what follows them.
    ///
    /// # Errors
    /// If there is no point, the first is not at zero, one is not later than the one before it, or the end is
    /// not later than the last.
    pub fn new(points: Vec<(Time, T)>, after: After<T>) -> Result<Self, StepsError> {
        Self::shared(Points::new(points)?, after)
    }

    /// As [`Steps::new`], with points that others share.
    ///
    /// # Errors
    /// If the end is not later than the last point.
    pub fn shared(points: Points<T>, after: After<T>) -> Result<Self, StepsError> {
        let last = points.last().ok_or(StepsError::Empty)?;
        if let After::Loop(length) | After::End(length, _) = &after
            && Time::ZERO + *length <= last.0
        {
            return Err(StepsError::EarlyEnd);
        }
        Ok(Self { points, after, start: Time::ZERO, skipped: Duration::ZERO })
    }

    /// The same trace, with the instant `skipped` of the trace placed at `start` of the run. Before `start`
    /// the value at that instant holds. For a repeating trace, skipping whole rounds has no effect.
    #[must_use]
    pub fn starting(mut self, start: Time, skipped: Duration) -> Self {
        // Less than a round leaves room to add later offsets. Without rounds the sum may reach the end of
        // time, but then the trace is over.
        let skipped = match &self.after {
            After::Loop(length) => Duration::from_nanos(skipped.nanos() % length.nanos()),
            After::Hold | After::End(..) => skipped,
        };
        (self.start, self.skipped) = (start, skipped);
        self
    }

    /// The same instants with values computed from these.
    pub fn map<U>(&self, mut to: impl FnMut(&T) -> U) -> Steps<U> {
        Steps {
            points: Points(self.points.iter().map(|(at, value)| (*at, to(value))).collect()),
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

    /// What follows the last point.
    pub const fn after(&self) -> &After<T> {
        &self.after
    }

    /// The mean over time of `of` applied to the values: over a round, up to the end, or up to the last point
    /// if the last value holds forever. For a single point that holds forever, its value.
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

    /// When the value at `at` gives way to the next point, which may have the same value; [`Time::NEVER`] if
    /// it holds forever.
    pub fn next_change(&self, at: Time) -> Time {
        self.segment(at).until
    }

    /// The value over a segment of these steps.
    #[inline]
    pub fn value(&self, segment: &Segment) -> &T {
        match (self.points.get(segment.index), &self.after) {
            (Some(point), _) => &point.1,
            (None, After::End(_, value)) => value,
            (None, _) => &self.last().1,
        }
    }

    /// Moves a segment to the one that contains `at`.
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

    /// The segment that contains an instant.
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

    /// The segment after this one; the last segment is returned unchanged.
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

    /// The end of a point's value, counted from the beginning of a round.
    fn until(&self, index: usize) -> Time {
        match (self.points.get(index + 1), &self.after) {
            (Some(point), _) => point.0,
            (None, After::Loop(length) | After::End(length, _)) => Time::ZERO + *length,
            (None, After::Hold) => Time::NEVER,
        }
    }

    /// How long the first point's value holds, in every round.
    pub(crate) fn first_lasts(&self) -> Duration {
        self.until(0).since(Time::ZERO)
    }

    /// The instant of the run at which the trace is `place` nanoseconds from its beginning, not before
    /// `start`.
    fn instant(&self, place: u64) -> Time {
        self.start + Duration::from_nanos(place.saturating_sub(self.skipped.nanos()))
    }

    /// The instant from which the value at `place` holds. The value at the start of the trace also holds
    /// before it.
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
