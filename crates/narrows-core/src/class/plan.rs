//! What a scheduler is made of, for those who decide the same elsewhere, such as a program inside the kernel.

use alloc::vec::Vec;

use crate::class::delay::{BoundOrder, BoundReading, HpdClass};
use crate::units::Bytes;

/// A scheduler, with the settings of each of its classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchedulerPlan {
    /// [`Priority`](crate::sched::Priority), with the band of each class.
    Priority(Vec<u32>),
    /// [`Drr`](crate::sched::Drr), with the quantum of each class.
    Drr(Vec<Bytes>),
    /// [`Wf2q`](crate::sched::Wf2q), with the weight of each class.
    Wf2q(Vec<u32>),
    /// [`Hpd`](crate::sched::Hpd).
    Delay {
        /// The classes.
        classes: Vec<DelayPlan>,
        /// Whether hybrid delays have a common denominator, and can be compared as they are. If not, each of two that are
        /// compared is multiplied by the δ of the other.
        common: bool,
        /// Which class is served first if the bounds of several are at stake.
        bound_order: BoundOrder,
        /// When a bound is at stake.
        bound_reading: BoundReading,
    },
}

/// A class of [`Hpd`](crate::sched::Hpd), and the integers of its hybrid delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayPlan {
    /// Its settings.
    pub settings: HpdClass,
    /// What each nanosecond of waiting adds: below 2⁵⁹.
    pub slope: u64,
    /// What each unit of the average, 2⁻¹⁶ ns, adds: below 2⁴³.
    pub factor: u64,
}
