//! A bridge between two interfaces that exist already: what crosses, and that nothing is left of it.
//!
//! ```text
//! left: end ── one ┐ middle ┌ two ── end :right
//! ```
//!
//! All in namespaces of the test's own, which end with it.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use narrows_io::address::IpPrefix;
use narrows_io::frame::FramePool;
use narrows_io::link::{VethEnd, create_veth};
use narrows_io::namespace::Namespace;
use narrows_io::offload::{Feature, features};
use narrows_io::packet_socket::{PacketSocket, ReceiveBatch};
use narrows_io::process::spawn;
use narrows_io::route_socket::RouteSocket;
use serde_json::Value;

use crate::common::{Finished, Scratch, Started, direction, eventually, finish, narrows, sound, start};
use crate::leftovers::{RunFolder, clean, turn};

pub(crate) struct Bed {
    pub(crate) left: Namespace,
    middle: Namespace,
    pub(crate) right: Namespace,
}

impl Bed {
    pub(crate) fn new(mtu: u32) -> Self {
        let [left, middle, right] = [(); 3].map(|()| Namespace::create().unwrap());
        for (near, name) in [(&left, "one"), (&right, "two")] {
            let (end, own) = (
                VethEnd { namespace: near, name: "end", mac: None },
                VethEnd { namespace: &middle, name, mac: None },
            );
            create_veth(&end, &own, mtu).unwrap();
            RouteSocket::open(near).unwrap().set_up("end").unwrap();
            RouteSocket::open(&middle).unwrap().set_up(name).unwrap();
            RouteSocket::open(near).unwrap().wait_for_carrier("end", Duration::from_secs(60)).unwrap();
        }
        let bed = Self { left, middle, right };
        for (namespace, address) in [(&bed.left, "10.9.8.1"), (&bed.right, "10.9.8.2")] {
            let prefix = IpPrefix::new(address.parse::<std::net::IpAddr>().unwrap(), 24);
            RouteSocket::open(namespace).unwrap().add_address("end", prefix).unwrap();
        }
        bed
    }

    /// The path by which another process gets into the middle.
    fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.middle.as_fd().as_raw_fd())
    }

    fn command(&self, flags: &[&str]) -> Command {
        let mut command = narrows(["bridge", "one", "two", "--netns", &self.path()]);
        command.args(flags);
        command
    }

    /// A bridge that stands.
    pub(crate) fn bridge(&self, flags: &[&str]) -> Started {
        let mut started = start(&mut self.command(flags));
        started.until_it_complains("a bridge between one and two");
        started
    }

    fn features(&self) -> [Vec<Feature>; 2] {
        ["one", "two"].map(|name| features(&self.middle, name).unwrap())
    }

    fn socket(namespace: &Namespace) -> PacketSocket {
        PacketSocket::open(namespace, "end").unwrap()
    }
}

/// Ends it as a Ctrl-C does.
pub(crate) fn end(started: Started) -> Finished {
    started.signal("INT");
    started.wait()
}

/// An Ethernet frame for everybody, of this type and with this many bytes behind that.
fn frame(kind: &[u8], length: usize) -> Vec<u8> {
    let mut frame = vec![0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 7];
    frame.extend(kind);
    frame.extend((0..length).map(|n| (n * 13) as u8));
    frame
}

/// Receives until this very frame has come.
#[track_caller]
fn comes(socket: &mut PacketSocket, wanted: &[u8], what: &str) {
    let (mut batch, mut pool, mut frames) = (ReceiveBatch::new(), FramePool::default(), Vec::new());
    eventually(what, || {
        socket.receive(&mut batch, &mut pool, &mut frames).unwrap();
        frames.drain(..).any(|received: narrows_io::packet_socket::Received| received.frame[..] == *wanted)
    });
}

#[test]
#[ignore = "needs root"]
fn every_protocol_crosses_both_ways_byte_for_byte() {
    let bed = Bed::new(9000);
    let bridge = bed.bridge(&["--delay", "2ms", "--json", "-"]);
    let (mut left, mut right) = (Bed::socket(&bed.left), Bed::socket(&bed.right));
    let vlan = [0x81, 0x00, 0x00, 0x0a, 0x08, 0x06];
    let two_tags = [0x88, 0xa8, 0x00, 0x14, 0x81, 0x00, 0x00, 0x0a, 0x12, 0x34];
    let kinds: [(&str, &[u8], usize); 7] = [
        ("ARP", &[0x08, 0x06], 46),
        ("LLDP", &[0x88, 0xcc], 100),
        ("ARP in a VLAN", &vlan, 46),
        ("two VLAN tags", &two_tags, 60),
        ("a jumbo frame", &[0x12, 0x34], 9000),
        ("a malformed IPv4 header", &[0x08, 0x00], 30),
        ("a frame with nothing in it", &[0x12, 0x34], 46),
    ];
    for (what, kind, length) in kinds {
        let frame = frame(kind, length);
        assert_eq!(left.send(&[&frame]).count, 1, "{what}");
        comes(&mut right, &frame, what);
        assert_eq!(right.send(&[&frame]).count, 1, "{what}");
        comes(&mut left, &frame, what);
    }
    let ended = end(bridge).expect(0);
    let report = ended.json();
    sound(&report);
    for (link, host) in [("link.up", "client"), ("link.down", "server")] {
        let direction = direction(&report, link);
        assert_eq!(direction["from"], host);
        assert!(direction["delivered"]["packets"].as_u64() >= Some(7), "{direction:#}");
    }
    for pair in report["pairs"].as_array().unwrap() {
        assert_eq!(pair["delay"]["min_ns"], 2_000_000, "what is not IP is delayed as well: {pair:#}");
    }
}

