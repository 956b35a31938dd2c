//! Instants and durations, in whole nanoseconds.
//!
//! An instant counts from the start of the run, so 64 bits last 584 years. Arithmetic saturates: an instant
//! beyond the end of time is [`Time::NEVER`], which no event reaches.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// An instant: nanoseconds since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// Later than every event.
    pub const NEVER: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the start.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the start.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the start, for display.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The instant `span` earlier, or the start of the run if that is later.
    pub const fn before(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span.0))
    }

    /// The duration from `earlier` to `self`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Duration(self.0).fmt(f)
    }
}

/// A duration in nanoseconds, never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

impl Duration {
    /// Zero.
    pub const ZERO: Self = Self(0);
    /// The longest duration.
    pub const MAX: Self = Self(u64::MAX);

    /// `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// `secs` seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Seconds, for display.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The difference, or zero if `other` is longer.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Duration {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.saturating_sub(other)
    }
}

/// Exact, in the largest unit that gives a number of one or more: `1.5ms`, `250us`, `3s`.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, digits, name) = match self.0 {
            0 => return f.pad("0s"),
            1..1_000 => (1, 0, "ns"),
            1_000..1_000_000 => (1_000, 3, "us"),
            1_000_000..1_000_000_000 => (1_000_000, 6, "ms"),
            _ => (1_000_000_000, 9, "s"),
        };
        let (whole, mut part, mut width) = (self.0 / unit, self.0 % unit, digits);
        if part == 0 {
            return f.pad(&alloc::format!("{whole}{name}"));
        }
        while part.is_multiple_of(10) {
            part /= 10;
            width -= 1;
        }
        f.pad(&alloc::format!("{whole}.{part:0width$}{name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn spans_print_exactly_in_the_largest_fitting_unit() {
        for (nanos, text) in [
            (0, "0s"),
            (999, "999ns"),
            (1_500, "1.5us"),
            (25_000_000, "25ms"),
            (1_000_001, "1.000001ms"),
            (90_000_000_000, "90s"),
        ] {
            assert_eq!(Duration::from_nanos(nanos).to_string(), text);
        }
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Time::NEVER + Duration::from_secs(1), Time::NEVER);
        assert_eq!(Time::ZERO.since(Time::from_nanos(5)), Duration::ZERO);
    }
}
