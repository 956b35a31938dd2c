//! Files that are written are read again as what they were.

use narrows_core::{Duration, Rate, Time};
use narrows_scenario::trace::{CannotWrite, Format, Then, Trace, Written};
use proptest::prelude::*;

use crate::{at, mbit, ms, rates, read};

fn write(trace: &Trace, format: Format) -> Written {
    trace.write(format).unwrap_or_else(|error| panic!("{format}: {error}"))
}

/// Rows of a CSV file, each a step after the one before, with some cells empty.
fn csv() -> impl Strategy<Value = String> {
    let row = (
        1..5_000_000_000u64,
        prop::option::of(prop_oneof![
            4 => (0..2_000_000_000_000u64).prop_map(|bits| format!("{}.{:03}", bits / 1000, bits % 1000)),
            1 => Just("unlimited".to_owned()),
            1 => Just("down".to_owned()),
        ]),
        prop::option::of(0..3_600_000_000_000u64),
        prop::option::of(0..=u64::from(u32::MAX)),
        prop::option::of(1..100_000u64),
    );
    prop::collection::vec(row, 1..30).prop_map(|rows| {
        let mut text = "time_ns,rate_kbit,delay_ns,loss,queue_packets\n0,1,1,0,1\n".to_owned();
        let mut time = 0;
        for (step, rate, delay, loss, bound) in rows {
            time += step;
            let cell = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
            let loss = loss.map(|parts| (parts as f64 / f64::from(u32::MAX)).to_string()).unwrap_or_default();
            text += &format!("{time},{},{},{loss},{}\n", rate.unwrap_or_default(), cell(delay), cell(bound));
        }
        text + &format!("{}\n", time + 1)
    })
}

