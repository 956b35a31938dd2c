//! Errors in the definition of a distribution.

use core::fmt;

use super::words::Nanos;

/// Why a distribution is invalid.
#[derive(Clone, Debug, PartialEq)]
pub enum DistributionError {
    /// A parameter is not a number, or out of its range.
    Parameter {
        /// The parameter.
        name: &'static str,
        /// The value given.
        found: f64,
        /// The allowed values, in words.
        allowed: &'static str,
    },
    /// A time is not a number, or out of its range.
    Time {
        /// The parameter.
        name: &'static str,
        /// The value given, in nanoseconds.
        found: f64,
        /// The allowed values, in words.
        allowed: &'static str,
    },
    /// The ends of a range are in the wrong order.
    Range {
        /// The lower end, in nanoseconds.
        low: f64,
        /// The upper end, in nanoseconds.
        high: f64,
    },
    /// There is nothing to draw from.
    Empty {
        /// What has no entries, in words.
        what: &'static str,
    },
    /// A weight is negative or not a number.
    Weight {
        /// The entry with the weight, from 1.
        entry: usize,
        /// The value given.
        found: f64,
    },
    /// All weights are zero.
    NoWeight,
    /// Two bins of a histogram overlap.
    Overlap {
        /// The later of the two, in the order of their lower ends, from 1.
        bin: usize,
    },
    /// The points of a cumulative distribution function are not in order of delay.
    GoesBack {
        /// The first point out of order, from 1.
        point: usize,
    },
    /// A cumulative distribution function decreases.
    GoesDown {
        /// The first point that is lower than the one before it, from 1.
        point: usize,
        /// Its probability.
        found: f64,
        /// The probability of the point before.
        before: f64,
    },
    /// A cumulative distribution function does not end at 1.
    NotComplete {
        /// The probability of its last point.
        found: f64,
    },
    /// A truncation leaves nothing: the kept range has zero probability.
    NothingLeft {
        /// The start of the kept range, in nanoseconds.
        minimum: f64,
        /// The end of the kept range, in nanoseconds.
        maximum: f64,
    },
}

impl fmt::Display for DistributionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parameter { name, found, allowed } => write!(f, "{name} must be {allowed}, not {found}"),
            Self::Time { name, found, allowed } => {
                write!(f, "{name} must be {allowed}, not {}", Nanos(*found))
            }
            Self::Range { low, high } => {
                write!(f, "the low end, {}, is above the high end, {}", Nanos(*low), Nanos(*high))
            }
            Self::Empty { what } => write!(f, "there are no {what}"),
            Self::Weight { entry, found } => {
                write!(f, "the weight of entry {entry} must be zero or more, not {found}")
            }
            Self::NoWeight => write!(f, "all weights are zero"),
            Self::Overlap { bin } => write!(f, "bin {bin} starts before the one below it ends"),
            Self::GoesBack { point } => {
                write!(f, "point {point} is at a shorter delay than the one before it")
            }
            Self::GoesDown { point, found, before } => {
                write!(
                    f,
                    "a cumulative distribution never goes down: point {point} has {found} after {before}"
                )
            }
            Self::NotComplete { found } => {
                write!(f, "a cumulative distribution ends at 1: the last point has {found}")
            }
            Self::NothingLeft { minimum, maximum } if *maximum == f64::INFINITY => {
                write!(f, "no delay is left: none is {} or more", Nanos(*minimum))
            }
            Self::NothingLeft { minimum, maximum } if *minimum == f64::NEG_INFINITY => {
                write!(f, "no delay is left: none is {} or less", Nanos(*maximum))
            }
            Self::NothingLeft { minimum, maximum } => {
                write!(f, "no delay is left: none is between {} and {}", Nanos(*minimum), Nanos(*maximum))
            }
        }
    }
}

impl core::error::Error for DistributionError {}
