//! What a table looks like whose columns are not known, and the `--columns` that would read it.

use super::columns::{Clock, Columns, Place, RateUnit, ShareUnit, TimeUnit};
use super::date;
use super::names::{Meaning, meaning};
use super::table::{Separator, lines, says_nothing};
use crate::source::Source;

/// Rows that are looked at.
const MOST_ROWS: usize = 1000;

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
    /// `None` if the first line has a single cell, or the lines behind it other numbers of cells.
    pub(super) fn at(source: &Source<'a>) -> Option<Self> {
        let mut all = lines(source);
        let line = all.next()?;
        let separator = Separator::of(line);
        let cells = |line: &'a str| {
            let mut cells = Vec::new();
            separator.cells(source, line, &mut cells).ok().map(|()| cells)
        };
        let first = cells(line).filter(|first| first.len() > 1)?;
        let is_header = !first.iter().any(|cell| value(cell).is_some() || date::nanos(cell).is_some());
        let mut rows: Vec<_> = all.map_while(cells).take(MOST_ROWS).collect();
        if rows.iter().take(10).any(|row| row.len() != first.len()) {
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
        let find = |is: fn(&Meaning) -> bool| meanings.iter().position(is);
        let lasts = (!self.is_header && self.is_step()).then_some(0);
        let time = lasts.or_else(|| find(|means| matches!(means, Meaning::Time(_)))).or_else(|| {
            (0..self.first.len()).find(|at| meanings[*at] == Meaning::Other && self.is_clock(*at))
        });
        let numbers = |at: &usize| {
            Some(*at) != time
                && !matches!(meanings[*at], Meaning::Near(_))
                && self.cells(*at).next().is_some_and(|cell| value(cell).is_some())
        };
        let rated = find(|means| matches!(means, Meaning::Rate(Some(_))))
            .or_else(|| find(|means| matches!(means, Meaning::Rate(_))));
        let delay = find(|means| matches!(means, Meaning::Delay(_))).filter(|_| rated.is_none());
        let rate = match delay {
            Some(_) => None,
            None => Some(rated.or_else(|| (0..self.first.len()).find(numbers))?),
        };
        let unit = |at: usize| match meanings[at] {
            Meaning::Rate(Some(unit)) => unit,
            _ => self.rate_unit(at),
        };
        let clock = match time {
            Some(at) if lasts.is_some() => Clock::Duration(self.place(at), self.step_unit()),
            Some(at) => Clock::Time(self.place(at), self.time_unit(at, meanings[at])),
            None => Clock::Interval(narrows_core::Duration::from_secs(1)),
        };
        Some(Columns {
            clock,
            rate: rate.map(|at| (self.place(at), unit(at))),
            delay: delay.map(|at| (self.place(at), None)),
            loss: None,
            run: None,
        })
    }

    /// A column by its name, or by its number if there is none or it cannot be typed.
    pub(super) fn place(&self, at: usize) -> Place {
        let name = self.first[at];
        let is_plain = !name.is_empty() && !name.contains([',', '=', '"', '\'', ' ']);
        let is_one = self.first.iter().filter(|other| **other == name).count() == 1;
        let is_named = self.is_header && is_plain && is_one && name.parse::<usize>().is_err();
        Place(if is_named { name.to_owned() } else { (at + 1).to_string() }.into())
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
            delay: Some((self.place(3), Some(TimeUnit::Number(9)))),
            loss: Some((self.place(2), ShareUnit::Share)),
            run: None,
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
        "say which columns they are, and their units: `--columns {columns}`, for example (in a scenario, the key \
         `columns`); units of rates are bit, kbit, mbit, gbit, byte, kbyte and mbyte, of times s, ms, us, ns and date"
    )
}
