//! Schedulers and queue management on real packets: what they do to programs, and that a recorded run does it again.

use std::fs;

use serde_json::Value;

use crate::common::{Scratch, direction, finish, narrows, quoted, run, scenarios, sound};
use crate::roles::role;
use crate::traffic::rows;

/// Replays a log, of which every verdict must be the same; the report, and the rows of all packets.
#[track_caller]
fn replayed(scratch: &Scratch) -> (Value, String) {
    let (log, csv) = (scratch.file("run.log"), scratch.file("packets.csv"));
    let csv_path = csv.to_str().unwrap();
    let arguments = ["sim", "--replay", log.to_str().unwrap(), "--json", "-", "--packets", csv_path];
    let ended = finish(&mut narrows(arguments)).expect(0);
    (ended.json(), fs::read_to_string(csv).unwrap())
}

/// The report of a run and that of its replay say the same of what the links did: drops, marks, each class.
#[track_caller]
fn same_links(report: &Value, again: &Value) {
    for link in ["access.up", "access.down"] {
        let (first, second) = (direction(report, link), direction(again, link));
        for key in ["offered", "delivered", "drops", "marked_packets", "classes", "wire_bits"] {
            assert_eq!(first[key], second[key], "{key} of {link}");
        }
    }
    assert_eq!(report["pairs"], again["pairs"], "delays to the nanosecond");
}

/// The class of a link by its name.
#[track_caller]
fn class<'a>(report: &'a Value, link: &str, name: &str) -> &'a Value {
    let all = direction(report, link)["classes"].as_array().unwrap();
    all.iter()
        .find(|class| class["name"] == name)
        .unwrap_or_else(|| panic!("no {name} at {link}: {report:#}"))
}

/// Three downloads fill the queue; what a call's packets wait is up to the scheduler. By the engine's own instants, from
/// the replay.
#[test]
#[ignore = "needs namespaces, iperf3"]
fn a_call_beside_three_downloads_waits_as_the_scheduler_says() {
    let file = scenarios().join("voip-and-bulk.toml");
    let mut waits = Vec::new();
    for scheduler in ["fifo", "qfq", "fq_codel"] {
        let scratch = Scratch::new();
        let (log, set) = (scratch.file("run.log"), format!("access.down.scheduler.type={scheduler}"));
        let mut arguments = vec!["run", file.to_str().unwrap(), "--set", &set, "--json", "-"];
        arguments.extend(["--probe=50", "--probe-dscp", "ef", "--probe-length", "200"]);
        arguments.extend(["--record", log.to_str().unwrap(), "--on", "server", "iperf3 -s -1 >&2", "--"]);
        arguments.extend(["sh", "-c", "iperf3 -R -P 3 -t 4 -c $NARROWS_SERVER >&2"]);
        let report = finish(&mut narrows(arguments)).expect(0).json();
        sound(&report);
        let (again, csv) = replayed(&scratch);
        same_links(&report, &again);
        let rows = rows(&csv);
        let mut queueing: Vec<u64> = rows
            .iter()
            .filter(|row| (row["destination_port"], row["where"]) == ("27182", "client.access"))
            .map(|row| row["queueing_ns"].parse().unwrap())
            .collect();
        queueing.sort_unstable();
        assert!(queueing.len() > 100, "{scheduler}: {} probes", queueing.len());
        waits.push(queueing[queueing.len() * 9 / 10]);
        if scheduler != "fq_codel" {
            let (voip, rest) = (class(&report, "access.down", "voip"), class(&report, "access.down", "rest"));
            assert!(voip["sent_packets"].as_u64() >= Some(queueing.len() as u64), "{voip:#}");
            assert!(rest["sent_share"].as_f64() > Some(0.9), "{rest:#}");
            assert_eq!(voip["dropped_packets"], 0, "{voip:#}");
        }
    }
    let [fifo, qfq, fq_codel] = waits[..] else { panic!("three schedulers") };
    // In the order of arrival a call waits behind the downloads, some 100 ms; else behind a packet or a few.
    assert!(fifo > 20_000_000, "{waits:?}");
    assert!(qfq < fifo / 4 && fq_codel < fifo / 4, "{waits:?}");
}

