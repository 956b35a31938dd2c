use super::*;

fn text(text: &str) -> Node {
    Node { span: 0..text.len(), value: Value::String(text.into()) }
}

#[test]
fn rates_are_exact_in_every_unit() {
    for (written, bits) in [
        ("1.5mbit", 1_500_000),
        ("0.5 Mbit", 500_000),
        ("10_000 bit", 10_000),
        ("1kibit", 1_024),
        ("0.1gibit", 0), // not whole
        ("1.1tbit", 1_100_000_000_000),
        ("1e3kbit", 1_000_000),
        ("1000tbit", 1_000_000_000_000_000),
        ("0bit", 0),
    ] {
        match rate(&text(written)) {
            Ok(rate) => assert_eq!(rate, Rate::from_bits_per_second(bits), "{written}"),
            Err(_) => assert_eq!(written, "0.1gibit"),
        }
    }
    assert_eq!(rate(&text("unlimited")), Ok(Rate::UNLIMITED));
    assert_eq!(rate(&text(" down ")), Ok(Rate::DOWN));
}

#[test]
fn times_and_sizes_are_exact_in_every_unit() {
    for (written, nanos) in [
        ("10ms", 10_000_000),
        ("1.000001ms", 1_000_001),
        ("0.1us", 100),
        ("3 µs", 3_000),
        ("1.5min", 90_000_000_000),
        ("0.25h", 900_000_000_000),
        ("1e-9s", 1),
        ("0s", 0),
    ] {
        assert_eq!(time(&text(written)), Ok(Duration::from_nanos(nanos)), "{written}");
    }
    for (written, bytes) in
        [("64kB", 64_000), ("1.5KiB", 1_536), ("1 byte", 1), ("9B", 9), ("0.001MB", 1_000)]
    {
        assert_eq!(size(&text(written)), Ok(Bytes::new(bytes)), "{written}");
    }
}

#[test]
fn what_is_not_a_whole_number_of_the_smallest_unit_is_refused() {
    for written in ["0.5ns", "1.0000001ms", "0.0000000001s"] {
        assert!(time(&text(written)).is_err(), "{written}");
    }
    assert!(rate(&text("0.0001kbit")).is_err());
    assert!(size(&text("1.5B")).is_err());
    assert!(bound(&text("1.5 packets")).is_err());
}

#[test]
fn what_is_ambiguous_too_large_or_negative_is_refused() {
    for written in [
        "10", "10mbps", "10MB", "10mb", "10m", "mbit", "", "1..5mbit", "-1mbit", "1001tbit", "1e99mbit",
        "∞bit",
    ] {
        assert!(rate(&text(written)).is_err(), "{written}");
    }
    for written in
        ["10", "10m", "-1ms", "876001h", "1e40s", "99999999999999999999999999999999999999999999s", "10MS"]
    {
        assert!(time(&text(written)).is_err(), "{written}");
    }
    for written in ["64kb", "64KB", "64k", "64b", "64", "2000GB"] {
        assert!(size(&text(written)).is_err(), "{written}");
    }
    for written in ["0 packets", "13", "13 packtes", "0kB", "2000000000 packets"] {
        assert!(bound(&text(written)).is_err(), "{written}");
    }
}

#[test]
fn shares_are_exact_and_print_as_they_are() {
    for (written, printed, numerator, denominator) in [
        ("1%", "1%", 1, 100),
        ("0.01", "1%", 1, 100),
        ("12.5 %", "12.5%", 1, 8),
        ("1e-3", "0.1%", 1, 1_000),
        ("100%", "100%", 1, 1),
        ("1.0", "100%", 1, 1),
        ("0", "0%", 0, 1),
        ("0.0000000000000000001", "0.00000000000000001%", 1, 10_000_000_000_000_000_000),
    ] {
        let share = Share::read(&text(written)).unwrap();
        assert_eq!(share.to_string(), printed, "{written}");
        assert_eq!(Some(share.probability()), Probability::from_ratio(numerator, denominator), "{written}");
        assert_eq!(Share::read(&text(&share.to_string())), Ok(share), "{written}");
    }
    for written in ["101%", "1.01", "-1%", "1", "", "%", "1‰", "0.00000000000000000001", "50 percent", "5"]
    {
        assert!(Share::read(&text(written)).is_err(), "{written}");
    }
}
