//! Captures in and out.
#![expect(
    clippy::unwrap_used,
    reason = "tests may unwrap, and the lint does not see that helpers here are tests"
)]

mod common;

use std::path::Path;

use narrows_core::Duration;
use narrows_frame::capture::{CaptureReader, CaptureWriter, Captured};
use narrows_frame::craft::Udp;
use narrows_frame::parse::parse_cut;
use narrows_frame::{LinkLayer, WallTime};
use narrows_scenario::Scenario;
use narrows_sim::{Destination, SimError, SimOptions, simulate};

/// A packet of a capture: instant, interface, bytes, comment.
type Seen = (u64, String, Vec<u8>, Option<String>);

fn read(path: &Path) -> Vec<Seen> {
    let mut reader = CaptureReader::open(path).unwrap();
    let mut all = Vec::new();
    while let Some(packet) = reader.read().unwrap() {
        assert_eq!(packet.length as usize, packet.bytes.len());
        let (at, interface) = (packet.instant.nanos(), packet.interface);
        let (bytes, comment) = (packet.bytes.to_vec(), packet.comment.map(Into::into));
        all.push((at, reader.interface_name(interface).unwrap().to_owned(), bytes, comment));
    }
    all
}

fn scenario(link: &str, traffic: &str, folder: &Path) -> Scenario {
    let text = format!(
        "[hosts.client]\n[hosts.server]\n[links.access]\nbetween = [\"client\", \"server\"]\n{link}\n\
         [[traffic]]\nname = \"t\"\nfrom = \"client\"\nto = \"server\"\n{traffic}\n"
    );
    Scenario::parse(&text, folder.join("test.toml").to_str().unwrap())
        .unwrap_or_else(|error| panic!("{error}"))
}

fn capture_to(path: &Path) -> SimOptions {
    SimOptions { capture: Some(Destination::File(path.into())), ..SimOptions::default() }
}

/// Generated packets become frames; played again through a link that does nothing they come out as they were.
#[test]
fn what_goes_out_comes_in_again() {
    let folder = common::folder("round-trip");
    let (first, second) = (folder.join("first.pcapng"), folder.join("second.pcapng"));
    let link = "rate = \"1mbit\"\ndelay = \"10ms\"\nqueue = \"2 packets\"";
    let traffic = "constant = \"2mbit\"\nlength = { mix = [{ length = \"40 bytes\" , weight = 1 }, { length = \"1500 bytes\", weight = 1 }] }\npackets = 50";
    let report = simulate(&scenario(link, traffic, &folder), &capture_to(&first)).unwrap().report;
    let all = read(&first);
    assert_eq!(all.len(), 50);
    let dropped: Vec<_> = all.iter().filter(|(.., comment)| comment.is_some()).collect();
    assert_eq!(dropped.len() as u64, report.directions[0].dropped_packets);
    assert!(!dropped.is_empty());
    for (_, interface, _, comment) in &dropped {
        assert_eq!(
            (interface.as_str(), comment.as_deref()),
            ("client.access", Some("dropped at access.up: queue full"))
        );
    }
    for (at, interface, bytes, _) in all.iter().filter(|(.., comment)| comment.is_none()) {
        let parsed = parse_cut(LinkLayer::Ethernet, bytes, bytes.len() as u32);
        assert_eq!((interface.as_str(), parsed.key.destination_port), ("server.access", 9));
        assert!([40, 1500].contains(&parsed.length));
        assert!(*at > 10_000_000);
    }

    // Those that were dropped are in the capture too, and are played with the others.
    let again = scenario("", "capture = \"first.pcapng\"\nstart = \"1s\"", &folder);
    let report = simulate(&again, &capture_to(&second)).unwrap().report;
    assert_eq!(report.conservation.delivered_packets, 50);
    let played = read(&second);
    let start = all[0].0;
    for (before, after) in all.iter().zip(&played) {
        assert_eq!((after.0, &after.2), (before.0 - start + 1_000_000_000, &before.2));
        assert_eq!(after.1, "server.access");
    }
}

