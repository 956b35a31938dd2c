//! Logs of iPerf 3 in JSON (`iperf3 --json`; `esnet/iperf`, `src/iperf_api.c`).
//!
//! ```json
//! {"start": {}, "intervals": [
//!   {"streams": [], "sum": {"start": 0, "end": 1.0, "seconds": 1.0, "bits_per_second": 9600000.0, "omitted": false}}
//! ], "end": {}}
//! ```
//! The rate of an interval is that of all its streams (`sum`), in bits per second, and holds for its `seconds`;
//! intervals follow one another. Omitted ones, of the time before the test (`--omit`), are left out. Of a test in both
//! directions, the one that `sum` has is read.

use narrows_core::{Duration, Rate, Time};

use super::json::{self, required};
use crate::node::{Node, Value};
use crate::problem::Problem;
use crate::source::Source;
use crate::trace::column::{filled, put};
use crate::trace::format::Entry;
use crate::trace::{CannotWrite, Column, Format, MOST_POINTS, Trace};
use crate::units::{LONGEST_NANOS, MOST_BITS};

/// Files are JSON tables with `intervals`, which have a `sum`.
impl Format {
    /// Logs of iPerf 3 in JSON. Read only.
    pub const IPERF3: Self = Self(&FORMAT);
}

const FORMAT: Entry = Entry {
    name: "iperf3",
    begins: |beginning| {
        let has = |key| beginning.text.contains(key);
        beginning.first == '{' && has("\"intervals\"") && has("\"sum\"") && has("\"bits_per_second\"")
    },
    always: &[],
    extensions: &[],
    read,
    write: |_, _| Err(CannotWrite::ReadOnly { format: Format::IPERF3, why: "it is a log of iPerf" }),
    has_opportunities: false,
    says_loop: false,
};

const INTERVAL: &str = "an interval, such as {\"sum\": {\"seconds\": 1, \"bits_per_second\": 9600000}}";

/// Parses a file.
fn read(source: &Source<'_>) -> Result<Trace, Problem> {
    if source.text.trim().is_empty() {
        return Err(source.empty());
    }
    let root = json::document(source.text)?;
    let intervals = member(&root, "intervals")?.list("a list of intervals")?;
    if intervals.len() > MOST_POINTS {
        return Err(Problem::new(format!("more than {MOST_POINTS} intervals")).at(&intervals[0].span));
    }
    let mut rate: Column<Rate> = Vec::new();
    let (mut now, mut omitted, mut both) = (Time::ZERO, 0, false);
    for interval in intervals {
        let sum = member(interval, "sum")?;
        both |= member(interval, "sum_bidir_reverse").is_ok();
        let table = sum.table(INTERVAL)?;
        if table.get("omitted").is_some_and(|node| node.value == Value::Boolean(true)) {
            omitted += 1;
            continue;
        }
        let lasts = required(sum, table, "seconds", 9, LONGEST_NANOS, "a duration in seconds")?;
        let bits = required(sum, table, "bits_per_second", 0, MOST_BITS, "a rate in bits per second")?;
        if lasts == 0 {
            continue;
        }
        put(&mut rate, now, Rate::from_bits_per_second(bits));
        now = now + Duration::from_nanos(lasts);
        if now.nanos() > LONGEST_NANOS {
            let problem = Problem::new("the intervals up to here last too long").at(&interval.span);
            return Err(problem.help("a trace lasts for 876000h at most"));
        }
    }
    if rate.is_empty() {
        let problem = Problem::new("this log has no interval that lasts").at(&root.span);
        return Err(problem.help(format!("`intervals` is a list; {INTERVAL}")));
    }
    let mut trace = Trace::new(Format::IPERF3, now.since(Time::ZERO));
    trace.rate = filled(rate);
    if omitted > 0 {
        trace.remarks.push(format!("{omitted} intervals before the test (`omitted`) are left out"));
    }
    if both {
        trace.remarks.push("the test has both directions; `sum_bidir_reverse` is left out".into());
    }
    Ok(trace)
}

fn member<'a>(of: &'a Node, key: &str) -> Result<&'a Node, Problem> {
    let table = of.table(if key == "sum" { INTERVAL } else { "a table with `intervals`" })?;
    table.get(key).ok_or_else(|| Problem::new(format!("`{key}` is missing")).at(&of.span))
}
