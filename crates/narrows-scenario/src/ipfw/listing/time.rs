//! Times in the format of C's `ctime`, in UTC: `Thu Jan  1 00:00:00 1970`.

/// Length in characters.
pub(super) const WIDTH: usize = 24;

/// Formats a Unix time in seconds.
pub(super) fn text(seconds: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (mut days, rest) = (seconds / 86_400, seconds % 86_400);
    let day_of_week = DAYS[(days % 7) as usize];
    // 400 years have 146,097 days; the loops below run at most 400 and 12 times.
    let mut year = 1970 + 400 * (days / 146_097);
    days %= 146_097;
    let is_leap = |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let mut month = 0;
    let length = |month: usize| match month {
        1 => 28 + u64::from(is_leap(year)),
        3 | 5 | 8 | 10 => 30,
        _ => 31,
    };
    while days >= length(month) {
        days -= length(month);
        month += 1;
    }
    let (hours, minutes, seconds) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{day_of_week} {} {:>2} {hours:02}:{minutes:02}:{seconds:02} {year}", MONTHS[month], days + 1)
}

#[cfg(test)]
mod tests {
    #[test]
    fn instants_are_those_of_date() {
        // As `date -u -d @N '+%a %b %e %H:%M:%S %Y'` prints them.
        let same = |seconds, expected: &str| assert_eq!(super::text(seconds), expected);
        same(0, "Thu Jan  1 00:00:00 1970");
        same(951_782_399, "Mon Feb 28 23:59:59 2000");
        same(951_868_799, "Tue Feb 29 23:59:59 2000");
        same(1_269_820_800, "Mon Mar 29 00:00:00 2010");
        same(4_102_444_799, "Thu Dec 31 23:59:59 2099");
    }
}
