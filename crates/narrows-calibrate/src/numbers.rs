//! Formats numbers for people.

/// A time in a suitable unit.
pub(crate) fn micros(nanos: f64) -> String {
    let micros = nanos / 1e3;
    match micros.abs() {
        _ if micros.is_nan() => "–".into(),
        size if size < 99.95 => format!("{micros:.1} µs"),
        size if size < 999.5 => format!("{micros:.0} µs"),
        size if size < 99_950.0 => format!("{:.2} ms", micros / 1e3),
        _ => format!("{:.2} s", micros / 1e6),
    }
}

/// With thousands separators.
pub(crate) fn thousands(number: u32) -> String {
    match number / 1000 {
        0 => number.to_string(),
        rest => format!("{},{:03}", thousands(rest), number % 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_commas() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(130_000), "130,000");
        assert_eq!(thousands(1_000_001), "1,000,001");
    }
}
