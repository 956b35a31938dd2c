//! Configuration of hybrid proportional delay.

use alloc::vec::Vec;

use crate::class::{BoundOrder, BoundReading, HpdClass};

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