/// The pieces of a packet that was cut, and flipped bits, are in the bytes.
#[test]
fn what_the_network_did_is_to_be_seen() {
    let folder = common::folder("edits");
    let out = folder.join("out.pcapng");
    let link = "mtu = 620\ncorrupt = \"100%\"";
    simulate(
        &scenario(link, "constant = \"10/s\"\nlength = \"1500 bytes\"\npackets = 1", &folder),
        &capture_to(&out),
    )
    .unwrap();
    let pieces = read(&out);
    // 1480 bytes of payload in pieces of 600.
    let lengths: Vec<_> = pieces.iter().map(|(_, _, bytes, _)| bytes.len()).collect();
    assert_eq!(lengths, [14 + 620, 14 + 620, 14 + 300]);
    let clean = simulate_clean(&folder);
    let differing: u32 = clean
        .iter()
        .zip(&pieces)
        .map(|((.., a, _), (.., b, _))| a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum::<u32>())
        .sum();
    assert_eq!(differing, 3, "one bit in each piece");
}

fn simulate_clean(folder: &Path) -> Vec<Seen> {
    let out = folder.join("clean.pcapng");
    let traffic = "constant = \"10/s\"\nlength = \"1500 bytes\"\npackets = 1";
    simulate(&scenario("mtu = 620", traffic, folder), &capture_to(&out)).unwrap();
    read(&out)
}

/// Marks are in the bytes of played packets, with a checksum that is right again, and in the report.
#[test]
fn marks_are_to_be_seen() {
    let folder = common::folder("marks");
    let (file, out) = (folder.join("capable.pcapng"), folder.join("out.pcapng"));
    // EF with ECT(0), at twice the link's rate.
    const CLASS: u8 = 46 << 2 | 2;
    let udp = Udp::new("10.0.0.1:1000".parse().unwrap(), "10.0.0.2:2000".parse().unwrap());
    let frame =
        Udp { traffic_class: CLASS, ..udp }.ethernet(Default::default(), Default::default(), &[7; 972]);
    let mut writer = CaptureWriter::create(&file, "test").unwrap();
    let interface = writer.interface("a", LinkLayer::Ethernet).unwrap();
    for n in 0..1000 {
        let instant = WallTime::from_nanos(n * 1_000_000);
        let length = frame.len() as u32;
        writer.write(&Captured { instant, interface, length, bytes: &frame, comment: None }).unwrap();
    }
    writer.finish().unwrap();
    let link = "rate = \"4mbit\"\nqueue = { type = \"codel\", ecn = true, bound = \"2000 packets\" }";
    let report =
        simulate(&scenario(link, "capture = \"capable.pcapng\"", &folder), &capture_to(&out)).unwrap().report;
    let up = &report.directions[0];
    assert!(up.marked_packets > 10 && up.dropped_packets == 0, "{up:?}");
    assert_eq!(report.conservation.violations, [""; 0]);
    let mut marked = 0;
    for (_, _, bytes, _) in read(&out) {
        let sum: u32 =
            bytes[14..34].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff, "the header's checksum is right");
        let is_marked = bytes[15] == CLASS | 3;
        assert!(is_marked || bytes == frame);
        assert_eq!(
            (&bytes[..15], &bytes[16..24], &bytes[26..]),
            (&frame[..15], &frame[16..24], &frame[26..])
        );
        marked += u64::from(is_marked);
    }
    assert_eq!(marked, up.marked_packets);
    let text = report.text().to_string();
    assert!(text.contains(&format!("changed      marked {marked}\n")), "{text}");
}

/// A pcap of two UDP packets, 1.5 ms apart, in the older format: made by hand.
fn pcap() -> Vec<u8> {
    pcap_at([(10, &b"one"[..]), (1_510, b"three")])
}

/// One of packets at these microseconds.
fn pcap_at<'a>(packets: impl IntoIterator<Item = (u32, &'a [u8])>) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    let udp = Udp::new("10.0.0.1:1000".parse().unwrap(), "10.0.0.2:2000".parse().unwrap());
    for (micros, payload) in packets {
        let packet = udp.packet(payload);
        for word in [1_700_000_000, micros, packet.len() as u32, packet.len() as u32] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        file.extend_from_slice(&packet);
    }
    file
}

#[test]
fn the_older_format_is_played_too() {
    let folder = common::folder("pcap");
    std::fs::write(folder.join("old.pcap"), pcap()).unwrap();
    let report =
        simulate(&scenario("delay = \"5ms\"", "capture = \"old.pcap\"", &folder), &SimOptions::default())
            .unwrap()
            .report;
    let up = &report.directions[0];
    assert_eq!((up.offered.packets, up.offered.bytes), (2, 31 + 33));
    assert_eq!(report.end_ns, 1_500_000 + 5_000_000);
}

