//! Traces of Intel's Link Performance Prediction (`intel/lpp-network-trace`, `Documentation/lpp-network-trace-format.md`).
//!
//! ```json
//! {"version": 1, "description": "car", "entries": [
//!   {"entryNo": 1, "dateTime": "2020-10-09T08:23:00.478+02:00", "dlBw": 12608},
//!   {"entryNo": 2, "dateTime": "2020-10-09T08:23:11.138+02:00", "dlBw": 7641}]}
//! ```
//! Entries with a date and the downlink's rate in kbit/s, which holds from then on; an entry without a rate keeps the
//! one before. The last entry holds as long as the one before it. A file without downlink has the uplink's rates
//! (`ulBw`). Latencies are those to the first byte of a response, not one-way delays: left out, with a remark.

use narrows_core::{Duration, Rate, Time};

use super::json::{self, number};
use crate::node::{Node, Table};
use crate::problem::Problem;
use crate::source::Source;
use crate::trace::column::{filled, put};
use crate::trace::format::Entry;
use crate::trace::{CannotWrite, Column, Format, MOST_POINTS, Trace, date};
use crate::units::MOST_BITS;

/// Files are JSON tables with `entries`, each with a `dateTime`.
impl Format {
    /// Traces of Intel's Link Performance Prediction, in JSON. Read only.
    pub const NTRACE: Self = Self(&FORMAT);
}

const FORMAT: Entry = Entry {
    name: "ntrace",
    begins: |beginning| {
        let has = |key| beginning.text.contains(key);
        beginning.first == '{' && has("\"entries\"") && has("\"dateTime\"")
    },
    always: &["ntrace"],
    extensions: &[],
    read,
    write: |_, _| {
        Err(CannotWrite::ReadOnly {
            format: Format::NTRACE,
            why: "it is a log of a journey, with its places",
        })
    },
    has_opportunities: false,
    says_loop: false,
};

const ENTRY: &str = "an entry, such as {\"dateTime\": \"2020-10-09T08:23:00Z\", \"dlBw\": 12608}";
const DATE: &str = "a date, such as \"2020-10-09T08:23:00.478+02:00\"";

/// Parses a file.
fn read(source: &Source<'_>) -> Result<Trace, Problem> {
    if source.text.trim().is_empty() {
        return Err(source.empty());
    }
    let root = json::document(source.text)?;
    let entries =
        required(&root, root.table("a table with `entries`")?, "entries")?.list("a list of entries")?;
    if entries.len() > MOST_POINTS {
        return Err(Problem::new(format!("more than {MOST_POINTS} entries")).at(&entries[0].span));
    }
    let has = |key: &str| {
        entries.iter().any(|entry| entry.table(ENTRY).is_ok_and(|table| table.get(key).is_some()))
    };
    let key = if has("dlBw") { "dlBw" } else { "ulBw" };
    let (rate, length) = rates(entries, key)?;
    if rate.is_empty() {
        let problem = Problem::new("no entry has a rate").at(&root.span);
        return Err(problem.help("those are `dlBw` and `ulBw`, in kbit/s"));
    }
    if length == Duration::ZERO {
        let problem = Problem::new("this trace has no duration").at(&root.span);
        return Err(problem.help("two entries or more with different dates"));
    }
    let mut trace = Trace::new(Format::NTRACE, length);
    trace.rate = filled(rate);
    if key == "ulBw" {
        trace.remarks.push("the file has rates of the uplink only".into());
    } else if has("ulBw") {
        trace.remarks.push("the rate is that of the downlink; the uplink's (`ulBw`) is left out".into());
    }
    if has("dlLatency") || has("ulLatency") {
        trace.remarks.push("latencies are those to the first byte, no one-way delays: left out".into());
    }
    Ok(trace)
}

/// The rates of a direction, and how long they hold. The first entry with a rate is the start.
fn rates(entries: &[Node], key: &str) -> Result<(Column<Rate>, Duration), Problem> {
    let mut rate: Column<Rate> = Vec::new();
    let (mut origin, mut now, mut step) = (None, Time::ZERO, Duration::ZERO);
    for entry in entries {
        let table = entry.table(ENTRY)?;
        let bits = table.get(key).map(|node| number(node, 3, MOST_BITS, "a rate in kbit/s")).transpose()?;
        if origin.is_none() && bits.is_none() {
            continue;
        }
        let node = required(entry, table, "dateTime")?;
        let nanos = date::nanos(node.text(DATE)?).ok_or_else(|| node.expected(DATE))?;
        let since = nanos.checked_sub(*origin.get_or_insert(nanos)).map(Time::from_nanos);
        let at = since.filter(|at| *at >= now).ok_or_else(|| {
            Problem::new("the time goes back").at(&node.span).help("entries are in order of time")
        })?;
        if at > now {
            step = at.since(now);
        }
        now = at;
        if let Some(bits) = bits {
            put(&mut rate, at, Rate::from_bits_per_second(bits));
        }
    }
    Ok((rate, now.since(Time::ZERO) + step))
}

fn required<'a>(of: &Node, table: &'a Table, key: &str) -> Result<&'a Node, Problem> {
    table.get(key).ok_or_else(|| Problem::new(format!("`{key}` is missing")).at(&of.span))
}
