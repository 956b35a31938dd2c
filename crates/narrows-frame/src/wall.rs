//! Wall-clock instants, as in captures.

use std::fmt;
use std::ops::Add;

use narrows_core::Duration;

/// An instant of the wall clock: nanoseconds since 1 January 1970, 00:00 UTC. The range ends in the year 2554.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct WallTime(u64);

impl WallTime {
    /// `nanos` nanoseconds after the start of 1970.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the start of 1970.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// The span from `earlier` to `self`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Saturates at the maximum.
impl Add<Duration> for WallTime {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.nanos()))
    }
}

/// Seconds since the start of 1970, with nine decimals.
impl fmt::Display for WallTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}
