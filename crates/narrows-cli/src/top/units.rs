//! Compact numbers: three significant digits and a prefix, to keep columns narrow.

/// `950`, `4.52k`, `18.0M`, `1.20G`: powers of ten.
pub(super) fn short(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        _ => scaled(number as f64 / 1e3, &["k", "M", "G", "T", "P", "E"]),
    }
}

/// Same without trailing zeros: `18M`, `64k`.
pub(super) fn shorter(number: u64) -> String {
    without_zeros(&short(number))
}

/// `0`, `340ns`, `50.0µs`, `20ms`, `1.50s`.
pub(super) fn span(nanos: u64) -> String {
    let text = match nanos {
        0 => return "0".into(),
        1..1_000 => return format!("{nanos}ns"),
        _ => scaled(nanos as f64 / 1e3, &["µs", "ms", "s"]),
    };
    without_zeros(&text)
}

/// Removes zeros after the decimal point.
fn without_zeros(text: &str) -> String {
    let digits = text.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    match number.contains('.') {
        true => format!("{}{unit}", number.trim_end_matches('0').trim_end_matches('.')),
        false => text.into(),
    }
}

/// `90 s`, `5 min`, `3 h 20 min`, `2 d 4 h`.
pub(super) fn age(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match () {
        () if minutes < 2 => format!("{seconds} s"),
        () if hours == 0 => format!("{minutes} min"),
        () if days == 0 => format!("{hours} h {} min", minutes % 60),
        () => format!("{days} d {} h", hours % 24),
    }
}

/// `1 link`, `2 links`.
pub(super) fn counted(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

/// Uses the largest unit in which the value is at least 1; units are factors of a thousand.
fn scaled(mut value: f64, units: &[&str]) -> String {
    let mut unit = 0;
    // From here on, three digits would round up to a thousand.
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1e3;
        unit += 1;
    }
    let decimals = match value {
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}{}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_a_unit() {
        let shorts = [(0, "0"), (999, "999"), (1_000, "1.00k"), (9_999, "10.0k"), (999_600, "1.00M")];
        shorts.into_iter().for_each(|(number, text)| assert_eq!(short(number), text));
        assert_eq!(short(u64::MAX), "18.4E");
        assert_eq!([64_000, 18_500, 100, 0].map(shorter), ["64k", "18.5k", "100", "0"]);
        let spans = [
            (0, "0"),
            (7, "7ns"),
            (50_000, "50µs"),
            (20_000_000, "20ms"),
            (1_234_000_000, "1.23s"),
            (100_000_000_000, "100s"),
        ];
        spans.into_iter().for_each(|(nanos, text)| assert_eq!(span(nanos), text));
        let ages = [(3, "3 s"), (61, "61 s"), (179, "2 min"), (7_260, "2 h 1 min"), (90_000, "1 d 1 h")];
        ages.into_iter().for_each(|(seconds, text)| assert_eq!(age(seconds), text));
        assert_eq!((counted(1, "link"), counted(0, "link")), ("1 link".into(), "0 links".into()));
    }
}
