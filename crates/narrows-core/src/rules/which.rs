//! Which rules are meant.

use core::ops::RangeInclusive;

/// Rules that fulfil both; by default all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Which {
    /// Those of these numbers.
    pub numbers: Option<RangeInclusive<u16>>,
    /// Those of this set.
    pub set: Option<u8>,
}
