//! Logs of mahimahi's `mm-link` (`--uplink-log`, `--downlink-log`; Netravali et al., "Mahimahi: accurate
//! record-and-replay for HTTP", USENIX ATC 2015; `src/frontend/link_queue.cc`).
//!
//! ```text
//! # base timestamp: 34
//! 34 # 1504
//! 35 + 52
//! 36 # 1504
//! 36 - 52 1
//! ```
//! A time in milliseconds of mahimahi's clock, an event and its bytes: `#` is an opportunity, `+` a packet that
//! arrives, `-` one that leaves, with its milliseconds in the queue, `d` a drop, with its packets and bytes. The link
//! is what its opportunities are, counted from the base timestamp, at which its trace began; if that is missing, from
//! the first line. The others are the load of that run: left out, with a remark. Like a mahimahi trace, it ends with
//! its last opportunity and repeats.

use narrows_core::{Duration, Time};

use super::mahimahi::{of_opportunities, put_opportunity};
use super::table;
use crate::problem::{Found, Problem};
use crate::source::Source;
use crate::trace::format::Entry;
use crate::trace::{CannotWrite, Format, MILLISECOND, OPPORTUNITY, Trace};
use crate::units::LONGEST_NANOS;

/// Rows have a whole number, a sign of an event and its bytes.
impl Format {
    /// Logs of mahimahi's mm-link: its opportunities. Read only.
    pub const MM_LINK: Self = Self(&FORMAT);
}

const FORMAT: Entry = Entry {
    name: "mm-link",
    begins: |beginning| {
        let mut cells = beginning.line.split_ascii_whitespace();
        let is_number =
            |cell: Option<&str>| cell.is_some_and(|cell| cell.bytes().all(|byte| byte.is_ascii_digit()));
        is_number(cells.next())
            && cells.next().is_some_and(|event| EVENTS.contains(&event))
            && is_number(cells.next())
    },
    always: &[],
    extensions: &[],
    read,
    write: |_, _| {
        Err(CannotWrite::ReadOnly { format: Format::MM_LINK, why: "it is a log of a run of mm-link" })
    },
    has_opportunities: true,
    says_loop: true,
};

const OPPORTUNITY_EVENT: &str = "#";
const EVENTS: [&str; 4] = [OPPORTUNITY_EVENT, "+", "-", "d"];

/// Parses a file.
fn read(source: &Source<'_>) -> Result<Trace, Problem> {
    let base = base(source)?;
    let mut origin = base;
    let mut opportunities: Vec<Time> = Vec::new();
    let mut others = 0;
    for line in table::lines(source) {
        let mut cells = line.split_ascii_whitespace();
        let (Some(millis), Some(event), Some(bytes)) = (cells.next(), cells.next(), cells.next()) else {
            return Err(source.expected(line.trim(), ROW));
        };
        // Forks of mahimahi have further events, such as `s` for the free places of the queue.
        if !EVENTS.contains(&event) && !matches!(event.as_bytes(), [letter] if letter.is_ascii_lowercase()) {
            return Err(source.expected(event, "an event: `#`, `+`, `-`, `d` or another small letter"));
        }
        let at = source.whole(millis, LONGEST_NANOS / MILLISECOND, "whole milliseconds")?;
        let origin = *origin.get_or_insert(at);
        if event != OPPORTUNITY_EVENT {
            others += 1;
            continue;
        }
        if bytes.parse() != Ok(OPPORTUNITY) {
            let problem = source.expected(bytes, &format!("{OPPORTUNITY}"));
            return Err(problem.help(format!("an opportunity of mahimahi has {OPPORTUNITY} bytes")));
        }
        let since = at.checked_sub(origin).ok_or_else(|| {
            let problem = Problem::new(format!("{} is before the base timestamp, {origin}", Found(millis)));
            problem.at(&source.span(millis))
        })?;
        put_opportunity(source, &mut opportunities, since, millis)?;
    }
    if opportunities.is_empty() {
        return Err(no_opportunity(source));
    }
    let mut trace = of_opportunities(source, Format::MM_LINK, opportunities)?;
    if base.is_none() {
        let start = Duration::from_millis(origin.unwrap_or_default());
        let remark = format!("there is no `{BASE}`: the trace begins at the first line, {start}");
        trace.remarks.push(remark);
    }
    if others > 0 {
        trace.remarks.push(format!("{others} events of the packets of that run are left out"));
    }
    Ok(trace)
}

const ROW: &str = "a time in milliseconds, an event and its bytes, such as `34 # 1504`";
const BASE: &str = "# base timestamp:";

/// The time at which the link's trace began.
fn base(source: &Source<'_>) -> Result<Option<u64>, Problem> {
    let Some(text) = source.lines().find_map(|line| line.strip_prefix(BASE)) else { return Ok(None) };
    source.whole(text.trim(), LONGEST_NANOS / MILLISECOND, "whole milliseconds").map(Some)
}

fn no_opportunity(source: &Source<'_>) -> Problem {
    let Some(line) = table::lines(source).next() else { return source.empty() };
    let problem = Problem::new("this log has no opportunity").at(&source.span(line));
    problem.help("those are its lines with `#`, such as `34 # 1504`")
}
