//! Frames of every kind that nobody should send: each crosses or is dropped by a verdict, nothing goes missing, and what is
//! sound still crosses afterwards.

use std::path::Path;

use narrows_fuzz::mutate::Mutations;
use narrows_fuzz::odd::{self, Kind};
use narrows_io::frame::FramePool;
use narrows_io::namespace::Namespace;
use narrows_io::packet_socket::{PacketSocket, ReceiveBatch, Received, SendStop};
use serde_json::Value;

use crate::bridge::{Bed, end};
use crate::common::{Finished, Scratch, eventually, finish, narrows, sound, start};

/// A link that looks into every frame, and one that changes many.
const SCENARIOS: [&str; 3] = [
    r#"
    scheduler = { type = "qfq", classes = [
        { name = "short", match = { protocol = "udp", length = "..300 bytes" } },
        { name = "port", match = { port = [1000, "2000-2100"], source = "198.18.0.0/15" } },
        { name = "marked", match = { dscp = 46 }, queue = "pie" },
        { name = "rest" },
    ] }
    rate = "200mbit"
    delay = "1ms"
    queue = "1000 packets"
    "#,
    r#"
    mtu = 300
    duplicate = "30%"
    corrupt = "30%"
    loss = { wire = { rate = "10%", ecn = true } }
    reorder = "20%"
    delay = { uniform = { low = "0ms", high = "2ms" }, order = "allow" }
    "#,
    r#"
    rate = "50mbit"
    queue = { type = "codel", target = "50us", interval = "1ms", bound = "50 packets" }
    mtu = { bytes = 1000, policy = "answer" }
    overhead = "ethernet"
    policer = { rate = "40mbit", burst = "20kB", mtu = "9000B", exceed = "mark" }
    "#,
];

/// Every kind of frames that a cable with this MTU takes, and some that a generator drew.
fn kinds(mtu: usize) -> Vec<Kind> {
    let mut kinds = odd::kinds();
    let (seeds, mut drawn) = (odd::all(), Mutations::new(7));
    let frames = (0..500).map(|_| drawn.mutated(&seeds, &[])).collect();
    kinds.push(Kind { name: "drawn", frames });
    for kind in &mut kinds {
        kind.frames.retain(|frame| frame.len() <= mtu + 14);
    }
    kinds
}

/// One end of the path.
struct Wire {
    socket: PacketSocket,
    batch: ReceiveBatch,
    pool: FramePool,
    received: Vec<Received>,
}

impl Wire {
    fn new(namespace: &Namespace, interface: &str) -> Self {
        let socket = PacketSocket::open(namespace, interface).unwrap();
        Self { socket, batch: ReceiveBatch::new(), pool: FramePool::default(), received: Vec::new() }
    }

    /// Sends each frame that the kernel takes at all.
    fn send(&mut self, frames: &[Vec<u8>]) {
        for frame in frames {
            while matches!(self.socket.send(&[frame]).stopped, Some(SendStop::Full)) {}
        }
    }

    /// What has come since the last time.
    fn received(&mut self) -> Vec<Vec<u8>> {
        while self.socket.receive(&mut self.batch, &mut self.pool, &mut self.received).unwrap() > 0 {}
        self.received.drain(..).map(|received| received.frame.to_vec()).collect()
    }
}

/// A sound datagram that is like no other.
fn marker(number: usize) -> Vec<u8> {
    odd::datagram(number % 2 == 1, format!("the sound one of number {number}").as_bytes())
}

/// Sends all kinds, and after each a sound frame until one has crossed. Gives what came of each kind.
#[track_caller]
fn send_all(kinds: &[Kind], from: &mut Wire, to: &mut Wire) -> Vec<Vec<Vec<u8>>> {
    let each = kinds.iter().enumerate().map(|(number, kind)| {
        let (marker, mut came) = (marker(number), Vec::new());
        from.send(&kind.frames);
        eventually(&format!("a sound frame crosses after `{}`", kind.name), || {
            from.send(std::slice::from_ref(&marker));
            came.extend(to.received());
            // A mark of congestion is in the headers.
            came.iter().any(|frame| frame.ends_with(&marker[42 + 20 * (number % 2)..]))
        });
        came
    });
    each.collect()
}

/// The kernel takes a tag off where two more bytes follow it, and drops the frame otherwise, before anybody sees it; and what
/// is shorter than its Ethernet header cannot be sent.
fn reaches_us(frame: &[u8]) -> bool {
    let is_tagged = matches!(frame.get(12..14), Some([0x81, 0] | [0x88, 0xa8]));
    frame.len() >= if is_tagged { 20 } else { 14 }
}

