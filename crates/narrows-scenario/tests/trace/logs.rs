//! What tools print: ping, iPerf and speedtest-cli.

use std::fmt::Write;

use narrows_scenario::trace::{Format, Trace};

use crate::{at, delays, mbit, ms, rates, read, refused};

#[test]
fn pings_are_delays_and_losses() {
    let file = |name: &str| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/traces");
        read(name, &std::fs::read_to_string(format!("{folder}/{name}")).expect("it is there"))
    };
    let trace = file("ping-linux.log");
    assert_eq!(delays(&trace), [(0, 10_000), (500, 10_750), (1500, 10_000)]);
    // Half of the probes are lost in both directions together.
    let loss = trace.loss().expect("it has losses");
    assert_eq!((loss.len(), loss[0].0), (1, at(0)));
    assert!((loss[0].1.as_f64() - (1.0 - 0.5f64.sqrt())).abs() < 1e-15, "{loss:?}");
    // At the times at which they were sent; the last lasts as long as the others on average.
    let trace = file("ping-times.log");
    assert_eq!((delays(&trace), trace.loss()), (vec![(0, 10_000), (1000, 15_000), (2500, 10_000)], None));
    let trace = file("ping-windows.txt");
    assert_eq!(delays(&trace), [(0, 6500), (2000, 250), (3000, 7500)]);
}

#[test]
fn numbers_of_probes_begin_again_and_come_late() {
    let line = |number: u64| format!("64 bytes from 192.0.2.1: icmp_seq={number} ttl=54 time=10 ms\n");
    let lines = |numbers: &[u64]| numbers.iter().map(|number| line(*number)).collect::<String>();
    let seconds = |text: &str| read("x", text).length().seconds();
    // Past the largest number, and two that swap their places.
    let trace = read("x", &lines(&[65_533, 65_535, 65_534, 0, 1, 3]));
    assert_eq!((trace.length(), trace.loss().is_some()), (ms(7000), true));
    // Another run without a header.
    assert_eq!(seconds(&lines(&[1, 2, 3, 1, 2])), 5.0);
    assert_eq!(seconds(&lines(&[2, 3, 1])), 3.0);
    // Losses at both ends, which header and summary tell.
    let text = format!(
        "PING a (192.0.2.1) 56(84) bytes of data.\n{}5 packets transmitted, 1 received, 80% packet loss, time 4050ms\n",
        line(3)
    );
    let trace = read("x", &text);
    assert_eq!((trace.length(), delays(&trace)), (ms(5000), vec![(0, 5000)]));
    // The time of a summary tells the interval, if it has no wait for a lost one in it.
    let text =
        format!("{}3 packets transmitted, 3 received, 0% packet loss, time 410ms\n", lines(&[1, 2, 3]));
    assert_eq!(seconds(&text), 0.6);
    // Losses of ten probes each.
    let mut text = String::new();
    for number in (1..=20).chain(31..=40) {
        let _ = write!(text, "{}", line(number));
    }
    let trace = read("x", &text);
    let losses: Vec<_> =
        trace.loss().expect("it has losses").iter().map(|at| (at.0, at.1.as_f64())).collect();
    assert_eq!(losses, [(at(0), 0.0), (at(20_000), 1.0), (at(30_000), 0.0)]);
    assert_eq!(trace.info().outages.len(), 1);
}

#[test]
fn logs_that_are_not_one_path_are_refused() {
    refused(
        "x.log",
        "PING a (192.0.2.1) 56(84) bytes of data.\n64 bytes from 192.0.2.1: icmp_seq=1 ttl=5 time=1 ms\n\
         PING b (192.0.2.2) 56(84) bytes of data.\n",
        &["x.log:3:", "several hosts: `a` and `b`"],
    );
    refused(
        "x.log",
        "64 bytes from 192.0.2.1: icmp_seq=1 ttl=5 time=1 ms\n64 bytes from 192.0.2.2: icmp_seq=1 ttl=5 time=1 ms\n",
        &["x.log:2:", "`192.0.2.1` and `192.0.2.2`"],
    );
    refused(
        "x.log",
        "PING a (192.0.2.1) 56(84) bytes of data.\nno answer yet for icmp_seq=1\n",
        &["no line is an answer"],
    );
    refused(
        "x.log",
        "Reply from 1.2.3.4: bytes=32 time=xms TTL=5\n",
        &["x.log:1:", "found `x`, expected a round trip in milliseconds"],
    );
    refused("x.log", "Antwort von 1.2.3.4: Bytes=32 Zeit=13ms TTL=54\n", &["x.log:1:", "in English"]);
    let trace = read("x.csv", "64 bytes from 192.0.2.1: icmp_seq=1 ttl=54 time=10 ms\n");
    assert_eq!(trace.format(), Format::PING);
}

