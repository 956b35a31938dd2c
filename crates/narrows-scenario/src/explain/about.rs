//! Rounded rates.

/// A rate in bits per second, rounded to about three digits.
pub(crate) fn about(rate: f64) -> String {
    let (unit, factor) = match rate {
        ..1e3 => ("bit", 1.0),
        1e3..1e6 => ("kbit", 1e3),
        1e6..1e9 => ("mbit", 1e6),
        _ => ("gbit", 1e9),
    };
    let number = rate / factor;
    let digits = if number < 10.0 {
        2
    } else if number < 100.0 {
        1
    } else {
        0
    };
    format!("{number:.digits$}{unit}")
}
