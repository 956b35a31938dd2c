//! What each format says.

use narrows_core::queue::Bound;
use narrows_core::{Bytes, Probability, Rate};
use narrows_scenario::trace::{Format, Then, Trace};

use crate::{at, mbit, ms, rates, read};

fn share(parts: u64, of: u64) -> Probability {
    Probability::from_ratio(parts, of).expect("at most one")
}

#[test]
fn csv_has_columns_with_units_and_empty_cells_that_change_nothing() {
    let text = "# measured on a train\n\
                time_ms,rate_kbit,delay_us,loss_percent,queue_bytes\n\
                \n\
                0, 1500, 250.5, 0.1, 3000\n\
                500,down,,,\r\n\
                # a tunnel\n\
                750,unlimited,1e3,100,64000\n\
                1000\n";
    let trace = read("cell.csv", text);
    assert_eq!((trace.format(), trace.then(), trace.length()), (Format::CSV, Then::Hold, ms(1000)));
    let rate = Rate::from_bits_per_second(1_500_000);
    assert_eq!(rates(&trace), [(0, rate), (500, Rate::DOWN), (750, Rate::UNLIMITED)]);
    let delays: Vec<_> = trace.delay().unwrap().iter().map(|point| (point.0, point.1.nanos())).collect();
    assert_eq!(delays, [(at(0), 250_500), (at(750), 1_000_000)]);
    assert_eq!(trace.loss().unwrap(), &[(at(0), share(1, 1000)), (at(750), Probability::ONE)]);
    let bytes = |bytes| Bound::Bytes(Bytes::new(bytes));
    assert_eq!(trace.bound().unwrap(), &[(at(0), bytes(3000)), (at(750), bytes(64_000))]);
    assert!(trace.duplicate().is_none() && trace.opportunities().is_none());
    assert!(trace.remarks().is_empty());
}

#[test]
fn the_last_row_of_a_csv_file_holds_as_long_as_the_one_before_unless_the_end_is_said() {
    for (rows, length) in
        [("0,1\n300,2\n", 600), ("0,1\n", 1000), ("0,1\n300,2\n900\n", 900), ("0,1\n300,2\n900,\n", 900)]
    {
        let text = format!("time_ms,rate_mbit\n{rows}");
        assert_eq!(read("x.csv", &text).length(), ms(length), "{rows:?}");
    }
}

#[test]
fn instants_of_a_clock_count_from_the_first_row_and_it_says_so() {
    let trace = read("x.csv", "time_s,delay_ms\n1700000000.5,10\n1700000001,20\n1700000001,30\n1700000002\n");
    assert_eq!(trace.delay().unwrap(), &[(at(0), ms(10)), (at(500), ms(30))]);
    assert_eq!(trace.length(), ms(1500));
    let remarks = trace.remarks().join("\n");
    assert!(
        remarks.contains("1700000000.5s") && remarks.contains("1 rows have the time of the previous row"),
        "{remarks}"
    );
}

#[test]
fn mahimahi_has_opportunities_and_repeats() {
    let trace = read("verizon.up", "0\n3\n3\n7\n");
    assert_eq!((trace.format(), trace.then(), trace.length()), (Format::MAHIMAHI, Then::Loop, ms(7)));
    assert_eq!(trace.opportunities().unwrap(), [at(0), at(3), at(3), at(7)]);
    assert!(trace.rate().is_none());
    // As Windows writes it, and without an end of the last line.
    assert_eq!(read("x", "0\r\n3\r\n3\r\n7").opportunities(), trace.opportunities());
}

