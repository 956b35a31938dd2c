//! What tools print: ping.

use std::fmt::Write;

use narrows_scenario::trace::{Format, Trace};

use crate::{at, ms, read};

/// Delays in microseconds, with their milliseconds.
fn delays(trace: &Trace) -> Vec<(u64, u64)> {
    let points = trace.delay().expect("it has delays").iter();
    points.map(|point| (point.0.nanos() / 1_000_000, point.1.nanos() / 1000)).collect()
}

/// The error of a file has all these words.
fn refused(text: &str, words: &[&str]) {
    let error = Trace::read("x.log", text.as_bytes(), None).expect_err(text).to_string();
    for word in words {
        assert!(error.contains(word), "{word:?} is not in what is said of {text:?}:\n{error}");
    }
}

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
        "PING a (192.0.2.1) 56(84) bytes of data.\n64 bytes from 192.0.2.1: icmp_seq=1 ttl=5 time=1 ms\n\
         PING b (192.0.2.2) 56(84) bytes of data.\n",
        &["x.log:3:", "several hosts: `a` and `b`"],
    );
    refused(
        "64 bytes from 192.0.2.1: icmp_seq=1 ttl=5 time=1 ms\n64 bytes from 192.0.2.2: icmp_seq=1 ttl=5 time=1 ms\n",
        &["x.log:2:", "`192.0.2.1` and `192.0.2.2`"],
    );
    refused(
        "PING a (192.0.2.1) 56(84) bytes of data.\nno answer yet for icmp_seq=1\n",
        &["no line is an answer"],
    );
    refused(
        "Reply from 1.2.3.4: bytes=32 time=xms TTL=5\n",
        &["x.log:1:", "found `x`, expected a round trip in milliseconds"],
    );
    refused("Antwort von 1.2.3.4: Bytes=32 Zeit=13ms TTL=54\n", &["x.log:1:", "in English"]);
    let trace = read("x.csv", "64 bytes from 192.0.2.1: icmp_seq=1 ttl=54 time=10 ms\n");
    assert_eq!(trace.format(), Format::PING);
}
