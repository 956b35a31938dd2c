//! Tables of measurements, of which some columns make a trace: any CSV whose [`Columns`] are named, and the
//! public sets whose columns are known.
//!
//! Cells are separated by tabs, semicolons, commas or blanks, whichever the first line has, in this order;
//! a cell may be quoted. If a column is given by name, the first line is the header; otherwise it is a
//! header if its cells are not numbers. Blank lines and lines that begin with `#` are skipped.
//!
//! A cell without a value (empty, `-`, `NA`, `nan`, …; of a table with a header also a number below zero) keeps the
//! value of the row before; ahead of the first value, that one applies. Both are remarked on. Rows and values are stored
//! as they come, in one pass; the order of dates is judged in one before it.

mod cells;
mod finder;
mod ticks;

use narrows_core::{Duration, Probability, Rate, Time};

pub(super) use self::cells::{Separator, lines, says_nothing};
use self::finder::{Finder, guess};
use self::ticks::{Instants, Ticks};
use super::columns::{Columns, Delay, RateUnit, ShareUnit, TimeUnit};
use super::names::{Meaning, meaning};
use super::{Column, Format, MOST_POINTS, Trace};
use crate::problem::{Found, Problem, one_of};
use crate::source::Source;
use crate::source::number::SHARE_ONE;
use crate::trace::column::{filled, put};
use crate::units::{LONGEST_NANOS, MOST_BITS};

/// How long a single row holds.
const LONE: Duration = Duration::from_secs(1);

/// Reads the columns of a table as a trace of this format.
pub(super) fn read(source: &Source<'_>, columns: &Columns, format: Format) -> Result<Trace, Problem> {
    let mut all = lines(source).peekable();
    let first = *all.peek().ok_or_else(|| source.empty())?;
    let separator = Separator::of(first);
    let mut table = Table::new(source, columns, separator, first)?;
    if table.header {
        all.next();
    }
    for line in all {
        table.row(line)?;
    }
    table.into_trace(format, first)
}

/// The table as far as it is read.
struct Table<'s, 'a> {
    source: &'s Source<'a>,
    separator: Separator,
    header: bool,
    cells: Vec<&'a str>,
    clock: Ticks,
    rate: Option<(usize, RateUnit, Column<Rate>)>,
    /// Its number, the power of ten of its unit, and whether half of it is the delay.
    delay: Option<(usize, i32, bool, Column<Duration>)>,
    loss: Option<(usize, ShareUnit, Column<Probability>)>,
    run: Option<(usize, String)>,
    filter: Option<Filter>,
    /// The highest of the numbers of the columns.
    last: usize,
    /// Where the present run began, and how many have ended.
    base: Duration,
    runs: usize,
    origin: Option<u64>,
    /// The instant of the row, and the last one before it.
    now: Time,
    before: Option<Time>,
    rows: usize,
    points: usize,
    together: usize,
    /// How long rows lasted, by the times of those behind them.
    steps: Vec<Duration>,
    missing: usize,
    late: usize,
    /// Values below zero, and the line of the first.
    below: usize,
    first_below: &'a str,
    /// Rows that last no time.
    instant: usize,
    remarks: Vec<String>,
}

/// Rows that count: those with a text in a column.
struct Filter {
    column: usize,
    name: String,
    text: String,
    /// Some of the texts of other rows.
    others: Vec<String>,
}

impl Filter {
    /// Whether a row has the text.
    fn has(&mut self, cells: &[&str]) -> bool {
        /// Texts kept for the error.
        const MOST: usize = 8;
        let cell = cells[self.column];
        if cell != self.text && self.others.len() < MOST && !self.others.iter().any(|other| other == cell) {
            self.others.push(cell.to_owned());
        }
        cell == self.text
    }

    /// The error if no row has it.
    fn problem(&self) -> Problem {
        let problem = Problem::new(format!("no row has {} in {}", Found(&self.text), self.name));
        let others: Vec<&str> = self.others.iter().map(String::as_str).collect();
        problem.help(format!("rows have, for example, {}", one_of(&others)))
    }
}