#[test]
fn theaterq_rows_are_simple_or_extended() {
    let simple = read(
        "x.raw",
        "keep,latency,rate,loss,limit\n1000000,20000000,10000000,0,100\n500000,0,-1,4294967295,0\n",
    );
    assert_eq!((simple.format(), simple.length()), (Format::THEATERQ, ms(1500)));
    assert_eq!(rates(&simple), [(0, mbit(10)), (1000, Rate::UNLIMITED)]);
    assert_eq!(simple.delay().unwrap(), &[(at(0), ms(20)), (at(1000), ms(0))]);
    assert_eq!(simple.loss().unwrap(), &[(at(0), Probability::ZERO), (at(1000), Probability::ONE)]);
    assert_eq!(simple.bound().unwrap()[0].1, Bound::Packets(100));
    assert!(simple.remarks().is_empty() && simple.duplicate().is_none());

    let extended = read("x.raw", "2000,1000,500,0,0,9,2147483648,7,3,1\n2000,1000,0,8000,0,9,0,0,0,0\n");
    assert_eq!(rates(&extended), [(0, Rate::DOWN), (2, Rate::from_bits_per_second(8000))]);
    assert_eq!(extended.duplicate().unwrap()[0].1, share(2_147_483_648, 4_294_967_295));
    let remarks = extended.remarks().join("\n");
    for word in ["1 of 2 rows have jitter", "delay duplicates", "route", "name their own queue"] {
        assert!(remarks.contains(word), "{word}: {remarks}");
    }
    // Nine cells, as they were before there were queues.
    assert_eq!(read("x.raw", "2000,1000,0,8000,0,9,0,0,0\n").length(), ms(2));
}

#[test]
fn netem_trace_patterns_are_unrolled_as_the_crate_does() {
    // The crate's own example: 12 and 24 Mbit/s for a second each, twice.
    let text = r#"{"RepeatedBwPatternConfig":{"pattern":[{"StaticBwConfig":{"bw":"12Mbps","duration":"1s"}},
        {"StaticBwConfig":{"bw":"24Mbps","duration":"1s"}}],"count":2}}"#;
    let trace = read("x.json", text);
    assert_eq!((trace.format(), trace.then(), trace.length()), (Format::NETEM_TRACE, Then::Hold, ms(4000)));
    assert_eq!(rates(&trace), [(0, mbit(12)), (1000, mbit(24)), (2000, mbit(12)), (3000, mbit(24))]);
    // Without the feature `human`, and as TOML, and for ever.
    let tables = text
        .replace("\"12Mbps\"", r#"{"gbps":0,"bps":12000000}"#)
        .replace("\"1s\"", r#"{"secs":1,"nanos":0}"#);
    assert_eq!(read("x.json", &tables).rate(), trace.rate());
    let toml = "[RepeatedBwPatternConfig]\ncount = 0\npattern = [\n\
                { StaticBwConfig = { bw = \"12Mbps\", duration = \"1s\" } },\n\
                { StaticBwConfig = { bw = \"24Mbps\", duration = \"1s\" } } ]\n";
    for name in ["x.toml", "x"] {
        let forever = read(name, toml);
        assert_eq!((forever.then(), forever.length()), (Then::Loop, ms(2000)));
        assert_eq!(rates(&forever), [(0, mbit(12)), (1000, mbit(24))]);
    }
}

#[test]
fn netem_trace_sawtooth_and_lists_give_the_values_that_the_crate_documents() {
    let text = r#"{"SawtoothBwConfig":{"bottom":"12Mbps","top":"16Mbps","interval":"500ms","duty_ratio":0.8,
        "duration":"900ms","step":"100ms"}}"#;
    let found: Vec<u64> = rates(&read("x.json", text)).iter().map(|rate| rate.1.bits_per_second()).collect();
    assert_eq!(found, [12, 13, 14, 15, 16, 12, 13, 14, 15].map(|mbit: u64| mbit * 1_000_000));

    let text = r#"{"RepeatedBwPatternConfig":{"pattern":[{"TraceBwConfig":{"pattern":[["1ms",["2Mbps","4Mbps"]],["2ms",["1Mbps"]]]}}],"count":0}}"#;
    let trace = read("x.json", text);
    assert_eq!(
        (rates(&trace), trace.length(), trace.then()),
        (vec![(0, mbit(2)), (1, mbit(4)), (2, mbit(1))], ms(4), Then::Loop)
    );
    let alone = read("x.json", r#"[["1ms",["2Mbps","4Mbps"]],["2ms",["1Mbps"]]]"#);
    assert_eq!((alone.rate(), alone.then()), (trace.rate(), Then::Hold));
}

