//! Dates and times of day, as measurement tools write them.
//!
//! `2019-12-16 13:40:04`, `2019.12.16_13.40.04` (G-NetTrack), `2021-01-16T19:10:28.5-06:00` (ISO 8601): year, month and
//! day, then optionally hours, minutes, seconds with a fraction, and a zone: `Z`, `UTC`, an offset, or one of the
//! abbreviations of Europe, North America, Japan and Korea. A date without a zone counts as UTC: only the distances
//! between rows matter. Times of day without a date (`22:47:01.649596`) are read apart.
//!
//! Dates in other orders (`02/22/19`, `26.11.2015 21:10`), with the name of the month and without a year ([`Written`])
//! are understood by all dates of their column ([`Calendar`]).

mod calendar;
mod written;

pub(super) use self::calendar::Calendar;
use self::written::Written;
use super::columns::TimeUnit;

/// Zones by name, in hours from UTC. `CST` is that of North America: China's has no summer time, so that the
/// distances between its rows are right, too.
const ZONES: &[(&str, i64)] = &[
    ("Z", 0),
    ("z", 0),
    ("UTC", 0),
    ("GMT", 0),
    ("WET", 0),
    ("WEST", 1),
    ("BST", 1),
    ("CET", 1),
    ("CEST", 2),
    ("EET", 2),
    ("EEST", 3),
    ("EST", -5),
    ("EDT", -4),
    ("CST", -6),
    ("CDT", -5),
    ("MST", -7),
    ("MDT", -6),
    ("PST", -8),
    ("PDT", -7),
    ("JST", 9),
    ("KST", 9),
];

/// Nanoseconds since 1970 in UTC; `None` if the text is not a date that begins with its year, or one before 1970.
pub(super) fn nanos(text: &str) -> Option<u64> {
    Written::iso(text.trim())?.nanos(None)
}

/// Whether a text is a date or a time of day.
pub(super) fn unit(text: &str) -> Option<TimeUnit> {
    let date = Written::any(text.trim()).map(|_| TimeUnit::Date);
    date.or_else(|| time_of_day(text).map(|_| TimeUnit::TimeOfDay))
}

/// Whether a text is a date without a time of day.
pub(super) fn is_day(text: &str) -> bool {
    Written::any(text.trim()).is_some_and(|written| written.time.is_none())
}

/// A day in nanoseconds.
pub(super) const DAY: u64 = 86_400_000_000_000;

/// Nanoseconds since midnight of a time of day without a date, such as `22:47:01.649596` or `10:47 PM`. `17:29` alone may
/// be minutes and seconds.
pub(super) fn time_of_day(text: &str) -> Option<u64> {
    let mut rest = text.trim();
    let clock = clock(&mut rest, &[':']).filter(|clock| clock.is_sure && rest.is_empty())?;
    u64::try_from(clock.nanos).ok()
}

/// Likewise of a time of day beside a date, also without seconds.
pub(super) fn time_beside_date(text: &str) -> Option<u64> {
    let mut rest = text.trim();
    let clock = clock(&mut rest, &[':']).filter(|_| rest.is_empty())?;
    u64::try_from(clock.nanos).ok()
}

/// A time of day.
struct Clock {
    /// Since midnight.
    nanos: i64,
    /// It has seconds, or `AM` or `PM`.
    is_sure: bool,
}

/// Takes a time of day from the front.
fn clock(rest: &mut &str, separators: &[char]) -> Option<Clock> {
    let hour = number(rest, 2)?;
    let minute = separated(rest, separators, 2)?;
    // Without a second it is zero.
    let second = separated(rest, separators, 2);
    let fraction = fraction(rest)?;
    let half = rest.trim_start();
    let is_half = |names: [&str; 2]| names.iter().any(|name| half.starts_with(name));
    let (is_morning, is_evening) = (is_half(["AM", "am"]), is_half(["PM", "pm"]));
    let is_twelve = is_morning || is_evening;
    if is_twelve {
        *rest = &half[2..];
    }
    let hour = match is_twelve {
        true if (1..=12).contains(&hour) => hour % 12 + if is_evening { 12 } else { 0 },
        true => return None,
        false => hour,
    };
    if hour > 23 || minute > 59 || second.unwrap_or(0) > 60 {
        return None;
    }
    let nanos = (hour * 3600 + minute * 60 + second.unwrap_or(0)) * 1_000_000_000 + fraction;
    Some(Clock { nanos, is_sure: second.is_some() || is_twelve })
}

/// The power of ten of a time since 1970 in nanoseconds, for times from 2001 to 2100.
pub(super) fn epoch(value: f64) -> Option<i32> {
    [(9, 1e9), (6, 1e12), (3, 1e15), (0, 1e18)]
        .into_iter()
        .find(|(_, least)| (*least..4.1 * least).contains(&value))
        .map(|(power, _)| power)
}