impl<'s, 'a> Table<'s, 'a> {
    fn new(
        source: &'s Source<'a>,
        columns: &Columns,
        separator: Separator,
        first: &'a str,
    ) -> Result<Self, Problem> {
        let mut cells = Vec::new();
        separator.cells(source, first, &mut cells)?;
        let find = Finder { source, first, cells: &cells };
        let mut remarks = Vec::new();
        let filter = columns.filter.as_ref().map(|(place, text)| {
            let column = find.column(place)?;
            Ok(Filter { column, name: find.label(column), text: text.clone(), others: Vec::new() })
        });
        let filter = filter.transpose()?;
        let only = filter.as_ref().map(|filter| (filter.column, filter.text.as_str()));
        let (clock, places_of_clock) = find.clock(&columns.clock, only, &mut remarks)?;
        let delay = columns.delay.as_ref().map(|Delay { place, unit, is_round_trip }| {
            let power =
                power(*unit).unwrap_or_else(|| guess(place, None, (6, "ms"), "delay-unit", &mut remarks));
            let at = find.column(place)?;
            let name = find.label(at);
            match meaning(find.cells[at]) {
                _ if *is_round_trip => {
                    remarks.push(format!("half of {name}, a round trip, is the one-way delay"));
                }
                Meaning::RoundTrip { .. } => remarks.push(format!(
                    "all of {name} is the one-way delay; if it is a round trip, `rtt=` instead of `delay=` takes half"
                )),
                _ => {}
            }
            Ok((at, power, *is_round_trip, Column::new()))
        });
        let rate = columns.rate.as_ref().map(|(place, unit)| Ok((find.column(place)?, *unit, Column::new())));
        let loss = columns.loss.as_ref().map(|(place, unit)| Ok((find.column(place)?, *unit, Column::new())));
        let run = columns.run.as_ref().map(|place| Ok((find.column(place)?, String::new())));
        let places = [
            columns.rate.as_ref().map(|of| &of.0),
            columns.delay.as_ref().map(|of| &of.place),
            columns.loss.as_ref().map(|of| &of.0),
        ];
        let table = Self {
            header: find.is_header(places_of_clock.iter().chain(places.into_iter().flatten())),
            clock,
            rate: rate.transpose()?,
            delay: delay.transpose()?,
            loss: loss.transpose()?,
            run: run.transpose()?,
            filter,
            last: 0,
            source,
            separator,
            cells: Vec::new(),
            base: Duration::ZERO,
            runs: 0,
            origin: None,
            now: Time::ZERO,
            before: None,
            rows: 0,
            points: 0,
            together: 0,
            steps: Vec::new(),
            missing: 0,
            late: 0,
            below: 0,
            first_below: first,
            instant: 0,
            remarks,
        };
        let all = [
            table.clock.last(),
            table.rate.as_ref().map(|of| of.0),
            table.delay.as_ref().map(|of| of.0),
            table.loss.as_ref().map(|of| of.0),
            table.run.as_ref().map(|of| of.0),
            table.filter.as_ref().map(|of| of.column),
        ];
        Ok(Self { last: all.into_iter().flatten().max().unwrap_or(0), ..table })
    }

    fn row(&mut self, line: &'a str) -> Result<(), Problem> {
        let mut cells = std::mem::take(&mut self.cells);
        self.separator.cells(self.source, line, &mut cells)?;
        if cells.len() <= self.last {
            let problem =
                Problem::new(format!("found {} cells, expected {} or more", cells.len(), self.last + 1));
            return Err(problem.at(&self.source.span(line)));
        }
        if self.filter.as_mut().is_some_and(|filter| !filter.has(&cells)) {
            self.cells = cells;
            return Ok(());
        }
        let lasts = self.tick(&cells)?;
        self.rows += 1;
        if lasts == Some(Duration::ZERO) {
            self.instant += 1;
            self.cells = cells;
            return Ok(());
        }
        let (source, now) = (self.source, self.now);
        let mut count = Count { below: self.header.then_some(0), ..Count::default() };
        if let Some((at, unit, column)) = &mut self.rate {
            count.put(column, now, cells[*at], |cell| rate(source, cell, *unit))?;
        }
        if let Some((at, power, is_round_trip, column)) = &mut self.delay {
            count.put(column, now, cells[*at], |cell| {
                let nanos = source.number(cell, *power, LONGEST_NANOS, "a delay")?;
                Ok(Duration::from_nanos(if *is_round_trip { nanos / 2 } else { nanos }))
            })?;
        }
        if let Some((at, unit, column)) = &mut self.loss {
            count.put(column, now, cells[*at], |cell| share(source, cell, *unit))?;
        }
        let below = count.below.unwrap_or(0);
        if below > 0 && self.below == 0 {
            self.first_below = line;
        }
        self.below += below;
        self.missing += count.missing;
        self.late += count.late;
        self.points += count.points;
        self.cells = cells;
        if self.points > MOST_POINTS {
            return Err(Problem::new(format!("more than {MOST_POINTS} points")).at(&source.span(line)));
        }
        if let Some(lasts) = lasts {
            self.now = self.now + lasts;
        }
        if self.now.nanos() > LONGEST_NANOS {
            let problem = Problem::new("the rows up to here last too long").at(&source.span(line));
            return Err(problem.help("a trace lasts for 876000h at most"));
        }
        Ok(())
    }

