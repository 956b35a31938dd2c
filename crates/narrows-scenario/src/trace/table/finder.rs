//! Finds the columns of a table in its first line.

use super::cells::{Separator, lines, says_nothing};
use super::ticks::{Instants, Ticks};
use crate::problem::{Found, Problem, one_of};
use crate::source::Source;
use crate::trace::columns::{Clock, Place, TimeUnit};
use crate::trace::date::Calendar;
use crate::trace::{date, names};

/// Finds columns in the first line.
pub(super) struct Finder<'f, 's, 'a> {
    pub(super) source: &'s Source<'a>,
    pub(super) first: &'a str,
    pub(super) cells: &'f [&'a str],
}

impl Finder<'_, '_, '_> {
    /// The clock of the rows, and the places of its columns. `only` are the rows that count, by what a column has there.
    pub(super) fn clock(
        &self,
        clock: &Clock,
        only: Option<(usize, &str)>,
        remarks: &mut Vec<String>,
    ) -> Result<(Ticks, Vec<Place>), Problem> {
        let (place, unit) = match clock {
            Clock::Interval(interval) => return Ok((Ticks::Every(*interval), Vec::new())),
            Clock::Duration(place, unit) => {
                let power = match unit {
                    Some(TimeUnit::Number(power)) => *power,
                    _ => guess(place, None, (9, "s"), "time-unit", remarks),
                };
                return Ok((Ticks::For(self.column(place)?, power), vec![place.clone()]));
            }
            Clock::Time(place, unit) => (place, *unit),
        };
        if let Some((date, time)) = self.date_and_time(place) {
            if let Some(TimeUnit::Number(_)) = unit {
                let title = format!("{} is a date and a time of day, which have no unit", Found(&place.0));
                let problem = Problem::new(title).at(&self.source.span(self.first));
                return Err(problem.help("leave out `time-unit`"));
            }
            let column = self.column(&date)?;
            let calendar = Calendar::of(self.all(column, only));
            let time_column = Some(self.column(&time)?);
            let instants = Instants { column, time: time_column, unit: TimeUnit::Date, calendar };
            return Ok((Ticks::At(instants), vec![date, time]));
        }
        let unit = match unit {
            // Said of times of day, too.
            None | Some(TimeUnit::Date) => self.date(place).or(unit),
            Some(_) => unit,
        };
        let unit = unit.unwrap_or_else(|| {
            TimeUnit::Number(guess(place, self.epoch(place), (9, "s"), "time-unit", remarks))
        });
        let column = self.column(place)?;
        let calendar = match unit {
            TimeUnit::Date => Calendar::of(self.all(column, only)),
            TimeUnit::Number(_) | TimeUnit::TimeOfDay => Calendar::default(),
        };
        Ok((Ticks::At(Instants { column, time: None, unit, calendar }), vec![place.clone()]))
    }

    /// The columns of a date and a time of day, such as `Date+Time`, in any order, unless one column has that name.
    fn date_and_time(&self, place: &Place) -> Option<(Place, Place)> {
        if self.column(place).is_ok() {
            return None;
        }
        let part = |text: &str| Place(text.trim().to_owned().into());
        let pairs =
            place.0.match_indices('+').map(|(at, _)| (part(&place.0[..at]), part(&place.0[at + 1..])));
        let mut pairs = pairs.filter(|(a, b)| self.column(a).is_ok() && self.column(b).is_ok());
        let (first, second) = pairs.next()?;
        let is_day = |place| self.early(place, |cell| date::is_day(cell).then_some(())).is_some();
        Some(if !is_day(&first) && is_day(&second) { (second, first) } else { (first, second) })
    }

    /// All cells of a column, of the rows that count.
    fn all<'b>(&'b self, at: usize, only: Option<(usize, &'b str)>) -> impl Iterator<Item = &'b str> {
        let separator = Separator::of(self.first);
        let mut cells = Vec::new();
        lines(self.source).filter_map(move |line| {
            separator.cells(self.source, line, &mut cells).ok()?;
            let is_one = only.is_none_or(|(column, text)| cells.get(column) == Some(&text));
            cells.get(at).copied().filter(|_| is_one)
        })
    }

    /// The number of a column, from 0.
    pub(super) fn column(&self, place: &Place) -> Result<usize, Problem> {
        if let Some(number) = place.number() {
            if number < self.cells.len() {
                return Ok(number);
            }
            let problem = Problem::new(format!(
                "there is no column {}: the first line has {}",
                place.0,
                self.cells.len()
            ));
            return Err(problem.at(&self.source.span(self.first)));
        }
        let is_it = |same: fn(&str, &str) -> bool| self.cells.iter().position(|cell| same(cell, &place.0));
        if let Some(at) = is_it(|a, b| a == b).or_else(|| is_it(str::eq_ignore_ascii_case)) {
            return Ok(at);
        }
        let names: Vec<&str> = self.cells.iter().take(40).copied().collect();
        let problem = Problem::new(format!("there is no column {}", Found(&place.0)));
        let problem = problem
            .at(&self.source.span(self.first))
            .did_you_mean(&place.0, names.iter().copied())
            .help(format!("the columns are {}; or give its number, from 1", one_of(&names)));
        Err(match place.0.contains('+') {
            true => problem.help("a date and a time of day in two columns are such as `time=Date+Time`"),
            false => problem,
        })
    }

    /// A column as notes call it: its name, or its number if the cell is a value.
    pub(super) fn label(&self, at: usize) -> String {
        let cell = self.cells[at];
        match is_value(cell) {
            true => format!("column {}", at + 1),
            false => Found(cell).to_string(),
        }
    }

    /// Whether the first line is a header: a column is named there, or a cell is neither number nor date.
    pub(super) fn is_header<'p>(&self, places: impl Iterator<Item = &'p Place>) -> bool {
        places.into_iter().any(|place| match place.number().filter(|at| *at < self.cells.len()) {
            Some(at) => !is_value(self.cells[at]),
            None => true,
        })
    }

    /// Whether the times are dates or times of day, judged by the first row with a value.
    fn date(&self, place: &Place) -> Option<TimeUnit> {
        self.early(place, date::unit)
    }

    /// The power of ten of times since 1970, likewise.
    fn epoch(&self, place: &Place) -> Option<i32> {
        self.early(place, |cell| date::epoch(cell.parse().ok()?))
    }

    /// What the first or, behind a header, the second line has in a column.
    fn early<T>(&self, place: &Place, value: fn(&str) -> Option<T>) -> Option<T> {
        let at = self.column(place).ok()?;
        let separator = Separator::of(self.first);
        let mut cells = Vec::new();
        lines(self.source).take(2).find_map(|line| {
            separator.cells(self.source, line, &mut cells).ok()?;
            value(cells.get(at)?)
        })
    }
}

/// Whether a cell is a number, a date, or nothing.
fn is_value(cell: &str) -> bool {
    let start = cell.trim_start_matches(['-', '+', '.']);
    start.starts_with(|c: char| c.is_ascii_digit()) || says_nothing(cell) || date::unit(cell).is_some()
}

/// The power of ten for a unit that is not given: that of the column's name, or of a clock since 1970, or else the
/// usual one; the latter two with a remark.
pub(super) fn guess(
    place: &Place,
    epoch: Option<i32>,
    (usual, unit): (i32, &str),
    key: &str,
    remarks: &mut Vec<String>,
) -> i32 {
    if let Some(power) = names::time_power(&place.0) {
        return power;
    }
    let (power, unit) = match epoch {
        Some(power @ (0 | 3 | 6)) => {
            (power, format!("{} since 1970", ["ns", "us", "ms"][power as usize / 3]))
        }
        _ => (usual, unit.to_owned()),
    };
    remarks.push(format!("{} is taken to be in {unit}; `{key}` says otherwise", Found(&place.0)));
    power
}