#[test]
#[ignore = "needs root"]
fn a_tap_device_is_no_end_of_a_bridge() {
    let ended = finish(&mut Bed::new(1500).command(&["--backend", "tap"])).expect(2);
    assert!(
        ended.err.contains("`one` exists already, and a TAP device is always a new interface"),
        "{ended}"
    );
}

#[test]
#[ignore = "needs root"]
fn what_is_not_ip_counts_as_the_overhead_says() {
    let bed = Bed::new(1500);
    let bridge = bed.bridge(&["--rate", "1mbit", "--delay", "1ms", "--overhead", "frame", "--json", "-"]);
    let (mut left, mut right) = (Bed::socket(&bed.left), Bed::socket(&bed.right));
    // 14 + 986 bytes at 1 Mbit/s take 8 ms.
    let frame = frame(&[0x12, 0x34], 986);
    assert_eq!(left.send(&[&frame]).count, 1);
    comes(&mut right, &frame, "the frame");
    let report = end(bridge).expect(0).json();
    let most = report["pairs"].as_array().unwrap().iter().map(|p| p["delay"]["max_ns"].as_u64()).max();
    assert!(most.flatten() >= Some(9_000_000), "{report:#}");
}

#[test]
#[ignore = "needs root, ping"]
fn hosts_behind_it_find_each_other_and_their_trains_are_cut() {
    let bed = Bed::new(1500);
    let scratch = Scratch::new();
    let log = scratch.file("run.log");
    let bridge = bed.bridge(&["--delay", "1ms", "--json", "-", "--record", log.to_str().unwrap()]);
    let mut ping = Command::new("ping");
    ping.args(["-c", "3", "-i", "0.1", "-W", "20", "10.9.8.2"]).stdout(Stdio::null());
    assert!(spawn(ping, &bed.left).unwrap().wait().unwrap().success(), "address resolution crosses, too");
    // Both ends' offloads are on: one frame holds up to 64 KiB, and no checksum is made.
    let sent: Vec<u8> = (0..2_000_000_u32).map(|n| ((n * 7) >> 3) as u8).collect();
    let listener = bed.right.run(|| TcpListener::bind("10.9.8.2:5001").unwrap()).unwrap();
    let receiver = thread::spawn(move || {
        let mut got = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut got).unwrap();
        got
    });
    bed.left.run(|| TcpStream::connect("10.9.8.2:5001").unwrap().write_all(&sent).unwrap()).unwrap();
    assert!(receiver.join().unwrap() == sent, "what was sent came");
    let report = end(bridge).expect(0).json();
    sound(&report);
    let up = &direction(&report, "link.up")["delivered"];
    let (packets, bytes) = (up["packets"].as_u64().unwrap(), up["bytes"].as_u64().unwrap());
    assert!(bytes > 2_000_000 && bytes / packets <= 1500 && packets >= 2_000_000 / 1448, "{up:#}");
    let replay = finish(&mut narrows(["sim", "--replay", log.to_str().unwrap(), "--quiet"]));
    replay.expect(0);
}

/// The longest that packets from one end took, in whole milliseconds.
fn longest(report: &Value, from: &str) -> u64 {
    let mut pairs = report["pairs"].as_array().unwrap().iter();
    let pair = pairs.find(|pair| pair["from_port"].as_str().unwrap().starts_with(from)).unwrap();
    pair["delay"]["max_ns"].as_u64().unwrap() / 1_000_000
}

/// Datagrams there and back, until one has come back.
fn echoes(bed: &Bed) {
    let bind = |namespace: &Namespace, at: &str| {
        let socket = namespace.run(|| UdpSocket::bind(at).unwrap()).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        socket
    };
    let (left, right) = (bind(&bed.left, "10.9.8.1:0"), bind(&bed.right, "10.9.8.2:5001"));
    let mut buffer = [0; 16];
    eventually("a datagram comes back", || {
        left.send_to(b"there", "10.9.8.2:5001").unwrap();
        let Ok((_, from)) = right.recv_from(&mut buffer) else { return false };
        right.send_to(b"back", from).unwrap();
        left.recv(&mut buffer).is_ok()
    });
}

