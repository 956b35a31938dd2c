//! Captures of live runs: what left, what was dropped, and when each was to leave.

use std::path::Path;
use std::process::Command;

use narrows_frame::capture::CaptureReader;

use crate::common::{Scratch, eventually, finish, narrows, pair, run, sound, start};

struct Packet {
    nanos: u64,
    interface: String,
    comment: String,
    bytes: Vec<u8>,
}

fn read(file: &Path) -> Vec<Packet> {
    let mut reader = CaptureReader::open(file).unwrap();
    let mut all = Vec::new();
    loop {
        let Some(packet) = reader.read().unwrap() else { return all };
        let (nanos, bytes) = (packet.instant.nanos(), packet.bytes.to_vec());
        let (comment, interface) = (packet.comment.unwrap_or_default().to_owned(), packet.interface);
        let interface = reader.interface_name(interface).unwrap().to_owned();
        all.push(Packet { nanos, interface, comment, bytes });
    }
}

/// The number between two words of a comment.
#[track_caller]
fn between(comment: &str, before: &str, after: &str) -> u64 {
    let (_, rest) = comment.split_once(before).unwrap_or_else(|| panic!("no `{before}`: {comment}"));
    let (number, _) = rest.split_once(after).unwrap_or_else(|| panic!("no `{after}`: {comment}"));
    number.replace('.', "").parse().unwrap_or_else(|error| panic!("{error}: {number}: {comment}"))
}

fn released(packet: &Packet) -> bool {
    packet.comment.starts_with("scheduled ")
}

/// A queue that overflows and a wire that loses.
const FLAGS: [&str; 8] = ["--rate", "1mbit", "--delay", "3ms", "--queue", "2 packets", "--loss", "10%/0%"];
/// Bursts of ten packets of 1000 bytes, and then single ones.
const PINGS: &str = "ping -q -l 10 -c 10 -s 972 -W 1 $NARROWS_SERVER >&2
    ping -q -i 0.01 -c 40 -s 972 -W 1 $NARROWS_SERVER >&2; true";

#[test]
#[ignore = "needs namespaces, ping"]
fn every_packet_is_there_with_its_verdict_and_a_replay_has_the_same() {
    let scratch = Scratch::new();
    let [captured, log, again] = ["live.pcapng", "run.log", "again.pcapng"].map(|name| scratch.file(name));
    let [captured, log, again] = [&captured, &log, &again].map(|path| path.to_str().unwrap());
    let mut flags = FLAGS.to_vec();
    flags.extend(["--json", "-", "--capture", captured, "--record", log, "--record-whole"]);
    let ended = finish(&mut run(flags, PINGS)).expect(0);
    let report = ended.json();
    sound(&report);
    let packets = read(captured.as_ref());
    assert_eq!(report["capture"]["written_packets"], packets.len());
    assert_eq!(report["capture"]["missing_packets"], 0);
    assert!(ended.err.contains(&format!("the capture {captured} has {} packets", packets.len())), "{ended}");
    assert!(packets.is_sorted_by_key(|packet| packet.nanos), "in order of time");

    for (from, to, link) in
        [("client.link", "server.link", "link.up"), ("server.link", "client.link", "link.down")]
    {
        let delivered = pair(&report, from, to)["delivered"]["packets"].as_u64().unwrap();
        let left: Vec<_> = packets.iter().filter(|one| released(one) && one.interface == to).collect();
        assert_eq!(left.len() as u64, delivered, "{link}");
        for packet in left {
            assert!(packet.comment.ends_with(&format!(" s at {from}, by {link}")), "{}", packet.comment);
            let scheduled = between(&packet.comment, "scheduled ", " s,");
            assert!(scheduled >= between(&packet.comment, "came in ", " s at") + 3_000_000);
        }
    }
    let dropped: Vec<_> =
        packets.iter().filter(|packet| packet.comment.starts_with("dropped at link.")).collect();
    assert_eq!(report["conservation"]["dropped_packets"], dropped.len());
    for words in ["dropped at link.up: queue full", "dropped at link.down: wire loss"] {
        assert!(dropped.iter().any(|packet| packet.comment == words), "no {words}: {ended}");
    }

    // In virtual time each leaves when it was scheduled.
    finish(&mut narrows(["sim", "--quiet", "--replay", log, "--capture", again])).expect(0);
    let mut expected: Vec<_> = packets
        .iter()
        .filter(|packet| released(packet))
        .map(|packet| {
            let late = between(&packet.comment, "released ", " ns late");
            (packet.nanos - late, packet.interface.clone(), packet.bytes.clone())
        })
        .collect();
    expected.sort();
    let replayed = read(again.as_ref());
    let mut left: Vec<_> = replayed
        .iter()
        .filter(|packet| packet.comment.is_empty())
        .map(|packet| (packet.nanos, packet.interface.clone(), packet.bytes.clone()))
        .collect();
    left.sort();
    assert!(left == expected, "{} and {} packets", left.len(), expected.len());
    let words = |packets: &[Packet]| -> Vec<(u64, String, Vec<u8>)> {
        let dropped = packets.iter().filter(|packet| packet.comment.starts_with("dropped"));
        dropped.map(|packet| (packet.nanos, packet.comment.clone(), packet.bytes.clone())).collect()
    };
    assert!(
        words(&packets) == words(&replayed),
        "the same drops, at the same instants, for the same reasons"
    );
}

