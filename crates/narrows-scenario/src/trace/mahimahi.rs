//! mahimahi's packet-delivery traces.
//!
//! One whole number per line, in increasing order: a millisecond, counted from the start, at which 1504
//! bytes may pass. Equal numbers are several opportunities. After the last one the trace repeats. As in
//! mahimahi's own `mm-link`, empty lines and traces of zero length are rejected.

use std::fmt::Write;

use narrows_core::{Duration, Rate, Time};

use super::look::{WORDS, how, lone_rate};
use crate::problem::{Found, Problem};
use crate::source::Source;
use crate::trace::format::Entry;
use crate::trace::{CannotWrite, Format, MILLISECOND, MOST_POINTS, OPPORTUNITY, Then, Trace};
use crate::units::LONGEST_NANOS;

/// Files have a single number on the first line.
impl Format {
    /// One opportunity per line, in whole milliseconds.
    pub const MAHIMAHI: Self = Self(&FORMAT);
}

const FORMAT: Entry = Entry {
    name: "mahimahi",
    begins: |beginning| {
        beginning.first.is_ascii_digit() && !beginning.line.trim().contains([' ', '\t', ',', ';'])
    },
    always: &[],
    extensions: &["mahi", "mahimahi", "up", "down", "pps"],
    read,
    write: |trace, remarks| trace.mahimahi(remarks),
    has_opportunities: true,
    says_loop: true,
};

/// Parses a file.
fn read(source: &Source<'_>) -> Result<Trace, Problem> {
    let mut opportunities: Vec<Time> = Vec::new();
    for line in source.lines() {
        if line.is_empty() {
            let problem = Problem::new("found an empty line, expected a number").at(&source.span(line));
            return Err(
                problem.help("each line of a mahimahi trace is an opportunity, in whole milliseconds")
            );
        }
        let millis = source.whole(line, LONGEST_NANOS / MILLISECOND, "whole milliseconds");
        let millis = millis.map_err(|problem| or_rates(source, problem))?;
        put_opportunity(source, &mut opportunities, millis, line)
            .map_err(|problem| or_rates(source, problem))?;
    }
    of_opportunities(source, Format::MAHIMAHI, opportunities)
}

/// Adds to the error of a file whose numbers may be rates how to read it as such.
fn or_rates(source: &Source<'_>, problem: Problem) -> Problem {
    match lone_rate(source) {
        Some(columns) => {
            problem.help(format!("if each number is the rate of a second, {}", how(&columns))).help(WORDS)
        }
        None => problem,
    }
}

/// Adds an opportunity, `millis` from the start; `part` says it in the file.
pub(super) fn put_opportunity(
    source: &Source<'_>,
    opportunities: &mut Vec<Time>,
    millis: u64,
    part: &str,
) -> Result<(), Problem> {
    let time = Time::from_nanos(millis * MILLISECOND);
    if let Some(last) = opportunities.last().filter(|last| **last > time) {
        let before = last.nanos() / MILLISECOND;
        let problem =
            Problem::new(format!("{} goes back in time: the previous one is {before}", Found(part)));
        return Err(problem.at(&source.span(part)).help("the numbers of a mahimahi trace never go down"));
    }
    if opportunities.len() >= MOST_POINTS {
        return Err(Problem::new(format!("more than {MOST_POINTS} lines")).at(&source.span(part)));
    }
    opportunities.push(time);
    Ok(())
}

/// A trace of these opportunities: the last one is its length, and it repeats.
pub(super) fn of_opportunities(
    source: &Source<'_>,
    format: Format,
    opportunities: Vec<Time>,
) -> Result<Trace, Problem> {
    let Some(last) = opportunities.last() else { return Err(source.empty()) };
    if *last == Time::ZERO {
        let place = source.lines().last().map_or(0..0, |line| source.span(line));
        let problem = Problem::new("this trace has no duration: its last number is 0").at(&place);
        return Err(
            problem.help("the last number is the length of the trace, in milliseconds, and above zero")
        );
    }
    let mut trace = Trace::new(format, Duration::from_nanos(last.nanos()));
    trace.opportunities = Some(opportunities.into());
    trace.then = Then::Loop;
    Ok(trace)
}

impl Trace {
    /// At each millisecond, one opportunity for each whole packet that the rate has passed since the
    /// previous one.
    pub(super) fn mahimahi(&self, remarks: &mut Vec<String>) -> Result<String, CannotWrite> {
        const SAYS: &str = "when packets may go";
        let nothing = CannotWrite::Nothing { format: Format::MAHIMAHI, says: SAYS };
        self.left_out(
            remarks,
            &[self.delay.is_some(), self.loss.is_some(), self.duplicate.is_some(), self.bound.is_some()],
        );
        let mut text = String::new();
        let mut line = |millis: u64| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{millis}");
        };
        if let Some(opportunities) = &self.opportunities {
            opportunities.iter().for_each(|time| line(time.nanos() / MILLISECOND));
            return Ok(text);
        }
        let Some(rates) = &self.rate else { return Err(nothing) };
        let millis = self.length.nanos() / MILLISECOND;
        // Limits both steps and lines.
        if millis > MOST_POINTS as u64 {
            return Err(CannotWrite::TooLong);
        }
        if rates.iter().any(|point| point.1 == Rate::UNLIMITED) {
            return Err(CannotWrite::Nothing {
                format: Format::MAHIMAHI,
                says: "a rate with a limit throughout",
            });
        }
        let (mut next, mut now, mut served, mut used, mut last) = (0, Rate::DOWN, 0u128, 0u128, 0);
        /// One opportunity, in bits per second times nanoseconds.
        const ONE: u128 = OPPORTUNITY as u128 * 8 * 1_000_000_000;
        for milli in 1..=millis {
            let (mut at, end) = ((milli - 1) * MILLISECOND, milli * MILLISECOND);
            while at < end {
                while rates.get(next).is_some_and(|point| point.0.nanos() <= at) {
                    now = rates[next].1;
                    next += 1;
                }
                let until = rates.get(next).map_or(end, |point| point.0.nanos().min(end));
                // At most 10¹⁵ bits per second for 2⁶² ns.
                served += u128::from(now.bits_per_second()) * u128::from(until - at);
                at = until;
            }
            let whole = served / ONE;
            if whole > MOST_POINTS as u128 {
                return Err(CannotWrite::TooLong);
            }
            for _ in used..whole {
                line(milli);
                last = milli;
            }
            used = whole;
        }
        if used == 0 {
            return Err(CannotWrite::NoOpportunity(self.length));
        }
        remarks.push(format!("the rate is written as opportunities of {OPPORTUNITY} bytes, in milliseconds"));
        let period = Duration::from_millis(last);
        if period != self.length {
            remarks.push(format!(
                "the file repeats after {period}, its last opportunity; the trace lasts {}",
                self.length
            ));
        }
        Ok(text)
    }
}
