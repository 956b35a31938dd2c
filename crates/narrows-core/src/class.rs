//! Parameters and state of a queue's class or a scheduler's flow: its weight, other parameters, its present state.

mod delay;
mod failure;
mod plan;
mod state;

pub use delay::{BoundOrder, BoundReading, ErrorWidth, Estimator, Gamma, HpdClass, Per1024};
pub use failure::{Failure, Fault};
pub use plan::{DelayPlan, SchedulerPlan};
pub use state::{ClassState, DelayState, Mode, ShapedState};

use core::fmt;
use core::num::NonZero;

use crate::units::{Bytes, Rate};

/// Parameters of a class that are specific to one scheduler. They can be changed at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClassSettings {
    /// Parameters of hybrid proportional delay.
    Delay(HpdClass),
    /// The bytes per turn, for schedulers that serve in turns. Replaces what follows from the weight.
    Quantum(Bytes),
    /// The rate of a station's data frames, for stations that contend for a radio channel; at most the wire's. `None`:
    /// the wire's.
    StationRate(Option<Rate>),
}

/// A flow's share relative to others: an integer, at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight(NonZero<u32>);

impl Weight {
    /// The minimum.
    pub const ONE: Self = Self(NonZero::<u32>::MIN);

    /// `None` for 0.
    pub const fn new(weight: u32) -> Option<Self> {
        match NonZero::new(weight) {
            Some(weight) => Some(Self(weight)),
            None => None,
        }
    }

    /// The weight as a number.
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why a scheduler does not accept a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The weight is too large.
    Weight {
        /// The flow's weight.
        found: u64,
        /// The maximum.
        most: u64,
    },
    /// The sum of all weights would be too large.
    Sum {
        /// What the sum would be.
        found: u64,
        /// The maximum.
        most: u64,
    },
    /// The longest packet is more than the arithmetic can hold.
    Longest {
        /// Its length in bytes.
        found: u64,
        /// The maximum in bytes.
        most: u64,
    },
    /// The band is too large.
    Band {
        /// The flow's band.
        found: u64,
        /// The maximum.
        most: u64,
    },
    /// The maximum number of flows is reached.
    Flows {
        /// The maximum.
        most: u64,
    },
    /// A scheduler loaded at run time refuses the flow with this code.
    Declined(i32),
    /// A scheduler loaded at run time failed while it handled the call.
    Failed(Fault),
    /// There is no such class.
    NoClass,
    /// The scheduler has no weights.
    NoWeights,
    /// The scheduler has no such parameters.
    NoSettings,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Weight { found, most } => write!(f, "the weight is {found}, the maximum is {most}"),
            Self::Sum { found, most } => write!(f, "the weights add up to {found}, the maximum is {most}"),
            Self::Longest { found, most } => {
                write!(f, "the longest packet is {found} bytes, the maximum is {most} bytes")
            }
            Self::Band { found, most } => write!(f, "the band is {found}, the last one is {most}"),
            Self::Flows { most } => write!(f, "there are {most} flows already, the maximum"),
            Self::Declined(code) => write!(f, "the plugin refuses the flow, with code {code}"),
            Self::Failed(why) => write!(f, "the plugin failed in `join`: {why}"),
            Self::NoClass => write!(f, "there is no such class"),
            Self::NoWeights => write!(f, "this scheduler has no weights"),
            Self::NoSettings => write!(f, "this scheduler has no such parameters"),
        }
    }
}

impl core::error::Error for Refused {}
