//! Configuration of hybrid proportional delay.

use alloc::vec::Vec;

use crate::class::HpdClass;

/// The scheduler and its classes. The default list of classes is empty: every flow gets [`HpdClass::default`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HpdConfig {
    /// The classes by number. A flow that joins gets the first class that has no flow; beyond the list, it gets
    /// [`HpdClass::default`].
    pub classes: Vec<HpdClass>,
    /// Which class is served first if the bounds of several are at stake.
    pub bound_order: BoundOrder,
    /// When a bound is at stake.
    pub bound_reading: BoundReading,
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
