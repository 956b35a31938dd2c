//! What a table looks like whose columns are not known, and the `--columns` that would read it.

use std::collections::BTreeSet;

use super::columns::{Clock, Columns, Delay, Place, RateUnit, ShareUnit, TimeUnit};
use super::date;
use super::names::{self, Meaning, meaning};
use super::table::{Separator, lines, says_nothing};
use crate::problem::{Found, Problem};
use crate::source::Source;

/// Rows that are looked at.
const MOST_ROWS: usize = 1000;
/// Columns that are named in an error.
const MOST_COLUMNS: usize = 24;

/// The beginning of a table.
pub(super) struct Look<'a> {
    separator: Separator,
    /// The cells of the first line.
    pub(super) first: Vec<&'a str>,
    /// Whether the first line names the columns.
    pub(super) is_header: bool,
    rows: Vec<Vec<&'a str>>,
}

impl<'a> Look<'a> {
    /// `None` if the first line has a single cell, or the lines behind it other numbers of cells. A header may end with
    /// a separator.
    pub(super) fn at(source: &Source<'a>) -> Option<Self> {
        let mut all = lines(source);
        let line = all.next()?;
        let separator = Separator::of(line);
        let cells = |line: &'a str| {
            let mut cells = Vec::new();
            separator.cells(source, line, &mut cells).ok().map(|()| cells)
        };
        let first = cells(line).filter(|first| first.len() > 1)?;
        let is_header = !first.iter().any(|cell| value(cell).is_some() || date::unit(cell).is_some());
        let mut rows: Vec<_> = all.map_while(cells).take(MOST_ROWS).collect();
        let least = first.len() - usize::from(is_header && first.last().is_some_and(|cell| cell.is_empty()));
        if rows.iter().take(10).any(|row| row.len() != first.len() && row.len() != least) {
            return None;
        }
        if !is_header {
            rows.insert(0, first.clone());
        }
        Some(Self { separator, first, is_header, rows })
    }

    /// A table without a header whose columns the comment above its first line names.
    pub(super) fn commented(source: &Source<'a>) -> Option<Self> {
        let look = Self::at(source).filter(|look| !look.is_header)?;
        let start = source.span(look.first[0]).start;
        let above = source.lines().take_while(|line| source.span(line).start < start);
        let comment = above.filter(|line| line.starts_with('#')).last()?;
        let first = names(source, comment.trim_start_matches('#').trim())?;
        (first.len() == look.first.len()).then_some(Self { first, ..look })
    }

    /// `4 columns separated by commas`.
    pub(super) fn shape(&self) -> String {
        format!("{} columns separated by {}", self.first.len(), self.separator)
    }

    /// The cells of a column that have a value.
    pub(super) fn cells(&self, at: usize) -> impl Iterator<Item = &'a str> {
        self.rows.iter().filter_map(move |row| row.get(at).copied()).filter(|cell| !says_nothing(cell))
    }

    /// The columns to try, as words. Rates without a unit get the one that makes the values plausible.
    pub(super) fn columns(&self) -> Option<Columns> {
        let meanings: Vec<Meaning> = match self.is_header {
            true => self.first.iter().map(|name| meaning(name)).collect(),
            false => vec![Meaning::Other; self.first.len()],
        };
        if !self.is_header && self.is_dtp() {
            return Some(self.dtp());
        }
        let find = |is: fn(&Meaning) -> bool| {
            (0..self.first.len()).find(|at| is(&meanings[*at]) && self.cells(*at).next().is_some())
        };
        let lasts = (!self.is_header && self.is_step()).then_some(0);
        let is_time = |at: &usize| matches!(meanings[*at], Meaning::Time(_));
        let is_date = |at: usize| self.cells(at).next().is_some_and(|cell| date::unit(cell).is_some());
        let is_read =
            |at: usize| is_date(at) || self.cells(at).next().is_some_and(|cell| value(cell).is_some());
        let named = (0..self.first.len()).filter(is_time);
        let named = named.min_by_key(|at| (!is_read(*at), names::clock_rank(self.first[*at])));
        let mut others = (0..self.first.len()).filter(|at| meanings[*at] == Meaning::Other);
        let dated = (0..self.first.len()).find(|at| !self.is_header && is_date(*at));
        let time = lasts.or(named).or(dated).or_else(|| others.find(|at| self.is_clock(*at)));
        // All columns of a table without a header may be times.
        let may_be_time = (0..self.first.len()).filter(|at| !self.is_header || is_time(at));
        let pair = self.date_and_time(&may_be_time.collect::<Vec<_>>());
        let pair = pair.filter(|pair| time.is_some_and(|time| pair.contains(&time)));
        let rate = find(|means| matches!(means, Meaning::Rate(Some(_))))
            .or_else(|| find(|means| matches!(means, Meaning::Rate(_))));
        let delay = find(|means| matches!(means, Meaning::Delay(_)));
        let delay = delay.or_else(|| find(|means| matches!(means, Meaning::RoundTrip { .. })));
        let loss = find(|means| matches!(means, Meaning::Loss(_)));
        let is_none = rate.is_none() && delay.is_none() && loss.is_none();
        let is_directed = self.is_header && self.first.iter().any(|name| names::is_direction(name));
        let rate = match is_none || rate.is_none() && is_directed {
            true => self.likely_rate(&meanings, time),
            false => rate,
        };
        if is_none && rate.is_none() {
            return None;
        }
        let unit = |at: usize| match meanings[at] {
            Meaning::Rate(Some(unit)) => unit,
            _ => self.rate_unit(at),
        };
        let clock = match time {
            Some(at) if lasts.is_some() => Clock::Duration(self.place(at), self.step_unit()),
            Some(at) => match pair {
                Some(pair) => Clock::Time(self.places(&pair), None),
                None => Clock::Time(self.place(at), self.time_unit(at, meanings[at])),
            },
            None => Clock::Interval(narrows_core::Duration::from_secs(1)),
        };
        let delayed = |at: usize| {
            let (unit, is_round_trip) = match meanings[at] {
                Meaning::Delay(unit) => (unit, false),
                Meaning::RoundTrip { unit, .. } => (unit, true),
                _ => (None, false),
            };
            Delay { place: self.place(at), unit: unit.or(Some(TimeUnit::Number(6))), is_round_trip }
        };
        let lossy = |at: usize| match meanings[at] {
            _ if self.cells(at).filter_map(value).any(|loss| loss > 1.0) => ShareUnit::Percent,
            Meaning::Loss(Some(unit)) => unit,
            _ => ShareUnit::Share,
        };
        Some(Columns {
            clock,
            rate: rate.map(|at| (self.place(at), unit(at))),
            delay: delay.map(delayed),
            loss: loss.map(|at| (self.place(at), lossy(at))),
            run: None,
            filter: None,
        })
    }

    /// The column that may be a rate although its name says nothing: numbers that are no label and no counter, best of
    /// all with a direction.
    fn likely_rate(&self, meanings: &[Meaning], time: Option<usize>) -> Option<usize> {
        let is_number = |at: &usize| {
            Some(*at) != time
                && matches!(meanings[*at], Meaning::Other)
                && self.cells(*at).next().is_some_and(|cell| value(cell).is_some())
        };
        let all: Vec<usize> = (0..self.first.len()).filter(is_number).collect();
        let named = |at: &&usize| self.is_header && names::is_direction(self.first[**at]);
        let open = |at: &&usize| !self.is_header || !names::is_label(self.first[**at]);
        let uneven = |at: &&usize| open(at) && !(self.is_header && self.is_clock(**at));
        let found = all.iter().find(named).or_else(|| all.iter().find(uneven));
        found.or_else(|| all.iter().find(open)).copied()
    }

    /// The column that tells rows of the same time apart, and its first values, if half of the rows or more have the
    /// time of the row before.
    pub(super) fn series(&self, times: &[usize]) -> Option<(usize, Vec<&'a str>)> {
        let at = |row: &[&'a str]| -> Vec<_> { times.iter().map(|time| row.get(*time).copied()).collect() };
        let groups: Vec<&[Vec<&'a str>]> = self.rows.chunk_by(|a, b| at(a) == at(b)).collect();
        if (self.rows.len() - groups.len()) * 2 < self.rows.len() {
            return None;
        }
        (0..self.first.len()).filter(|at| !times.contains(at)).find_map(|at| {
            let values = self.values(at);
            let is_name = values.iter().any(|text| value(text).is_none() && date::unit(text).is_none());
            let is_apart = |group: &&[Vec<&str>]| {
                let mut cells: Vec<_> = group.iter().map(|row| row.get(at)).collect();
                cells.sort_unstable();
                cells.windows(2).all(|pair| pair[0] != pair[1])
            };
            let is_few = values.len() * 2 <= self.rows.len() || groups.len() == 1;
            (is_name && is_few && groups.iter().all(is_apart)).then_some((at, values))
        })
    }

    /// The different values of a column.
    pub(super) fn values(&self, at: usize) -> Vec<&'a str> {
        let mut seen = BTreeSet::new();
        self.cells(at).filter(|cell| seen.insert(*cell)).collect()
    }

    /// Adds to an error what the columns are, and how to say which to take.
    pub(super) fn ask(&self, problem: Problem) -> Problem {
        let problem = match self.is_header {
            true => problem.help(format!("the columns are {}", self.listed())),
            false => problem,
        };
        match self.columns() {
            Some(columns) => problem.help(how(&columns)).help(WORDS),
            None => problem.help(WORDS),
        }
    }

    /// The columns with their numbers.
    fn listed(&self) -> String {
        let column = |(at, name): (usize, &&str)| match name.is_empty() {
            true => format!("{} without a name", at + 1),
            false => format!("{} {}", at + 1, Found(name)),
        };
        let mut names: Vec<String> = self.first.iter().enumerate().map(column).take(MOST_COLUMNS).collect();
        if self.first.len() > MOST_COLUMNS {
            names.push(format!("{} more", self.first.len() - MOST_COLUMNS));
        }
        names.join(", ")
    }

    /// A column by its name, or by its number if there is none or it cannot be typed.
    pub(super) fn place(&self, at: usize) -> Place {
        let name = self.first[at];
        let is_plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_-./%#+".contains(c));
        let is_one = self.first.iter().filter(|other| **other == name).count() == 1;
        let is_named = self.is_header && is_plain && is_one && name.parse::<usize>().is_err();
        Place(if is_named { name.to_owned() } else { (at + 1).to_string() }.into())
    }

    /// Those of a clock: one, or a date's and a time of day's.
    pub(super) fn places(&self, times: &[usize]) -> Place {
        let names: Vec<String> = times.iter().map(|at| self.place(*at).0.into_owned()).collect();
        Place(names.join("+").into())
    }

    /// The only column of dates without a time among these, and the only one of times of day.
    pub(super) fn date_and_time(&self, columns: &[usize]) -> Option<[usize; 2]> {
        let only = |is: fn(&str) -> bool| {
            let mut all = columns.iter().copied().filter(|at| self.cells(*at).next().is_some_and(is));
            all.next().filter(|_| all.next().is_none())
        };
        Some([only(date::is_day)?, only(|cell| date::time_beside_date(cell).is_some())?])
    }

    /// Whether the values of a column increase from row to row.
    fn is_clock(&self, at: usize) -> bool {
        let values: Option<Vec<f64>> = self.cells(at).map(value).collect();
        values.is_some_and(|values| {
            let rises = values.windows(2).all(|pair| pair[1] >= pair[0]);
            rises && values.first() < values.last()
        })
    }

    /// Whether the first column may be a duration: one whole number in all rows, while other numbers change, and none of
    /// them is an even clock.
    fn is_step(&self) -> bool {
        let is_one = |at: usize| self.cells(at).all(|cell| Some(cell) == self.cells(at).next());
        let is_whole = |cell: &str| {
            cell.bytes().all(|byte| byte.is_ascii_digit()) && cell.bytes().any(|byte| byte != b'0')
        };
        let mut others = 1..self.first.len();
        self.cells(0).next().is_some_and(is_whole)
            && is_one(0)
            && others.clone().any(|at| !is_one(at) && self.cells(at).all(|cell| value(cell).is_some()))
            && !others.any(|at| self.is_even_clock(at))
    }

    /// Whether the values of a column increase by the same step from row to row.
    fn is_even_clock(&self, at: usize) -> bool {
        let values: Vec<f64> = self.cells(at).map_while(value).collect();
        let steps: Vec<f64> = values.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let first = steps.first().copied().unwrap_or(0.0);
        first > 0.0 && steps.iter().all(|step| (step - first).abs() <= first * 1e-6)
    }

    /// The unit of that duration, if not seconds.
    fn step_unit(&self) -> Option<TimeUnit> {
        let step = self.cells(0).next().and_then(value)?;
        // Rows of many minutes are rare; milliseconds are common.
        (step >= 1000.0).then_some(TimeUnit::Number(6))
    }

    /// Whether the rows may be those of AItrans' DTP emulator (`AItransCompetition/DTP_Demo`): a time, a rate, a loss
    /// from 0 to 1, and a delay of less than a second.
    pub(super) fn is_dtp(&self) -> bool {
        let is_below = |at: usize, most: f64| {
            let mut values = self.cells(at).map(value);
            values.all(|value| value.is_some_and(|value| (0.0..=most).contains(&value)))
        };
        let is_comma = matches!(self.separator, Separator::Char(','));
        let has_delay = || self.cells(3).any(|cell| value(cell).is_some_and(|delay| delay > 0.0));
        is_comma
            && self.first.len() == 4
            && self.is_clock(0)
            && is_below(2, 1.0)
            && is_below(3, 1.0)
            && has_delay()
    }

    /// The columns of that emulator.
    fn dtp(&self) -> Columns {
        Columns {
            clock: Clock::Time(self.place(0), None),
            rate: Some((self.place(1), RateUnit { power: 6, bytes: true })),
            delay: Some(Delay {
                place: self.place(3),
                unit: Some(TimeUnit::Number(9)),
                is_round_trip: false,
            }),
            loss: Some((self.place(2), ShareUnit::Share)),
            run: None,
            filter: None,
        }
    }

    /// The unit to say, if it is not found by itself.
    fn time_unit(&self, at: usize, means: Meaning) -> Option<TimeUnit> {
        if let Meaning::Time(Some(unit)) = means {
            return Some(unit);
        }
        let values: Vec<f64> = self.cells(at).map_while(value).collect();
        let (first, last) = values.first().zip(values.last())?;
        let step = (last - first) / (values.len() - 1).max(1) as f64;
        // Rows that are minutes apart are rare; milliseconds are common.
        (step >= 50.0 && date::epoch(*first).is_none()).then_some(TimeUnit::Number(6))
    }

    /// The unit that makes the values of a column plausible rates.
    fn rate_unit(&self, at: usize) -> RateUnit {
        rate_unit(self.cells(at).filter_map(value))
    }
}