    /// Sets the instant of a row; returns how long it lasts, if the row says that.
    fn tick(&mut self, cells: &[&'a str]) -> Result<Option<Duration>, Problem> {
        let instants = match &mut self.clock {
            Ticks::Every(interval) => return Ok(Some(*interval)),
            Ticks::For(at, power) => {
                let nanos = self.source.number(cells[*at], *power, LONGEST_NANOS, "a duration")?;
                return Ok(Some(Duration::from_nanos(nanos)));
            }
            Ticks::At(instants) => instants,
        };
        let nanos = instants.nanos(self.source, cells)?;
        if let Some((at, run)) = &mut self.run {
            if self.rows > 0 && run != cells[*at] {
                // The last row of a run holds as long as the one before it.
                let last = self.before.map_or(LONE, |before| self.now.since(before));
                self.base = self.now.since(Time::ZERO) + last;
                self.runs += 1;
                self.origin = None;
                self.before = None;
            }
            if run != cells[*at] {
                cells[*at].clone_into(run);
            }
        }
        let fresh = self.origin.is_none();
        let origin = *self.origin.get_or_insert(nanos);
        let floor = if fresh { Time::ZERO + self.base } else { self.now };
        let time =
            nanos.checked_sub(origin).map(|since| Time::ZERO + self.base + Duration::from_nanos(since));
        let Some(time) = time.filter(|time| *time >= floor) else {
            let problem = Problem::new(format!("the time {} goes back", instants.found(cells)));
            return Err(problem.at(&self.source.span(cells[instants.column])).help(
                "rows are in order of time; if the file has several runs, `run=COLUMN` tells them apart",
            ));
        };
        if time > self.now {
            if !fresh {
                self.steps.push(time.since(self.now));
            }
            self.before = (!fresh).then_some(self.now);
        } else {
            self.together += usize::from(!fresh);
        }
        self.now = time;
        Ok(None)
    }

    fn into_trace(mut self, format: Format, first: &str) -> Result<Trace, Problem> {
        let place = self.source.span(first);
        let (below, below_place) = (self.below, self.source.span(self.first_below));
        let empty = |what: &str| {
            let problem = Problem::new(format!("there is no row with a {what}"));
            match below {
                0 => problem.at(&place),
                _ => problem.at(&below_place).help(format!("{below} values, the first here, are below zero")),
            }
        };
        if let Some(filter) = self.filter.filter(|_| self.rows == 0) {
            return Err(filter.problem().at(&place));
        }
        let gaps = Gaps::of(self.steps);
        let end = match self.clock {
            Ticks::At(..) => {
                let last = self.before.map_or(LONE, |before| self.now.since(before));
                // A gap before it says nothing about it.
                self.now + gaps.as_ref().filter(|gaps| gaps.has(last)).map_or(last, |gaps| gaps.usual)
            }
            Ticks::For(..) | Ticks::Every(_) => self.now,
        };
        if end == Time::ZERO && self.rows > 0 {
            return Err(Problem::new("this trace has no duration: all its rows last 0").at(&place));
        }
        if self.rate.as_ref().is_some_and(|of| of.2.is_empty()) {
            return Err(empty("rate"));
        }
        if self.delay.as_ref().is_some_and(|of| of.3.is_empty()) {
            return Err(empty("delay"));
        }
        if self.loss.as_ref().is_some_and(|of| of.2.is_empty()) {
            return Err(empty("loss"));
        }
        let mut trace = Trace::new(format, end.since(Time::ZERO));
        let origin = self.origin.filter(|origin| *origin > 0 && self.runs == 0);
        if let (Some(origin), Ticks::At(Instants { unit: TimeUnit::Number(_), .. })) = (origin, &self.clock) {
            let origin = Duration::from_nanos(origin);
            self.remarks.push(format!("the first row is at {origin}; the trace begins there"));
        }
        for (count, what) in [
            (self.together, "have the time of the previous row; the later one counts"),
            (self.instant, "have a duration of 0: left out"),
            (
                self.below,
                "values are below zero, as some write it of a failed measurement: taken to be missing",
            ),
            (self.missing, "values are missing; the one before stays"),
            (self.late, "values are missing at the beginning; the first one known applies there"),
        ] {
            if count > 0 {
                let noun = if what.starts_with("have") { " rows" } else { "" };
                self.remarks.push(format!("{count}{noun} {what}"));
            }
        }
        if let Ticks::At(instants) = &self.clock {
            self.remarks.extend(instants.calendar.remarks());
        }
        if self.runs > 0 {
            self.remarks.push(format!("{} runs of the file follow one another", self.runs + 1));
        }
        self.remarks.extend(gaps.filter(|gaps| gaps.count > 0).map(|gaps| gaps.remark()));
        trace.rate = self.rate.and_then(|of| filled(of.2));
        trace.delay = self.delay.and_then(|of| filled(of.3));
        trace.loss = self.loss.and_then(|of| filled(of.2));
        trace.remarks = self.remarks;
        Ok(trace)
    }
}

/// Rows that last much longer than others, as before a gap in a measurement.
struct Gaps {
    usual: Duration,
    count: usize,
    total: Duration,
}

impl Gaps {
    const FACTOR: u64 = 5;
    /// With fewer rows, none is usual.
    const LEAST: usize = 8;