#[test]
#[ignore = "needs root"]
fn rules_and_disciplines_mean_the_bridge_and_replays_agree() {
    let bed = Bed::new(1500);
    let scratch = Scratch::new();
    let rules =
        scratch.write("rules", "pipe 1 config delay 4ms\nadd 100 pipe 1 udp from 10.9.8.1 to 10.9.8.2 out\n");
    let script = scratch.write(
        "script",
        "tc qdisc add dev one root netem delay 5ms\ntc qdisc add dev two root netem delay 7ms\n",
    );
    let log = scratch.file("run.log");
    let (rules, script, log) = (rules.to_str().unwrap(), script.to_str().unwrap(), log.to_str().unwrap());
    for (flags, up, down) in [
        (&["--ipfw", rules][..], 4, 0),
        (&["--tc", script], 7, 5),
        (&["--netem-up", "delay 6ms"], 6, 0),
        (&["--client", "5001", "--out", "delay 8ms", "--in", "delay 3ms"], 8, 3),
        (&["--server", "80", "--out", "delay 8ms"], 0, 0),
    ] {
        let bridge = bed.bridge(&[flags, &["--json", "-", "--record", log]].concat());
        echoes(&bed);
        let report = end(bridge).expect(0).json();
        assert_eq!(
            (longest(&report, "client"), longest(&report, "server")),
            (up, down),
            "{flags:?}: {report:#}"
        );
        finish(&mut narrows(["sim", "--replay", log, "--quiet"])).expect(0);
    }
    let rules = scratch.write("me", "pipe 1 config delay 4ms\nadd 100 pipe 1 udp from me to any out\n");
    let ended = finish(&mut bed.command(&["--ipfw", rules.to_str().unwrap()])).expect(2);
    for said in ["rule 100 uses the addresses of", "`one` and `two`"] {
        assert!(ended.err.contains(said), "{ended}");
    }
}

#[test]
#[ignore = "needs root"]
fn a_feed_drives_it_and_the_replay_agrees() {
    let bed = Bed::new(1500);
    let scratch = Scratch::new();
    let log = scratch.file("run.log");
    let feed = "link.up.delay={ feed = \"radio\" }";
    let bridge = bed.bridge(&["--set", feed, "--json", "-", "--record", log.to_str().unwrap()]);
    let values: String = (0..500).map(|n| format!("{}us\n", 1500 + n)).collect();
    let mut command = narrows(["feed", "--run", &bridge.id().to_string()]);
    command.stdin(File::open(scratch.write("values", &values)).unwrap());
    finish(&mut command).expect(0);
    echoes(&bed);
    let report = end(bridge).expect(0).json();
    sound(&report);
    assert!(longest(&report, "client") >= 1, "{report:#}");
    finish(&mut narrows(["sim", "--replay", log.to_str().unwrap(), "--quiet"])).expect(0);
}

#[test]
#[ignore = "needs root"]
fn interfaces_are_as_before_however_it_ends() {
    let _turn = turn();
    let bed = Bed::new(1500);
    let before = bed.features();
    let bridge = bed.bridge(&["--delay", "1ms"]);
    assert_ne!(bed.features(), before, "offloads are off while it stands");
    end(bridge).expect(0);
    assert_eq!(bed.features(), before);

    let folder = RunFolder::new();
    let mut command = bed.command(&["--duration", "50ms"]);
    let ended = finish(command.env("NARROWS_CONTROL", folder.file("none.sock"))).expect(0);
    assert!(ended.err.contains("between one and two"), "{ended}");
    assert_eq!(bed.features(), before);
    assert!(!folder.path().exists(), "what remembers them goes with it");

    let bridge = bed.bridge(&[]);
    bridge.signal("KILL");
    assert_eq!(bridge.wait().ended_by(), Some(9));
    assert_ne!(bed.features(), before, "killed, it could not put them back");
    let cleaned = clean();
    assert!(cleaned.out.contains("restored one") && cleaned.out.contains("restored two"), "{cleaned}");
    assert_eq!(bed.features(), before);

    // And without `clean`, the next one does.
    let bridge = bed.bridge(&[]);
    bridge.signal("KILL");
    bridge.wait();
    end(bed.bridge(&[])).expect(0);
    assert_eq!(bed.features(), before);
    clean();
}