/// The unit that makes the mean of these values a plausible rate.
fn rate_unit(values: impl Iterator<Item = f64>) -> RateUnit {
    let (mut sum, mut count) = (0.0, 0.0);
    for value in values {
        (sum, count) = (sum + value, count + 1.0);
    }
    match sum / count {
        mean if mean >= 100_000.0 => RateUnit::BIT,
        mean if mean >= 200.0 => RateUnit::KBIT,
        _ => RateUnit::MBIT,
    }
}

/// A table one of whose first lines has another number of cells than the very first.
pub(super) struct Ragged<'a> {
    line: &'a str,
    found: usize,
    first: usize,
    separator: Separator,
}

impl<'a> Ragged<'a> {
    /// `None` if all is well, or blanks separate, as in prose.
    pub(super) fn at(source: &Source<'a>) -> Option<Self> {
        let mut all = lines(source);
        let head = all.next()?;
        let separator = Separator::of(head);
        let mut cells = Vec::new();
        let mut count = |line: &'a str| separator.cells(source, line, &mut cells).ok().map(|()| cells.len());
        let first = count(head).filter(|_| matches!(separator, Separator::Char(_)))?;
        let is_ended = head.ends_with([',', ';', '\t']);
        all.take(10).find_map(|line| {
            let found = count(line)?;
            let is_right = found == first || is_ended && found + 1 == first;
            (!is_right).then_some(Self { line, found, first, separator })
        })
    }

