//! Plain CSV: a header with column names and units, then one row per instant at which something changes.
//!
//! ```text
//! # comments and empty lines anywhere
//! time_s,rate_mbit,delay_ms,loss_percent,queue_packets
//! 0,10,20,0,100
//! 0.5,2.5,80,,
//! 2
//! ```
//! An empty cell keeps the previous value. Times are relative to the first row, so clock times work, too.
//! The last row holds for as long as the one before it, or for a second if it is the only one. If the last
//! row has a time only, that is the end of the trace, and the values before it hold until then.
//!
//! Numbers are rounded to nanoseconds, bits per second, packets or bytes, and to 10⁻¹⁹ of a share.

use narrows_core::queue::Bound;
use narrows_core::{Bytes, Duration, Probability, Rate, Time};

use super::described;
use super::look::{Look, how};
use super::names::{Meaning, meaning};
use super::unknown::{or_of_tools, unknown};
use crate::problem::{Found, Problem, nearest};
use crate::source::Source;
use crate::source::number::{SHARE_ONE, decimal, share as share_text};
use crate::trace::column::{Cells, filled, put};
use crate::trace::format::Entry;
use crate::trace::{Column, Format, MOST_POINTS, Trace};
use crate::units::{LONGEST_NANOS, MOST_BITS, MOST_PACKETS};

/// The quantity of a column, and the power of ten that converts its numbers to our units.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Time(i32),
    Rate(i32),
    Delay(i32),
    Loss(i32),
    Duplicate(i32),
    Packets,
    Bytes,
}

/// All columns. In rates, `bps` means bits per second, as usual; in tc it means bytes.
const COLUMNS: &[(&str, Kind)] = &[
    ("time_s", Kind::Time(9)),
    ("time_ms", Kind::Time(6)),
    ("time_us", Kind::Time(3)),
    ("time_ns", Kind::Time(0)),
    ("rate_bit", Kind::Rate(0)),
    ("rate_kbit", Kind::Rate(3)),
    ("rate_mbit", Kind::Rate(6)),
    ("rate_gbit", Kind::Rate(9)),
    ("rate_bps", Kind::Rate(0)),
    ("rate_kbps", Kind::Rate(3)),
    ("rate_mbps", Kind::Rate(6)),
    ("rate_gbps", Kind::Rate(9)),
    ("delay_s", Kind::Delay(9)),
    ("delay_ms", Kind::Delay(6)),
    ("delay_us", Kind::Delay(3)),
    ("delay_ns", Kind::Delay(0)),
    ("loss", Kind::Loss(SHARE)),
    ("loss_percent", Kind::Loss(SHARE - 2)),
    ("duplicate", Kind::Duplicate(SHARE)),
    ("duplicate_percent", Kind::Duplicate(SHARE - 2)),
    ("queue_packets", Kind::Packets),
    ("queue_bytes", Kind::Bytes),
];

const ALLOWED: &str = "columns: `time_s`, and any of `rate_mbit`, `delay_ms`, `loss`, `loss_percent`, `duplicate`, \
    `duplicate_percent`, `queue_packets`, `queue_bytes`; times and delays in _s, _ms, _us or _ns, rates in _bit, _kbit, \
    _mbit or _gbit a second; for other names say which columns they are with `--columns`";

/// Shares are parsed in units of 10⁻¹⁹: each of the engine's probabilities, which are multiples of 2⁻⁶³, is
/// the nearest to one of these.
const SHARE: i32 = 19;
/// Duration of a single row.
const LONE: Duration = Duration::from_secs(1);

/// Files start with a header of column names.
impl Format {
    /// A header with column names and units, then rows.
    pub const CSV: Self = Self(&FORMAT);
}

const FORMAT: Entry = Entry {
    name: "csv",
    begins: |beginning| beginning.first.is_alphabetic(),
    always: &[],
    extensions: &["csv"],
    read,
    write: |trace, _| Ok(trace.csv()),
    has_opportunities: false,
    says_loop: false,
};

