//! Finds the columns of a table in its first line.

use super::cells::{Separator, lines, says_nothing};
use crate::problem::{Found, Problem, one_of};
use crate::source::Source;
use crate::trace::columns::{Place, TimeUnit};
use crate::trace::date;

/// Finds columns in the first line.
pub(super) struct Finder<'f, 's, 'a> {
    pub(super) source: &'s Source<'a>,
    pub(super) first: &'a str,
    pub(super) cells: &'f [&'a str],
}

impl Finder<'_, '_, '_> {
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
        Err(problem
            .at(&self.source.span(self.first))
            .did_you_mean(&place.0, names.iter().copied())
            .help(format!("the columns are {}; or give its number, from 1", one_of(&names))))
    }

    /// Whether the first line is a header: a column is named there, or a cell is neither number nor date.
    pub(super) fn is_header<'p>(&self, places: impl Iterator<Item = &'p Place>) -> bool {
        let is_value = |cell: &str| {
            let start = cell.trim_start_matches(['-', '+', '.']);
            start.starts_with(|c: char| c.is_ascii_digit()) || says_nothing(cell)
        };
        places.into_iter().any(|place| match place.number().filter(|at| *at < self.cells.len()) {
            Some(at) => !is_value(self.cells[at]),
            None => true,
        })
    }

    /// Whether the times are dates, judged by the first row with a value.
    pub(super) fn date(&self, place: &Place) -> Option<TimeUnit> {
        let at = self.column(place).ok()?;
        let separator = Separator::of(self.first);
        let mut cells = Vec::new();
        lines(self.source)
            .take(2)
            .any(|line| {
                let read = separator.cells(self.source, line, &mut cells);
                read.is_ok() && cells.get(at).is_some_and(|cell| date::nanos(cell).is_some())
            })
            .then_some(TimeUnit::Date)
    }
}

/// The power of ten for a unit that is not given: that of the column's name, or else the usual one, with a
/// remark.
pub(super) fn guess(place: &Place, usual: i32, key: &str, unit: &str, remarks: &mut Vec<String>) -> i32 {
    let name = place.0.to_ascii_lowercase();
    let named =
        [("_ns", 0), ("_us", 3), ("_ms", 6), ("_s", 9)].into_iter().find(|(end, _)| name.ends_with(end));
    if let Some((_, power)) = named {
        return power;
    }
    remarks.push(format!("{} is taken to be in {unit}; `{key}` says otherwise", Found(&place.0)));
    usual
}
