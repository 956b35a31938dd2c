//! The clock of the rows of a table.

use narrows_core::Duration;

use crate::problem::{Found, Problem};
use crate::source::Source;
use crate::trace::columns::TimeUnit;
use crate::trace::date::Calendar;
use crate::units::LONGEST_NANOS;

/// The clock of the rows: the number of its column, and its unit.
pub(super) enum Ticks {
    At(Instants),
    For(usize, i32),
    Every(Duration),
}

impl Ticks {
    /// The highest number of its columns.
    pub(super) fn last(&self) -> Option<usize> {
        match self {
            Self::At(instants) => Some(instants.column.max(instants.time.unwrap_or(0))),
            Self::For(at, _) => Some(*at),
            Self::Every(_) => None,
        }
    }
}

/// Instants in a column, or in two: dates, and times of day.
pub(super) struct Instants {
    pub(super) column: usize,
    pub(super) time: Option<usize>,
    pub(super) unit: TimeUnit,
    pub(super) calendar: Calendar,
}

impl Instants {
    /// That of a row, in nanoseconds from anywhere.
    pub(super) fn nanos(&mut self, source: &Source<'_>, cells: &[&str]) -> Result<u64, Problem> {
        let cell = cells[self.column];
        match (self.unit, self.time) {
            (TimeUnit::Number(power), _) => source.number(cell, power, LONGEST_NANOS, "a time"),
            (TimeUnit::Date, None) => self
                .calendar
                .date(cell)
                .ok_or_else(|| source.expected(cell, "a date, such as 2021-01-16 19:10:28")),
            (TimeUnit::Date, Some(time)) => self.both(source, cell, cells[time]),
            (TimeUnit::TimeOfDay, _) => self
                .calendar
                .time_of_day(cell)
                .ok_or_else(|| source.expected(cell, "a time of day, such as 19:10:28")),
        }
    }

    fn both(&mut self, source: &Source<'_>, date: &str, time: &str) -> Result<u64, Problem> {
        self.calendar.date_and_time(date, time).ok_or_else(|| match self.calendar.is_day(date) {
            true => source.expected(time, "a time of day beside the date, such as 19:10:28 or 19:10"),
            false => source.expected(date, "a date without a time of day, such as 2021-01-16"),
        })
    }

    /// What a row has there.
    pub(super) fn found(&self, cells: &[&str]) -> String {
        let date = Found(cells[self.column]);
        self.time.map_or_else(|| date.to_string(), |time| format!("{date} {}", Found(cells[time])))
    }
}