/// Parses a file.
fn read(source: &Source<'_>) -> Result<Trace, Problem> {
    let mut lines = source.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let head = lines.next().ok_or_else(|| source.empty())?;
    if let Some(look) = described::in_comment(source) {
        return described::read(source, &look);
    }
    if !is_own(head) {
        return match Look::at(source).filter(|look| look.is_header) {
            Some(look) => described::read(source, &look).map_err(|problem| or_of_tools(source, problem)),
            None => Err(unknown(source, head)),
        };
    }
    let kinds = header(source, head)?;
    let mut rows = Rows::default();
    let mut ended = None;
    for line in lines {
        if let Some(end) = ended {
            // The previous row had a time only, but was not the last.
            rows.times.push(end);
            ended = None;
        }
        let (time, empty) = row(source, line, &kinds, &mut rows)?;
        match empty {
            true => ended = Some(time),
            false => rows.times.push(time),
        }
    }
    if rows.times.is_empty() {
        let problem = Problem::new("there is no row with values").at(&source.span(head));
        return Err(problem.help("a row has a time and a value for each column, such as `0,10,20`"));
    }
    Ok(rows.into_trace(ended))
}

/// Whether a header is that of narrows' own tables: all its columns are, or some are and one is misspelt.
fn is_own(head: &str) -> bool {
    let known = |cell: &str| COLUMNS.iter().find(|(known, _)| known.eq_ignore_ascii_case(cell));
    let has_time = head.split(',').any(|cell| matches!(known(cell.trim()), Some((_, Kind::Time(_)))));
    let mut others = head.split(',').map(str::trim).filter(|cell| known(cell).is_none()).peekable();
    let is_slip = |cell: &str| {
        let is_open = matches!(
            meaning(cell),
            Meaning::Other | Meaning::Rate(None) | Meaning::Delay(None) | Meaning::Loss(None)
        );
        has_time && is_open && nearest(cell, COLUMNS.iter().map(|(known, _)| *known)).is_some()
    };
    others.peek().is_none() || others.any(is_slip)
}

/// Parses the header into the kinds of the columns.
fn header(source: &Source<'_>, head: &str) -> Result<Vec<Kind>, Problem> {
    let mut kinds: Vec<Kind> = Vec::new();
    for cell in head.split(',') {
        let cell = cell.trim();
        let name = cell.to_ascii_lowercase();
        let Some((_, kind)) = COLUMNS.iter().find(|(known, _)| *known == name) else {
            let problem =
                Problem::new(format!("{} is not a column of a trace", Found(cell))).at(&source.span(cell));
            let known = COLUMNS.iter().map(|(known, _)| *known);
            let problem = problem.did_you_mean(&name, known).help(ALLOWED);
            return Err(match Look::at(source).and_then(|look| look.columns()) {
                Some(columns) => problem.help(how(&columns)),
                None => problem,
            });
        };
        if kinds.iter().any(|other| other.same(*kind)) {
            let problem = Problem::new(format!("{} duplicates another column", Found(cell)));
            return Err(problem.at(&source.span(cell)).help("keep one of the two"));
        }
        kinds.push(*kind);
    }
    if !kinds.iter().any(|kind| matches!(kind, Kind::Time(_))) {
        let problem = Problem::new("there is no time column").at(&source.span(head));
        return Err(problem.help("one is `time_s`, `time_ms`, `time_us` or `time_ns`"));
    }
    if kinds.len() == 1 {
        return Err(Problem::new("there is no column besides the time").at(&source.span(head)).help(ALLOWED));
    }
    Ok(kinds)
}

impl Kind {
    /// Whether two columns have the same quantity.
    fn same(self, other: Self) -> bool {
        let class = |kind| match kind {
            Self::Time(_) => 0,
            Self::Rate(_) => 1,
            Self::Delay(_) => 2,
            Self::Loss(_) => 3,
            Self::Duplicate(_) => 4,
            Self::Packets | Self::Bytes => 5,
        };
        class(self) == class(other)
    }
}

