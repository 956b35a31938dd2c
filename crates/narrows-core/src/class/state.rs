//! Class state that a scheduler reports, in addition to the counters that all classes have.

use super::failure::Failure;
use crate::counters::Tally;
use crate::time::Duration;

/// The state of one class of a scheduler at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClassState {
    /// A class of hybrid proportional delay.
    Delay(DelayState),
    /// A class of a shaper, leaf or inner.
    Shaped(ShapedState),
    /// No class: the scheduler has failed, and all classes are served in order of arrival.
    Failed(Failure),
}

/// State of a class of hybrid proportional delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelayState {
    /// How long its first packet has waited.
    pub hold: Duration,
    /// The estimated mean delay of the packets that have left.
    pub average: Duration,
    /// How often the class was served because its first packet was about to exceed its delay bound, or already had.
    pub over_limit: u64,
}

/// State of a shaper's class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShapedState {
    /// Whether it may send.
    pub mode: Mode,
    /// What the class, or the classes below it, have sent.
    pub sent: Tally,
    /// Packets sent within the class's own rate. For an inner class, packets that it let its descendants send. For
    /// service curves (HFSC), packets sent by the real-time criterion.
    pub lent: u64,
    /// Packets sent by borrowing from an ancestor. For service curves, packets sent by link sharing.
    pub borrowed: u64,
    /// How often it had a packet to send but was not allowed to.
    pub over_limit: u64,
    /// The tokens left of its burst, in nanoseconds at its rate; negative when it is in debt. For a class regulated
    /// by idle time (CBQ), the average idle time. For service curves, 0.
    pub tokens: i64,
    /// The tokens of its ceiling or peak rate; 0 if it has none.
    pub ceil_tokens: i64,
}

/// Whether a class may send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// It is within its rate.
    #[default]
    MaySend,
    /// It exceeds its rate, and sends as long as an ancestor lends.
    MayBorrow,
    /// It exceeds its ceiling, or may not borrow.
    CannotSend,
}
