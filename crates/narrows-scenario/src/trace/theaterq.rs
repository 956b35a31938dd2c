//! TheaterQ's trace files (`cs7org/TheaterQ`, `sch_theaterq.c`).
//!
//! ```text
//! KEEP,LATENCY,RATE,LOSS,LIMIT
//! KEEP,LATENCY,JITTER,RATE,LOSS,LIMIT,DUP_PROB,DUP_DELAY,ROUTE_ID,QUEUE_ID
//! ```
//! Whole numbers: µs, ns, ns, bits per second, shares in units of about 2⁻³² (4294967295 means always),
//! packets. A row holds for KEEP. RATE is −1 for an unlimited link, and 0 for a link that sends nothing
//! until the next row. LIMIT 0 means no limit. Lines that do not start with a digit are skipped. TheaterQ
//! gets the kind of row as a separate option; here the number of cells determines it. Extended rows of
//! older versions have 8 or 9 cells and lack the last columns.
//!
//! Content that a trace cannot express is reported in a remark if it is not zero: jitter, the delay of
//! duplicates, routes, queues.

use std::fmt::Write;

use narrows_core::queue::Bound;
use narrows_core::{Duration, Probability, Rate, Time};

use crate::problem::Problem;
use crate::source::Source;
use crate::trace::column::{Cells, filled, put};
use crate::trace::format::Entry;
use crate::trace::{Column, Format, MOST_POINTS, Trace};
use crate::units::{LONGEST_NANOS, MOST_BITS, MOST_PACKETS};

/// A share of 100%.
const ALWAYS: u64 = u32::MAX as u64;
/// Nanoseconds per unit of KEEP.
const MICROSECOND: u64 = 1_000;

/// Files have numbers in rows, or the word for a kept delay.
impl Format {
    /// Rows of five or ten whole numbers, as TheaterQ's character device accepts them.
    pub const THEATERQ: Self = Self(&FORMAT);
}

const FORMAT: Entry = Entry {
    name: "theaterq",
    begins: |beginning| {
        let line = beginning.line.trim();
        // A rate of -1 is no limit; other tables have fractions.
        let is_whole = |cell: &str| !cell.is_empty() && cell.bytes().all(|byte| byte.is_ascii_digit());
        let is_number = |cell: &str| is_whole(cell) || cell == "-1";
        let is_row = || is_known(line.split(',').count()) && line.split(',').map(str::trim).all(is_number);
        line.to_ascii_lowercase().starts_with("keep") || beginning.first.is_ascii_digit() && is_row()
    },
    always: &["theaterq", "raw"],
    extensions: &["theaterq", "raw"],
    read,
    write: |trace, remarks| Ok(trace.theaterq(remarks)),
    has_opportunities: false,
    says_loop: false,
};

/// Whether a row may have so many cells.
fn is_known(cells: usize) -> bool {
    cells == 5 || (8..=10).contains(&cells)
}

/// Parses a file.
fn read(source: &Source<'_>) -> Result<Trace, Problem> {
    let mut rows = Rows::default();
    for line in source.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit())) {
        rows.row(source, line)?;
    }
    if rows.rate.is_empty() {
        return Err(source
            .empty()
            .help("a row is `KEEP,LATENCY,RATE,LOSS,LIMIT`, such as `1000000,20000000,10000000,0,100`"));
    }
    Ok(rows.into_trace())
}

#[derive(Default)]
struct Rows {
    now: Time,
    cells: usize,
    rate: Column<Rate>,
    delay: Column<Duration>,
    loss: Column<Probability>,
    duplicate: Column<Probability>,
    bound: Column<Bound>,
    jitter: usize,
    late_copies: usize,
    routes: usize,
    queues: usize,
}

impl Rows {
    fn row(&mut self, source: &Source<'_>, line: &str) -> Result<(), Problem> {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        let count = cells.len();
        if !is_known(count) || (self.cells != 0 && self.cells != count) {
            let expected = match self.cells {
                0 => "TheaterQ's 5 (simple) or 8 to 10 (extended)".into(),
                cells => format!("{cells} as in the previous rows"),
            };
            return Err(
                Problem::new(format!("found {count} cells, expected {expected}")).at(&source.span(line))
            );
        }
        self.cells = count;
        if self.rate.len() >= MOST_POINTS / 5 {
            return Err(Problem::new(format!("more than {} rows", MOST_POINTS / 5)).at(&source.span(line)));
        }
        // Column positions in rows of ten and of five cells.
        let place = |long: usize, short: usize| cells[if count == 5 { short } else { long }];
        let keep = source.whole(cells[0], LONGEST_NANOS / MICROSECOND, "microseconds")? * MICROSECOND;
        if keep == 0 {
            let problem = source.expected(cells[0], "a time above zero");
            return Err(problem.help("the first cell is the row's duration in microseconds"));
        }
        let delay = source.whole(cells[1], LONGEST_NANOS, "a delay in whole nanoseconds")?;
        let rate = match place(3, 2) {
            "-1" => Rate::UNLIMITED,
            cell => {
                let rate = source.whole(cell, MOST_BITS, "bits a second, or -1 for no limit")?;
                Rate::from_bits_per_second(rate)
            }
        };
        let bound = match source.whole(place(5, 4), u64::from(u32::MAX), "a number of packets")? {
            0 => MOST_PACKETS,
            packets => packets.min(MOST_PACKETS),
        };
        put(&mut self.delay, self.now, Duration::from_nanos(delay));
        put(&mut self.rate, self.now, rate);
        put(&mut self.loss, self.now, share(source, place(4, 3))?);
        put(&mut self.bound, self.now, Bound::Packets(bound));
        if count > 5 {
            self.rest(source, &cells)?;
        }
        let now = self.now + Duration::from_nanos(keep);
        if now.nanos() > LONGEST_NANOS {
            let problem = Problem::new("the rows up to here last too long").at(&source.span(line));
            return Err(problem.help("a trace lasts for 876000h at most"));
        }
        self.now = now;
        Ok(())
    }

