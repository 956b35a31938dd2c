//! mahimahi's packet-delivery traces.
//!
//! One whole number a line: the milliseconds at which 1504 bytes may go, from the beginning on, in order. Several equal
//! ones are several opportunities. At the last one the trace begins again. An empty line and a trace that lasts no time
//! are refused, as mahimahi's own `mm-link` does.

use narrows_core::{Duration, Time};

use crate::problem::{Found, Problem};
use crate::trace::source::Source;
use crate::trace::{Format, MOST_POINTS, Then, Trace};
use crate::units::LONGEST_NANOS;

/// Nanoseconds in the unit of the file.
pub(super) const MILLISECOND: u64 = 1_000_000;

/// Reads it.
pub(super) fn read(source: &Source<'_>) -> Result<Trace, Problem> {
    let mut opportunities: Vec<Time> = Vec::new();
    for line in source.lines() {
        if line.is_empty() {
            let problem = Problem::new("found an empty line, expected a number").at(&source.span(line));
            return Err(
                problem.help("each line of a mahimahi trace is an opportunity, in whole milliseconds")
            );
        }
        let millis = source.whole(line, LONGEST_NANOS / MILLISECOND, "whole milliseconds")?;
        let time = Time::from_nanos(millis * MILLISECOND);
        if let Some(last) = opportunities.last().filter(|last| **last > time) {
            let before = last.nanos() / MILLISECOND;
            let problem = Problem::new(format!("{} goes back in time: {before} is before it", Found(line)));
            return Err(problem.at(&source.span(line)).help("the numbers of a mahimahi trace never go down"));
        }
        if opportunities.len() >= MOST_POINTS {
            return Err(Problem::new(format!("more than {MOST_POINTS} lines")).at(&source.span(line)));
        }
        opportunities.push(time);
    }
    let Some(last) = opportunities.last() else { return Err(source.empty()) };
    if *last == Time::ZERO {
        let place = source.lines().last().map_or(0..0, |line| source.span(line));
        let problem = Problem::new("this trace lasts no time: its last number is 0").at(&place);
        return Err(
            problem.help("the last number is the length of the trace, in milliseconds, and above zero")
        );
    }
    let mut trace = Trace::new(Format::Mahimahi, Duration::from_nanos(last.nanos()));
    trace.opportunities = Some(opportunities);
    trace.then = Then::Loop;
    Ok(trace)
}