#[test]
fn netem_trace_draws_normal_rates_within_bounds_and_says_that_they_are_others() {
    let text = r#"{"NormalizedBwConfig":{"mean":"12Mbps","std_dev":"1Mbps","lower_bound":"10Mbps","upper_bound":"14Mbps",
        "duration":"50s","step":"1ms","seed":7}}"#;
    let trace = read("x.json", text);
    let found: Vec<f64> = rates(&trace).iter().map(|rate| rate.1.bits_per_second() as f64 / 1e6).collect();
    assert_eq!(found.len(), 50_000);
    let mean = found.iter().sum::<f64>() / 5e4;
    // Clamped at ±2 σ the mean stays; its standard error is below 1/√50000 = 0.0045.
    assert!((mean - 12.0).abs() < 4.0 * 0.0045, "{mean}");
    // Of a normal, 2.275 % are beyond either bound and land on it; standard error 0.067 %.
    let low = found.iter().filter(|rate| **rate == 10.0).count() as f64 / 5e4;
    assert!((low - 0.022_75).abs() < 4.0 * 0.000_67, "{low}");
    assert!(trace.remarks()[0].contains("drawn by narrows"));
    assert_eq!(read("x.json", text), trace);
    assert_ne!(read("x.json", &text.replace(":7", ":8")).rate(), trace.rate());
    // Each round of a pattern has the same draws, as in the crate, where it begins with the seed again.
    let text = text.replace("50s", "3ms");
    let rounds = format!(r#"{{"RepeatedBwPatternConfig":{{"pattern":[{text}],"count":2}}}}"#);
    let rates = rates(&read("x.json", &rounds));
    assert!((0..3).all(|n| rates[n].1 == rates[n + 3].1) && rates[0].1 != rates[1].1);
}

#[test]
fn netem_trace_has_delays_losses_and_duplicates() {
    let text = r#"{"RepeatedDelayPatternConfig":{"pattern":[{"StaticDelayConfig":{"delay":"10ms","duration":"1s"}},
        {"StaticDelayConfig":{"delay":"1s 5us","duration":"1s"}}],"count":1}}"#;
    let delays: Vec<u64> =
        read("x.json", text).delay().unwrap().iter().map(|point| point.1.nanos()).collect();
    assert_eq!(delays, [10_000_000, 1_000_005_000]);
    let text = r#"{"RepeatedLossPatternConfig":{"pattern":[{"StaticLossConfig":{"loss":[0.25],"duration":"1s"}},
        {"StaticLossConfig":{"loss":[0.1,0.2],"duration":"1s"}}],"count":1}}"#;
    let trace = read("x.json", text);
    assert_eq!(trace.loss().unwrap()[0].1, share(1, 4));
    assert!((trace.loss().unwrap()[1].1.as_f64() - 1.0 / 9.0).abs() < 1e-12);
    assert!(trace.remarks()[0].contains("long-run share"));
    let trace = read("x.json", r#"{"StaticDuplicateConfig":{"duplicate":[0.5],"duration":"2s"}}"#);
    assert_eq!((trace.duplicate().unwrap(), trace.loss()), (&[(at(0), share(1, 2))][..], None));
    assert!(trace.remarks().is_empty());
}

#[test]
fn patterns_per_millisecond_are_traces() {
    let trace = read("r.pattern", "pattern rate\nper millisecond\nlength 100\n1 2mbit\n51 down\n");
    assert_eq!((trace.format(), trace.then(), trace.length()), (Format::PATTERN, Then::Loop, ms(100)));
    assert_eq!(rates(&trace), [(0, mbit(2)), (50, Rate::DOWN)]);
    let losses =
        |text: &str| read("x", &format!("pattern loss\nper ms\nlength 10\n{text}")).loss().unwrap().to_vec();
    let (none, all) = (Probability::ZERO, Probability::ONE);
    assert_eq!(losses("3-4\n10\n"), [(at(0), none), (at(2), all), (at(4), none), (at(9), all)]);
    assert_eq!(losses("1\n"), [(at(0), all), (at(1), none)]);
    assert_eq!(losses(""), [(at(0), none)]);
}

#[test]
fn a_format_can_be_named_against_the_guess() {
    // A trace of two numbers a line is none of mahimahi's, whatever its name.
    let error = Trace::read("x.csv", b"time_s,rate_mbit\n0,1\n", Some(Format::MAHIMAHI)).unwrap_err();
    assert!(error.to_string().contains("found `time_s,rate_mbit`"), "{error}");
    assert_eq!(read("x.csv", "1\n2\n").format(), Format::MAHIMAHI);
    for &format in Format::ALL {
        assert_eq!(format.name().parse(), Ok(format));
    }
    assert!("mahimaji".parse::<Format>().unwrap_err().contains("did you mean `mahimahi`"));
}
