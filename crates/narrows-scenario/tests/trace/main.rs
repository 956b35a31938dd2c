//! Traces and patterns: files read, written, resampled, made.

mod bad_input;
mod corpus;
mod dates;
mod documents;
mod formats;
mod headers;
mod logs;
mod numbers;
mod patterns;
mod writing;

use narrows_core::{Duration, Rate, Time};
use narrows_scenario::trace::Trace;

/// Reads a file that is right.
pub(crate) fn read(name: &str, text: &str) -> Trace {
    Trace::read(name, text.as_bytes(), None).unwrap_or_else(|error| panic!("{name}: {error}"))
}

pub(crate) fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) const fn mbit(mbit: u64) -> Rate {
    Rate::from_bits_per_second(mbit * 1_000_000)
}

/// Rates with the milliseconds at which they begin.
pub(crate) fn rates(trace: &Trace) -> Vec<(u64, Rate)> {
    trace.rate().expect("it has rates").iter().map(|point| (point.0.nanos() / 1_000_000, point.1)).collect()
}

/// Delays in microseconds, with the milliseconds at which they begin.
pub(crate) fn delays(trace: &Trace) -> Vec<(u64, u64)> {
    let points = trace.delay().expect("it has delays").iter();
    points.map(|point| (point.0.nanos() / 1_000_000, point.1.nanos() / 1000)).collect()
}

/// The error of a file has all these words.
pub(crate) fn refused(name: &str, text: &str, words: &[&str]) {
    let error = Trace::read(name, text.as_bytes(), None).expect_err(text).to_string();
    for word in words {
        assert!(error.contains(word), "{word:?} is not in what is said of {text:?}:\n{error}");
    }
}
