//! The parameters of a class of hybrid proportional delay: see [`Hpd`](crate::sched::Hpd).

use core::fmt;
use core::num::NonZero;

use crate::time::Duration;

/// The parameters of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HpdClass {
    /// The delay differentiation parameter δ. Delays are proportional to it, so the class with the smallest δ gets
    /// the best service. Default: 1.
    pub ddp: NonZero<u32>,
    /// The weight γ of the newest delay in the average. Default: derived from the backlog.
    pub gamma: Gamma,
    /// The weight g of the average delay in the hybrid delay; the rest is the weight of the first packet's waiting
    /// time. Default: one half.
    pub g: Per1024,
    /// The delay bound: the longest time that a packet should wait. Default: none.
    pub limit: Option<Duration>,
    /// How to estimate the average delay. Default: the plain moving average.
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
    /// A constant.
    Fixed(Per1024),
    /// `1 / (N·√q·ln q)`, at most 1 (eq. 3.4). N is the number of classes. q is the number of packets of the class
    /// waiting at the departure, the departing one included. For q = 1, γ is 1.
    OfBacklog,
}

/// How to estimate the average delay of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimator {
    /// An exponentially weighted moving average that starts at 0 (eq. 3.3).
    Ewma,
    /// With restart (eq. 3.5): the exact mean of the first departures, then the moving average. It starts again after
    /// the class has been idle.
    EwmaR {
        /// Maximum number of departures in the exact mean.
        threshold: u32,
        /// A class that was idle for this long starts again with its next packet.
        cycle: Duration,
    },
    /// By the proportional error of the estimate (eq. 3.6): γ is multiplied by n, and the product is at most 1. n is
    /// 1 while the delay is within one step of the average, 2 within two steps, and so on.
    EwmaPe {
        /// The maximum n, used for any larger error. 0 is treated as 1.
        steps: u8,
        /// The size of a step.
        width: ErrorWidth,
    },
}

impl Estimator {
    /// The `threshold` in the only example of the published implementation.
    pub const THRESHOLD: u32 = 25;
    /// The `cycle` in that example.
    pub const CYCLE: Duration = Duration::from_millis(2);
}

/// A step of the proportional error `|d − d̄| / d̄`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorWidth {
    /// 10 %; eq. 3.7 has seven such steps.
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

    /// How many steps make up 1.
    pub const fn parts(self) -> u32 {
        match self {
            Self::Tenth => 10,
            Self::Eighth => 8,
        }
    }
}

/// Which class is served first if the bounds of several are at stake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BoundOrder {
    /// The class with the highest number, in the order of the published implementation.
    #[default]
    Reference,
    /// The class whose bound is reached first; on a tie, the one with the lowest number.
    EarliestDeadline,
}

/// When the bound of a class is at stake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BoundReading {
    /// When its first packet would have waited too long after the transmission, at the wire's rate, of the packet
    /// that would be sent otherwise.
    #[default]
    AboutToViolate,
    /// When its first packet has already waited too long.
    HasViolated,
}

/// A fraction in units of 1/1024, from 0 to 1024 units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Per1024(u16);

impl Per1024 {
    /// Zero.
    pub const ZERO: Self = Self(0);
    /// One half.
    pub const HALF: Self = Self(512);
    /// One.
    pub const ONE: Self = Self(1024);

    /// `None` above 1024.
    pub const fn new(parts: u16) -> Option<Self> {
        if parts <= 1024 { Some(Self(parts)) } else { None }
    }

    /// The number of units.
    pub const fn get(self) -> u16 {
        self.0
    }

    /// One minus this fraction, in units.
    pub(crate) const fn rest(self) -> u16 {
        1024 - self.0
    }
}

impl fmt::Display for Per1024 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