/// What holds whatever came: packets add up, and a replay gives the same verdicts.
#[track_caller]
fn holds(ended: Finished, log: &Path, at_least: usize) -> Value {
    let ended = ended.expect(0);
    let report = ended.json();
    sound(&report);
    assert!(report["conservation"]["in_packets"].as_u64() >= Some(at_least as u64), "{report:#}");
    finish(&mut narrows(["sim", "--quiet", "--replay", log.to_str().unwrap()])).expect(0);
    report
}

#[test]
#[ignore = "needs root"]
fn a_bridge_passes_every_frame_as_it_is() {
    let (bed, scratch) = (Bed::new(9000), Scratch::new());
    let log = scratch.file("run.log");
    let bridge = bed.bridge(&["--delay", "1ms", "--json", "-", "--record", log.to_str().unwrap()]);
    let (mut left, mut right) = (Wire::new(&bed.left, "end"), Wire::new(&bed.right, "end"));
    let kinds = kinds(9000);
    let mut sent = 0;
    for (kind, came) in kinds.iter().zip(send_all(&kinds, &mut left, &mut right)) {
        // Others send, too: hosts ask who is there.
        let mut came = came.into_iter();
        for frame in kind.frames.iter().filter(|frame| reaches_us(frame)) {
            assert!(
                came.any(|other| other == *frame),
                "{}: {frame:02x?} did not come in its turn",
                kind.name
            );
            sent += 1;
        }
    }
    assert!(sent > 2500);
    holds(end(bridge), &log, sent);
}

#[test]
#[ignore = "needs root"]
fn links_that_look_into_frames_and_change_them_bear_every_kind() {
    for keys in SCENARIOS {
        let (bed, scratch) = (Bed::new(9000), Scratch::new());
        let file = scratch.write("rough.toml", &scenario(keys));
        let log = scratch.file("run.log");
        let flags = [file.to_str().unwrap(), "--json", "-", "--record", log.to_str().unwrap()];
        let bridge = bed.bridge(&flags);
        let (mut left, mut right) = (Wire::new(&bed.left, "end"), Wire::new(&bed.right, "end"));
        let kinds = kinds(9000);
        send_all(&kinds, &mut left, &mut right);
        send_all(&kinds, &mut right, &mut left);
        let report = holds(end(bridge), &log, 5000);
        if keys.contains("mtu = 300") {
            let up = report["directions"].as_array().unwrap().iter().find(|d| d["link"] == "l.up").unwrap();
            for counted in ["corrupted_packets", "duplicated_packets", "fragmented_packets"] {
                assert!(up[counted].as_u64() > Some(0), "{counted}: {up:#}");
            }
        }
    }
}

fn scenario(keys: &str) -> String {
    format!("seed = 5\n[hosts.client]\n[hosts.server]\n[links.l]\nbetween = [\"client\", \"server\"]\n{keys}")
}

/// What a program inside of a run sends: there the far host's addresses are answered for.
#[test]
#[ignore = "needs root"]
fn a_run_bears_what_its_programs_send() {
    for keys in SCENARIOS {
        let scratch = Scratch::new();
        let (file, log) = (scratch.write("rough.toml", &scenario(keys)), scratch.file("run.log"));
        let inside = ["client", "server"].map(|name| scratch.file(name));
        let tell = |at: &Path| format!("echo $$ > {0}.part; mv {0}.part {0}; exec sleep 1000", at.display());
        let (on, here) = (tell(&inside[1]), tell(&inside[0]));
        let mut run =
            narrows(["run", file.to_str().unwrap(), "--json", "-", "--record", log.to_str().unwrap()]);
        run.args(["--on", "server", &on, "--", "sh", "-c", &here]);
        let running = start(&mut run);
        eventually("both hosts have a program", || inside.iter().all(|file| file.exists()));
        let [mut client, mut server] = inside.each_ref().map(|file| {
            let process = std::fs::read_to_string(file).unwrap();
            Wire::new(&Namespace::open(&format!("pid:{}", process.trim())).unwrap(), "l")
        });
        let kinds = kinds(1500);
        send_all(&kinds, &mut client, &mut server);
        send_all(&kinds, &mut server, &mut client);
        running.signal("TERM");
        let ended = running.wait();
        assert_eq!(ended.code(), 128 + 15, "{ended}");
        let report = ended.json();
        sound(&report);
        assert!(report["conservation"]["in_packets"].as_u64() > Some(3000), "{report:#}");
        finish(&mut narrows(["sim", "--quiet", "--replay", log.to_str().unwrap()])).expect(0);
    }
}
