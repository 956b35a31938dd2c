//! Dates with a time of day, as measurement tools write them.
//!
//! `2019-12-16 13:40:04`, `2019.12.16_13.40.04` (G-NetTrack), `2021-01-16T19:10:28.5-06:00` (ISO 8601). Year,
//! month and day, then optionally hours, minutes, seconds with a fraction, and a zone: `Z`, `UTC`, an offset, or one
//! of the abbreviations of Europe, North America, Japan and Korea. A date without a zone counts as UTC: only the
//! distances between rows matter. Times of day without a date (`22:47:01.649596`) are read apart.

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

/// Nanoseconds since 1970 in UTC; `None` if the text is not a date, or an earlier one.
pub(super) fn nanos(text: &str) -> Option<u64> {
    let mut rest = text.trim();
    let year = number(&mut rest, 4)?;
    let month = separated(&mut rest, &['-', '/', '.'], 2)?;
    let day = separated(&mut rest, &['-', '/', '.'], 2)?;
    if !(1970..=2500).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (mut seconds, mut fraction) = (days(year, month, day) * 86_400, 0);
    if !rest.is_empty() {
        let hour = separated(&mut rest, &['T', ' ', '_'], 2)?;
        let minute = separated(&mut rest, &[':', '.'], 2)?;
        // Without a second it is zero.
        let second = separated(&mut rest, &[':', '.'], 2).unwrap_or(0);
        if hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        seconds += hour * 3600 + minute * 60 + second;
        fraction = self::fraction(&mut rest)?;
        seconds -= zone(rest.trim())?;
    }
    // Below 2⁶³: 530 years of nanoseconds are 2⁶³·⁹.
    u64::try_from(i128::from(seconds) * 1_000_000_000 + i128::from(fraction)).ok()
}

/// Whether a text is a date or a time of day.
pub(super) fn unit(text: &str) -> Option<TimeUnit> {
    let date = nanos(text).map(|_| TimeUnit::Date);
    date.or_else(|| time_of_day(text).map(|_| TimeUnit::TimeOfDay))
}

/// A day in nanoseconds.
pub(super) const DAY: u64 = 86_400_000_000_000;

/// Nanoseconds since midnight of a time of day without a date, such as `22:47:01.649596` or `10:47:01 PM`.
pub(super) fn time_of_day(text: &str) -> Option<u64> {
    let mut rest = text.trim();
    let hour = number(&mut rest, 2)?;
    let minute = separated(&mut rest, &[':'], 2)?;
    let second = separated(&mut rest, &[':'], 2)?;
    let fraction = fraction(&mut rest)?;
    let hour = match rest.trim_start() {
        "" => hour,
        "AM" | "am" if (1..=12).contains(&hour) => hour % 12,
        "PM" | "pm" if (1..=12).contains(&hour) => hour % 12 + 12,
        _ => return None,
    };
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    u64::try_from((hour * 3600 + minute * 60 + second) * 1_000_000_000 + fraction).ok()
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
    let value: i64 = digits.parse().ok().filter(|_| digits.len() == 4 && digits.is_ascii())?;
    Some(sign * (value / 100 * 3600 + value % 100 * 60))
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
        ] {
            assert_eq!(time_of_day(text), Some(millis * 1_000_000), "{text}");
        }
        for text in ["", "12:30", "24:00:00", "10:60:00", "13:00:00 PM", "10:00:00 x", "1:2:3.", "2021-01-16"]
        {
            assert_eq!(time_of_day(text), None, "{text}");
        }
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
