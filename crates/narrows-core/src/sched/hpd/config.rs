//! What is configured of hybrid proportional delay.

use alloc::vec::Vec;

use crate::class::HpdClass;

/// The scheduler and its classes. The default has no list: whatever joins is an [`HpdClass::default`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HpdConfig {
    /// The classes by their numbers. A flow that joins is the first of these that no flow is yet; one beyond the list is
    /// an [`HpdClass::default`].
    pub classes: Vec<HpdClass>,
    /// Who goes first among several whose bound is at stake.
    pub bound_order: BoundOrder,
    /// When a bound is at stake.
    pub bound_reading: BoundReading,
}

/// Who goes first among several classes whose bound is at stake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BoundOrder {
    /// The one of the highest number, as the published implementation walks through them.
    #[default]
    Reference,
    /// The one whose bound is reached first; of several at one instant the one of the lowest number.
    EarliestDeadline,
}

/// When the bound of a class is at stake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BoundReading {
    /// When its first packet would have waited too long after the packet that would go otherwise, at the wire's rate.
    #[default]
    AboutToViolate,
    /// When its first packet has waited too long.
    HasViolated,
}
