//! What a table looks like whose columns are not known, and the `--columns` that would read it.

use super::columns::{Clock, Columns, Place, RateUnit, TimeUnit};
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
        let find = |is: fn(&Meaning) -> bool| meanings.iter().position(is);
        let time = find(|means| matches!(means, Meaning::Time(_))).or_else(|| {
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

    /// The unit that makes the mean of a column a plausible rate.
    fn rate_unit(&self, at: usize) -> RateUnit {
        let (mut sum, mut count) = (0.0, 0.0);
        for value in self.cells(at).filter_map(value) {
            (sum, count) = (sum + value, count + 1.0);
        }
        match sum / count {
            mean if mean >= 100_000.0 => RateUnit::BIT,
            mean if mean >= 2_000.0 => RateUnit::KBIT,
            _ => RateUnit::MBIT,
        }
    }
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
