//! Files in the shapes of public trace sets (`tests/corpus/traces/README.md`), and what they mean.

use std::fs;
use std::path::Path;

use narrows_core::{Duration, Rate};
use narrows_scenario::trace::{Columns, Format, Then, Trace};

use crate::{at, ms};

fn file(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/traces");
    fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// What a file means: its format, what follows it, its length, and its rates with their milliseconds.
struct Means {
    file: &'static str,
    format: Format,
    then: Then,
    millis: u64,
    rates: &'static [(u64, u64)],
    /// Words of remarks, one for each.
    remarks: &'static [&'static str],
}

/// For a rate without a limit.
const UNLIMITED: u64 = Rate::UNLIMITED.bits_per_second();

const CASES: &[Means] = &[
    Means {
        file: "sabre.json",
        format: Format::SABRE,
        then: Then::Loop,
        millis: 4000,
        rates: &[(0, 1_500_000), (1020, 250_500), (3000, 0)],
        remarks: &["round trip"],
    },
    Means {
        file: "pensieve-tab",
        format: Format::PENSIEVE,
        then: Then::Loop,
        millis: 3000,
        rates: &[(0, 4_250_000), (500, 125_000), (1500, 2_000_000)],
        remarks: &["that of the first row is unused", "taken to be in s and Mbit/s"],
    },
    Means {
        file: "pensieve-blank",
        format: Format::PENSIEVE,
        then: Then::Loop,
        millis: 3000,
        rates: &[(0, 90_000_000), (1000, 0), (2000, 71_500_000)],
        remarks: &["that of the first row is unused", "taken to be in s and Mbit/s"],
    },
    Means {
        file: "oboe",
        format: Format::OBOE,
        then: Then::Hold,
        millis: 3120,
        // Between the first two chunks, the mean of both.
        rates: &[(0, 2_500_500), (500, 2_000_250), (620, 1_500_000), (2120, 4_000_000)],
        remarks: &["`pensieve` as the format", "the mean of their rates", "the first row is at 20ms"],
    },
    Means {
        file: "alphartc.json",
        format: Format::ALPHARTC,
        then: Then::Loop,
        millis: 699,
        rates: &[(0, 1_250_000), (500, 0)],
        remarks: &["rtt is a round trip", "1 of 2 periods have jitter", "`alphartc-downlink`"],
    },
    Means {
        file: "genet.json",
        format: Format::GENET,
        then: Then::Hold,
        millis: 1500,
        rates: &[(0, 1_500_000), (500, 250_000)],
        remarks: &["the first time is 2s", "`delay_noise`"],
    },
    Means {
        file: "ntrace.json",
        format: Format::NTRACE,
        then: Then::Hold,
        millis: 29_000,
        rates: &[(0, 12_500_000), (19_500, 0)],
        remarks: &["the uplink's (`ulBw`) is left out", "to the first byte"],
    },
    Means {
        file: "iperf3.json",
        format: Format::IPERF3,
        then: Then::Hold,
        millis: 1500,
        rates: &[(0, 8_000_000), (1000, 0)],
        remarks: &["1 intervals before the test"],
    },
    Means {
        file: "nyu-mets.csv",
        format: Format::NYU_METS,
        then: Then::Hold,
        millis: 3000,
        rates: &[(0, 3_500_000), (1000, 812_000), (2000, 0)],
        remarks: &[],
    },
    Means {
        file: "norway.log",
        format: Format::NORWAY,
        then: Then::Hold,
        millis: 4250,
        rates: &[(0, 2_000_000), (1000, 800_000), (2250, 0), (3250, 8000)],
        remarks: &["3s in 1 gaps"],
    },
    Means {
        file: "ghent.log",
        format: Format::NORWAY,
        then: Then::Hold,
        millis: 2000,
        rates: &[(0, 20_000_000), (1000, 40_000_000)],
        remarks: &[],
    },
    Means {
        file: "ucc-4g.csv",
        format: Format::UCC,
        then: Then::Hold,
        millis: 5000,
        rates: &[(0, 3_010_000), (1000, 4_600_000)],
        remarks: &["1 rows have the time", "1 values are missing", "UL_bitrate"],
    },
    Means {
        file: "ucc-5g.csv",
        format: Format::UCC,
        then: Then::Hold,
        millis: 2000,
        rates: &[(0, 0), (1000, 98_000_000)],
        remarks: &["UL_bitrate"],
    },
    Means {
        file: "lumos5g.csv",
        format: Format::LUMOS5G,
        then: Then::Hold,
        // The last row of the first run lasts as long as the one before it, two seconds.
        millis: 7000,
        rates: &[(0, 125_000_000), (1000, 830_500_000), (3000, 0), (5000, 77_000_000), (6000, 78_000_000)],
        remarks: &["2 runs of the file"],
    },
    Means {
        file: "sigcomm21-iperf.csv",
        format: Format::SIGCOMM21_5G,
        then: Then::Hold,
        millis: 7000,
        rates: &[(0, 1_210_000_000), (1000, 1_070_000_000), (4000, 618_000_000)],
        remarks: &[],
    },
    Means {
        file: "sigcomm21-merged.csv",
        format: Format::SIGCOMM21_5G,
        then: Then::Hold,
        millis: 2000,
        rates: &[(0, 902_000_000), (1000, 757_000_000)],
        remarks: &["the first row is at 2s"],
    },
    Means {
        file: "fcc-webget.csv",
        format: Format::FCC,
        then: Then::Hold,
        millis: 7_200_000,
        rates: &[(0, 8_000_000), (3_600_000, 2_000_000)],
        remarks: &["interval=5s"],
    },
    Means {
        file: "fcc-httpgetmt.csv",
        format: Format::FCC,
        then: Then::Hold,
        millis: 14_400_000,
        rates: &[(0, 14_400_000), (7_200_000, 14_000_000)],
        remarks: &["interval=5s"],
    },
    Means {
        file: "netem-trace.json",
        format: Format::NETEM_TRACE,
        then: Then::Loop,
        millis: 1100,
        rates: &[(0, 10_000_000), (25, 20_000_000), (50, 5_000_000), (100, 24_000_000)],
        remarks: &[],
    },
    Means {
        file: "netem-trace.toml",
        format: Format::NETEM_TRACE,
        then: Then::Hold,
        millis: 2000,
        rates: &[],
        remarks: &[],
    },
    Means {
        file: "mahimahi.up",
        format: Format::MAHIMAHI,
        then: Then::Loop,
        millis: 7,
        rates: &[],
        remarks: &[],
    },
    Means {
        file: "mm-link.log",
        format: Format::MM_LINK,
        then: Then::Loop,
        millis: 7,
        rates: &[],
        remarks: &["4 events of the packets of that run"],
    },
    Means {
        file: "commented.csv",
        format: Format::CSV,
        then: Then::Hold,
        millis: 15_000,
        rates: &[(0, 1_500_000), (5000, 250_500), (10_000, 8_000_000)],
        remarks: &["columns: time `Time (s)` in s, rate `Throughput (kbps)` in kbit/s"],
    },
    Means {
        file: "theaterq-simple.raw",
        format: Format::THEATERQ,
        then: Then::Hold,
        millis: 1500,
        rates: &[(0, 10_000_000), (1000, 5_000_000)],
        remarks: &[],
    },
    Means {
        file: "theaterq-extended.raw",
        format: Format::THEATERQ,
        then: Then::Hold,
        millis: 1500,
        rates: &[(0, 10_000_000), (1000, UNLIMITED)],
        remarks: &["jitter", "delay duplicates", "route", "queue"],
    },
    Means {
        file: "ping-linux.log",
        format: Format::PING,
        then: Then::Hold,
        millis: 3000,
        rates: &[],
        remarks: &[
            "half of each round trip",
            "500ms apart, by the command's `-i`",
            "3 of 6 probes",
            "1 answers are dup",
        ],
    },
    Means {
        file: "ping-times.log",
        format: Format::PING,
        then: Then::Hold,
        millis: 3750,
        rates: &[],
        remarks: &["half of each round trip"],
    },
    Means {
        file: "ping-windows.txt",
        format: Format::PING,
        then: Then::Hold,
        millis: 4000,
        rates: &[],
        remarks: &["half of each round trip", "1 s apart", "1 of 4 probes", "2 runs", "1 answers below 1 ms"],
    },
    Means {
        file: "iperf3.txt",
        format: Format::IPERF_TEXT,
        then: Then::Hold,
        millis: 1500,
        rates: &[(0, 6_000_000), (1000, 2_000_000)],
        remarks: &["of all 2 streams", "from the server to the client", "3 intervals before the test"],
    },
    Means {
        file: "iperf2-udp.txt",
        format: Format::IPERF_TEXT,
        then: Then::Hold,
        millis: 4000,
        rates: &[(0, 1_050_000), (1000, 529_000), (2000, 1_050_000), (3000, 1_050_000)],
        remarks: &["2 runs", "2s in 1 gaps", "UDP"],
    },
    Means {
        file: "rows.jsonl",
        format: Format::JSON_ROWS,
        then: Then::Hold,
        millis: 15_000,
        rates: &[],
        remarks: &[
            "round trip `route.latencyMs` in ms; left out: `action`, `holdTimeRemaining`",
            "taken to be a round trip",
            "half of",
            "1 values are missing",
        ],
    },
    Means {
        file: "rows.json",
        format: Format::JSON_ROWS,
        then: Then::Hold,
        millis: 4000,
        rates: &[(0, 12_500_000), (2000, 0)],
        remarks: &["rate `bandwidth_mbps` in Mbit/s", "the first row is at"],
    },
    Means {
        file: "speedtest-cli.csv",
        format: Format::SPEEDTEST_CLI,
        then: Then::Hold,
        millis: 7_200_000,
        rates: &[(0, 5_042_936), (3_600_000, 25_000_000)],
        remarks: &["half of `Ping`", "rate=Upload", "1 delays of 900 s"],
    },
];

