//! The parameters of a class of hybrid proportional delay: see [`Hpd`](crate::sched::Hpd).

use core::fmt;
use core::num::NonZero;

use crate::time::Duration;

/// The parameters of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HpdClass {
    /// The delay differentiation parameter δ: delays are to be in proportion to it, so that the least is served best. 1.
    pub ddp: NonZero<u32>,
    /// The weight of the newest delay in the average. By the backlog.
    pub gamma: Gamma,
    /// The weight of the average delay in the hybrid one; the rest is that of the first packet's wait. One half.
    pub g: Per1024,
    /// The delay bound: no packet is to wait longer. None.
    pub limit: Option<Duration>,
    /// How the average delay is estimated. The plain one.
    pub estimator: Estimator,
}

impl Default for HpdClass {
    fn default() -> Self {
        Self {
            ddp: NonZero::<u32>::MIN,
            gamma: Gamma::OfBacklog,
            g: Per1024::HALF,
            limit: None,
            estimator: Estimator::Ewma,
        }
    }
}

/// The weight γ of the newest delay in an average.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gamma {
    /// Always this one.
    Fixed(Per1024),
    /// `1 / (N·√q·ln q)`, at most 1, with N classes and q packets of the class that wait when one of them, which counts,
    /// departs (eq. 3.4). 1 for the only one.
    OfBacklog,
}

/// How the average delay of a class is estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimator {
    /// An exponentially weighted moving average, from 0 on (eq. 3.3).
    Ewma,
    /// With restart (eq. 3.5): the exact mean of the first departures, the moving average from there on; and anew after
    /// the class has been idle.
    EwmaR {
        /// How many departures the exact mean is of, at most.
        threshold: u32,
        /// A class in which nothing waited for so long begins anew with its next packet.
        cycle: Duration,
    },
    /// By the proportional error of the estimate (eq. 3.6): γ counts n times, at most as 1. n is 1 while the delay is no
    /// further from the average than one step, 2 within two steps, and so on.
    EwmaPe {
        /// The greatest n, which is that of any error beyond; 0 is taken as 1.
        steps: u8,
        /// How much a step is.
        width: ErrorWidth,
    },
}

impl Estimator {
    /// The `threshold` of the published implementation's only example.
    pub const THRESHOLD: u32 = 25;
    /// And the `cycle`.
    pub const CYCLE: Duration = Duration::from_millis(2);
}

/// A step of the proportional error `|d − d̄| / d̄`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorWidth {
    /// 10 %, of which eq. 3.7 has seven.
    #[default]
    Tenth,
    /// 12.5 %, as in the published implementation.
    Eighth,
}

impl ErrorWidth {
    /// The published number of steps of this width.
    pub const fn steps(self) -> u8 {
        match self {
            Self::Tenth => 7,
            Self::Eighth => 8,
        }
    }

    /// How many steps make up the whole.
    pub(crate) const fn parts(self) -> u128 {
        match self {
            Self::Tenth => 10,
            Self::Eighth => 8,
        }
    }
}

/// A part of 1 in steps of 1/1024: 0 to 1024 of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Per1024(u16);

impl Per1024 {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// One half.
    pub const HALF: Self = Self(512);
    /// All.
    pub const ONE: Self = Self(1024);

    /// Nothing for more than 1024.
    pub const fn new(parts: u16) -> Option<Self> {
        if parts <= 1024 { Some(Self(parts)) } else { None }
    }

    /// How many parts.
    pub const fn get(self) -> u16 {
        self.0
    }

    /// What is missing from 1.
    pub(crate) const fn rest(self) -> u16 {
        1024 - self.0
    }
}

impl fmt::Display for Per1024 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
