//! What shapers with classes have in common: their leaf classes, which are flows, and their configuration errors.

use alloc::vec::Vec;
use core::fmt;

use crate::sched::{FlowId, Refused};
use crate::units::{Bytes, Rate};

/// The leaf classes of a shaper: its flows.
#[derive(Debug)]
pub(super) struct Leaves {
    /// Their configuration indices, in order.
    classes: Vec<u32>,
    /// How many of them are flows at present.
    joined: usize,
}

impl Leaves {
    pub(super) const fn new(classes: Vec<u32>) -> Self {
        Self { classes, joined: 0 }
    }

    /// The indices of all leaves.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        self.classes.iter().copied()
    }

    /// The index of a flow's class.
    #[inline]
    pub(super) fn class_of(&self, flow: FlowId) -> u32 {
        self.classes[flow.number() as usize]
    }

    /// Adds a flow: the next leaf, or the leaf that was left last, because flow numbers are reused in that order.
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

/// The flow of a shaper without classes.
#[derive(Debug, Default)]
pub(super) struct OnlyFlow {
    joined: bool,
}

impl OnlyFlow {
    pub(super) fn join(&mut self) -> Result<(), Refused> {
        match core::mem::replace(&mut self.joined, true) {
            true => Err(Refused::Flows { most: 1 }),
            false => Ok(()),
        }
    }

    pub(super) fn leave(&mut self) {
        self.joined = false;
    }
}

/// Why a shaper cannot be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShapingError {
    /// The class, by its configuration index. `None` if the error concerns the whole shaper.
    pub class: Option<usize>,
    /// What is wrong.
    pub fault: ShapingFault,
}

/// What is wrong with a shaper or one of its classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapingFault {
    /// There are no classes.
    NoClasses,
    /// There are too many classes.
    TooManyClasses {
        /// The number of classes.
        found: usize,
        /// The maximum.
        most: usize,
    },
    /// The parent does not come before the class. This order rules out cycles.
    Parent {
        /// The index of the parent.
        found: usize,
    },
    /// The class has too many ancestors.
    TooDeep {
        /// The maximum number of classes from the root to a leaf, both counted.
        most: usize,
    },
    /// The rate is zero.
    NoRate,
    /// The peak rate is not above the rate.
    PeakNotAboveRate {
        /// The rate.
        rate: Rate,
        /// The peak rate.
        peak: Rate,
    },
    /// The burst is zero.
    NoBurst,
    /// The bucket of the peak rate (its MTU) is zero.
    NoMtu,
    /// A bucket is larger than the arithmetic can hold.
    BurstTooLong {
        /// The configured size.
        found: Bytes,
        /// The maximum.
        most: Bytes,
    },
    /// The priority is out of range.
    Priority {
        /// The configured priority.
        found: u8,
        /// The minimum.
        least: u8,
        /// The maximum.
        most: u8,
    },
    /// The quantum is zero.
    NoQuantum,
    /// The mean packet length is zero.
    NoAveragePacket,
    /// The weight is zero.
    NoWeight,
    /// The time constant of an average is out of range.
    TimeConstant {
        /// Its base-2 logarithm.
        found: u8,
        /// The maximum.
        most: u8,
    },
    /// The class is both bounded (never borrows) and exempt (always borrows).
    BoundedAndExempt,
    /// A class of an HFSC tree has neither a real-time nor a link-sharing curve.
    NoCurve,
    /// The class has an upper limit without a link-sharing curve.
    LimitWithoutShare,
    /// The second slope of a curve is zero.
    CurveEnds,
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
            Self::NoCurve => write!(f, "there is neither a real-time nor a link-sharing curve"),
            Self::LimitWithoutShare => {
                write!(f, "there is an upper limit without a link-sharing curve, which it limits")
            }
            Self::CurveEnds => {
                write!(f, "the second slope of a curve is zero, so that the class would stop for good")
            }
        }
    }
}

impl core::error::Error for ShapingError {}

impl ShapingFault {
    /// Checks that there are classes, and not too many.
    pub(crate) fn of_count(found: usize, most: usize) -> Result<(), ShapingError> {
        match found {
            0 => Err(Self::NoClasses.of_all()),
            _ if found > most => Err(Self::TooManyClasses { found, most }.of_all()),
            _ => Ok(()),
        }
    }

    /// An error of the whole shaper.
    pub(crate) const fn of_all(self) -> ShapingError {
        ShapingError { class: None, fault: self }
    }

    /// An error of one class.
    pub(crate) const fn of(self, class: usize) -> ShapingError {
        ShapingError { class: Some(class), fault: self }
    }
}
