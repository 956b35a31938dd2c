//! Trains of segments carried through the network, and hosts at TAP devices: the same verdicts for the same packets.

use std::fs;

use serde_json::Value;

use crate::common::{Scratch, direction, finish, narrows, pair, run, sound};
use crate::roles::{TCP_BYTES, role};
use crate::traffic::rows;

/// Ways of the frames that all have to show the same.
const WAYS: [&[&str]; 3] = [&["--trains"], &["--backend", "tap"], &["--backend", "tap", "--trains"]];

fn carries_trains(way: &[&str]) -> bool {
    way.contains(&"--trains")
}

#[test]
#[ignore = "needs namespaces"]
fn tcp_gets_through_whatever_the_network_does_and_each_packet_has_its_verdict() {
    let scratch = Scratch::new();
    let (log, csv) = (scratch.file("run.log"), scratch.file("packets.csv"));
    let (log, csv_path) = (log.to_str().unwrap(), csv.to_str().unwrap());
    let server = role("tcp-server");
    for way in WAYS {
        for (client, whole) in [("tcp-client", false), ("tcp-client6", true)] {
            // A flipped bit that a checksum did not show would change the stream, and so would a checksum left open.
            let mut flags =
                vec!["--rate", "100mbit", "--delay", "2ms", "--jitter", "200us", "--order", "allow"];
            flags.extend(["--loss", "2%", "--corrupt", "2%", "--duplicate", "2%", "--reorder", "2%"]);
            flags.extend(["--on", "server", &server, "--record", log, "--json", "-"]);
            flags.extend(way);
            if whole {
                flags.push("--record-whole");
            }
            let report = finish(&mut run(flags, &role(client))).expect(0).json();
            sound(&report);
            came(&report, way);
            for link in ["link.up", "link.down"] {
                let link = direction(&report, link);
                for key in ["dropped_packets", "corrupted_packets", "duplicated_packets"] {
                    assert!(link[key].as_u64() > Some(0), "{way:?}: no {key}: {link:#}");
                }
            }
            finish(&mut narrows(["sim", "--replay", log, "--packets", csv_path])).expect(0);
            let csv = fs::read_to_string(&csv).unwrap();
            let rows = rows(&csv);
            let lengths = rows.iter().map(|row| row["length_bytes"].parse::<u32>().unwrap());
            assert_eq!(lengths.max(), Some(1500), "{way:?}: cut before the network, and full");
        }
    }
}

/// Whether the report has what it should of trains.
#[track_caller]
fn came(report: &Value, way: &[&str]) {
    let trains = &report["trains"];
    if !carries_trains(way) {
        return assert_eq!(*trains, Value::Null, "{way:?}");
    }
    let of = |key: &str| trains[key].as_u64().unwrap();
    assert!(of("received") > 0, "{way:?}: {trains:#}");
    assert!(of("received_packets") >= 2 * of("received"), "{way:?}: {trains:#}");
    assert!(of("sent_packets") >= 2 * of("sent"), "{way:?}: {trains:#}");
}

#[test]
#[ignore = "needs namespaces"]
fn nothing_is_edited_that_others_rely_on() {
    // Wire speed, so that packets leave as they came: joined.
    for way in WAYS {
        let server = role("tcp-server");
        let mut flags = vec!["--delay", "1ms", "--on", "server", &server, "--json", "-"];
        flags.extend(way);
        let report = finish(&mut run(flags, &role("tcp-client"))).expect(0).json();
        sound(&report);
        came(&report, way);
        if carries_trains(way) {
            assert!(report["trains"]["sent"].as_u64() > Some(0), "{:#}", report["trains"]);
            assert_eq!(report["trains"]["spread_max_ns"], 0, "without a rate, a train stays at one instant");
        }
        // Each segment has its own verdict: no fewer than the stream takes, each way.
        let least = TCP_BYTES.div_ceil(1460) as u64;
        for (from, to) in [("client.link", "server.link"), ("server.link", "client.link")] {
            let pair = pair(&report, from, to);
            assert!(pair["delivered"]["packets"].as_u64() >= Some(least), "{way:?}: {pair:#}");
            assert_eq!(pair["delay"]["min_ns"], 1_000_000);
            assert_eq!(pair["delay"]["max_ns"], 1_000_000);
        }
    }
}

#[test]
#[ignore = "needs namespaces"]
fn a_busy_link_sends_packet_by_packet() {
    let server = role("tcp-server");
    let mut flags = vec!["--rate", "20mbit", "--delay", "2ms", "--queue", "1000 packets"];
    flags.extend(["--trains", "--on", "server", &server, "--json", "-"]);
    let report = finish(&mut run(flags, &role("tcp-client"))).expect(0).json();
    sound(&report);
    for link in ["link.up", "link.down"] {
        let link = direction(&report, link);
        // No train takes the wire as one packet, and none goes past the queue.
        let (bits, busy) = (link["wire_bits"].as_u64().unwrap(), link["wire_bps"].as_f64().unwrap());
        assert!(bits >= 8 * TCP_BYTES as u64, "{link:#}");
        assert!(busy <= 20_000_000.0 * 1.000_001, "{link:#}");
    }
}

#[test]
#[ignore = "needs namespaces"]
fn a_router_and_marks_leave_checksums_right() {
    let scratch = Scratch::new();
    let scenario = scratch.write(
        "hop.toml",
        r#"
[hosts.client]
[hosts.server]
[routers.middle]
[links.near]
between = ["client", "middle"]
[links.far]
between = ["middle", "server"]
delay = "1ms"
"#,
    );
    let scenario = scenario.to_str().unwrap();
    let server = role("tcp-server");
    for way in WAYS {
        let mut arguments = vec!["run", scenario, "--on", "server", &server, "--json", "-"];
        arguments.extend(way);
        let client = role("tcp-client");
        arguments.extend(["--", "sh", "-c", &client]);
        let report = finish(&mut narrows(arguments)).expect(0).json();
        sound(&report);
        came(&report, way);
    }
}