/// Takes a fraction of a second, in nanoseconds, if there is one.
fn fraction(rest: &mut &str) -> Option<i64> {
    let Some(digits) = rest.strip_prefix(['.', ',']) else { return Some(0) };
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    let kept = &digits[..count.min(9)];
    *rest = &digits[count..];
    Some(kept.parse::<i64>().ok()? * 10i64.pow(9 - kept.len() as u32))
}

/// Takes a number of at most this many digits from the front.
fn number(rest: &mut &str, most: usize) -> Option<i64> {
    let count = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
    let (digits, after) = rest.split_at(count);
    *rest = after;
    digits.parse().ok()
}

/// Takes a separator and the number behind it.
fn separated(rest: &mut &str, separators: &[char], most: usize) -> Option<i64> {
    let mut after = rest.strip_prefix(separators)?;
    let value = number(&mut after, most)?;
    *rest = after;
    Some(value)
}

/// The offset of a zone from UTC in seconds.
fn zone(text: &str) -> Option<i64> {
    if text.is_empty() {
        return Some(0);
    }
    if let Some((_, hours)) = ZONES.iter().find(|(name, _)| *name == text) {
        return Some(hours * 3600);
    }
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let digits: String = text.strip_prefix(['+', '-'])?.chars().filter(|c| *c != ':').collect();
    let value: i64 = digits.parse().ok().filter(|_| digits.is_ascii())?;
    match digits.len() {
        // As `date` prints those of zones without a name.
        2 => Some(sign * value * 3600),
        4 => Some(sign * (value / 100 * 3600 + value % 100 * 60)),
        _ => None,
    }
}

/// Days from 1970 to a date of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Counted from March on, so that the leap day is the last of a year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    // Of the months from March on, each five have 153 days.
    let in_year = (153 * month + 2) / 5 + day - 1;
    // 1970-01-01 is day 719,468 of the calendar that begins on 0000-03-01.
    year * 365 + year / 4 - year / 100 + year / 400 + in_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_counted_from_1970() {
        // Worked with `date -u -d … +%s`.
        for (text, seconds) in [
            ("1970-01-01", 0),
            ("2000-02-29 00:00:00", 951_782_400),
            ("2019.12.16_13.40.04", 1_576_503_604),
            ("2013-09-01 00:30", 1_377_995_400),
            ("2021-01-16T19:10:28-06:00", 1_610_845_828),
            ("2021-01-16 19:10:28+0530", 1_610_804_428),
            ("2023-06-06 14:00:01 CDT", 1_686_078_001),
            ("2020-11-16 10:05:01 EST", 1_605_539_101),
            ("2100/03/01 00:00:00 UTC", 4_107_542_400),
            ("2021-01-16 07:10:28 PM -06", 1_610_845_828),
        ] {
            assert_eq!(nanos(text), Some(seconds * 1_000_000_000), "{text}");
        }
        assert_eq!(nanos("1970-01-01 00:00:01.003 CET"), None);
        assert_eq!(nanos("1970-01-02 00:00:01.003 CET"), Some(82_801_003_000_000));
        assert_eq!(nanos("1970-01-01T00:00:01.25Z"), Some(1_250_000_000));
        assert_eq!(nanos("1970-01-01 00:00:00.0000000019"), Some(1));
    }

    #[test]
    fn clocks_since_1970_have_the_unit_of_their_size() {
        for (value, power) in [(1.7e9, 9), (1.7e12, 6), (1.7e15, 3), (1_705_744_800_616_897_349.0, 0)] {
            assert_eq!(epoch(value), Some(power), "{value}");
        }
        for value in [0.0, 5e8, 5e9, 9e11, 5e18, -1.7e9, f64::NAN] {
            assert_eq!(epoch(value), None, "{value}");
        }
    }

    #[test]
    fn times_of_day_count_from_midnight() {
        for (text, millis) in [
            ("00:00:00", 0),
            ("22:47:01.649", 82_021_649),
            ("9:05:07,5", 32_707_500),
            ("12:00:01 AM", 1000),
            ("1:00:00 pm", 46_800_000),
            ("10:47 PM", 82_020_000),
        ] {
            assert_eq!(time_of_day(text), Some(millis * 1_000_000), "{text}");
        }
        for text in ["", "12:30", "24:00:00", "10:60:00", "13:00:00 PM", "10:00:00 x", "1:2:3.", "2021-01-16"]
        {
            assert_eq!(time_of_day(text), None, "{text}");
        }
        assert_eq!(time_beside_date("17:29"), Some(62_940_000_000_000));
    }

    #[test]
    fn nothing_else_is_a_date() {
        for text in [
            "",
            "5",
            "1.5",
            "2019",
            "2019-13-01",
            "2019-01-32",
            "1969-12-31",
            "2019-01-01x",
            "2019-01-01 25:00:00",
            "2019-01-01 10",
            "2019-01-01 10:00:00 XYZ",
            "2019-01-01 10:00:00+5",
            "1970-01-01 00:00:00+01:00",
        ] {
            assert_eq!(nanos(text), None, "{text}");
        }
    }
}