/// Interfaces of one capture may be read in turns. What is far from its order is an error, as it would enter too late.
#[test]
fn packets_out_of_order_enter_in_the_order_of_time() {
    let folder = common::folder("disordered");
    let played = |packets: Vec<(u32, &[u8])>| {
        std::fs::write(folder.join("all.pcap"), pcap_at(packets)).unwrap();
        let records = folder.join("packets.csv");
        let options = SimOptions { packets: Some(records.clone().into()), ..SimOptions::default() };
        simulate(&scenario("", "capture = \"all.pcap\"\nstart = \"2ms\"", &folder), &options)?;
        let text = std::fs::read_to_string(records).unwrap();
        let mut rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let head = rows.next().unwrap();
        let at = |name| head.iter().position(|column| *column == name).unwrap();
        let (arrival, length) = (at("arrival_ns"), at("length_bytes"));
        Ok::<_, SimError>(rows.map(|row| format!("{} {}", row[arrival], row[length])).collect::<Vec<_>>())
    };
    let rows = played(vec![(500, b"b"), (900, b"cc"), (600, b"ddd"), (100, b"eeee")]).unwrap();
    assert_eq!(rows, ["2000000 32", "2400000 29", "2500000 31", "2800000 30"]);
    let far = (0..1100).map(|number| (1_000 + number, &b"x"[..])).chain([(5, &b"late"[..])]).collect();
    let error = played(far).unwrap_err().to_string();
    assert!(
        error.contains("packet 1101 is earlier than one that is more than 1024 packets before it"),
        "{error}"
    );
}

#[test]
fn a_capture_that_is_cut_short_is_an_error_with_a_place() {
    let folder = common::folder("truncated");
    let whole = pcap();
    std::fs::write(folder.join("cut.pcap"), &whole[..whole.len() - 1]).unwrap();
    let error =
        simulate(&scenario("", "capture = \"cut.pcap\"", &folder), &SimOptions::default()).unwrap_err();
    assert!(matches!(error, SimError::Read(_)));
    let text = error.to_string();
    assert!(text.contains("cut.pcap is cut short: at byte 71 begins a packet"), "{text}");
    assert!(!error.is_broken_pipe());

    let error =
        simulate(&scenario("", "capture = \"none.pcap\"", &folder), &SimOptions::default()).unwrap_err();
    assert!(error.to_string().contains("none.pcap"), "{error}");
}

/// Packets that come after the duration are not played.
#[test]
fn a_duration_ends_a_capture() {
    let folder = common::folder("duration");
    std::fs::write(folder.join("old.pcap"), pcap()).unwrap();
    let options = SimOptions { duration: Some(Duration::from_millis(1)), ..SimOptions::default() };
    let report = simulate(&scenario("", "capture = \"old.pcap\"", &folder), &options).unwrap().report;
    assert_eq!((report.conservation.in_packets, report.end_ns), (1, 1_000_000));
}

