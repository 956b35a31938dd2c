//! Formats numbers for people: four significant digits, a unit, thousands separators.

/// `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 packet`, `1,234 packets`.
pub(crate) fn packets(number: u64) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} packet{plural}", count(number))
}

/// `98.20 ms`; `0` for zero.
pub fn span(nanos: u64) -> String {
    match nanos {
        0 => "0".into(),
        1..1_000 => format!("{nanos} ns"),
        60_000_000_000.. => format!("{:.1} s", nanos as f64 / 1e9),
        _ => with_unit(nanos as f64 / 1e3, &["µs", "ms", "s"]),
    }
}

/// The duration of a run: `31.05 s`, without trailing zeros.
pub fn run_span(nanos: u64) -> String {
    let text = span(nanos);
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

/// `1.500 Mbit/s`.
pub fn rate(bps: u64) -> String {
    match bps {
        0..1_000 => format!("{bps} bit/s"),
        _ => with_unit(bps as f64 / 1e3, &["kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"]),
    }
}

/// `11.63 MB`: powers of ten.
pub(crate) fn bytes(number: u64) -> String {
    match number {
        0..1_000 => format!("{number} B"),
        _ => with_unit(number as f64 / 1e3, &["kB", "MB", "GB", "TB"]),
    }
}

/// `18.76 %`, `100 %`, `0.0012 %`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent == 0.0 || percent == 100.0 {
        format!("{percent} %")
    } else if percent < 0.0001 {
        "<0.0001 %".into()
    } else if percent < 0.01 {
        format!("{percent:.4} %")
    } else if percent > 99.995 && percent < 100.0 {
        ">99.99 %".into()
    } else {
        format!("{percent:.2} %")
    }
}

/// The beginning of a long text, with a mark that it continues.
pub fn shortened(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let start: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", start.trim_end())
}

/// The largest unit in which the value is at least 1, each a thousand times the one before.
fn with_unit(value: f64, units: &[&str]) -> String {
    let (scale, unit, decimals) = scale(value, units);
    format!("{:.decimals$} {unit}", value / scale)
}

/// `5.000 ± 0.120 Mbit/s`: both in the unit and with the decimals of the greater.
pub fn within(value: f64, half: f64, units: &[&str]) -> String {
    if value == 0.0 && half == 0.0 {
        return "0".into();
    }
    let (scale, unit, decimals) = scale(value.abs().max(half), units);
    format!("{:.decimals$} ± {:.decimals$} {unit}", value / scale, half / scale)
}

/// By what a value is divided, the unit that it then has, and its decimals.
fn scale<'a>(value: f64, units: &[&'a str]) -> (f64, &'a str, usize) {
    let (mut scale, mut unit) = (1.0, 0);
    // From here on, four digits would round up to a thousand.
    while value / scale >= 999.95 && unit + 1 < units.len() {
        scale *= 1e3;
        unit += 1;
    }
    let decimals = match value / scale {
        ..0.09995 => 5,
        ..9.9995 => 3,
        ..99.995 => 2,
        _ => 1,
    };
    (scale, units[unit], decimals)
}

/// Wraps a list into lines, broken after commas.
pub(crate) fn wrapped(list: &str) -> Vec<String> {
    /// What the first column leaves of 100 characters.
    const WIDTH: usize = 85;
    let mut lines: Vec<String> = Vec::new();
    for part in list.split_inclusive(", ") {
        match lines.last_mut() {
            Some(line) if line.chars().count() + part.trim_end().chars().count() <= WIDTH => {
                line.push_str(part)
            }
            _ => lines.push(part.into()),
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits_and_a_unit() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(packets(1), "1 packet");
        assert_eq!(span(0), "0");
        assert_eq!(span(1_000), "1.000 µs");
        assert_eq!(span(999_949), "999.9 µs");
        assert_eq!(span(999_951), "1.000 ms");
        assert_eq!(span(98_204_000), "98.20 ms");
        assert_eq!(span(3_600_000_000_000), "3600.0 s");
        assert_eq!(run_span(31_000_000_000), "31 s");
        assert_eq!(run_span(100_000_000), "100 ms");
        assert_eq!(run_span(0), "0");
        assert_eq!(rate(1_500_000), "1.500 Mbit/s");
        assert_eq!(rate(12), "12 bit/s");
        assert_eq!(bytes(11_630_000), "11.63 MB");
        let rates = ["bit/s", "kbit/s", "Mbit/s"];
        assert_eq!(within(5_000_000.0, 120_000.0, &rates), "5.000 ± 0.120 Mbit/s");
        assert_eq!(within(-12.0, 1500.0, &rates), "-0.012 ± 1.500 kbit/s");
        assert_eq!(within(0.0123, 0.001, &["%"]), "0.01230 ± 0.00100 %");
        assert_eq!(within(0.0, 0.0, &["%"]), "0");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(percent(0.1876), "18.76 %");
        assert_eq!(percent(0.000_012), "0.0012 %");
        assert_eq!(percent(0.999_999), ">99.99 %");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(shortened("deny icmp", 9), "deny icmp");
        assert_eq!(shortened("deny icmp from", 11), "deny icmp…");
        assert_eq!(shortened("→→→→", 3), "→→…");
    }
}
