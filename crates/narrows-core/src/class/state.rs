//! What a scheduler tells of its classes, besides the counters that all classes have.

use super::failure::Failure;
use crate::counters::Tally;
use crate::time::Duration;

/// Where one class of a scheduler stands at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClassState {
    /// A class that is served by its delay (hybrid proportional delay).
    Delay(DelayState),
    /// A class of a shaper, a leaf or one that has others below it.
    Shaped(ShapedState),
    /// No class: the scheduler has failed, and all of them are served in order of arrival.
    Failed(Failure),
}

/// A class that is served by its delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelayState {
    /// For how long its first packet has waited.
    pub hold: Duration,
    /// The estimate of the mean delay of those that have left.
    pub average: Duration,
    /// How often it was served because its first packet was about to wait too long, or had.
    pub over_limit: u64,
}

/// A class of a shaper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShapedState {
    /// Whether it may send by itself.
    pub mode: Mode,
    /// What it, or the classes below it, have sent.
    pub sent: Tally,
    /// How many packets it sent within its own rate. Of a class with others below it, what it let them send as its own.
    pub lent: u64,
    /// How many packets it sent by what a class above it lent.
    pub borrowed: u64,
    /// How often it wanted to send and might not.
    pub over_limit: u64,
    /// What is left of its burst, in nanoseconds of its rate; below zero it owes. Of a class that goes by its idle time,
    /// the average of that.
    pub tokens: i64,
    /// The same of its ceiling or peak rate; 0 where it has none.
    pub ceil_tokens: i64,
}

/// Whether a class may send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// It may: it is within its rate.
    #[default]
    MaySend,
    /// It is beyond its rate, and sends as long as a class above lends.
    MayBorrow,
    /// It is beyond its ceiling, or may not borrow.
    CannotSend,
}
