//! The dates of a column, which are understood by all of them.
//!
//! Of `02/03/2019`, the month is the first number if the second is above 12 in some row, and the day if the first is. If
//! neither is, the order in which rows do not go back counts; if they do not in both, the month is first with slashes
//! (as in North America), and the day with dots and dashes, which is remarked on. Dates without a year are of one year
//! until the month goes back.

use super::written::{Numbers, Order, Written};
use super::{DAY, time_beside_date, time_of_day};
use crate::problem::Found;
use crate::units::LONGEST_NANOS;

/// The first of seven years without a leap day, and a year with one.
const COMMON_YEAR: i64 = 2097;
const LEAP_YEAR: i64 = 2096;

/// How dates and times of day are read, from the first row to the last.
#[derive(Default)]
pub(in crate::trace) struct Calendar {
    order: Option<Order>,
    remarks: Vec<String>,
    /// The first year of dates without one.
    first_year: i64,
    /// The last of these dates.
    undated: Option<Undated>,
    /// The midnights that times of day have passed, and the last one.
    midnights: u64,
    was: u64,
}

/// The place of a date without a year.
#[derive(Clone, Copy)]
struct Undated {
    month: i64,
    /// Years since the first one.
    years: i64,
}

impl Undated {
    /// The next one. If its month is earlier, it is of the next year.
    fn next(before: Option<Self>, month: i64) -> Self {
        let years = before.map_or(0, |before| before.years + i64::from(month < before.month));
        Self { month, years }
    }
}

impl Calendar {
    /// That of the dates among these texts.
    pub(in crate::trace) fn of<'a>(cells: impl Iterator<Item = &'a str>) -> Self {
        let mut numeric: Option<Numeric<'a>> = None;
        let (mut undated, mut leap) = (None, None);
        for cell in cells {
            if let Some(numbers) = Numbers::of(cell) {
                let numeric = numeric.get_or_insert_with(|| Numeric::new(cell, numbers.separator));
                numeric.add(cell, numbers);
                match numeric.known {
                    Some(_) => break,
                    None => continue,
                }
            }
            match Written::any(cell) {
                Some(Written { year: None, month, day, .. }) => {
                    let next = Undated::next(undated, month);
                    undated = Some(next);
                    leap = leap.or((month == 2 && day == 29).then_some(next.years));
                }
                // It says all by itself, and so will the others.
                Some(_) if numeric.is_none() && undated.is_none() => break,
                _ => {}
            }
        }
        let (order, remark) = numeric.map(|numeric| numeric.order()).unzip();
        Self {
            order,
            remarks: remark.into_iter().collect(),
            first_year: leap.map_or(COMMON_YEAR, |years| LEAP_YEAR - years),
            undated: None,
            midnights: 0,
            was: 0,
        }
    }

    /// Nanoseconds since 1970 of a date; of one without a year, since another year.
    pub(in crate::trace) fn date(&mut self, text: &str) -> Option<u64> {
        let written = Written::of(text.trim(), self.order)?;
        self.nanos(written)
    }

    /// Likewise of a date and a time of day in two cells.
    pub(in crate::trace) fn date_and_time(&mut self, date: &str, time: &str) -> Option<u64> {
        let written = Written::of(date.trim(), self.order).filter(|written| written.time.is_none())?;
        self.nanos(written)?.checked_add(time_beside_date(time)?)
    }

    /// Whether a text is a date without a time of day.
    pub(in crate::trace) fn is_day(&self, text: &str) -> bool {
        Written::of(text.trim(), self.order).is_some_and(|written| written.time.is_none())
    }

    /// Nanoseconds since the midnight before the first time of day. Back by more than half a day is another day.
    pub(in crate::trace) fn time_of_day(&mut self, text: &str) -> Option<u64> {
        let nanos = time_of_day(text)?;
        self.midnights += u64::from(self.was > nanos + DAY / 2);
        self.was = nanos;
        // Far enough to be too long, and no more.
        Some(self.midnights.saturating_mul(DAY).min(LONGEST_NANOS) + nanos)
    }

    fn nanos(&mut self, written: Written) -> Option<u64> {
        if written.year.is_some() {
            return written.nanos(None);
        }
        let undated = Undated::next(self.undated, written.month);
        self.undated = Some(undated);
        written.nanos(Some(self.first_year + undated.years))
    }

    /// What was assumed of the dates.
    pub(in crate::trace) fn remarks(&self) -> Vec<String> {
        let mut remarks = self.remarks.clone();
        remarks.extend(self.undated.map(|undated| match undated.years {
            0 => "dates have no year: all are taken to be of one".into(),
            years => format!("dates have no year: a month that goes back is in the next one, {years} times"),
        }));
        if self.midnights > 0 {
            remarks.push(format!(
                "times of day have no date: back by more than 12 hours is the next day, {} times",
                self.midnights
            ));
        }
        remarks
    }
}

/// What the dates of three numbers say of their order.
struct Numeric<'a> {
    example: &'a str,
    separator: char,
    /// What the first date with a number above 12 says.
    known: Option<Order>,
    month_first: Ascent,
    day_first: Ascent,
}