#[test]
#[ignore = "needs namespaces, ping, tshark"]
fn wireshark_reads_it() {
    let scratch = Scratch::new();
    let file = scratch.file("live.pcapng");
    let file = file.to_str().unwrap();
    let mut flags = FLAGS.to_vec();
    flags.extend(["--quiet", "--capture", file, "--capture-bytes", "60"]);
    finish(&mut run(flags, PINGS)).expect(0);
    let mut tshark = Command::new("tshark");
    tshark.args(["-r", file, "-Y", "icmp", "-T", "fields"]);
    for field in ["interface_name", "len", "cap_len", "comment"] {
        tshark.args(["-e", &format!("frame.{field}")]);
    }
    let printed = finish(&mut tshark).expect(0);
    let rows: Vec<Vec<_>> = printed.out.lines().map(|line| line.split('\t').collect()).collect();
    assert!(rows.len() > 40, "{printed}");
    assert!(rows.iter().all(|row| row[1] == "1014" && row[2] == "60"), "{printed}");
    for (port, words) in [
        ("server.link", "by link.up"),
        ("client.link", "by link.down"),
        ("client.link", "dropped at link.up: queue full"),
    ] {
        assert!(rows.iter().any(|row| row[0] == port && row[3].contains(words)), "{port} {words}: {printed}");
    }
}

#[test]
#[ignore = "needs namespaces, ping"]
fn a_run_that_is_ended_or_killed_leaves_a_file_that_can_be_read() {
    let _turn = crate::leftovers::turn();
    for signal in ["INT", "TERM", "KILL"] {
        let scratch = Scratch::new();
        let file = scratch.file("live.pcapng");
        let line = "ping -q -i 0.01 -c 50 $NARROWS_SERVER; echo ready; exec sleep 1000";
        let mut started =
            start(&mut run(["--quiet", "--delay", "1ms", "--capture", file.to_str().unwrap()], line));
        started.until_it_says("ready");
        eventually("something is on the disk", || !read(&file).is_empty());
        started.signal(signal);
        started.wait();
        let packets = read(&file);
        // A killed one lacks what had waited in memory.
        let least = if signal == "KILL" { 1 } else { 100 };
        assert!(packets.len() >= least, "{signal}: {} packets", packets.len());
        crate::leftovers::clean();
    }
}

#[test]
#[ignore = "needs namespaces"]
fn a_file_that_cannot_be_made_is_told_before_anything_runs() {
    let ended =
        finish(&mut run(["--delay", "1ms", "--capture", "/no/such/folder/a.pcapng"], "echo ran")).expect(2);
    assert!(ended.out.is_empty() && ended.err.contains("cannot write /no/such/folder/a.pcapng"), "{ended}");
    let ended = finish(&mut run(["--delay", "1ms", "--capture", "/dev/full"], "echo ran")).expect(2);
    assert!(ended.out.is_empty() && ended.err.contains("cannot write /dev/full: No space left"), "{ended}");
    let ended = finish(&mut run(["--capture", "-"], "echo ran")).expect(2);
    assert!(ended.out.is_empty() && ended.err.contains("--capture -: "), "{ended}");
    let ended = finish(&mut run(["--capture-bytes", "60"], "echo ran")).expect(2);
    assert!(ended.err.contains("--capture <FILE.pcapng>"), "{ended}");
}
