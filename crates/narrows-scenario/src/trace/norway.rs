//! Logs of downloads on the move: the HSDPA data set of Riiser et al. ("Commute path bandwidth traces from 3G
//! networks", MMSys 2013; Norway, `datasets.simula.no/hsdpa-tcp-logs`) and the 4G data set of van der Hooft et
//! al. (Ghent 2016), which has the same rows.
//!
//! ```text
//! 1289406399 549692 59.851754 10.781778 248069 1008
//! ```
//! Unix time in seconds, a monotonic clock in milliseconds, latitude, longitude, bytes received since the
//! row before, milliseconds since then. The rate of a row is its bytes over its milliseconds, and holds for
//! these milliseconds; rows follow one another. Where the monotonic clock has moved further than that, time
//! passed between rows for which there is no measurement: it is left out, with a remark.

use narrows_core::{Duration, Rate, Time};

use crate::problem::{Found, Problem};
use crate::source::Source;
use crate::trace::column::points;
use crate::trace::column::put;
use crate::trace::format::Entry;
use crate::trace::{CannotWrite, Column, Format, MILLISECOND, MOST_POINTS, Trace, table};
use crate::units::{LONGEST_NANOS, MOST_BITS};

/// Rows have six numbers separated by blanks, two of them coordinates.
impl Format {
    /// Logs of downloads in Norway's 3G and Ghent's 4G networks. Read only.
    pub const NORWAY: Self = Self(&FORMAT);
}

const FORMAT: Entry = Entry {
    name: "norway",
    begins: |beginning| {
        let cells: Vec<&str> = beginning.line.split_ascii_whitespace().take(7).collect();
        let is_number = |cell: &&str| cell.bytes().all(|byte| byte.is_ascii_digit() || b".-".contains(&byte));
        cells.len() == 6 && cells.iter().all(is_number) && cells[2..4].iter().all(|cell| cell.contains('.'))
    },
    always: &[],
    extensions: &[],
    read,
    write: |_, _| {
        Err(CannotWrite::ReadOnly {
            format: Format::NORWAY,
            why: "it is a log of a journey, with its places",
        })
    },
    has_opportunities: false,
    says_loop: false,
};

/// Parses a file.
fn read(source: &Source<'_>) -> Result<Trace, Problem> {
    let mut rate: Column<Rate> = Vec::new();
    let (mut now, mut clock, mut gaps, mut skipped, mut idle) = (0, None, 0, 0, 0);
    for line in table::lines(source) {
        let cells: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, millis, _, _, bytes, lasts] = cells[..] else {
            let problem = Problem::new(format!("found {} numbers, expected 6", cells.len()));
            return Err(problem.at(&source.span(line)).help(
                "Unix time, clock in ms, latitude, longitude, bytes since the row before, milliseconds since then",
            ));
        };
        let limit = LONGEST_NANOS / MILLISECOND;
        let millis = source.whole(millis, limit, "milliseconds of a clock")?;
        let bytes = source.whole(bytes, MOST_BITS, "bytes since the row before")?;
        let last = lasts;
        let lasts = source.whole(last, limit, "milliseconds since the row before")?;
        if let Some(before) = clock.replace(millis) {
            let gap = millis.saturating_sub(before).saturating_sub(lasts);
            gaps += u64::from(gap > 0);
            skipped += gap;
        }
        if lasts == 0 {
            if bytes > 0 {
                let problem = Problem::new(format!("{bytes} bytes in {} ms", Found(last)));
                return Err(problem.at(&source.span(last)).help("a row with bytes lasts 1 ms or more"));
            }
            idle += 1;
            continue;
        }
        // At most 10¹⁵ · 8000: 63 bits.
        let bits = u128::from(bytes) * 8000 + u128::from(lasts) / 2;
        let bits = u64::try_from(bits / u128::from(lasts)).unwrap_or(u64::MAX);
        if bits > MOST_BITS {
            return Err(Problem::new(format!("{bits} bit/s is too large for a rate")).at(&source.span(line)));
        }
        put(&mut rate, Time::from_nanos(now * MILLISECOND), Rate::from_bits_per_second(bits));
        now += lasts;
        if rate.len() > MOST_POINTS || now > limit {
            let problem = Problem::new("the trace is too long").at(&source.span(line));
            return Err(problem.help(format!("at most 876000h and {MOST_POINTS} points")));
        }
    }
    if rate.is_empty() {
        return Err(source.empty());
    }
    let mut trace = Trace::new(Format::NORWAY, Duration::from_millis(now));
    trace.rate = Some(points(rate));
    if gaps > 0 {
        let skipped = Duration::from_millis(skipped);
        trace.remarks.push(format!("{skipped} in {gaps} gaps between rows have no measurement: left out"));
    }
    if idle > 0 {
        trace.remarks.push(format!("{idle} rows last 0 ms: left out"));
    }
    Ok(trace)
}