    fn of(mut steps: Vec<Duration>) -> Option<Self> {
        if steps.len() < Self::LEAST {
            return None;
        }
        let middle = steps.len() / 2;
        let usual = *steps.select_nth_unstable(middle).1;
        let mut gaps = Self { usual, count: 0, total: Duration::ZERO };
        for step in steps.into_iter().filter(|step| Self::is_one(*step, usual)) {
            gaps.count += 1;
            gaps.total += step;
        }
        Some(gaps)
    }

    fn is_one(step: Duration, usual: Duration) -> bool {
        step.nanos() / Self::FACTOR > usual.nanos()
    }

    fn has(&self, step: Duration) -> bool {
        Self::is_one(step, self.usual)
    }

    fn remark(&self) -> String {
        let Self { usual, count, total } = self;
        format!(
            "{count} rows last more than {} times the usual {usual}, {total} in all: a gap in a measurement is the row before it",
            Self::FACTOR
        )
    }
}

/// What is counted of one row.
#[derive(Default)]
struct Count {
    /// Values below zero, where they are missing ones.
    below: Option<usize>,
    missing: usize,
    late: usize,
    points: usize,
}

impl Count {
    /// Adds a cell's value to its column, unless it has none.
    fn put<T: PartialEq>(
        &mut self,
        column: &mut Column<T>,
        now: Time,
        cell: &str,
        value: impl FnOnce(&str) -> Result<T, Problem>,
    ) -> Result<(), Problem> {
        let is_below = self.below.is_some() && is_below_zero(cell);
        if is_below {
            self.below = self.below.map(|count| count + 1);
        }
        if is_below || says_nothing(cell) {
            match column.is_empty() {
                true => self.late += 1,
                false => self.missing += 1,
            }
            return Ok(());
        }
        let value = value(cell)?;
        if column.last().is_none_or(|last| last.1 != value || last.0 == now) {
            let at = if column.is_empty() { Time::ZERO } else { now };
            put(column, at, value);
        }
        self.points += 1;
        Ok(())
    }
}

/// Whether a cell is a number below zero.
fn is_below_zero(cell: &str) -> bool {
    cell.starts_with('-') && cell.parse::<f64>().is_ok_and(|value| value < 0.0)
}

fn power(unit: Option<TimeUnit>) -> Option<i32> {
    match unit? {
        TimeUnit::Number(power) => Some(power),
        TimeUnit::Date | TimeUnit::TimeOfDay => None,
    }
}

fn rate(source: &Source<'_>, cell: &str, unit: RateUnit) -> Result<Rate, Problem> {
    match cell {
        "unlimited" => return Ok(Rate::UNLIMITED),
        "down" => return Ok(Rate::DOWN),
        _ => {}
    }
    if !unit.bytes {
        return source.number(cell, unit.power, MOST_BITS, "a rate").map(Rate::from_bits_per_second);
    }
    // Rounded to a thousandth of a byte per second.
    let thousandths =
        source.number(cell, unit.power + 3, MOST_BITS / 8 * 1000, "a rate in bytes per second")?;
    Ok(Rate::from_bits_per_second((thousandths * 8 + 500) / 1000))
}

fn share(source: &Source<'_>, cell: &str, unit: ShareUnit) -> Result<Probability, Problem> {
    let (power, all) = match unit {
        ShareUnit::Share => (19, "from 0 to 1"),
        ShareUnit::Percent => (17, "from 0 to 100"),
    };
    let parts = source.number(cell, power, SHARE_ONE, "a share of packets");
    let parts = parts.map_err(|problem| problem.help(format!("with this `loss-unit`, a loss is {all}")))?;
    Ok(Probability::from_ratio(parts, SHARE_ONE).expect("it is at most one"))
}
