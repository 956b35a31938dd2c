//! Traces of video sessions that came with Oboe (Akhtar et al., "Oboe: auto-tuning video ABR algorithms to
//! network conditions", SIGCOMM 2018; `USC-NSL/Oboe`).
//!
//! ```text
//! 15.0 3168.6
//! 474.0 3168.6
//! 514.0 3183.2
//! 905.0 3183.2
//! ```
//! A time in milliseconds and a rate in kbit/s. Two rows are one chunk of video: when its download began and
//! ended, both with its mean rate. Between two chunks nothing was measured; the authors suggest a linear
//! interpolation. Here the mean of the two rates holds there, which carries the same number of bits.
//!
//! Rows look as those of [`Format::PENSIEVE`], in seconds and Mbit/s: a file is Oboe's if its rates come in
//! pairs and its values are too large for Pensieve's units.

use narrows_core::{Duration, Rate, Time};

use super::pensieve::Sample;
use super::table;
use crate::problem::{Found, Problem};
use crate::source::Source;
use crate::trace::column::{points, put};
use crate::trace::format::Entry;
use crate::trace::{CannotWrite, Column, Format, MOST_POINTS, Trace};
use crate::units::{LONGEST_NANOS, MOST_BITS};

/// Rows have two numbers, and each two rows the same second one.
impl Format {
    /// Video sessions of Oboe: pairs of rows with times in milliseconds and a rate in kbit/s. Read only.
    pub const OBOE: Self = Self(&FORMAT);
}

const FORMAT: Entry = Entry {
    name: "oboe",
    begins: |beginning| {
        Sample::begins(&beginning)
            && Sample::of(beginning.text).is_some_and(|sample| sample.is_paired() && sample.is_milliseconds())
    },
    always: &[],
    extensions: &[],
    read,
    write: |_, _| {
        let why = "it is a log of a player's downloads";
        Err(CannotWrite::ReadOnly { format: Format::OBOE, why })
    },
    has_opportunities: false,
    says_loop: false,
};

/// A row.
struct Row<'a> {
    time: &'a str,
    nanos: u64,
    rate: &'a str,
    bits: u64,
}

/// Parses a file.
fn read(source: &Source<'_>) -> Result<Trace, Problem> {
    let mut rate: Column<Rate> = Vec::new();
    let mut start: Option<Row<'_>> = None;
    let mut origin = None;
    // The end of the last chunk, and its rate.
    let (mut now, mut before): (Time, Option<u64>) = (Time::ZERO, None);
    for line in table::lines(source) {
        let row = row(source, line)?;
        let origin = *origin.get_or_insert(row.nanos);
        let Some(first) = start.take() else {
            instant(source, &row, origin, now)?;
            start = Some(row);
            continue;
        };
        if first.bits != row.bits {
            let problem = source.expected(row.rate, &format!("{} as in the row before", Found(first.rate)));
            return Err(problem.help("two rows are the start and the end of one chunk, with its mean rate"));
        }
        let begin = instant(source, &first, origin, now)?;
        let end = instant(source, &row, origin, begin)?;
        if end == begin {
            let problem = Problem::new("this chunk has no duration").at(&source.span(row.time));
            return Err(problem.help("its second row has the time of its end"));
        }
        if let Some(before) = before.filter(|_| begin > now) {
            put(&mut rate, now, Rate::from_bits_per_second((before + row.bits).div_ceil(2)));
        }
        put(&mut rate, begin, Rate::from_bits_per_second(row.bits));
        (now, before) = (end, Some(row.bits));
        if rate.len() > MOST_POINTS {
            return Err(Problem::new(format!("more than {MOST_POINTS} points")).at(&source.span(line)));
        }
    }
    if rate.is_empty() {
        return Err(match start {
            None => source.empty(),
            Some(row) => {
                let problem = Problem::new("this chunk has no end").at(&source.span(row.time));
                problem.help("a chunk is two rows: its start and its end, both with its rate")
            }
        });
    }
    let mut trace = Trace::new(Format::OBOE, now.since(Time::ZERO));
    trace.rate = Some(points(rate));
    trace.remarks.push(
        "times are in ms, rates in kbit/s; `pensieve` as the format reads two columns in s and Mbit/s".into(),
    );
    trace.remarks.push("between two chunks, the mean of their rates holds".into());
    if let Some(origin) = origin.filter(|origin| *origin > 0) {
        let origin = Duration::from_nanos(origin);
        trace.remarks.push(format!("the first row is at {origin}; the trace begins there"));
    }
    if start.is_some() {
        trace.remarks.push("the last row is the start of a chunk without an end: left out".into());
    }
    Ok(trace)
}

fn row<'a>(source: &Source<'_>, line: &'a str) -> Result<Row<'a>, Problem> {
    let mut cells = line.split_ascii_whitespace();
    let (Some(time), Some(rate), None) = (cells.next(), cells.next(), cells.next()) else {
        return Err(source.expected(line.trim(), "a time in milliseconds and a rate in kbit/s"));
    };
    let nanos = source.number(time, 6, LONGEST_NANOS, "a time in milliseconds")?;
    let bits = source.number(rate, 3, MOST_BITS, "a rate in kbit/s")?;
    Ok(Row { time, nanos, rate, bits })
}

/// The instant of a row, at `floor` or later.
fn instant(source: &Source<'_>, row: &Row<'_>, origin: u64, floor: Time) -> Result<Time, Problem> {
    let at = row.nanos.checked_sub(origin).map(Time::from_nanos).filter(|at| *at >= floor);
    at.ok_or_else(|| {
        let before = floor + Duration::from_nanos(origin);
        let problem = Problem::new(format!("the time {} goes back: before it is {before}", Found(row.time)));
        problem.at(&source.span(row.time)).help("rows are in order of time")
    })
}