#[test]
fn files_of_public_sets_are_detected_and_mean_what_their_authors_mean() {
    for case in CASES {
        let name = case.file;
        let trace = Trace::read(name, &file(name), None).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((trace.format(), trace.then()), (case.format, case.then), "{name}");
        assert_eq!(trace.length(), ms(case.millis), "{name}");
        let rates: Vec<_> = trace.rate().unwrap_or_default().iter().map(|point| (point.0, point.1)).collect();
        let expected: Vec<_> = case
            .rates
            .iter()
            .map(|(millis, bits)| (at(*millis), Rate::from_bits_per_second(*bits)))
            .collect();
        assert_eq!(rates, expected, "{name}");
        assert_eq!(trace.remarks().len(), case.remarks.len(), "{name}: {:?}", trace.remarks());
        for (remark, word) in trace.remarks().iter().zip(case.remarks) {
            assert!(remark.contains(word), "{name}: {remark}");
        }
    }
}

#[test]
fn every_file_of_the_corpus_has_a_case_and_a_source() {
    let readme = String::from_utf8(file("README.md")).expect("it is text");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/traces");
    for entry in fs::read_dir(folder).expect("there is a corpus") {
        let name = entry.expect("it can be read").file_name().into_string().expect("it is text");
        let read =
            CASES.iter().any(|case| case.file == name) || ["README.md", "starlink.csv"].contains(&&*name);
        assert!(read, "{name} has no case");
        assert!(name == "README.md" || readme.contains(&format!("`{name}`")), "{name} has no source");
    }
}