/// The rows read so far.
#[derive(Default)]
struct Rows {
    /// The time of the first row on the file's clock.
    origin: Option<u64>,
    times: Vec<Time>,
    /// Number of rows at the instant of the previous row.
    together: usize,
    points: usize,
    rate: Column<Rate>,
    delay: Column<Duration>,
    loss: Column<Probability>,
    duplicate: Column<Probability>,
    bound: Column<Bound>,
}

/// Parses a row; returns its instant, and whether it has no values.
fn row(source: &Source<'_>, line: &str, kinds: &[Kind], rows: &mut Rows) -> Result<(Time, bool), Problem> {
    let cells: Vec<&str> = line.split(',').map(str::trim).collect();
    // The row that ends the trace may be a time alone.
    let alone = cells.len() == 1 && matches!(kinds.first(), Some(Kind::Time(_)));
    if cells.len() != kinds.len() && !alone {
        let problem = Problem::new(format!("found {} cells, expected {}", cells.len(), kinds.len()));
        return Err(problem
            .at(&source.span(line))
            .help("as many as the header; empty cells keep the previous value"));
    }
    let at = kinds.iter().position(|kind| matches!(kind, Kind::Time(_))).expect("the header has a time");
    let time = rows.time(source, cells[at], kinds[at])?;
    let mut empty = true;
    for (index, kind) in kinds.iter().enumerate() {
        let cell = cells.get(index).copied().unwrap_or_default();
        match (cell.is_empty(), kind) {
            (_, Kind::Time(_)) => {}
            (true, _) if rows.times.is_empty() => {
                let problem = Problem::new("the first row lacks a value").at(&source.span(line));
                return Err(problem.help("an empty cell keeps the previous value, and there is none yet"));
            }
            (true, _) => {}
            (false, kind) => {
                empty = false;
                rows.points += 1;
                if rows.points > MOST_POINTS {
                    return Err(
                        Problem::new(format!("more than {MOST_POINTS} points")).at(&source.span(cell))
                    );
                }
                rows.put(source, cell, *kind, time)?;
            }
        }
    }
    Ok((time, empty))
}

impl Rows {
    /// The time of a row, relative to the first one.
    fn time(&mut self, source: &Source<'_>, cell: &str, kind: Kind) -> Result<Time, Problem> {
        let Kind::Time(power) = kind else { unreachable!("it is the time's column") };
        let nanos = source.number(cell, power, LONGEST_NANOS, "a time")?;
        let origin = *self.origin.get_or_insert(nanos);
        let last = self.times.last().copied().unwrap_or_default();
        let time = nanos.checked_sub(origin).map(Time::from_nanos).filter(|time| *time >= last);
        let time = time.ok_or_else(|| {
            let before = last + Duration::from_nanos(origin);
            let problem =
                Problem::new(format!("the time {} goes back: the previous row is at {before}", Found(cell)));
            problem.at(&source.span(cell)).help("rows are in order of time")
        })?;
        self.together += usize::from(!self.times.is_empty() && time == last);
        Ok(time)
    }

    /// Stores a value.
    fn put(&mut self, source: &Source<'_>, cell: &str, kind: Kind, time: Time) -> Result<(), Problem> {
        match kind {
            Kind::Time(_) => {}
            Kind::Rate(power) => put(&mut self.rate, time, rate(source, cell, power)?),
            Kind::Delay(power) => {
                let nanos = source.number(cell, power, LONGEST_NANOS, "a delay")?;
                put(&mut self.delay, time, Duration::from_nanos(nanos));
            }
            Kind::Loss(power) => put(&mut self.loss, time, share(source, cell, power)?),
            Kind::Duplicate(power) => put(&mut self.duplicate, time, share(source, cell, power)?),
            Kind::Packets => match source.number(cell, 0, MOST_PACKETS, "a number of packets")? {
                0 => return Err(source.expected(cell, "one packet or more")),
                packets => put(&mut self.bound, time, Bound::Packets(packets)),
            },
            Kind::Bytes => match source.number(cell, 0, LONGEST_NANOS, "a number of bytes")? {
                0 => return Err(source.expected(cell, "one byte or more")),
                bytes => put(&mut self.bound, time, Bound::Bytes(Bytes::new(bytes))),
            },
        }
        Ok(())
    }

