//! Traffic through routers: the scenarios that come with narrows, by their records.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::collections::BTreeMap;
use std::path::Path;

use narrows_report::Report;
use narrows_scenario::Scenario;
use narrows_sim::{Destination, SimOptions, simulate};

/// What the record of a packet says, as far as it is looked at here.
#[derive(Debug)]
struct Row {
    feed: String,
    number: u64,
    arrival: u64,
    place: String,
    reason: String,
    departure: u64,
}

/// Runs a scenario of the repository.
fn records(name: &str) -> (Report, Vec<Row>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(format!("{name}.toml"));
    let scenario = Scenario::load(path).unwrap();
    let file = common::folder(&format!("routers-{name}")).join("packets.csv");
    let options = SimOptions { packets: Some(Destination::File(file.clone())), ..SimOptions::default() };
    let report = simulate(&scenario, &options).unwrap().report;
    assert_eq!(report.conservation.violations, [""; 0]);
    let text = std::fs::read_to_string(file).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let column = |name: &str| head.iter().position(|own| *own == name).unwrap();
    let [feed, number, arrival, place, reason, departure] =
        ["feed", "number", "arrival_ns", "where", "reason", "departure_ns"].map(column);
    let row = |line: Vec<&str>| Row {
        feed: line[feed].into(),
        number: line[number].parse().unwrap(),
        arrival: line[arrival].parse().unwrap(),
        place: line[place].into(),
        reason: line[reason].into(),
        departure: line[departure].parse().unwrap(),
    };
    (report, lines.map(row).collect())
}

#[test]
fn thirty_of_a_hundred_packets_take_the_slow_path_and_are_overtaken() {
    let (report, rows) = records("multipath");
    // The mean of the ways there, 0.3·100 + 0.7·20 ms, and back by the fast one.
    assert_eq!(report.round_trips[0].round_trip_ns, 64_000_000);
    let delays: Vec<u64> = rows.iter().map(|row| row.departure - row.arrival).collect();
    let slow = delays.iter().filter(|delay| **delay == 100_000_000).count() as f64;
    let fast = delays.iter().filter(|delay| **delay == 20_000_000).count() as f64;
    let all = rows.len() as f64;
    assert_eq!(slow + fast, all);
    // One degree of freedom: above 10.83 once in a thousand.
    let off = slow - 0.3 * all;
    let statistic = off * off / (0.3 * all) + off * off / (0.7 * all);
    assert!(statistic < 10.83, "{slow} and {fast}: {statistic}");
    // Packets come a millisecond apart: one on the slow path is overtaken by all on the fast one of the next 79.
    let overtaken = rows.windows(2).filter(|pair| pair[1].number < pair[0].number).count();
    assert!(overtaken > 3000, "{overtaken}");
}

#[test]
fn each_flow_keeps_to_one_of_two_paths_and_to_its_order() {
    let (report, rows) = records("three-hops");
    let mut flows: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.place == "server.lan") {
        flows.entry(&row.feed).or_default().push(row);
    }
    let mut far = 0;
    for flow in ["one", "two", "three", "four"] {
        let rows = &flows[flow];
        assert!(rows.len() > 1000, "{flow}: {}", rows.len());
        assert!(rows.windows(2).all(|pair| pair[0].arrival <= pair[1].arrival), "{flow}");
        // The delays are 1 + 5 + 10 + 0.1 or 1 + 25 + 10 + 0.1 ms. The near path has no room for a queue of 20 ms.
        let least = rows.iter().map(|row| row.departure - row.arrival).min().unwrap();
        assert!(
            (16_100_000..18_000_000).contains(&least) || (36_100_000..38_000_000).contains(&least),
            "{least}"
        );
        far += u32::from(least > 36_000_000);
    }
    assert!((1..4).contains(&far), "{far} of four flows take the far path");
    let link = |name: &str| report.directions.iter().find(|own| own.link == name).unwrap().offered.packets;
    assert!(link("near.up") > 1000 && link("far.up") > 1000);
    assert!(rows.iter().filter(|row| row.feed == "download" && row.place == "client.access").count() > 1000);
}

#[test]
fn a_circle_is_ended_by_the_hop_limit_and_counted() {
    let (report, rows) = records("loop");
    let of = |feed| rows.iter().filter(move |row| row.feed == feed);
    assert_eq!((of("lost").count(), of("back").count()), (100, 100));
    // The 64th router is the second: 1 ms, then 63 times 2 ms and 1498 bytes on a wire of 100 Mbit/s, of which two packets at
    // a time are on one.
    for row in of("lost") {
        assert_eq!((row.place.as_str(), row.reason.as_str()), ("r2", "hop limit"));
        assert!(row.departure - row.arrival >= 1_000_000 + 63 * (2_000_000 + 119_840), "{row:?}");
    }
    assert!(of("back").all(|row| row.place == "client.access"));
    let text = report.text().to_string();
    assert!(text.contains("hop limit"), "{text}");
}
