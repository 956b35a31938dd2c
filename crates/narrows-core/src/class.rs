//! What a class of a queue, or a flow of a scheduler, is told and tells: its weight, other parameters, where it stands.

mod delay;
mod failure;
mod state;

pub use delay::{ErrorWidth, Estimator, Gamma, HpdClass, Per1024};
pub use failure::{Failure, Fault};
pub use state::{ClassState, DelayState, Mode, ShapedState};

use core::fmt;
use core::num::NonZero;

/// Parameters of a class that one scheduler knows and the others do not, to change while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClassSettings {
    /// Of hybrid proportional delay.
    Delay(HpdClass),
}

/// The share of a flow relative to others: a whole number, at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight(NonZero<u32>);

impl Weight {
    /// The least.
    pub const ONE: Self = Self(NonZero::<u32>::MIN);

    /// Nothing for 0.
    pub const fn new(weight: u32) -> Option<Self> {
        match NonZero::new(weight) {
            Some(weight) => Some(Self(weight)),
            None => None,
        }
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why a scheduler does not take a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Its weight is above the greatest.
    Weight {
        /// What it is.
        found: u64,
        /// The most.
        most: u64,
    },
    /// The sum of all weights would be above the greatest.
    Sum {
        /// What it would be.
        found: u64,
        /// The most.
        most: u64,
    },
    /// Its longest packet is beyond what the arithmetic holds.
    Longest {
        /// What it is, in bytes.
        found: u64,
        /// The most, in bytes.
        most: u64,
    },
    /// Its band is above the greatest.
    Band {
        /// What it is.
        found: u64,
        /// The most.
        most: u64,
    },
    /// There are as many flows as there may be.
    Flows {
        /// The most.
        most: u64,
    },
    /// A scheduler that was loaded at run time does not take it, and says no more than this number.
    Declined(i32),
    /// A scheduler that was loaded at run time failed when it was to take it.
    Failed(Fault),
    /// There is no such class.
    NoClass,
    /// The scheduler knows no weights.
    NoWeights,
    /// The scheduler knows no such parameters.
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
