//! What a scheduler that was loaded at run time did that no scheduler may do.

use core::fmt;

use crate::time::Time;

/// A scheduler has failed. Packets of all its flows go in order of arrival from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// When.
    pub at: Time,
    /// The function that was called.
    pub call: &'static str,
    /// What was wrong.
    pub why: Fault,
}

/// What was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It broke off.
    Trap(&'static str),
    /// It took more steps than it may.
    OutOfFuel(u64),
    /// It chose a flow that there is not.
    NoFlow(u64),
    /// It chose a flow in which nothing waits.
    IdleFlow(u32),
    /// It said that nothing waits, and so many packets do.
    Forgets(u64),
    /// It put off what waits until an instant that is not in the future.
    Past(Time),
    /// It put off what waits again and again, so often, whenever the instant had come that it had named.
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