/// QFQ with CoDel in a class, FQ-CoDel, and RED on the plain link: all with real packets, some changes from inside, and
/// the same once more from the log.
#[test]
#[ignore = "needs namespaces, ping"]
fn a_recorded_run_with_schedulers_and_queue_management_replays() {
    const SCENARIO: &str = r#"
seed = 5
[hosts.client]
[hosts.server]
[links.access]
between = ["client", "server"]
rate = "2mbit"
delay = "5ms"
[links.access.up]
scheduler = { type = "qfq", classes = [
  { name = "bulk", weight = 1, match = { length = "1000 bytes.." }, queue = { type = "codel", ecn = true, bound = "1000 packets" } },
  { name = "voip", weight = 8, match = { protocol = "udp", destination-port = 27182 } },
  { name = "rest", weight = 2 },
] }
[links.access.down]
rate = "1mbit"
queue = { type = "red", min = "2 packets", max = "6 packets", probability = 0.3, weight = 0.2, gentle = true, bound = "50 packets" }
"#;
    let scratch = Scratch::new();
    let (log, file) = (scratch.file("run.log"), scratch.write("all.toml", SCENARIO));
    let narrows_itself = quoted(crate::common::NARROWS);
    // Long pings at once: 0.6 s of the way up, whose end is the beginning of a way that is half as fast.
    let pings = "ping -q -l 100 -c 100 -W 1 -s 1472 $NARROWS_SERVER";
    let line = format!(
        "exec >&2; {pings}
         {narrows_itself} set access.up.scheduler.voip.weight=4 access.up.scheduler.bulk.weight=3 || exit 3
         {pings}
         {narrows_itself} set access.down.queue.type=fifo access.down.scheduler=fq_codel || exit 4
         {pings}
         true"
    );
    let mut arguments = vec!["run", file.to_str().unwrap(), "--probe=100", "--json", "-"];
    arguments.extend(["--record", log.to_str().unwrap(), "--", "sh", "-c", &line]);
    let ended = finish(&mut narrows(arguments)).expect(0);
    let report = ended.json();
    sound(&report);
    let voip = class(&report, "access.up", "voip");
    assert_eq!((&voip["weight"], &voip["matches"].is_string()), (&4.into(), &true), "{voip:#}");
    assert!(voip["sent_packets"].as_u64() > Some(50), "the scheduler is still the same: {voip:#}");
    for link in ["access.up", "access.down"] {
        let drops = direction(&report, link)["drops"].as_array().unwrap();
        let managed = drops.iter().find(|drop| drop["reason"] == "queue management");
        assert!(managed.is_some_and(|drop| drop["packets"].as_u64() > Some(0)), "{report:#}");
    }
    let (again, csv) = replayed(&scratch);
    same_links(&report, &again);
    assert!(rows(&csv).iter().any(|row| row["reason"] == "queue management"));
}

/// A queue that marks: what the programs at the ends see of it, and what the report says.
#[test]
#[ignore = "needs namespaces, tshark"]
fn marks_arrive_at_a_program_and_checksums_are_right() {
    const COUNT: u64 = 150;
    let queue = r#"{ type = "codel", ecn = true, bound = "1000 packets" }"#;
    for version in ["4", "6"] {
        let scratch = Scratch::new();
        let log = scratch.file("run.log");
        let server = role("ecn-server");
        let mut flags = vec!["--rate", "100mbit/2mbit", "--delay", "1ms", "--queue", queue, "--json", "-"];
        flags.extend(["--record-whole", "--record", log.to_str().unwrap(), "--on", "server", &server]);
        // Capable of ECN, ECT(0): all at once, some 0.9 s of the link's time.
        let client = role(&format!("ecn-client{version}:{COUNT}"));
        let ended = finish(&mut run(flags, &client)).expect(0);
        let report = ended.json();
        sound(&report);
        let up = direction(&report, "link.up");
        assert_eq!(up["dropped_packets"], 0, "{up:#}");
        let marked = up["marked_packets"].as_u64().unwrap();
        assert!(marked > 5 && marked < COUNT, "{up:#}");
        // A wrong checksum, of IP or UDP, would have kept a datagram from the server.
        let seen = format!("{COUNT} datagrams arrived, {marked} of them marked\n");
        assert!(ended.err.contains(&seen), "{seen}{ended}");

        // And a capture of the replay shows what left.
        let capture = scratch.file("out.pcapng");
        let arguments = ["sim", "--quiet", "--replay", log.to_str().unwrap(), "--capture"];
        finish(narrows(arguments).arg(&capture)).expect(0);
        let field = if version == "4" { "ip.dsfield.ecn" } else { "ipv6.tclass.ecn" };
        let filter = format!("frame.interface_name == \"server.link\" && {field} == 3");
        let bad = "ip.checksum.status == 0 || udp.checksum.status == 0";
        for (filter, count) in [(filter.as_str(), marked), (bad, 0)] {
            let mut tshark = std::process::Command::new("tshark");
            tshark.args([
                "-o",
                "ip.check_checksum:TRUE",
                "-o",
                "udp.check_checksum:TRUE",
                "-Y",
                filter,
                "-r",
            ]);
            let listed = finish(tshark.arg(&capture)).expect(0).out;
            assert_eq!(listed.lines().count() as u64, count, "{filter}: {listed}");
        }
    }
}