#[test]
fn iperfs_are_rates() {
    let line = |stream: &str, at: u64, mbit: u64| {
        format!("[{stream}]   {at}.00-{}.00   sec  1.25 MBytes  {mbit}.0 Mbits/sec\n", at + 1)
    };
    let rates = |text: &str| -> Vec<(u64, u64)> {
        let bits = |rate: narrows_core::Rate| rate.bits_per_second() / 1_000_000;
        crate::rates(&read("x.csv", text)).into_iter().map(|(at, rate)| (at, bits(rate))).collect()
    };
    // Behind other text, and with a summary that is not marked.
    let text = format!("# a log\nhello, world\n{}{}", line("  5", 0, 7), line("  5", 1, 9));
    let whole = "[  5]   0.00-2.04   sec  2.5 MBytes  8.00 Mbits/sec\n";
    assert_eq!(rates(&format!("{text}{whole}")), [(0, 7), (1000, 9)]);
    // Runs without headers, with the same name and with another.
    let again = |stream: &str| format!("{text}{whole}{}{}", line(stream, 0, 3), line(stream, 1, 4));
    for stream in ["  5", "  7"] {
        assert_eq!(rates(&again(stream)), [(0, 7), (1000, 9), (2000, 3), (3000, 4)], "{stream}");
    }
    // Of a test in both directions, the forward one.
    let both = "[  5][TX-C]   0.00-1.00   sec  1.25 MBytes  5.00 Mbits/sec\n\
        [  7][RX-C]   0.00-1.00   sec  1.25 MBytes  6.00 Mbits/sec\n";
    assert_eq!(rates(both), [(0, 5)]);
    assert_eq!(rates("[  3]  0.0-10.0 sec  12.5 MBytes  10.0 Mbits/sec\n"), [(0, 10)]);
}

#[test]
fn iperfs_of_which_no_link_is_told_are_refused() {
    let line = |stream: &str| format!("[{stream}]   0.00-1.00   sec  1.25 MBytes  5.00 Mbits/sec\n");
    refused(
        "x.log",
        &(line("  5") + &line("  6")),
        &["x.log:1:", "several streams without a `[SUM]`: `5` or `6`"],
    );
    let to =
        |host: &str| format!("[  5] local 192.0.2.2 port 1 connected to {host} port 5201\n{}", line("  5"));
    refused(
        "x.log",
        &(to("192.0.2.1") + &to("192.0.2.3")),
        &["x.log:3:", "several hosts: `192.0.2.1` and `192.0.2.3`"],
    );
    let reverse = "Connecting to host a, port 5201\nReverse mode, remote host a is sending\n";
    refused("x.log", &(line("  5") + reverse + &line("  5")), &["x.log:4:", "both directions", "`-R`"]);
    let summary = "[  5]   0.00-9.00   sec  1.25 MBytes  5.00 Mbits/sec                  receiver\n";
    refused("x.log", summary, &["1 lines are summaries of whole tests", "`-i 1`"]);
    refused(
        "x.log",
        "[  5]   0.00-1.00   sec  1.25 MBytes  -nan Mbits/sec\n",
        &["found `-nan`, expected a rate"],
    );
    refused("x.log", "iperf 3.7\nwarning: nothing\n", &["unknown format", "`iperf3 -i 1`"]);
}

mod any_lines {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// Whatever lines come in which order, there is a trace, or an error that can be printed.
        #[test]
        fn nothing_ends_the_program(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "64 bytes from a: icmp_seq=", "64 bytes from b: seq=", " ttl=5 time=", " ms\n", "ms\n", "ms (DUP!)\n",
                    "Reply from a: bytes=32 time<1ms TTL=5\n", "Request timed out.\n", "no answer yet for icmp_seq=",
                    "PING a (b) 56(84) bytes of data.\n", "PING a (b): 56 data bytes\n", "[1700000000.5] ",
                    "[1700000009] ", " packets transmitted, 3 received, 0% packet loss, time ", "ping -i ", " a\n", "\n",
                    "0", "1", "2", "9", "17", "65535", "4294967295", "18446744073709551615", "0.5", "1e15", "-1", "-", ".",
                    "[  5] ", "[SUM] ", "[  7][RX-C] ", "0.00-1.00 sec 1 MBytes 5 Mbits/sec\n",
                    "1.00-2.00 sec 1 MBytes 5 MBytes/sec\n", " sec 1 KBytes ", " Gbits/sec\n", "0.00-9.00 sec 9 MBytes ",
                    "Connecting to host a\n", "Reverse mode, remote host a is sending\n", " sender\n", "(omitted)\n",
                    "{\"time_s\":", ",\"rate_mbit\":", "}\n", "[", "]", ",", "{\"a\":", "\"x\"", "null", "10:00:0", "23:59:59,",
                    "time,rate_mbit\n", "time_s,target,rtt_ms\n", "a,", "#",
                ]),
                0..30,
            ),
            format in prop::option::of(prop::sample::select(vec![
                Format::PING, Format::IPERF_TEXT, Format::JSON_ROWS, Format::CSV,
            ])),
        ) {
            let text = parts.concat();
            match Trace::read("x", text.as_bytes(), format) {
                Err(error) => prop_assert!(!error.to_string().is_empty()),
                Ok(trace) => {
                    prop_assert!(trace.length().nanos() > 0);
                    prop_assert!(trace.write(Format::CSV).is_ok());
                    prop_assert!(!trace.info().to_string().is_empty());
                }
            }
        }
    }
}