/// A few bytes may say a long time: the steps get longer.
#[test]
fn a_long_trace_of_opportunities_has_longer_steps() {
    for (last, step, rows) in [
        ("1000000", "1ms", 1_000_000),
        ("1000001", "10ms", 100_001),
        ("5050009", "10ms", 505_001),
        ("8818888884", "10s", 881_889),
        // A century.
        ("3153600000000", "10000s", 315_360),
    ] {
        let written = write(&read("x.down", last), Format::SABRE);
        assert!(written.remarks[0].contains(&format!("in steps of {step}:")), "{:?}", written.remarks);
        assert_eq!(written.text.matches("duration_ms").count(), rows, "{last}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn csv_is_read_as_it_was(text in csv()) {
        let trace = read("x.csv", &text);
        let written = write(&trace, Format::CSV);
        prop_assert!(written.remarks.is_empty());
        prop_assert_eq!(read("y.csv", &written.text), trace);
    }

    /// To whole microseconds and with shares of 2⁻³², TheaterQ's rows are, too.
    #[test]
    fn theaterq_is_read_as_it_was(rows in prop::collection::vec((1..10_000_000u64, 0..10_000_000_000u64, -1..1_000_000_000_000i64, any::<u32>(), 0..100_000u32), 1..30)) {
        let lines = rows.iter().map(|(keep, delay, rate, loss, limit)| format!("{keep},{delay},{rate},{loss},{limit}\n"));
        let trace = read("x.raw", &lines.collect::<String>());
        let written = write(&trace, Format::THEATERQ);
        prop_assert_eq!(&read("y.raw", &written.text), &trace);
        // And through CSV.
        let csv = read("x.csv", &write(&trace, Format::CSV).text);
        prop_assert_eq!(csv.loss(), trace.loss());
        prop_assert_eq!(csv.length(), trace.length());
    }

    /// As many opportunities as the bits of the rate make, each in the millisecond in which they are complete.
    #[test]
    fn rates_become_the_opportunities_that_they_have_bits_for(steps in prop::collection::vec((1..400u64, 0..30_000_000u64), 1..20)) {
        let mut text = "time_ms,rate_bit\n".to_owned();
        let mut end = 0;
        for (lasts, bits) in &steps {
            text += &format!("{end},{bits}\n");
            end += lasts;
        }
        let trace = read("x.csv", &format!("{text}{end}\n"));
        let slow = |until: u64| {
            // Millisecond by millisecond: bits a second for a millisecond are thousandths of a bit.
            let mut left = until;
            let mut thousandths = 0u64;
            for (lasts, bits) in &steps {
                thousandths += bits * left.min(*lasts);
                left -= left.min(*lasts);
            }
            thousandths / (1504 * 8 * 1000)
        };
        match trace.write(Format::MAHIMAHI) {
            Err(error) => {
                prop_assert_eq!(slow(end), 0);
                prop_assert!(matches!(error, CannotWrite::NoOpportunity(_)));
            }
            Ok(written) => {
                let lines: Vec<u64> = written.text.lines().map(|line| line.parse().unwrap()).collect();
                for milli in [1, end / 3, end / 2, end - 1, end] {
                    let count = lines.iter().filter(|line| **line <= milli).count() as u64;
                    prop_assert_eq!(count, slow(milli), "{} ms", milli);
                }
            }
        }
    }
}

#[test]
fn mahimahi_is_written_line_by_line_as_it_was() {
    let text = "0\n3\n3\n7\n";
    let written = write(&read("x", text), Format::MAHIMAHI);
    assert_eq!((written.text.as_str(), written.remarks.len()), (text, 0));
}

#[test]
fn opportunities_become_a_rate_of_as_many_bits_and_it_says_so() {
    let trace = read("x", "0\n3\n3\n7\n");
    let written = write(&trace, Format::CSV);
    assert!(written.remarks[0].contains("opportunities"), "{:?}", written.remarks);
    assert!(written.remarks[1].contains("repeats"), "{:?}", written.remarks);
    let spread = read("x.csv", &written.text);
    assert_eq!(spread.length(), ms(7));
    // Two in the third millisecond; one and that of the next round's beginning in the last.
    let one = 1504 * 8 * 1000;
    let found: Vec<u64> = rates(&spread).iter().map(|rate| rate.1.bits_per_second()).collect();
    assert_eq!(found, [0, 0, 2 * one, 0, 0, 0, 2 * one]);
}

#[test]
fn netem_trace_is_read_as_it_was_one_column_at_a_time() {
    let trace =
        read("x.csv", "time_s,rate_mbit,delay_ms,loss\n0,2,10,0\n0.5,1.5,,0.25\n2,unlimited,30,\n3\n");
    let written = write(&trace, Format::NETEM_TRACE);
    let again = read("x.json", &written.text);
    let most = Rate::from_bits_per_second(1_000_000_000_000_000);
    assert_eq!(rates(&again), [(0, mbit(2)), (500, Rate::from_bits_per_second(1_500_000)), (2000, most)]);
    assert_eq!((again.length(), again.then()), (ms(3000), Then::Hold));
    let remarks = written.remarks.join("\n");
    assert!(remarks.contains("delay, loss: left out") && remarks.contains("unlimited"), "{remarks}");

    let delays = read("x.csv", "time_s,delay_ms\n0,10\n2,30\n3\n");
    let written = write(&delays, Format::NETEM_TRACE);
    assert_eq!(read("x.json", &written.text).delay(), delays.delay());
    let losses = read("x.csv", "time_s,loss\n0,0.1\n2,0.3\n3\n");
    assert_eq!(read("x.json", &write(&losses, Format::NETEM_TRACE).text).loss(), losses.loss());
    // What repeats goes on doing so.
    let forever = read("x", "3\n3\n7\n");
    assert_eq!(read("x.json", &write(&forever, Format::NETEM_TRACE).text).then(), Then::Loop);
}

#[test]
fn what_a_format_cannot_say_is_refused_or_told() {
    let delays = read("x.csv", "time_s,delay_ms\n0,10\n1\n");
    assert!(matches!(delays.write(Format::MAHIMAHI), Err(CannotWrite::Nothing { .. })));
    let unlimited = read("x.csv", "time_s,rate_mbit\n0,unlimited\n1\n");
    assert!(matches!(unlimited.write(Format::MAHIMAHI), Err(CannotWrite::Nothing { .. })));
    let slow = read("x.csv", "time_s,rate_bit\n0,12\n1\n");
    assert!(slow.write(Format::MAHIMAHI).unwrap_err().to_string().contains("1504 bytes"));
    assert!(matches!(slow.write(Format::PATTERN), Err(CannotWrite::ReadOnly { .. })));
    let fine = read("x.csv", "time_ns,delay_ns,duplicate\n0,1,0.5\n1500,2,0\n3200\n");
    let written = write(&fine, Format::THEATERQ);
    let remarks = written.remarks.join("\n");
    assert!(remarks.contains("EXTENDED") && remarks.contains("rounded to microseconds"), "{remarks}");
    let again = read("x.raw", &written.text);
    assert_eq!((again.length(), again.duplicate().unwrap().len()), (Duration::from_micros(3), 2));
    // A trace of rates whose period is not its last opportunity.
    let short = write(&read("x.csv", "time_ms,rate_mbit\n0,12.032\n2,0\n10\n"), Format::MAHIMAHI);
    assert_eq!(short.text, "1\n2\n");
    assert!(short.remarks.iter().any(|remark| remark.contains("repeats after 2ms")), "{:?}", short.remarks);
    assert_eq!(Time::ZERO + ms(2), at(2));
}
