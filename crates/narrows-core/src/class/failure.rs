//! How a scheduler loaded at run time broke the scheduler contract.

use core::fmt;

use crate::time::Time;

/// A scheduler has failed. From then on, all packets are served in order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// When it failed.
    pub at: Time,
    /// The function that was called.
    pub call: &'static str,
    /// What went wrong.
    pub why: Fault,
}

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It trapped.
    Trap(&'static str),
    /// It exceeded its step limit (fuel).
    OutOfFuel(u64),
    /// It chose a flow that does not exist.
    NoFlow(u64),
    /// It chose a flow with an empty queue.
    IdleFlow(u32),
    /// It reported that no packet waits while this many do.
    Forgets(u64),
    /// It deferred packets to an instant that is not in the future.
    Past(Time),
    /// It deferred packets this many times in a row, each time when the instant that it had named was reached.
    PutsOff(u32),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Trap(what) => write!(f, "it trapped: {what}"),
            Self::OutOfFuel(fuel) => write!(f, "it used up its {fuel} units of fuel"),
            Self::NoFlow(flow) => write!(f, "it chose flow {flow}, which does not exist"),
            Self::IdleFlow(flow) => write!(f, "it chose flow {flow}, in which nothing waits"),
            Self::Forgets(packets) => write!(f, "it said that nothing waits, and {packets} packets do"),
            Self::Past(at) => write!(f, "it put packets off until {} s, which is not later", at.seconds()),
            Self::PutsOff(times) => write!(f, "it put packets off {times} times in a row"),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` failed at {} s: {}", self.call, self.at.seconds(), self.why)
    }
}