#[test]
fn half_of_a_round_trip_is_the_delay_of_sabre() {
    let trace = Trace::read("x.json", &file("sabre.json"), None).unwrap();
    assert_eq!(trace.delay().unwrap(), [(at(0), ms(50)), (at(1020), ms(60)), (at(3000), ms(60))]);
}

#[test]
fn what_else_json_traces_have_is_read() {
    let trace = Trace::read("x.json", &file("alphartc.json"), None).unwrap();
    assert_eq!(trace.delay().unwrap(), [(at(0), ms(40)), (at(500), ms(60))]);
    assert_eq!(trace.loss().unwrap()[1].1.as_f64(), 0.25);
    let down = Trace::read("x.json", &file("alphartc.json"), Some(Format::ALPHARTC_DOWNLINK)).unwrap();
    assert_eq!((down.length(), crate::rates(&down)), (ms(1000), vec![(0, crate::mbit(8))]));
    assert!(down.remarks().is_empty() && down.delay().is_none(), "{down:?}");
    let only = "{\"uplink\": {}, \"downlink\": {\"trace_pattern\": [{\"duration\": 5, \"capacity\": 1000}]}}";
    let only = crate::read("x.json", only);
    assert_eq!(
        (only.format(), only.remarks()),
        (Format::ALPHARTC, &["the file has a downlink only".into()][..])
    );
    let trace = Trace::read("x.json", &file("genet.json"), None).unwrap();
    assert_eq!(trace.delay().unwrap(), [(at(0), Duration::from_micros(40_500))]);
    assert_eq!(trace.loss().unwrap()[0].1.as_f64(), 0.02);
    assert_eq!(trace.columns(), ["rate", "delay", "loss", "queue"]);
}

#[test]
fn a_log_of_mm_link_has_the_opportunities_of_its_trace() {
    let read = |text: &str| Trace::read("x.log", text.as_bytes(), None);
    let trace = read(&String::from_utf8(file("mm-link.log")).unwrap()).unwrap();
    assert_eq!(trace.opportunities().unwrap(), [at(0), at(3), at(3), at(7)]);
    assert_eq!(trace.write(Format::MAHIMAHI).unwrap().text, "0\n3\n3\n7\n");
    let headless = read("40 + 52\n43 # 1504\n44 - 52 3\n").unwrap();
    assert_eq!(headless.opportunities().unwrap(), [at(3)]);
    assert!(headless.remarks()[0].contains("begins at the first line, 40ms"), "{:?}", headless.remarks());
    for (text, words) in [
        ("1 + 52\n", ["x.log:1:", "no opportunity", "34 # 1504"]),
        ("1 # 1504\n2 # 1400\n", ["x.log:2:", "found `1400`, expected 1504", "1504 bytes"]),
        ("1 # 1504\n2 5 5\n", ["x.log:2:", "found `5`", "`#`, `+`, `-`, `d`"]),
        ("1 # 1504\n2 #\n", ["x.log:2:", "found `2 #`", "a time in milliseconds"]),
        ("5 # 1504\n4 # 1504\n", ["x.log:2:", "`4` is before", "5"]),
        ("# base timestamp: 2\n5 # 1504\n4 # 1504\n", ["x.log:3:", "`4` goes back in time", "never go down"]),
        ("# base timestamp: x\n5 # 1504\n", ["x.log:1:", "found `x`", "whole milliseconds"]),
        ("5 # 1504\n", ["x.log:1:", "no duration", "above zero"]),
    ] {
        let error = read(text).expect_err(text).to_string();
        for word in words {
            assert!(error.contains(word), "{word:?} is not in what is said of {text:?}:\n{error}");
        }
    }
}

#[test]
fn a_comment_may_name_the_columns() {
    // It says more than Pensieve's usual units, and than the separator.
    for text in [
        "# time_ms rate_kbps\n0 500\n20 700\n40 900\n",
        "# a trace\n#Time (ms) Bandwidth [kbit/s]\n0 500\n20 700\n40 900\n",
        "# time (ms), bandwidth (kbps)\n\n0\t500\n20\t700\n40\t900\n",
    ] {
        let trace = crate::read("x", text);
        assert_eq!((trace.format(), trace.length()), (Format::CSV, ms(60)), "{text}");
        assert_eq!(crate::rates(&trace)[1], (20, Rate::from_bits_per_second(700_000)), "{text}");
    }
    // Who insists is believed.
    let text = "# time_ms rate_kbps\n0 500\n20 700\n";
    let named = Trace::read("x", text.as_bytes(), Some(Format::PENSIEVE)).unwrap();
    assert_eq!(named.length(), ms(20_000));
    // What leaves a choice counts for nothing; nor does a comment elsewhere.
    for text in ["# time rate\n0 5\n1 7\n", "# Pensieve's\n0 5\n1 7\n", "0 5\n# time_ms rate_kbps\n1 7\n"] {
        assert_eq!(crate::read("x", text).format(), Format::PENSIEVE, "{text}");
    }
}

