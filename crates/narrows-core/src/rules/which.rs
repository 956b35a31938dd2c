//! Selects rules.

use core::ops::RangeInclusive;

/// Selects rules by both criteria; by default all rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Which {
    /// Rules with these numbers.
    pub numbers: Option<RangeInclusive<u16>>,
    /// Rules in this set.
    pub set: Option<u8>,
}
