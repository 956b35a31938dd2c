//! Light traces of CellReplay (`generate_short_pdo_trace.py` of `williamsentosa95/cellreplay`).
//!
//! ```text
//! 0 18 0 0 1 3
//! 50 21 0 2 5 5
//! 100 20
//! ```
//! One packet train per line: when it was sent, its one-way delay (half a round trip), then the offsets of its
//! packets' arrivals from that of the first, which is 0; all in milliseconds. The last line ends the trace:
//! the delay before it is interpolated towards it, and its own offsets are unused.

use narrows_core::model::{LightTrace, Train};
use narrows_core::{Duration, Time};

use crate::problem::{Found, Problem, ScenarioError};
use crate::source::Source;
use crate::trace::{MOST_POINTS, table};
use crate::units::LONGEST_NANOS;

/// Parses a light trace. `name` is that of the file, for errors.
pub(crate) fn read(name: &str, bytes: &[u8]) -> Result<LightTrace, ScenarioError> {
    Source::read(name, bytes, light)
}

fn light(source: &Source<'_>) -> Result<LightTrace, Problem> {
    let (mut trains, mut offsets): (Vec<Train>, Vec<Duration>) = Default::default();
    let mut origin = 0;
    let mut last = "";
    for line in table::lines(source) {
        let mut cells = line.split_ascii_whitespace();
        let millis = |cell, what| source.number(cell, 6, LONGEST_NANOS, what);
        let (Some(time), Some(base)) = (cells.next(), cells.next()) else {
            return Err(source.expected(line.trim(), "a time and a delay").help(
                "a line is the time of a train, its delay, and the offsets of its packets, in milliseconds",
            ));
        };
        let nanos = millis(time, "a time in milliseconds")?;
        if trains.is_empty() {
            origin = nanos;
        }
        let at = nanos.checked_sub(origin).map(Time::from_nanos);
        let at = at.filter(|at| trains.last().is_none_or(|before| before.at < *at));
        let at = at.ok_or_else(|| {
            let problem =
                Problem::new(format!("the train at {} is not after the one before it", Found(time)));
            problem.at(&source.span(time)).help("trains are in order of time")
        })?;
        let base = Duration::from_nanos(millis(base, "a delay in milliseconds")?);
        let first = offsets.len();
        for cell in cells {
            let offset = Duration::from_nanos(millis(cell, "an offset in milliseconds")?);
            if offsets[first..].last().is_some_and(|before| *before > offset) {
                let problem = Problem::new(format!("the offset {} is below the one before it", Found(cell)));
                return Err(problem.at(&source.span(cell)).help("packets of a train arrive in order"));
            }
            offsets.push(offset);
        }
        if trains.len() + offsets.len() > MOST_POINTS {
            return Err(Problem::new(format!("more than {MOST_POINTS} numbers")).at(&source.span(line)));
        }
        // At most `MOST_POINTS`, which fits.
        trains.push(Train { at, base, first: first as u32 });
        last = line;
    }
    if trains.is_empty() {
        return Err(source.empty());
    }
    LightTrace::new(trains, offsets).ok_or_else(|| {
        Problem::new("a light trace has two trains or more")
            .at(&source.span(last))
            .help("the last one ends it")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_trains() {
        let trace = read("x", b"# made up\n1000 18 0 0 1.5\n1050 21.25\n1100 20 0\n").unwrap();
        let train = |at: u64, base: u64, first| Train {
            at: Time::ZERO + Duration::from_millis(at),
            base: Duration::from_micros(base),
            first,
        };
        assert_eq!(trace.trains(), [train(0, 18_000, 0), train(50, 21_250, 3), train(100, 20_000, 3)]);
        assert_eq!(trace.length(), Duration::from_millis(100));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, line, words) in [
            ("", 1, "the file is empty"),
            ("0 10 0\n", 1, "two trains or more"),
            ("0 10 0\n5\n", 2, "expected a time and a delay"),
            ("0 10 0\n0 10 0\n", 2, "not after"),
            ("5 10 0\n4 10 0\n", 2, "not after"),
            ("0 10 0 3 2\n9 1\n", 1, "`2` is below"),
            ("0 x\n", 1, "found `x`"),
            ("0 10 -1\n", 1, "below zero"),
        ] {
            let error = read("x", text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains(&format!("x:{line}:")), "{text:?}: {error}");
        }
    }
}
