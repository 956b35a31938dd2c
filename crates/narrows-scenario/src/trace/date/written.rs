//! A date as it is written, in one of the usual forms.

use super::{clock, days, number, separated, zone};

/// Which of the two numbers before the year is the month: `02/22/19`, `22.02.2019`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    MonthFirst,
    DayFirst,
}

/// A date, perhaps without a year.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) year: Option<i64>,
    pub(super) month: i64,
    pub(super) day: i64,
    /// The time of day in UTC, in nanoseconds; it may be on another day.
    pub(super) time: Option<i64>,
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
const YEARS: std::ops::RangeInclusive<i64> = 1970..=2500;

impl Written {
    /// A date in any order.
    pub(super) fn any(text: &str) -> Option<Self> {
        let with = |order| Self::of(text, Some(order));
        with(Order::MonthFirst).or_else(|| with(Order::DayFirst))
    }

    /// A date; one that begins with two numbers before its year only in this order.
    pub(super) fn of(text: &str, order: Option<Order>) -> Option<Self> {
        let numbers = || Numbers::of(text)?.written(order?);
        Self::iso(text).or_else(numbers).or_else(|| Self::named(text))
    }

    /// A date that begins with its year.
    pub(super) fn iso(text: &str) -> Option<Self> {
        let mut rest = text;
        let year = number(&mut rest, 4)?;
        let month = separated(&mut rest, &['-', '/', '.'], 2)?;
        let day = separated(&mut rest, &['-', '/', '.'], 2)?;
        if !YEARS.contains(&year) || !is_in_year(month, day) {
            return None;
        }
        Some(Self { year: Some(year), month, day, time: moment(rest)? })
    }

    /// A date with the name of its month: `Jun 30 14:37:36`, `Tue  4 Apr 16:41:56 CEST 2023`, `4 Apr 2023`.
    fn named(text: &str) -> Option<Self> {
        let (mut year, mut month, mut day, mut offset) = (None, None, None, None);
        let start = text.find(':').map(|colon| text[..colon].rfind(' ').map_or(0, |blank| blank + 1));
        let (head, mut tail) = text.split_at(start.unwrap_or(text.len()));
        let time = match start {
            Some(_) => Some(clock(&mut tail, &[':'])?.nanos),
            None => None,
        };
        let words = head.split_ascii_whitespace().chain(tail.split_ascii_whitespace());
        for (at, word) in words.enumerate() {
            let word = word.trim_end_matches(',');
            let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
            match (named(word, &MONTHS), word.len()) {
                (Some(number), _) if month.is_none() => month = Some(number),
                _ if at == 0 && named(word, &WEEKDAYS).is_some() => {}
                (_, 1 | 2) if is_number && day.is_none() => day = word.parse().ok(),
                (_, 4) if is_number && year.is_none() => year = word.parse().ok(),
                _ if offset.is_none() && !is_number => offset = Some(zone(word)?),
                _ => return None,
            }
        }
        let (month, day) = (month?, day?);
        let is_year = year.is_none_or(|year| YEARS.contains(&year));
        if !is_year || !is_in_year(month, day) || year.is_none() && time.is_none() {
            return None;
        }
        let time = match (time, offset) {
            (Some(time), offset) => Some(time - offset.unwrap_or(0) * 1_000_000_000),
            (None, Some(_)) => return None,
            (None, None) => None,
        };
        Some(Self { year, month, day, time })
    }

    /// Nanoseconds since 1970 in UTC, in this year if the date has none. `None` if it is before 1970.
    pub(super) fn nanos(self, year: Option<i64>) -> Option<u64> {
        let days = days(self.year.or(year)?, self.month, self.day);
        // 530 years of nanoseconds are below 2⁶⁴.
        u64::try_from(i128::from(days) * 86_400_000_000_000 + i128::from(self.time.unwrap_or(0))).ok()
    }
}

/// A date of three numbers, of which the last is the year.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers<'a> {
    pub(super) first: i64,
    pub(super) second: i64,
    pub(super) year: i64,
    pub(super) separator: char,
    rest: &'a str,
}

