//! What shapers with classes have in common: their leaves, which are flows, and what is wrong with what they are told.

use alloc::vec::Vec;
use core::fmt;

use crate::sched::{FlowId, Refused};
use crate::units::{Bytes, Rate};

/// The leaves of a tree of classes: the flows of its shaper.
#[derive(Debug)]
pub(super) struct Leaves {
    /// Their places in the configuration, in order.
    classes: Vec<u32>,
    /// How many of them are flows at present.
    joined: usize,
}

impl Leaves {
    pub(super) const fn new(classes: Vec<u32>) -> Self {
        Self { classes, joined: 0 }
    }

    /// The places of all of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        self.classes.iter().copied()
    }

    /// The place of the class that a flow is.
    #[inline]
    pub(super) fn class_of(&self, flow: FlowId) -> u32 {
        self.classes[flow.number() as usize]
    }

    /// Another flow: the next leaf, or the one that was left last, since numbers of flows are given out again in that order.
    pub(super) fn join(&mut self) -> Result<(), Refused> {
        if self.joined == self.classes.len() {
            return Err(Refused::Flows { most: self.classes.len() as u64 });
        }
        self.joined += 1;
        Ok(())
    }

    pub(super) const fn leave(&mut self) {
        self.joined -= 1;
    }
}

/// Why a shaper cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShapingError {
    /// The class, by its place in the configuration; nothing for what concerns the whole.
    pub class: Option<usize>,
    /// What is wrong.
    pub fault: ShapingFault,
}

/// What is wrong with a shaper or one of its classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapingFault {
    /// There is no class.
    NoClasses,
    /// There are more classes than there may be.
    TooManyClasses {
        /// How many.
        found: usize,
        /// The most.
        most: usize,
    },
    /// Its parent does not come before it: so a tree could have a circle.
    Parent {
        /// The place of the parent.
        found: usize,
    },
    /// There are more classes above it than there may be.
    TooDeep {
        /// The most classes from the uppermost to a leaf, both counted.
        most: usize,
    },
    /// The rate is zero.
    NoRate,
    /// The ceiling is below the rate.
    CeilingBelowRate {
        /// The rate.
        rate: Rate,
        /// The ceiling.
        ceiling: Rate,
    },
    /// The peak rate is not above the rate.
    PeakNotAboveRate {
        /// The rate.
        rate: Rate,
        /// The peak rate.
        peak: Rate,
    },
    /// The bucket of the rate holds nothing.
    NoBurst,
    /// The bucket of the peak rate holds nothing.
    NoMtu,
    /// A bucket holds more than the arithmetic does.
    BurstTooLong {
        /// What it would hold.
        found: Bytes,
        /// The most.
        most: Bytes,
    },
    /// The priority is none that there is.
    Priority {
        /// What it is.
        found: u8,
        /// The least.
        least: u8,
        /// The greatest.
        most: u8,
    },
    /// What a class may send at its turn is nothing.
    NoQuantum,
    /// The mean length of packets is zero.
    NoAveragePacket,
    /// The weight is zero.
    NoWeight,
    /// The time constant of an average is none that there may be.
    TimeConstant {
        /// Its logarithm to base 2.
        found: u8,
        /// The greatest.
        most: u8,
    },
    /// It may never borrow and may always borrow.
    BoundedAndExempt,
}

impl fmt::Display for ShapingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.class {
            Some(class) => write!(f, "class {class}: {}", self.fault),
            None => self.fault.fmt(f),
        }
    }
}

impl fmt::Display for ShapingFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoClasses => write!(f, "there is no class"),
            Self::TooManyClasses { found, most } => {
                write!(f, "there are {found} classes, the maximum is {most}")
            }
            Self::Parent { found } => {
                write!(f, "its parent is class {found}, which does not come before it")
            }
            Self::TooDeep { most } => {
                write!(f, "it is below {most} classes or more, the maximum is {}", most - 1)
            }
            Self::NoRate => write!(f, "the rate is zero"),
            Self::CeilingBelowRate { rate, ceiling } => {
                write!(f, "the ceiling is {ceiling}, below the rate of {rate}")
            }
            Self::PeakNotAboveRate { rate, peak } => {
                write!(f, "the peak rate is {peak}, which is not above the rate of {rate}")
            }
            Self::NoBurst => write!(f, "the burst is zero, so that no packet could ever go"),
            Self::NoMtu => write!(f, "the MTU of the peak rate is zero, so that no packet could ever go"),
            Self::BurstTooLong { found, most } => write!(f, "the burst is {found}, the maximum is {most}"),
            Self::Priority { found, least, most } => {
                write!(f, "the priority is {found}, priorities are {least} to {most}")
            }
            Self::NoQuantum => write!(f, "the quantum or allotment of a turn is zero"),
            Self::NoAveragePacket => write!(f, "the mean length of packets is zero"),
            Self::NoWeight => write!(f, "the weight is zero"),
            Self::TimeConstant { found, most } => {
                write!(f, "the average's time constant is 2^{found} packets, the maximum is 2^{most}")
            }
            Self::BoundedAndExempt => {
                write!(f, "it is bounded, never to borrow, and exempt, always to borrow")
            }
        }
    }
}

impl core::error::Error for ShapingError {}

impl ShapingFault {
    /// That there are classes, and not too many.
    pub(crate) fn of_count(found: usize, most: usize) -> Result<(), ShapingError> {
        match found {
            0 => Err(Self::NoClasses.of_all()),
            _ if found > most => Err(Self::TooManyClasses { found, most }.of_all()),
            _ => Ok(()),
        }
    }

    /// Of the whole.
    pub(crate) const fn of_all(self) -> ShapingError {
        ShapingError { class: None, fault: self }
    }

    /// Of one class.
    pub(crate) const fn of(self, class: usize) -> ShapingError {
        ShapingError { class: Some(class), fault: self }
    }
}