#[test]
#[ignore = "needs root"]
fn a_bridge_that_cannot_stand_says_why_and_changes_nothing() {
    let bed = Bed::new(1500);
    let before = bed.features();
    let path = bed.path();
    let refused = |ends: [&str; 2], flags: &[&str], words: &[&str]| {
        let mut command = narrows(["bridge", ends[0], ends[1], "--netns", &path]);
        let ended = finish(command.args(flags)).expect(2);
        assert!(words.iter().all(|word| ended.err.contains(word)), "{words:?}: {ended}");
        assert_eq!(bed.features(), before);
    };
    refused(["one", "three"], &[], &["no interface `three`", "`one`, `two`"]);
    refused(["one", "one"], &[], &["both ends of the bridge are `one`"]);
    refused(["lo", "two"], &[], &["loopback"]);
    refused(["one", "two"], &["--duration", "5"], &["--duration", "no unit"]);
    RouteSocket::open(&bed.middle).unwrap().set_down("two").unwrap();
    refused(["one", "two"], &[], &["`two` is down", "ip link set two up"]);
    RouteSocket::open(&bed.middle).unwrap().set_up("two").unwrap();
    let scratch = Scratch::new();
    let three = "[hosts.a]\n[hosts.b]\n[hosts.c]\n[links.x]\nbetween = [\"a\", \"b\"]\n[links.y]\nbetween = [\"b\", \"c\"]\n";
    let file = scratch.write("three.toml", three);
    refused(["one", "two"], &[file.to_str().unwrap()], &["4 ports", "two hosts with one link each"]);
    let bridge = bed.bridge(&[]);
    let ended = finish(&mut bed.command(&["--duration", "1s"])).expect(2);
    assert!(ended.err.contains("another run of narrows is on the interface `one`"), "{ended}");
    end(bridge).expect(0);
    assert_eq!(bed.features(), before);
}

#[test]
#[ignore = "needs root"]
fn another_mtu_is_noted_and_it_goes_on() {
    let bed = Bed::new(1500);
    let bridge = bed.bridge(&["--json", "-"]);
    RouteSocket::open(&bed.middle).unwrap().set_mtu("one", 1400).unwrap();
    eventually("the change is in the report", || {
        let stats = finish(&mut narrows(["stats", "--run", &bridge.id().to_string()]));
        stats.out.contains("the MTU of one changed from 1500 to 1400")
    });
    echoes(&bed);
    end(bridge).expect(0);
}

#[test]
#[ignore = "needs root"]
fn an_interface_that_goes_away_ends_it_in_order() {
    for vanishes in [false, true] {
        let bed = Bed::new(1500);
        let bridge = bed.bridge(&["--json", "-"]);
        let mut sockets = RouteSocket::open(&bed.middle).unwrap();
        if vanishes { sockets.delete_interface("two") } else { sockets.set_down("two") }.unwrap();
        let ended = bridge.wait().expect(2);
        assert!(
            ended.err.contains(
                "ended early: the interface `two` was switched off, removed, or moved to another namespace"
            ),
            "{ended}"
        );
        ended.json();
        let one = features(&bed.middle, "one").unwrap();
        assert!(one.iter().any(|feature| feature.name == "tx-generic-segmentation" && feature.requested));
    }
}

#[test]
#[ignore = "needs root, ip"]
fn what_was_not_put_back_is_not_said_to_be() {
    let _turn = turn();
    let ip = |namespace: &Namespace, arguments: &str| {
        let mut command = Command::new("ip");
        command.args(arguments.split(' '));
        assert!(spawn(command, namespace).unwrap().wait().unwrap().success(), "ip {arguments}");
    };
    // One is renamed, the other moved to another namespace; alive, and killed.
    for killed in [false, true] {
        let bed = Bed::new(1500);
        let before = bed.features();
        let bridge = bed.bridge(&[]);
        ip(&bed.middle, "link set one name uno");
        eventually("its new name is told", || {
            let stats = finish(&mut narrows(["stats", "--run", &bridge.id().to_string()]));
            stats.out.contains("one is called uno now")
        });
        let bridge = if killed {
            bridge.signal("KILL");
            bridge.wait();
            None
        } else {
            Some(bridge)
        };
        let right = format!("/proc/{}/fd/{}", std::process::id(), bed.right.as_fd().as_raw_fd());
        ip(&bed.middle, &format!("link set two netns {right}"));
        let said = bridge.map_or_else(|| clean().out, |bridge| bridge.wait().expect(2).err);
        assert!(!said.contains("restored two"), "{said}");
        assert!(said.contains("two was removed, or moved to another namespace"), "{said}");
        assert!(said.contains("ethtool -K two ") && said.contains("tx-generic-segmentation on"), "{said}");
        assert_eq!(features(&bed.middle, "uno").unwrap(), before[0]);
        // What is said to be so is so.
        let off = features(&bed.right, "two").unwrap();
        let off = off.iter().find(|feature| feature.name == "tx-generic-segmentation").unwrap();
        assert!(!off.requested);
    }
}