/// Each router takes one of the hop limit: where a packet leaves, and where it is dropped, its frame says what was left. What a
/// router itself sends loses none there.
#[test]
fn frames_have_passed_routers() {
    let folder = common::folder("hops");
    let out = folder.join("out.pcapng");
    let text = "[hosts.client]\n[hosts.server]\n[routers.r1]\n[routers.r2]\n[routers.r3]
        [links.access]\nbetween = [\"client\", \"r1\"]\ndelay = \"1ms\"
        [links.one]\nbetween = [\"r1\", \"r2\"]\ndelay = \"1ms\"
        [links.two]\nbetween = [\"r2\", \"r3\"]\ndelay = \"1ms\"
        [links.lan]\nbetween = [\"r3\", \"server\"]\ndelay = \"1ms\"\nloss = \"50%\"
        [[traffic]]\nfrom = \"client\"\nto = \"server\"\nconstant = \"100/s\"\npackets = 40
        [[traffic]]\nname = \"six\"\nfrom = \"server\"\nto = \"client\"\nconstant = \"100/s\"\npackets = 40\nprotocol = \"tcp\"";
    let scenario = Scenario::parse(text, "hops.toml").unwrap_or_else(|error| panic!("{error}"));
    let report = simulate(&scenario, &capture_to(&out)).unwrap().report;
    assert_eq!(report.conservation.violations, [""; 0]);
    let all = read(&out);
    assert_eq!(all.len(), 80);
    let mut dropped = [0, 0];
    for (_, interface, bytes, comment) in &all {
        // Lost on the last link of the way there, behind three routers, and on the first of the way back.
        let passed = match (comment.as_deref(), interface.as_str()) {
            (None, "server.lan" | "client.access") => 3,
            (Some("dropped at lan.up: wire loss"), "client.access") => {
                dropped[0] += 1;
                3
            }
            (Some("dropped at lan.down: wire loss"), "server.lan") => {
                dropped[1] += 1;
                0
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(bytes[22], 64 - passed, "{interface} {comment:?}");
        let sum: u32 =
            bytes[14..34].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff, "the header's checksum is right");
    }
    assert!(dropped.iter().all(|number| (5..35).contains(number)), "{dropped:?}");
}

/// A sender that responds, and what acknowledges it, are TCP segments with right checksums, whose marks are to be seen.
#[test]
fn generated_segments_are_tcp() {
    let folder = common::folder("segments");
    let out = folder.join("out.pcapng");
    let link = "rate = \"10mbit\"\ndelay = \"10ms\"\nqueue = { type = \"codel\", bound = \"1000 packets\" }";
    let traffic = "aimd = { ecn = true, size = \"2 MB\", window = 100 }\nlength = \"1500 bytes\"";
    let report = simulate(&scenario(link, traffic, &folder), &capture_to(&out)).unwrap().report;
    let all = read(&out);
    let marked = report.directions[0].marked_packets;
    let (mut data, mut acknowledgements, mut marks) = (0, 0, 0);
    for (_, interface, bytes, _) in &all {
        let parsed = parse_cut(LinkLayer::Ethernet, bytes, bytes.len() as u32);
        assert_eq!((parsed.key.transport, parsed.key.tcp_flags), (6, 0x10));
        match (interface.as_str(), parsed.length) {
            ("server.access", 1500) => data += 1,
            ("client.access", 40) => acknowledgements += 1,
            other => panic!("{other:?}"),
        }
        marks += u64::from(parsed.key.ecn() == 3);
    }
    // 2 MB are 1333.3 packets; none is lost, as marks do instead.
    assert_eq!((data, acknowledgements), (1334, 1334));
    assert!(marks > 0 && marks == marked, "{marks} {marked:?}");
}

/// Segments of applications are whole in a capture, with right checksums; without a capture the run is the same.
#[test]
fn segments_of_applications_are_whole() {
    let folder = common::folder("applications");
    let link = "rate = \"10mbit\"\ndelay = \"10ms\"\nqueue = \"20 packets\"";
    let six = "source = \"2001:db8::1\"\ndestination = \"2001:db8::2\"";
    for (ends, header) in [("", 20), (six, 40)] {
        let out = folder.join(format!("{header}.pcapng"));
        let traffic = format!("file = {{ size = \"200 kB\", transactions = 2 }}\n{ends}");
        let download = scenario(link, &traffic, &folder);
        let report = simulate(&download, &capture_to(&out)).unwrap().report;
        assert_eq!(simulate(&download, &SimOptions::default()).unwrap().report, report);
        let all = read(&out);
        assert!(all.iter().any(|(_, _, bytes, _)| bytes.len() > 1400));
        for (_, _, bytes, _) in &all {
            let (ip, tcp) = bytes[14..].split_at(header);
            let (addresses, length) = match header {
                20 => (&ip[12..], u16::from_be_bytes([ip[2], ip[3]]) - 20),
                _ => (&ip[8..], u16::from_be_bytes([ip[4], ip[5]])),
            };
            assert_eq!(tcp.len(), usize::from(length));
            if header == 20 {
                assert_eq!(folded(ip, 0), 0xffff);
            }
            assert_eq!(folded(&[addresses, tcp].concat(), 6 + u64::from(length)), 0xffff);
        }
    }
}

/// The sum of RFC 1071.
fn folded(bytes: &[u8], more: u64) -> u64 {
    let word = |pair: &[u8]| u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u64::from(low));
    let sum = bytes.chunks(2).map(word).sum::<u64>() + more;
    let sum = (sum & 0xffff) + (sum >> 16);
    (sum & 0xffff) + (sum >> 16)
}
