use std::fs;
use std::io::Read;
use std::process::Command;

use narrows_core::{DropReason, Element};
use narrows_frame::capture::CaptureReader;
use narrows_frame::capture::verdicts::Passage;

use super::*;

/// A file that is a pipe, in a folder that goes with the test.
struct Pipe(PathBuf);

impl Pipe {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("narrows-capture-{}-{name}", std::process::id()));
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        Self(path)
    }

    /// Opens both ends: a capture into it, and the end where that comes out.
    fn capture(&self, network: &Network) -> (Capture, File) {
        let path = self.0.clone();
        let reader = thread::spawn(move || File::open(path).unwrap());
        let plan = CapturePlan { file: self.0.clone(), snap: None };
        let started = WallTime::from_nanos(1_000_000_000);
        let capture = Capture::create(&plan, &network.scenario, &network.engine, started).unwrap();
        (capture, reader.join().unwrap())
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

struct Network {
    scenario: Scenario,
    engine: Engine<Vec<u8>>,
    client: PortId,
    server: PortId,
}

impl Network {
    fn new() -> Self {
        let text = "[hosts.client]\n[hosts.server]\n[links.access]\nbetween = ['client', 'server']\n";
        let scenario = Scenario::parse(text, "a.toml").unwrap();
        let engine: Engine<Vec<u8>> = Engine::new(scenario.network()).unwrap();
        let [client, server] =
            ["client.access", "server.access"].map(|name| engine.port(name).expect("it has a link"));
        Self { scenario, engine, client, server }
    }

    /// A packet from the client that was to leave at this instant.
    fn passage(&self, scheduled: u64) -> Fate {
        let scheduled = Time::from_nanos(scheduled);
        Fate::Released(Passage { scheduled, arrival: Time::ZERO, from: self.client })
    }

    fn send(&self, capture: &mut Capture, at: u64, bytes: &[u8]) {
        let at = Time::from_nanos(at);
        capture.stage(at, std::iter::once((self.server, self.passage(at.nanos()), bytes)));
        capture.sent(at, 1, false);
    }
}

/// Instants from the start, interface, comment, first byte.
fn read(bytes: &[u8]) -> Vec<(u64, String, String, u8)> {
    let mut reader = CaptureReader::new("pipe", bytes).unwrap();
    let mut all = Vec::new();
    loop {
        let Some(packet) = reader.read().unwrap() else { return all };
        let at = packet.instant.nanos() - 1_000_000_000;
        let (comment, first) = (packet.comment.unwrap_or_default().to_owned(), packet.bytes[0]);
        let interface = packet.interface;
        all.push((at, reader.interface_name(interface).unwrap().to_owned(), comment, first));
    }
}

#[test]
fn packets_are_in_the_order_of_time_with_their_words() {
    let network = Network::new();
    let pipe = Pipe::new("order");
    let (mut capture, mut end) = pipe.capture(&network);
    let link = network.engine.link("access.up").map(Element::Link);
    let frames: Vec<Vec<u8>> = (0..4).map(|number| vec![number; 60]).collect();
    let staged = frames.iter().map(|frame| (network.server, network.passage(100), &frame[..]));
    // Two leave, one is refused, and the last has to wait.
    capture.stage(Time::from_nanos(100), staged);
    capture.sent(Time::from_nanos(250), 2, true);
    network.send(&mut capture, 400, &frames[3]);
    // A drop that the loop heard of later than it sent those.
    let mut dropped = |at: u64| {
        let fate = Fate::Dropped { at: link, reason: DropReason::QueueFull };
        capture.take(Time::from_nanos(at), network.client, fate, &[9; 60]);
    };
    dropped(200);
    dropped(300);
    capture.stage(Time::from_nanos(400), std::iter::once((network.client, Fate::Answered, &[8; 60][..])));
    capture.sent(Time::from_nanos(500), 1, false);
    let reading = thread::spawn(move || {
        let mut bytes = Vec::new();
        end.read_to_end(&mut bytes).unwrap();
        bytes
    });
    let report = capture.finish(Time::from_nanos(600));
    assert_eq!((report.written_packets, report.missing_packets, report.error), (Some(7), 0, None));
    let all = read(&reading.join().unwrap());
    let found: Vec<_> = all.iter().map(|(at, port, _, first)| (*at, port.as_str(), *first)).collect();
    let (client, server) = ("client.access", "server.access");
    let expected = [
        (200, client, 9),
        (250, server, 0),
        (250, server, 1),
        (250, server, 2),
        (300, client, 9),
        (400, server, 3),
        (500, client, 8),
    ];
    assert_eq!(found, expected);
    assert_eq!(all[0].2, "dropped at access.up: queue full");
    let came = "; came in 0.000000000 s at client.access, by access.up";
    assert_eq!(all[1].2, format!("scheduled 0.000000100 s, released 150 ns late{came}"));
    assert_eq!(all[3].2, format!("not sent, refused by the system; scheduled 0.000000100 s{came}"));
    assert_eq!(all[6].2, "an answer of the network's own");
}

/// The pipe takes 64 KiB, the batches that wait some 32 MiB; nobody reads until all have been sent.
#[test]
fn what_the_disk_cannot_keep_up_with_is_counted_and_holds_nothing_up() {
    let network = Network::new();
    let pipe = Pipe::new("slow");
    let (mut capture, mut end) = pipe.capture(&network);
    let frame = vec![7; 60_000];
    const PACKETS: u64 = 1000;
    for at in 0..PACKETS {
        network.send(&mut capture, at, &frame);
        capture.turn_ended(Time::from_nanos(at));
    }
    let missing = capture.missing;
    assert!(missing > 0 && missing < PACKETS, "{missing}");
    assert!(capture.batch.bytes.len() < 2 * BATCH, "memory is bounded");
    let reading = thread::spawn(move || {
        let mut bytes = Vec::new();
        end.read_to_end(&mut bytes).unwrap();
        bytes
    });
    // Now there is room again; the next one says what is missing before it.
    let mut sent = PACKETS;
    while capture.missing_now > 0 {
        network.send(&mut capture, sent, &frame);
        sent += 1;
    }
    let report = capture.finish(Time::from_nanos(sent));
    let all = read(&reading.join().unwrap());
    assert_eq!(report.written_packets, Some(all.len() as u64));
    assert_eq!(all.len() as u64 + report.missing_packets, sent);
    let said = all.iter().filter_map(|(_, _, comment, _)| comment.split_once("missing before it: "));
    let said: u64 =
        said.map(|(_, text)| text.strip_suffix(" packets").unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(said, report.missing_packets);
    assert!(report.sentence().contains("more are MISSING"), "{}", report.sentence());
}

#[test]
fn a_disk_that_fails_ends_the_capture_and_nothing_else() {
    let network = Network::new();
    let pipe = Pipe::new("broken");
    let (mut capture, end) = pipe.capture(&network);
    drop(end);
    let frame = vec![7; 60_000];
    // The thread hears of it with the first batch; then there is nobody to take one.
    let mut at = 0;
    while capture.missing == 0 {
        network.send(&mut capture, at, &frame);
        at += 1;
    }
    let report = capture.finish(Time::from_nanos(at));
    assert_eq!(report.written_packets, None);
    assert!(report.missing_packets > 0);
    assert!(report.error.as_ref().unwrap().contains("Broken pipe"), "{report:?}");
    assert!(report.sentence().contains("IS INCOMPLETE: Broken pipe"), "{}", report.sentence());
}

#[test]
fn a_capture_that_is_dropped_is_whole() {
    let network = Network::new();
    let path = std::env::temp_dir().join(format!("narrows-capture-{}-dropped", std::process::id()));
    let plan = CapturePlan { file: path.clone(), snap: Some(20) };
    let started = WallTime::from_nanos(1_000_000_000);
    let mut capture = Capture::create(&plan, &network.scenario, &network.engine, started).unwrap();
    assert_eq!(read(&fs::read(&path).unwrap()), [], "it can be read from the start");
    network.send(&mut capture, 5, &[7; 60]);
    drop(capture);
    let bytes = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    assert_eq!(read(&bytes).len(), 1);
    let mut reader = CaptureReader::new("f", &bytes[..]).unwrap();
    let packet = reader.read().unwrap().unwrap();
    assert_eq!((packet.length, packet.bytes), (60, &[7; 20][..]), "as much as was asked for");
}