/// The last date, and how many are before the one ahead of them.
#[derive(Default)]
struct Ascent {
    last: (i64, i64, i64),
    back: usize,
}

impl Ascent {
    fn add(&mut self, numbers: Numbers<'_>, order: Order) {
        let (month, day) = numbers.month_and_day(order);
        let date = (numbers.year, month, day);
        self.back += usize::from(date < self.last);
        self.last = date;
    }
}

impl<'a> Numeric<'a> {
    fn new(example: &'a str, separator: char) -> Self {
        let (month_first, day_first) = Default::default();
        Self { example, separator, known: None, month_first, day_first }
    }

    fn add(&mut self, cell: &'a str, numbers: Numbers<'_>) {
        self.known = match (numbers.first > 12, numbers.second > 12) {
            (true, _) => Some(Order::DayFirst),
            (_, true) => Some(Order::MonthFirst),
            _ => None,
        };
        if self.known.is_some() {
            self.example = cell;
        }
        self.month_first.add(numbers, Order::MonthFirst);
        self.day_first.add(numbers, Order::DayFirst);
    }

    /// The order, and a remark that says it.
    fn order(&self) -> (Order, String) {
        let back = self.month_first.back.cmp(&self.day_first.back);
        let by_rows = match back {
            std::cmp::Ordering::Less => Some(Order::MonthFirst),
            std::cmp::Ordering::Greater => Some(Order::DayFirst),
            std::cmp::Ordering::Equal => None,
        };
        let usual = if self.separator == '/' { Order::MonthFirst } else { Order::DayFirst };
        let order = self.known.or(by_rows).unwrap_or(usual);
        let (first, other) = match order {
            Order::MonthFirst => ("month", "day"),
            Order::DayFirst => ("day", "month"),
        };
        let example = Found(self.example);
        let remark = match (self.known, by_rows) {
            (Some(_), _) => format!("dates such as {example} have the {first} first"),
            (None, Some(_)) => {
                format!(
                    "dates such as {example} have the {first} first: with the {other} first, rows go back"
                )
            }
            (None, None) => format!(
                "dates such as {example} may have the month or the day first: taken is the {first}, as usual with `{}`",
                self.separator
            ),
        };
        (order, remark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Days since the first date, and the remarks.
    fn days(cells: &[&str]) -> (Vec<Option<u64>>, String) {
        let mut calendar = Calendar::of(cells.iter().copied());
        let all: Vec<Option<u64>> = cells.iter().map(|cell| calendar.date(cell)).collect();
        let first = all[0].expect("the first is a date");
        let days = all.iter().map(|nanos| nanos.map(|nanos| (nanos - first) / DAY)).collect();
        (days, calendar.remarks().join("\n"))
    }

    #[test]
    fn all_dates_say_which_number_is_the_month() {
        for (cells, third, says) in [
            // A number above 12, by the rows, and as usual.
            (["01/02/19", "01/02/19", "01/13/19"], 11, "`01/13/19` have the month first"),
            (["01/02/2019", "01/03/2019", "13/03/2019"], 40, "`13/03/2019` have the day first"),
            (["09/02/19", "10/02/19", "01/03/19"], 20, "day first: with the month first, rows go back"),
            (["02/09/19", "02/10/19", "03/01/19"], 20, "month first: with the day first, rows go back"),
            (["01/02/19", "02/02/19", "03/02/19"], 59, "taken is the month, as usual with `/`"),
            (["01.02.2019", "02.02.2019", "03.02.2019"], 2, "taken is the day, as usual with `.`"),
            (["28/02/20", "01/03/20", "02/03/20"], 3, "`28/02/20` have the day first"),
        ] {
            let (days, remarks) = days(&cells);
            assert_eq!(days[2], Some(third), "{cells:?}");
            assert!(remarks.contains(says), "{remarks}");
        }
        // One that cannot be so is none.
        assert_eq!(days(&["01/13/19", "13/01/19"]).0, [Some(0), None]);
        assert_eq!(days(&["2019-01-13", "01/14/19"]).0, [Some(0), None]);
    }

    #[test]
    fn dates_without_a_year_go_on_after_its_end() {
        let (all, remarks) =
            days(&["Dec 31 23:00:00", "Jan  1 23:00:00", "Mar 1 23:00:00", "Jan 1 23:00:00"]);
        assert_eq!(all, [Some(0), Some(1), Some(60), Some(366)]);
        assert!(remarks.contains("in the next one, 2 times"), "{remarks}");
        // A leap day makes its year a leap year, and the one before none.
        let (all, remarks) = days(&["Feb 28 10:00:00", "Mar 1 10:00:00"]);
        assert_eq!((all, remarks.contains("of one")), (vec![Some(0), Some(1)], true), "{remarks}");
        assert_eq!(days(&["Feb 28 10:00:00", "Feb 29 10:00:00", "Mar 1 10:00:00"]).0[2], Some(2));
        assert_eq!(days(&["Feb 28 10:00:00", "Mar 1 10:00:00", "Feb 29 10:00:00"]).0[2], Some(366));
    }
}