#[test]
fn tables_of_numbers_are_refused_with_the_columns_that_read_them() {
    for (text, suggested, words) in [
        (
            "1137388.8\n1118772.08\n986050.4\n",
            "interval=1s,rate=1,unit=bit",
            ["found `1137388.8`", "of a second"],
        ),
        ("1500\n2300\n1100\n", "interval=1s,rate=1,unit=kbit", ["`1100` goes back in time", "of a second"]),
        ("3.5\n2.25\n", "interval=1s,rate=1,unit=mbit", ["found `3.5`", "of a second"]),
        (
            "0,1.5,0,0.001\n2.3,3.2,0.01,0.001\n9.7,2,0,0.001\n",
            "time=1,rate=2,unit=mbyte,delay=4,delay-unit=s,loss=3,loss-unit=share",
            ["4 columns separated by commas", "AItrans"],
        ),
        ("150 1.4 1.4\n150 1.5 2\n150 10 3\n", "duration=1,rate=2,unit=mbit", ["3 columns", "blanks"]),
        (
            "1000 1.4 1\n1000 1.5 2\n1000 1.1 2\n",
            "duration=1,time-unit=ms,rate=2,unit=mbit",
            ["3 columns", "blanks"],
        ),
    ] {
        let error = Trace::read("x.txt", text.as_bytes(), None).expect_err(text).to_string();
        for word in words.into_iter().chain([format!("`--columns {suggested}`").as_str()]) {
            assert!(error.contains(word), "{word:?} is not in what is said of {text:?}:\n{error}");
        }
        let columns: Columns = suggested.parse().expect("these are columns");
        assert!(Trace::read_columns("x.txt", text.as_bytes(), &columns).is_ok(), "{text}");
    }
    // Instants with decimals are no rates.
    let error = Trace::read("x.txt", b"0.5\n1.5\n2.5\n", None).unwrap_err().to_string();
    assert!(error.contains("whole milliseconds") && !error.contains("--columns"), "{error}");
}

#[test]
fn any_table_is_read_by_its_columns() {
    let read = |name: &str, columns: &str| {
        let columns: Columns = columns.parse().unwrap();
        Trace::read_columns(name, &file(name), &columns).unwrap_or_else(|error| panic!("{error}"))
    };
    let trace = read("starlink.csv", "time=time,rate=throughput,unit=mbit");
    assert_eq!((trace.format(), trace.length()), (Format::CSV, ms(3000)));
    let megabit = |tenths: u64| Rate::from_bits_per_second(tenths * 100_000);
    assert_eq!(trace.rate().unwrap(), [(at(0), megabit(855)), (at(2000), megabit(1100))]);
    assert_eq!(trace.remarks(), ["1 values are missing; the one before stays"]);
    // By numbers, with a header that is none of them; the uplink of a log; tests played for five seconds each.
    assert_eq!(read("starlink.csv", "time=1,rate=2,unit=mbit").rate(), trace.rate());
    let uplink = read("ucc-4g.csv", "time=timestamp,rate=UL_bitrate,unit=kbit");
    assert_eq!(uplink.rate().unwrap()[1], (at(1000), Rate::from_bits_per_second(61_000)));
    let played = read("fcc-webget.csv", "interval=5s,rate=7,unit=byte");
    let two_tests = [(at(0), megabit(80)), (at(5000), megabit(20))];
    assert_eq!((played.length(), played.rate().unwrap()), (ms(10_000), &two_tests[..]));
}