    pub(super) fn problem(&self, source: &Source<'_>) -> Problem {
        let title = format!(
            "unknown format: found {} cells separated by {}, but the first line has {}",
            self.found, self.separator, self.first
        );
        Problem::new(title).at(&source.span(self.line))
    }
}

/// The columns to try for a file of one number per line: a rate per second. `None` if another line comes, or the
/// numbers never go down, as instants do.
pub(super) fn lone_rate(source: &Source<'_>) -> Option<Columns> {
    let values: Option<Vec<f64>> = lines(source).take(MOST_ROWS).map(|line| value(line.trim())).collect();
    let values = values.filter(|values| values.windows(2).any(|pair| pair[1] < pair[0]))?;
    Some(Columns {
        clock: Clock::Interval(narrows_core::Duration::from_secs(1)),
        rate: Some((Place("1".into()), rate_unit(values.into_iter()))),
        delay: None,
        loss: None,
        run: None,
        filter: None,
    })
}

/// The names of columns in a comment. A unit in brackets behind a blank belongs to the name before it.
fn names<'a>(source: &Source<'_>, comment: &'a str) -> Option<Vec<&'a str>> {
    let separator = Separator::of(comment);
    let mut cells: Vec<&str> = Vec::new();
    separator.cells(source, comment, &mut cells).ok()?;
    let mut names: Vec<&str> = Vec::new();
    for cell in cells {
        match names.last_mut() {
            Some(name) if matches!(separator, Separator::Blanks) && cell.starts_with(['(', '[']) => {
                let start = source.span(name).start - source.span(comment).start;
                let end = source.span(cell).end - source.span(comment).start;
                *name = &comment[start..end];
            }
            _ => names.push(cell),
        }
    }
    Some(names)
}

/// A number.
fn value(cell: &str) -> Option<f64> {
    let is_start = |first: u8| first.is_ascii_digit() || b".-+".contains(&first);
    cell.bytes().next().filter(|first| is_start(*first))?;
    cell.parse().ok()
}

/// How to say which columns they are.
pub(super) fn how(columns: &Columns) -> String {
    format!(
        "say which columns they are, and their units: `--columns {columns}`, for example (in a scenario, the key `columns`)"
    )
}

/// The words of columns.
pub(super) const WORDS: &str = "words: `rate=COLUMN,unit=mbit`, `delay=COLUMN`, `rtt=COLUMN` (half of it is the delay), \
    `loss=COLUMN,loss-unit=percent`, by `time=COLUMN`, `time=DATE+TIME` or `interval=1s`, with `where=COLUMN:TEXT` only of \
    rows with that text; units of rates are bit, kbit, mbit, gbit, byte, kbyte and mbyte, of times s, ms, us, ns and date";