    /// `ended` is the instant of a last row without values.
    fn into_trace(self, ended: Option<Time>) -> Trace {
        let last = self.times.last().copied().unwrap_or_default();
        let before = self.times.iter().rev().copied().find(|time| *time < last);
        let length = match (ended, before) {
            (Some(end), _) if end > last => end.since(Time::ZERO),
            (_, Some(before)) => last.since(Time::ZERO) + last.since(before),
            (_, None) => last.since(Time::ZERO) + LONE,
        };
        let mut trace = Trace::new(Format::CSV, length);
        trace.rate = filled(self.rate);
        trace.delay = filled(self.delay);
        trace.loss = filled(self.loss);
        trace.duplicate = filled(self.duplicate);
        trace.bound = filled(self.bound);
        if let Some(origin) = self.origin.filter(|origin| *origin > 0) {
            let origin = Duration::from_nanos(origin);
            trace.remarks.push(format!("the first row is at {origin}; the trace begins there"));
        }
        if self.together > 0 {
            trace.remarks.push(format!(
                "{} rows have the time of the previous row; the later one counts",
                self.together
            ));
        }
        trace
    }
}

fn rate(source: &Source<'_>, cell: &str, power: i32) -> Result<Rate, Problem> {
    match cell.to_ascii_lowercase().as_str() {
        "unlimited" => Ok(Rate::UNLIMITED),
        "down" => Ok(Rate::DOWN),
        _ => {
            let bits = source.number(cell, power, MOST_BITS, "a rate")?;
            Ok(Rate::from_bits_per_second(bits))
        }
    }
}

fn share(source: &Source<'_>, cell: &str, power: i32) -> Result<Probability, Problem> {
    let parts = source.number(cell, power, SHARE_ONE, "a share of packets").map_err(|problem| {
        let all = if power == SHARE {
            "from 0 to 1; for percent, name the column with `_percent`"
        } else {
            "from 0 to 100"
        };
        problem.help(format!("a share is {all}"))
    })?;
    Ok(Probability::from_ratio(parts, SHARE_ONE).expect("it is at most one"))
}

impl Trace {
    /// Times in seconds, rates in Mbit/s, delays in ms, shares as fractions; the last row is the end.
    pub(super) fn csv(&self) -> String {
        let bytes = self.bound.as_ref().is_some_and(|column| matches!(column[0].1, Bound::Bytes(_)));
        let columns = [
            (self.rate.is_some(), "rate_mbit"),
            (self.delay.is_some(), "delay_ms"),
            (self.loss.is_some(), "loss"),
            (self.duplicate.is_some(), "duplicate"),
            (self.bound.is_some(), if bytes { "queue_bytes" } else { "queue_packets" }),
        ];
        let mut text = String::from("time_s");
        for (_, name) in columns.iter().filter(|(there, _)| *there) {
            text.push(',');
            text.push_str(name);
        }
        text.push('\n');
        let mut rate = Cells::new(&self.rate);
        let mut delay = Cells::new(&self.delay);
        let mut loss = Cells::new(&self.loss);
        let mut duplicate = Cells::new(&self.duplicate);
        let mut bound = Cells::new(&self.bound);
        for time in self.instants() {
            text.push_str(&decimal(time.nanos(), 9));
            rate.cell(&mut text, time, |rate| match rate {
                Rate::UNLIMITED => "unlimited".into(),
                rate => decimal(rate.bits_per_second(), 6),
            });
            delay.cell(&mut text, time, |delay| decimal(delay.nanos(), 6));
            loss.cell(&mut text, time, share_text);
            duplicate.cell(&mut text, time, share_text);
            bound.cell(&mut text, time, |bound| match bound {
                Bound::Packets(packets) => packets.to_string(),
                Bound::Bytes(bytes) => bytes.get().to_string(),
            });
            text.push('\n');
        }
        text.push_str(&decimal(self.length.nanos(), 9));
        text.push('\n');
        text
    }
}