fn columns(text: &str, columns: &str) -> Trace {
    let columns: Columns = columns.parse().expect("these are columns");
    Trace::read_columns("x", text.as_bytes(), &columns).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn separators_quotes_and_units_are_those_of_the_file() {
    for text in [
        "t;r\n1;2\n3;4\n",
        "t\tr\n1\t2\n3\t4\n",
        "t r\n1   2\n 3 4\n",
        "# x\n\n\"t\" , \"r\"\n1,\"2\"\n3, 4\r\n",
    ] {
        let trace = columns(text, "time=t,rate=r,unit=kbit");
        assert_eq!(trace.length(), ms(4000), "{text:?}");
        let kilobit = |kbit: u64| Rate::from_bits_per_second(kbit * 1000);
        assert_eq!(trace.rate().unwrap(), [(at(0), kilobit(2)), (at(2000), kilobit(4))], "{text:?}");
    }
    // A place with a separator and quotes in its name.
    let quoted = columns("t,place,r\n1,\"a \"\"b\"\", c\",2\n", "time=t,rate=r,unit=mbyte");
    assert_eq!(quoted.rate().unwrap()[0].1, Rate::from_bits_per_second(16_000_000));
    // Units in names and given; losses; durations.
    let trace = columns(
        "ms,rtt_ms,lost\n500,20,1\n250,NaN,100\n",
        "duration=ms,time-unit=ms,delay=rtt_ms,loss=lost,loss-unit=percent",
    );
    assert_eq!((trace.length(), trace.delay().unwrap()), (ms(750), &[(at(0), ms(20))][..]));
    assert_eq!(trace.loss().unwrap().iter().map(|point| point.1.as_f64()).collect::<Vec<_>>(), [0.01, 1.0]);
    // What is taken as given is said.
    let said = columns("t,d\n5,20\n", "time=t,delay=d").remarks().join("\n");
    for word in ["`t` is taken to be in s", "`d` is taken to be in ms", "the first row is at 5s"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    // A row that lasts no time has no place, least of all at the end.
    let none = columns("d,r\n0,1\n2,5\n0,6\n", "duration=d,time-unit=ms,rate=r,unit=bit");
    assert_eq!((none.length(), none.rate().unwrap()), (ms(2), &[(at(0), Rate::from_bits_per_second(5))][..]));
    assert_eq!(none.remarks(), ["2 rows have a duration of 0: left out"]);
    // The first value known applies before it.
    let late = columns("t,r\n0,-\n1,5\n2,6\n", "time=t,rate=r,unit=bit");
    assert_eq!(late.rate().unwrap()[0], (at(0), Rate::from_bits_per_second(5)));
    assert!(late.remarks().join("\n").contains("at the beginning"));
}

#[test]
fn clocks_since_1970_and_dates_with_zones_need_no_unit() {
    let trace =
        columns("timestamp,up\n1705744800600000000,20\n1705744800650000000,30\n", "time=timestamp,delay=up");
    assert_eq!((trace.length(), trace.delay().unwrap()[1]), (ms(100), (at(50), ms(30))));
    assert!(trace.remarks().join("\n").contains("`timestamp` is taken to be in ns since 1970"), "{trace:?}");
    let trace = columns("1705744800600,20\n1705744800650,30\n", "time=1,rate=2,unit=mbit");
    assert_eq!(trace.length(), ms(100));
    // From summer to winter time, an hour is no step.
    let dates = "2023-11-05 01:59:59 CDT,5\n2023-11-05 01:00:00 CST,6\n2023-11-05 01:00:01.5 CST,7\n";
    let trace = columns(dates, "time=1,rate=2,unit=mbit");
    assert_eq!(
        trace.rate().unwrap().iter().map(|point| point.0).collect::<Vec<_>>(),
        [at(0), at(1000), at(2500)]
    );
    let quoted = "timestamp,place,r\n\"2020-11-16 10:05:01.003 EST\",\"a,\"\"b\"\"\",5\n2020-11-16 10:05:01.103 EST,c,6\n";
    assert_eq!(columns(quoted, "time=timestamp,rate=r,unit=kbit").length(), ms(200));
}

#[test]
fn a_header_that_says_everything_needs_no_options() {
    let read =
        |text: &str| Trace::read("x.csv", text.as_bytes(), None).unwrap_or_else(|error| panic!("{error}"));
    let trace = read(
        "at_ms,delay_ms,jitter_ms,loss_pct,rate_kbit,limit_pkts,note\n0,5,0,0,,,base\n2000,140,1,2.5,,,pulse\n2500,5,0,0,,,\n",
    );
    assert_eq!(
        (trace.format(), trace.length(), trace.columns()),
        (Format::CSV, ms(3000), vec!["delay", "loss"])
    );
    assert_eq!(trace.delay().unwrap(), [(at(0), ms(5)), (at(2000), ms(140)), (at(2500), ms(5))]);
    assert_eq!(trace.loss().unwrap()[1].1.as_f64(), 0.025);
    assert_eq!(
        trace.remarks(),
        ["columns: time `at_ms` in ms, delay `delay_ms` in ms, loss `loss_pct` in percent; left out: \
             `jitter_ms` (jitter), `rate_kbit` (no value), `limit_pkts`, `note`"]
    );
    let mbit =
        |trace: &Trace| trace.rate().unwrap().iter().map(|point| point.1.to_string()).collect::<Vec<_>>();
    for text in [
        "timestamp_ms;throughput_mbps;rtt_ms\n0;5;40\n500;2.5;50\n",
        "Time (s)\tThroughput (Mbit/s)\n10\t5\n10.5\t2.5\n",
        "time,linkDownKbps,lat,lon\n2020-11-16 10:05:01.003 EST,5000,1,2\n2020-11-16 10:05:01.503 EST,2500,1,2\n",
        "timestamp,bandwidth_kbps\n1705744800600,5000\n1705744801100,2500\n",
        "time_s;rate_mbit\n0;5\n0.5;2.5\n",
    ] {
        let trace = read(text);
        assert_eq!(
            (trace.length(), mbit(&trace)),
            (ms(1000), vec!["5mbit".into(), "2.5mbit".into()]),
            "{text}"
        );
        assert!(trace.remarks()[0].starts_with("columns: time "), "{:?}", trace.remarks());
    }
    // Words of narrows' own tables go on to be understood beside columns that are not.
    assert_eq!(mbit(&read("time_s,rate_mbit,weather\n0,unlimited,dry\n1,down,wet\n")).len(), 2);
}

#[test]
fn a_header_that_leaves_a_choice_is_asked_about_in_its_own_words() {
    for (text, words) in [
        (
            "protocol,conns,seq_num,A_throughput_mbps,B_throughput_mbps\nTCP,8,0,25.7,145\nTCP,8,1,65,87\n",
            [
                "2 columns may be the rate: `A_throughput_mbps` or `B_throughput_mbps`",
                "`--columns time=seq_num,rate=A_throughput_mbps,unit=mbit`",
            ],
        ),
        (
            "time,throughput,speed\n2023-04-05 11:03:07 CDT,8.2,2\n2023-04-05 11:03:08 CDT,17,1\n",
            [
                "the name `throughput` does not say the unit of the rate",
                "`--columns time=time,rate=throughput,unit=mbit`",
            ],
        ),
        (
            "time,rate_kbit\n0,8200\n1000,17000\n",
            [
                "the name `time` does not say the unit of the time",
                "`--columns time=time,time-unit=ms,rate=rate_kbit,unit=kbit`",
            ],
        ),
        (
            "timestamp,rtt,uplink,downlink\n1705744800616897349,0,0,-1\n1705744800626565141,120,72,47\n",
            [
                "no column is a rate, a delay or a loss, with its unit, by its name",
                "`--columns time=timestamp,rate=uplink,unit=mbit,rtt=rtt,delay-unit=ms`",
            ],
        ),
        (
            "name,bw kbps\na,5\nb,6\n",
            ["no column is the time by its name", "`--columns interval=1s,rate=2,unit=kbit`"],
        ),
    ] {
        let error = Trace::read("x.csv", text.as_bytes(), None).expect_err(text).to_string();
        for word in words.into_iter().chain(["x.csv:1:", "in a scenario, the key `columns`"]) {
            assert!(error.contains(word), "{word:?} is not in what is said of {text:?}:\n{error}");
        }
    }
}

#[test]
fn broken_tables_are_refused_with_the_line_what_was_found_and_what_is_allowed() {
    for (text, by, line, words) in [
        ("", "time=t,rate=r,unit=bit", 1, &["the file is empty"] as &[&str]),
        ("t,r\n", "time=t,rate=r,unit=bit", 1, &["no row with a rate"]),
        ("t,r\n1,2\n", "time=t,rate=rr,unit=bit", 1, &["no column `rr`", "`t`", "number"]),
        ("time,rate\n1,2\n", "time=time,rate=rat,unit=bit", 1, &["did you mean `rate`?"]),
        ("1,2\n", "time=1,rate=3,unit=bit", 1, &["no column 3", "has 2"]),
        ("t,r\n1\n", "time=t,rate=r,unit=bit", 2, &["found 1 cells, expected 2"]),
        ("t,r\n1,2\n0,3\n", "time=t,rate=r,unit=bit", 3, &["`0` goes back", "run=COLUMN"]),
        ("t,r\n1,x\n", "time=t,rate=r,unit=bit", 2, &["found `x`, expected a rate"]),
        (
            "t,r\n1,-5\n",
            "time=t,rate=r,unit=bit",
            2,
            &["no row with a rate", "1 values, the first here, are below zero"],
        ),
        ("1,-5\n", "time=1,rate=2,unit=bit", 1, &["`-5` is below zero"]),
        ("t,r\n1,-x\n", "time=t,rate=r,unit=bit", 2, &["found `-x`, expected a rate"]),
        ("t,r\n1,1e10\n", "time=t,rate=r,unit=mbit", 2, &["too large for a rate", "at most 1000000000"]),
        ("t,r\nx,1\n", "time=t,time-unit=date,rate=r,unit=mbit", 2, &["found `x`, expected a date"]),
        ("t,l\n1,2\n", "time=t,loss=l,loss-unit=share", 2, &["`loss-unit`", "from 0 to 1"]),
        ("t,r\n\"1,2\n", "time=t,rate=r,unit=bit", 2, &["a quote without an end"]),
        ("t,r\n\"1\"x,2\n", "time=t,rate=r,unit=bit", 2, &["found `x,2`", "after a quoted cell"]),
        ("d,r\n0,2\n", "duration=d,rate=r,unit=bit", 1, &["no duration"]),
        ("d,r\n1e10,2\n", "duration=d,time-unit=s,rate=r,unit=bit", 2, &["too large for a duration"]),
    ] {
        let by: Columns = by.parse().unwrap();
        let error = Trace::read_columns("x.csv", text.as_bytes(), &by).expect_err(text).to_string();
        let place = format!("x.csv:{line}:");
        for word in words.iter().copied().chain([place.as_str()]) {
            assert!(error.contains(word), "{word:?} is not in what is said of {text:?}:\n{error}");
        }
    }
}

#[test]
fn two_columns_of_numbers_are_read_in_the_units_that_make_them_plausible() {
    let guess = |text: &str| Trace::read("x.txt", text.as_bytes(), None).map(|trace| trace.format());
    for (text, what) in [
        ("0.0 20.1\n5.0 20.5\n10.0 7.5\n", "FCC's: every 5 s"),
        ("1.0 1978\n2.0 1170\n3.0 4\n4.0 2041\n", "5G: up to 2 Gbit/s every second"),
        ("0.0\t0.3\n0.51\t0.397\n17.8\t0.003\n19.8\t0.23\n300.1\t0.2\n", "irregular steps"),
        ("0 40000\n0.5 25000\n1 40000\n", "a fast link"),
        ("0 500\n600 500\n", "a constant rate"),
        ("0 5\n300 5\n300 8\n600 8\n", "pairs, but slow"),
        ("0 5\n1800 8\n3600 7\n", "half an hour"),
    ] {
        assert_eq!(guess(text).unwrap(), Format::PENSIEVE, "{what}");
    }
    // What may be in ms or kbit/s is said.
    let remarks = |text: &str| Trace::read("x.txt", text.as_bytes(), None).unwrap().remarks().join("\n");
    for (text, says) in [
        ("0 4.03\n500 3.61\n1000 4.1\n1500 4.2\n", "rows 500 s apart, 3.985 Mbit/s on average"),
        (
            "0 500\n1 700\n2 900\n",
            "rows 1 s apart, 700 Mbit/s on average; `--columns time=1,time-unit=ms,rate=2",
        ),
        ("0 3168\n1 3183\n2 3100\n3 3000\n", "rows 1 s apart, 3.113 Gbit/s on average"),
        (
            "0 3.1\n1 3.2\n2 3.1\n",
            "rows 1 s apart, 3.133 Mbit/s on average; `--columns time=1,rate=2,unit=kbit`",
        ),
    ] {
        assert!(remarks(text).contains(says), "{}", remarks(text));
    }
    for text in ["15 3168\n474 3168\n514 3183\n905 3183\n1016 3100\n", "0 300\n900 300\n950 250\n1900 250\n"]
    {
        assert_eq!(guess(text).unwrap(), Format::OBOE, "{text}");
    }
    for (text, words) in [
        ("0 1000000\n10 5000000\n20 2000000\n", ["2667 Gbit/s", "`--columns time=1,rate=2,unit=bit`"]),
        (
            "0 3168\n1000 3183\n2000 3100\n",
            ["1000 s apart, with a mean of 3.15 Gbit/s", "`--columns time=1,time-unit=ms,rate=2,unit=kbit`"],
        ),
        ("0 8\n7200 5\n14400 7\n", ["7200 s apart", "`--columns time=1,time-unit=ms,rate=2,unit=mbit`"]),
    ] {
        let error = guess(text).expect_err(text).to_string();
        for word in
            words.into_iter().chain(["x.txt:1:", "Pensieve's seconds and Mbit/s", "`--from pensieve`"])
        {
            assert!(error.contains(word), "{word:?} is not in what is said of {text:?}:\n{error}");
        }
        // Who insists is believed, and so is the name of a file.
        assert!(Trace::read("x.txt", text.as_bytes(), Some(Format::PENSIEVE)).is_ok());
        assert!(Trace::read("x.pensieve", text.as_bytes(), None).is_ok());
    }
}

#[test]
fn broken_files_of_public_sets_are_refused_likewise() {
    let home = "386,2016-06-01 00:04:11,http://a,1.2.3.4,1,1,10\n";
    let fcc = format!("{home}387,2016-06-01 00:05:11,http://a,1.2.3.4,1,1,10\n");
    let server = format!("{home}386,2016-06-01 00:05:11,http://b,1.2.3.4,1,1,10\n");
    for (text, line, words) in [
        ("[{\"duration_ms\": 1,\n\"bandwidth_kbps\": -1}]", 2, &["`-1` is below zero"] as &[&str]),
        ("[{\"duration_ms\": 1}]", 1, &["`bandwidth_kbps` is missing"]),
        (
            "[{\"duration_ms\": 1, \"bandwidth_kbps\": 1, \"latency\": 1}]",
            1,
            &["`latency`", "did you mean `latency_ms`?"],
        ),
        (
            "[{\"duration_ms\": \"1\", \"bandwidth_kbps\": 1}]",
            1,
            &["found `1`, expected a duration in milliseconds"],
        ),
        ("[{\"duration_ms\": 0, \"bandwidth_kbps\": 1}]", 1, &["no duration"]),
        (
            "[{\"duration_ms\": 1, \"bandwidth_kbps\": 1, \"latency_ms\": 1},\n{\"duration_ms\": 1, \"bandwidth_kbps\": 1}]",
            2,
            &["`latency_ms` is missing"],
        ),
        ("0.0\t1\n0.5\t2\n0.4\t3\n", 3, &["`0.4` goes back", "500ms"]),
        ("0.0 1\n0.5\n", 2, &["found `0.5`", "Mbit/s"]),
        ("0.0 1\n", 1, &["no duration", "two rows or more"]),
        ("0.0 1\n1 nan\n", 2, &["found `nan`", "a rate in Mbit/s"]),
        ("0 300\n900 300\n950 250\n1900 250\n2000 x\n", 5, &["found `x`", "a rate in kbit/s"]),
        ("0 300\n900 300\n950 250\n1900 250\n1800 1\n", 5, &["`1800` goes back", "1.9s"]),
        ("0 300\n900 300\n950 250\n950 250\n5000 1\n", 4, &["this chunk has no duration"]),
        ("5,Mbits/sec\n5,Tbits/sec\n", 2, &["found `Tbits/sec`", "`Kbits/sec`"]),
        ("5,Mbits/sec\n-,Mbits/sec\n", 2, &["found `-`", "a rate"]),
        (
            "{\"uplink\": {\"trace_pattern\": []}}",
            1,
            &["`uplink` or `downlink` with a `trace_pattern` is missing"],
        ),
        (
            "{\"uplink\": {\"trace_pattern\": [{\"duration\": 5, \"capacity\": 1, \"loss\": 0},\n\
             {\"duration\": 5, \"capacity\": 1}]}}",
            2,
            &["`loss` is missing, which other periods have"],
        ),
        (
            "{\"uplink\": {\"trace_pattern\": [{\"duration\": 5,\n\"capacity\": 1, \"loss\": 20}]}}",
            2,
            &["`20` is too large for a loss from 0 to 1"],
        ),
        ("{\"uplink\": {\"trace_pattern\": [{\"duration\": 5}]}}", 1, &["`capacity` is missing"]),
        ("{\"entries\": [{\"dateTime\": \"x\",\n\"dlBw\": 1}]}", 1, &["found `x`", "expected a date"]),
        ("{\"entries\": [{\"dateTime\": \"2020-10-09\",\n\"dlBw\": -1}]}", 2, &["`-1` is below zero"]),
        ("{\"entries\": [{\"dateTime\": \"2020-10-09\"}]}", 1, &["no entry has a rate", "`dlBw`"]),
        ("{\"entries\": [{\"dateTime\": \"2020-10-09\", \"ulBw\": 1}]}", 1, &["no duration"]),
        (
            "{\"entries\": [{\"dateTime\": \"2020-10-09\", \"dlBw\": 1},\n{\"dateTime\": \"2020-10-08\", \"dlBw\": 1}]}",
            2,
            &["the time goes back"],
        ),
        (
            "{\"intervals\": [{\"sum\": {\"seconds\": 1,\n\"bits_per_second\": \"x\"}}]}",
            2,
            &["found `x`", "a rate in bits per second"],
        ),
        ("{\"intervals\": [{\"sum\": {\"bits_per_second\": 5}}]}", 1, &["`seconds` is missing"]),
        (
            "{\"intervals\": [{\"sum\": {\"seconds\": 0, \"bits_per_second\": 5}}]}",
            1,
            &["no interval that lasts"],
        ),
        ("{\"timestamps\": [0, 1],\n\"bandwidths\": [1]}", 1, &["2 `timestamps`, but 1 `bandwidths`"]),
        ("{\"timestamps\": [5, 6,\n5.5], \"bandwidths\": [1, 1, 1]}", 2, &["the time goes back", "6s"]),
        ("{\"timestamps\": [5], \"bandwidths\": [1]}", 1, &["no duration", "the last one is the end"]),
        ("{\"timestamps\": [0, 1], \"bandwidths\": [1, 1],\n\"queue\": 0}", 2, &["one packet or more"]),
        ("1 2 3.0 4.0 5 6\n1 2 3.0 4.0 5\n", 2, &["found 5 numbers, expected 6"]),
        ("1 2 3.0 4.0 5 0\n", 1, &["5 bytes in `0` ms"]),
        ("1 2 3.0 4.0 5 1.5\n", 1, &["found `1.5`", "milliseconds since the row before"]),
        (&fcc, 2, &["several homes", "`386`", "`387`", "grep '^386,'"]),
        (&server, 2, &["`http://b`", "grep 'http://a'"]),
    ] {
        let error = Trace::read("x", text.as_bytes(), None).expect_err(text).to_string();
        let place = format!("x:{line}:");
        for word in words.iter().copied().chain([place.as_str()]) {
            assert!(error.contains(word), "{word:?} is not in what is said of {text:?}:\n{error}");
        }
    }
}

#[test]
fn what_sabre_and_pensieve_can_hold_is_read_as_it_was() {
    let rows = "time_ms,rate_kbit,delay_ms,loss\n0,1500,20,0\n500,down,,0.1\n750,250.125,30,0\n1000\n";
    let trace = crate::read("x.csv", rows);
    let sabre = trace.write(Format::SABRE).unwrap();
    let again = Trace::read("x.json", sabre.text.as_bytes(), None).unwrap();
    assert_eq!((again.format(), again.length(), again.rate()), (Format::SABRE, ms(1000), trace.rate()));
    assert_eq!(again.delay().unwrap()[0].1, ms(20));
    assert_eq!(again.delay().unwrap().last().unwrap(), &(at(750), ms(30)));
    let pensieve = trace.write(Format::PENSIEVE).unwrap();
    assert_eq!(pensieve.text, "0\t1.5\n0.5\t1.5\n0.75\t0\n1\t0.250125\n");
    let again = Trace::read("x", pensieve.text.as_bytes(), None).unwrap();
    assert_eq!((again.format(), again.length(), again.rate()), (Format::PENSIEVE, ms(1000), trace.rate()));
    for (written, words) in
        [(&sabre, ["loss", "round trip", "repeats"]), (&pensieve, ["delay", "loss", "repeats"])]
    {
        let said = written.remarks.join("\n");
        for word in words {
            assert!(said.contains(word), "{word}: {said}");
        }
    }
    // Logs have more than a trace.
    for format in [
        Format::MM_LINK,
        Format::PING,
        Format::IPERF_TEXT,
        Format::JSON_ROWS,
        Format::SPEEDTEST_CLI,
        Format::NTRACE,
        Format::IPERF3,
        Format::OBOE,
        Format::NORWAY,
        Format::UCC,
        Format::LUMOS5G,
        Format::SIGCOMM21_5G,
        Format::FCC,
    ] {
        let error = trace.write(format).unwrap_err().to_string();
        assert!(error.contains(format.name()) && error.contains("not written"), "{error}");
    }
    let unlimited = crate::read("x.csv", "time_s,rate_mbit\n0,unlimited\n1\n");
    assert!(unlimited.write(Format::SABRE).is_err() && unlimited.write(Format::PENSIEVE).is_err());
    assert_eq!(again.length(), Duration::from_secs(1));
}
