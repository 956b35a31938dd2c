//! TCP and UDP through the network: packets as they are on a wire, and the rate that was asked for.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::common::{Scratch, direction, finish, narrows, pair, run, sound};
use crate::roles::{FLOOD, role};

/// One UDP datagram of 1470 bytes with its headers at 1 Mbit/s.
const DATAGRAM_NS: u64 = 1498 * 8 * 1000;

/// The rows of a CSV file, by the names of its columns.
pub(crate) fn rows(csv: &str) -> Vec<BTreeMap<&str, &str>> {
    let mut lines = csv.lines();
    let names: Vec<_> = lines.next().unwrap().split(',').collect();
    lines.map(|line| names.iter().copied().zip(line.split(',')).collect()).collect()
}

#[test]
#[ignore = "needs namespaces"]
fn tcp_gets_through_whatever_the_network_does_and_its_packets_are_those_of_a_wire() {
    let scratch = Scratch::new();
    let (log, csv) = (scratch.file("run.log"), scratch.file("packets.csv"));
    let (log, csv_path) = (log.to_str().unwrap(), csv.to_str().unwrap());
    let server = role("tcp-server");
    for client in ["tcp-client", "tcp-client6"] {
        // A flipped bit that a checksum did not show would change the stream. Each packet's fate depends on its number
        // alone, and there are hundreds each way, so with this seed each thing happens in every run.
        let impairments = ["--loss", "2%", "--corrupt", "2%", "--duplicate", "2%", "--reorder", "2%"];
        let mut flags = vec!["--rate", "100mbit", "--delay", "2ms", "--jitter", "200us", "--order", "allow"];
        flags.extend(impairments);
        flags.extend(["--on", "server", &server, "--record", log, "--json", "-"]);
        let report = finish(&mut run(flags, &role(client))).expect(0).json();
        sound(&report);
        for link in ["link.up", "link.down"] {
            let link = direction(&report, link);
            for key in ["dropped_packets", "corrupted_packets", "duplicated_packets", "reordered_packets"] {
                assert!(link[key].as_u64() > Some(0), "no {key}: {link:#}");
            }
        }
        finish(&mut narrows(["sim", "--replay", log, "--packets", csv_path])).expect(0);
        let csv = fs::read_to_string(&csv).unwrap();
        let rows = rows(&csv);
        let lengths = rows.iter().map(|row| row["length_bytes"].parse::<u32>().unwrap());
        assert_eq!(lengths.max(), Some(1500), "segments are cut before the network, and full");
        assert!(rows.iter().any(|row| row["protocol"] == "tcp"));
    }
}

#[test]
#[ignore = "needs namespaces"]
fn tcp_gets_through_a_link_with_a_smaller_mtu() {
    for client in ["tcp-client", "tcp-client6"] {
        let server = role("tcp-server");
        let flags = ["--delay", "1ms", "--mtu", "1300", "--on", "server", &server, "--json", "-"];
        let report = finish(&mut run(flags, &role(client))).expect(0).json();
        sound(&report);
        let link = direction(&report, "link.up");
        let drops = link["drops"].as_array().unwrap();
        // The sender was told, and sent smaller ones from then on: only its first window was too long.
        assert_eq!(drops.len(), 1, "{link:#}");
        assert!(drops[0]["packets"].as_u64() < Some(50), "{link:#}");
    }
}

/// What a link sent, and what it was asked for, in bits a second.
fn rates(report: &Value, link: &str) -> (f64, f64) {
    let link = direction(report, link);
    (link["wire_bps"].as_f64().unwrap(), link["asked_rate_bps"].as_f64().unwrap())
}

#[test]
#[ignore = "needs namespaces"]
fn a_busy_link_sends_at_its_rate() {
    // All of the burst is in the queue long before the link has sent it, however slow this machine is.
    let server = role("udp-server");
    let mut flags = vec!["--rate", "20mbit", "--delay", "10ms", "--queue", "3000 packets"];
    flags.extend(["--on", "server", &server, "--json", "-"]);
    let report = finish(&mut run(flags, &role("udp-burst:2000"))).expect(0).json();
    sound(&report);
    let (sent, asked) = rates(&report, "link.up");
    assert!((sent / asked - 1.0).abs() < 0.005, "{sent} of {asked} bit/s");
    let link = direction(&report, "link.up");
    assert_eq!(link["delivered"]["packets"], 2000);
    assert_eq!(link["delivered"]["bytes"], 2000 * 1498);
    // Never more than the rate: the last of a burst of n waits for the others, less what went before it came.
    let most = pair(&report, "client.link", "server.link")["delay"]["max_ns"].as_u64().unwrap();
    assert!(most <= 2000 * DATAGRAM_NS / 20 + 10_000_000, "{most} ns");
}

#[test]
#[ignore = "needs namespaces"]
fn the_worst_delay_under_overload_is_that_of_a_full_queue_and_not_ten_seconds() {
    let server = role("udp-server");
    let mut flags =
        vec!["--rate", "100mbit/1mbit", "--delay", "0ms/100ms", "--queue", "1000 packets/10 packets"];
    flags.extend(["--on", "server", &server, "--json", "-"]);
    // Datagrams at once: one goes on the wire, ten wait, and as good as all others find the queue full.
    let report = finish(&mut run(flags, &role("udp-flood:11"))).expect(0).json();
    sound(&report);
    let most = pair(&report, "client.link", "server.link")["delay"]["max_ns"].as_u64().unwrap();
    let bound = 100_000_000 + 11 * DATAGRAM_NS;
    assert!(most <= bound, "{most} ns");
    assert!(most > bound - DATAGRAM_NS, "the queue was full: {most} ns");
    let link = direction(&report, "link.up");
    // The program waits for eleven replies. The host it was on says of each further one that nobody is there.
    let packets = |link: &Value, key: &str| link[key]["packets"].as_u64().unwrap();
    let unawaited = packets(direction(&report, "link.down"), "delivered").saturating_sub(11);
    let offered = packets(link, "offered");
    assert!((FLOOD.into()..=u64::from(FLOOD) + unawaited).contains(&offered), "{unawaited} {link:#}");
    let drops = link["drops"].as_array().unwrap();
    assert_eq!(drops.len(), 1, "{link:#}");
    assert_eq!(drops[0]["reason"], "queue full", "{link:#}");
}