/// Pieces of a datagram are marked one by one; put together again it is marked when one of them was (RFC 3168, 5.3).
#[test]
#[ignore = "needs namespaces"]
fn marked_pieces_come_together() {
    let queue = r#"{ type = "codel", ecn = true, bound = "1000 packets" }"#;
    let server = role("ecn-server");
    let mut flags = vec!["--rate", "100mbit/2mbit", "--mtu", "1500/600", "--queue", queue, "--json", "-"];
    flags.extend(["--on", "server", &server]);
    // Without path MTU discovery datagrams may be cut by whoever has to.
    let client = format!("echo 1 >/proc/sys/net/ipv4/ip_no_pmtu_disc; {}", role("ecn-client4:150"));
    let ended = finish(&mut run(flags, &client)).expect(0);
    let report = ended.json();
    sound(&report);
    let up = direction(&report, "link.up");
    assert_eq!((&up["fragmented_packets"], &up["fragment_packets"]), (&150.into(), &300.into()), "{up:#}");
    let pieces = up["marked_packets"].as_u64().unwrap();
    let (_, said) = ended.err.split_once("150 datagrams arrived, ").unwrap_or_else(|| panic!("{ended}"));
    let datagrams: u64 = said.split(' ').next().unwrap().parse().unwrap();
    assert!(datagrams > 5 && datagrams <= pieces && pieces <= 3 * datagrams, "{datagrams} of {pieces}");
}

/// A real TCP under CoDel on 10 Mbit/s and a round trip of 50 ms: once it has settled its packets wait about as long as the
/// target of 5 ms, where the queue has room for 1.2 s. By the engine's own instants.
#[test]
#[ignore = "needs namespaces, iperf3"]
fn tcp_settles_where_codel_wants_it() {
    let scratch = Scratch::new();
    let log = scratch.file("run.log");
    let queue = r#"{ type = "codel", bound = "1000 packets" }"#;
    let mut flags = vec!["--rate", "10mbit", "--delay", "25ms", "--queue", queue, "--json", "-"];
    flags.extend(["--record", log.to_str().unwrap(), "--on", "server", "iperf3 -s -1 >&2"]);
    let ended = finish(&mut run(flags, "iperf3 -t 7 -c $NARROWS_SERVER >&2")).expect(0);
    sound(&ended.json());
    let (_, csv) = replayed(&scratch);
    let rows = rows(&csv);
    let number = |row: &std::collections::BTreeMap<&str, &str>, key: &str| row[key].parse::<u64>().unwrap();
    let first = rows.iter().map(|row| number(row, "arrival_ns")).min().unwrap();
    let mut waits: Vec<u64> = rows
        .iter()
        .filter(|row| row["where"] == "server.link" && number(row, "arrival_ns") > first + 3_000_000_000)
        .map(|row| number(row, "queueing_ns"))
        .collect();
    waits.sort_unstable();
    assert!(waits.len() > 1000, "{}", waits.len());
    let median = waits[waits.len() / 2];
    assert!(median < 20_000_000, "{median} ns");
}