#[test]
fn speed_tests_are_rates_and_delays() {
    let (step, last) = (600_000, 1_200_000);
    let blocks = "26/11/2015 21:10\nPing: 18 ms\nDownload: 31 Mbits/s\nUpload: 4.8 Mbits/s\n26/11/2015 21:20\n\
                  Cannot retrieve speedtest configuration\n26/11/2015 21:30\nPing: 17 ms\nDownload: 30000 Kbits/s\n";
    let lines = "[Thu 26 Nov 22:10:00 CET 2015] Ping=\"18 ms\" Download=\"31 Mbit/s\" Upload=\"4.8 Mbit/s\"\n\
                 [Thu 26 Nov 22:20:00 CET 2015] error\n\
                 [Thu 26 Nov 22:30:00 CET 2015] Ping=\"17 ms\" Download=\"0.03 Gbit/s\" Upload=\"4.8 Mbit/s\"\n";
    // The time behind each test, as `(speedtest-cli --simple; date +%s) >> log` writes it.
    let behind = "Ping: 18 ms\nDownload: 31 Mbit/s\n1448572200\n1448572800\nPing: 17 ms\nDownload: 30 Mbit/s\n1448573400\n";
    for text in [blocks, lines, behind] {
        let trace = read("x.log", text);
        assert_eq!((trace.format(), trace.length()), (Format::SPEEDTEST_CLI, ms(last + step)), "{text}");
        assert_eq!(rates(&trace), [(0, mbit(31)), (last, mbit(30))], "{text}");
        assert_eq!(delays(&trace), [(0, 9000), (last, 8500)], "{text}");
        let said = trace.remarks().join("\n");
        for words in
            ["the rate is Download", "1 tests have no result", "half of `Ping`", "2 values are missing"]
        {
            assert!(said.contains(words), "{said}");
        }
    }
    let half = read(
        "x",
        "Download: 4 Mbit/s\n10:00:00\nDownload: 5 Mbit/s\nDownload: 6 Mbit/s\nPing: 1800000.0 ms\n",
    );
    assert_eq!((half.columns(), rates(&half)), (vec!["rate"], vec![(0, mbit(6))]));
    let said = half.remarks().join("\n");
    assert!(
        said.contains("1 values ahead of the first time") && said.contains("1 values are followed"),
        "{said}"
    );
    let pings =
        read("x", "10:00:00 Ping: 5 ms\nDownload: 0.00 Mbit/s\n10:00:02 Ping: 6 ms\nDownload: 0.00 Mbit/s\n");
    assert_eq!((pings.columns(), delays(&pings)), (vec!["delay"], vec![(0, 2500), (2000, 3000)]));
    for (text, words) in [
        ("Ping: 5 ms\nDownload: 4 Mbit/s\n", ["x.log:1:", "no test has a time", "speedtest-cli --simple"]),
        (
            "10:00:05 Download: 4 Mbit/s\n\n10:00:04 Download: 4 Mbit/s\n",
            ["x.log:3:1", "the time `10:00:04` goes back", "in order of time"],
        ),
        (
            "10:00:05 Download: 4 Mbit/s\n2020-01-01 10:00:04 Download: 4 Mbit/s\n",
            ["x.log:2:1", "found `2020-01-01 10:00:04`", "expected a time of day"],
        ),
        ("10:00:05 Download: 4.5.6 Mbit/s\n", ["x.log:1:20", "found `4.5.6`", "expected a rate"]),
        ("10:00:05 Download: 0 Mbit/s\n", ["x.log:1:1", "no test has a result", "above 0"]),
    ] {
        refused("x.log", text, &words);
    }
}