impl<'a> Numbers<'a> {
    pub(super) fn of(text: &'a str) -> Option<Self> {
        let mut rest = text;
        let first = number(&mut rest, 2)?;
        let separator = rest.chars().next().filter(|c| ['/', '.', '-'].contains(c))?;
        let second = separated(&mut rest, &[separator], 2)?;
        let before = rest.len();
        let year = separated(&mut rest, &[separator], 4)?;
        let year = match before - rest.len() - 1 {
            // With a dash, the first one may be the year.
            2 if separator != '-' => year + if year < 70 { 2000 } else { 1900 },
            4 => year,
            _ => return None,
        };
        let is_date = is_in_year(first, second) || is_in_year(second, first);
        (is_date && YEARS.contains(&year)).then_some(Self { first, second, year, separator, rest })
    }

    /// Month and day in this order.
    pub(super) const fn month_and_day(self, order: Order) -> (i64, i64) {
        match order {
            Order::MonthFirst => (self.first, self.second),
            Order::DayFirst => (self.second, self.first),
        }
    }

    fn written(self, order: Order) -> Option<Written> {
        let (month, day) = self.month_and_day(order);
        let time = moment(self.rest)?;
        is_in_year(month, day).then_some(Written { year: Some(self.year), month, day, time })
    }
}

fn is_in_year(month: i64, day: i64) -> bool {
    (1..=12).contains(&month) && (1..=31).contains(&day)
}

/// The time of day in UTC behind a date, in nanoseconds; `Some(None)` if nothing is there.
fn moment(text: &str) -> Option<Option<i64>> {
    if text.is_empty() {
        return Some(None);
    }
    let mut rest = text.strip_prefix(',').unwrap_or(text).strip_prefix(['T', ' ', '_'])?;
    let clock = clock(&mut rest, &[':', '.'])?;
    Some(Some(clock.nanos - zone(rest.trim())? * 1_000_000_000))
}

/// The number from 1 of a name, in short or in full.
fn named(word: &str, names: &[&str]) -> Option<i64> {
    let is_it = |name: &str| name.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    let at = names.iter().position(|name| is_it(name)).filter(|_| word.len() >= 3)?;
    i64::try_from(at + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(text: &str) -> Option<u64> {
        Written::any(text)?.nanos(Some(2001)).map(|nanos| nanos / 1_000_000_000)
    }

    #[test]
    fn dates_have_many_forms() {
        // Worked with `date -u -d … +%s`.
        for (text, worked) in [
            ("02/22/19", 1_550_793_600),
            ("2/3/2019 5:29:01 PM", 1_549_214_941),
            ("26/11/2015 21:10", 1_448_572_200),
            ("26.11.2015, 21:10:05", 1_448_572_205),
            ("26-11-2015 21:10", 1_448_572_200),
            ("Jun 30 14:37:36", 993_911_856),
            ("Tue  4 Apr 16:41:56 CEST 2023", 1_680_619_316),
            ("Tue Apr  4 16:41:56 CEST 2023", 1_680_619_316),
            ("Tue Apr  4 04:41:56 PM CEST 2023", 1_680_619_316),
            ("Tue, 4 Apr 2023 16:41:56 +0200", 1_680_619_316),
            ("Tuesday, April 4, 2023", 1_680_566_400),
            ("Tue Apr  4 11:41:56 -03 2023", 1_680_619_316),
        ] {
            assert_eq!(seconds(text), Some(worked), "{text}");
        }
    }

    #[test]
    fn other_numbers_and_names_are_no_dates() {
        for text in [
            "13/13/2019",
            "1/2/3",
            "1/2/345",
            "02-22-19",
            "1.2.2019.4",
            "10.10.10.10",
            "1.2/2019",
            "26/11/2015 21",
            "Jun 30",
            "Jun 14:37:36",
            "Jun 31 32 14:37:36",
            "June 45 14:37:36",
            "Jun 30 14:37:36 2023 2024",
            "Jun 30 14:37:36 XYZ",
            "4 Apr CEST 2023",
            "Tue",
            "March",
            "Tué Apr 4 2023",
            ":",
            "Marx 5 10:00:00",
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