    /// Columns of extended rows only.
    fn rest(&mut self, source: &Source<'_>, cells: &[&str]) -> Result<(), Problem> {
        let some = |cell: &str, what| source.whole(cell, LONGEST_NANOS, what).map(|value| value > 0);
        put(&mut self.duplicate, self.now, share(source, cells[6])?);
        self.jitter += usize::from(some(cells[2], "a jitter in whole nanoseconds")?);
        self.late_copies += usize::from(some(cells[7], "a delay in whole nanoseconds")?);
        if let Some(cell) = cells.get(8) {
            self.routes += usize::from(some(cell, "the number of a route")?);
        }
        if let Some(cell) = cells.get(9) {
            self.queues += usize::from(some(cell, "the number of a queue")?);
        }
        Ok(())
    }

    fn into_trace(self) -> Trace {
        let mut trace = Trace::new(Format::THEATERQ, self.now.since(Time::ZERO));
        for (rows, what) in [
            (self.jitter, "have jitter, which a trace lacks: only the delay is used"),
            (self.late_copies, "delay duplicates more than originals: here both use the link's delay"),
            (self.routes, "name a route that keeps packet order: here `order` of the link does"),
            (self.queues, "name their own queue: here all share one"),
        ] {
            if rows > 0 {
                trace.remarks.push(format!("{rows} of {} rows {what}", self.rate.len()));
            }
        }
        trace.rate = filled(self.rate);
        trace.delay = filled(self.delay);
        trace.loss = filled(self.loss);
        // A duplication of zero needs no column.
        let some = self.duplicate.iter().any(|(_, share)| !share.is_zero());
        trace.duplicate = filled(self.duplicate).filter(|_| some);
        trace.bound = filled(self.bound);
        trace
    }
}

fn share(source: &Source<'_>, cell: &str) -> Result<Probability, Problem> {
    let parts = source.whole(cell, ALWAYS, "a share of packets, from 0 to 4294967295")?;
    Ok(Probability::from_ratio(parts, ALWAYS).expect("it is at most the whole"))
}

/// A share in TheaterQ's units, rounded.
fn of_always(share: Option<Probability>) -> u64 {
    (share.unwrap_or_default().as_f64() * ALWAYS as f64 + 0.5) as u64
}

impl Trace {
    /// Writes simple rows if they suffice, else extended ones.
    pub(super) fn theaterq(&self, remarks: &mut Vec<String>) -> String {
        let mut instants = self.instants();
        if instants.is_empty() {
            instants.push(Time::ZERO);
        }
        let extended = self.duplicate.is_some();
        let mut bytes = false;
        let mut rounded = false;
        let mut text = String::new();
        let mut rate = Cells::new(&self.rate);
        let mut delay = Cells::new(&self.delay);
        let mut loss = Cells::new(&self.loss);
        let mut duplicate = Cells::new(&self.duplicate);
        let mut bound = Cells::new(&self.bound);
        let micros = |time: Time| (time.nanos() + MICROSECOND / 2) / MICROSECOND;
        let ends: Vec<Time> = instants.iter().skip(1).copied().chain([Time::ZERO + self.length]).collect();
        for (start, end) in instants.into_iter().zip(ends) {
            let rate = match rate.held(start) {
                None | Some(Rate::UNLIMITED) => -1,
                Some(rate) => rate.bits_per_second() as i64,
            };
            let delay = delay.held(start).unwrap_or_default().nanos();
            let loss = of_always(loss.held(start));
            let limit = match bound.held(start) {
                None => 0,
                Some(Bound::Packets(packets)) => packets.min(u64::from(u32::MAX)),
                Some(Bound::Bytes(size)) => {
                    bytes = true;
                    size.get().min(u64::from(u32::MAX))
                }
            };
            let keep = micros(end) - micros(start);
            rounded |= end.since(start) != Duration::from_nanos(keep * MICROSECOND);
            if keep == 0 {
                continue; // less than half a microsecond
            }
            // Writing to a String cannot fail.
            let _ = match extended {
                false => writeln!(text, "{keep},{delay},{rate},{loss},{limit}"),
                true => {
                    let duplicate = of_always(duplicate.held(start));
                    writeln!(text, "{keep},{delay},0,{rate},{loss},{limit},{duplicate},0,0,0")
                }
            };
        }
        if extended {
            remarks.push("the rows are extended: load them in TheaterQ with `ingest EXTENDED`".into());
        }
        if bytes {
            remarks.push("the limit is in bytes: use `byteqlen` in TheaterQ".into());
        }
        if rounded {
            remarks.push("instants are rounded to microseconds".into());
        }
        text
    }
}
