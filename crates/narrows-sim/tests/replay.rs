//! A recorded run, replayed.
#![expect(
    clippy::unwrap_used,
    reason = "tests may unwrap, and the lint does not see that helpers here are tests"
)]

mod common;

use std::path::{Path, PathBuf};

use narrows_core::{Duration, Engine, Seed, Time};
use narrows_frame::craft::Udp;
use narrows_frame::log::{Changed, Decided, Ended, Header, Keep, LogReader, LogWriter, Port, Record};
use narrows_frame::parse::parse;
use narrows_frame::{LinkLayer, WallTime};
use narrows_scenario::Scenario;
use narrows_sim::{Destination, ReplayResult, SimError, SimOptions, replay};

const SCENARIO: &str = r#"
    seed = 5
    [hosts.client]
    [hosts.server]
    [links.access]
    between = ["client", "server"]
    rate = "2mbit"
    delay = "10ms"
    jitter = "3ms"
    queue = "5 packets"
    loss = "5%"
    duplicate = "3%"
    [[timeline]]
    at = "100ms"
    set = { "access.up.rate" = "1mbit" }
"#;

/// Does what a live run does: packets of both ways, taken in batches and polled late, one straggler, the timeline and
/// a change from outside. The verdicts go into the log when they are polled.
fn record(path: &Path, keep: Keep) {
    let mut scenario = Scenario::parse(SCENARIO, "test.toml").unwrap();
    let mut engine: Engine<()> = Engine::new(scenario.network()).unwrap();
    let ports: Vec<_> = engine.ports().collect();
    let header = Header {
        program: "narrows test".into(),
        started: WallTime::from_nanos(1_700_000_000_000_000_000),
        seed: Seed(5),
        keep,
        scenario: SCENARIO.into(),
        ports: ports
            .iter()
            .map(|port| Port { name: engine.port_name(*port).into(), layer: LinkLayer::Ethernet })
            .collect(),
        links: engine.links().map(|link| engine.view(link).name().into()).collect(),
    };
    let mut log = LogWriter::create(path, &header).unwrap();
    let (mut arrivals, mut verdicts) = (0, 0);
    let frames: Vec<_> = [40, 400, 1300].iter().map(|length| frame(*length)).collect();
    let mut timeline = scenario.timeline().peekable();
    for n in 0..600u64 {
        let mut at = Time::from_nanos(n * 750_000);
        while let Some(event) = timeline.next_if(|event| event.at <= at) {
            set(&mut engine, &mut scenario, &mut log, event.at, &event.changes.join("\n"));
        }
        if n == 333 {
            set(&mut engine, &mut scenario, &mut log, at, "access.down.rate=3mbit\naccess.down.loss=10%");
        }
        if n == 400 {
            // It came 5 ms ago, but only now does anybody look.
            engine.hand_in(
                Time::from_nanos(at.nanos() - 5_000_000),
                ports[0],
                parse(LinkLayer::Ethernet, &frames[0]).with(()),
            );
            at = engine.now();
            let frame = &frames[0];
            log.arrived(at, Duration::from_millis(5), ports[0].into(), frame, 42).unwrap();
        } else {
            let frame = &frames[(n % 3) as usize];
            let parsed = parse(LinkLayer::Ethernet, frame);
            let port = ports[(n % 2) as usize];
            engine.hand_in(at, port, parsed.with(()));
            log.arrived(at, Duration::ZERO, port.into(), frame, parsed.examined).unwrap();
        }
        arrivals += 1;
        if n % 17 == 0 {
            while let Some(event) = engine.poll(at) {
                log.write(&Record::Decided(Decided::of(&event))).unwrap();
                verdicts += 1;
            }
        }
    }
    let end = Time::from_nanos(460_000_000);
    while let Some(event) = engine.poll(end) {
        log.write(&Record::Decided(Decided::of(&event))).unwrap();
        verdicts += 1;
    }
    let ended =
        Ended { at: end, arrivals, verdicts, stragglers: engine.stragglers(), inside: engine.inside() };
    assert_eq!(ended.stragglers, 1);
    assert!(ended.inside > 0);
    log.write(&Record::Ended(ended)).unwrap();
    log.finish().unwrap();
}

fn set(
    engine: &mut Engine<()>,
    scenario: &mut Scenario,
    log: &mut LogWriter<std::io::BufWriter<std::fs::File>>,
    at: Time,
    text: &str,
) {
    let lines: Vec<_> = text.lines().collect();
    for (link, change) in scenario.assign_all(&lines).unwrap() {
        let link = engine.link(&link).unwrap();
        engine.change(at, link, change);
    }
    log.write(&Record::Changed(Changed { at, text })).unwrap();
}

fn frame(payload: usize) -> Vec<u8> {
    let udp = Udp::new("10.213.0.1:1000".parse().unwrap(), "10.213.0.2:2000".parse().unwrap());
    udp.ethernet(Default::default(), Default::default(), &vec![7; payload])
}

fn recorded(test: &str, keep: Keep) -> PathBuf {
    let path = common::folder(test).join("run.log");
    record(&path, keep);
    path
}

fn replayed(path: &Path) -> ReplayResult {
    replay(path, &SimOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_replay_gives_the_same_verdicts() {
    for (test, keep) in [("replay-headers", Keep::Headers), ("replay-whole", Keep::Whole)] {
        let result = replayed(&recorded(test, keep));
        assert_eq!(result.differences, [""; 0]);
        assert!(result.agrees());
        assert_eq!((result.arrivals, result.changes, result.different, result.unknown), (600, 2, 0, 0));
        assert!(result.same > 550);
        assert_eq!(result.cut_short, None);
        assert!(
            result
                .to_string()
                .ends_with(&format!("{} verdicts compared: all identical, to the nanosecond\n", result.same))
        );
        assert_eq!(result.report.conservation.violations, [""; 0]);
        assert_eq!(result.report.end_ns, 460_000_000);
        assert_eq!(
            result.report.notes,
            ["the network was changed 2 times; settings are shown as at the end"]
        );
    }
}

/// Pings both ways through jitter, loss, corruption, duplication, reordering and pieces, recorded by the program as it
/// was before there were schedulers: a log stays what it is, and so do the draws and the order of events.
#[test]
fn a_log_of_an_earlier_program_replays() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/before-schedulers.log");
    let result = replayed(&path);
    assert_eq!(result.differences, [""; 0]);
    assert_eq!((result.arrivals, result.changes, result.same, result.unknown), (236, 3, 268, 0));
    let reasons: Vec<_> = result
        .report
        .directions
        .iter()
        .flat_map(|d| &d.drops)
        .map(|drop| (drop.reason.as_ref(), drop.packets))
        .collect();
    assert_eq!(reasons, [("queue full", 5), ("wire loss", 18), ("too long", 1), ("wire loss", 18)]);
}

const RULES: &str = r#"
    [hosts.client]
    [hosts.server]
    [links.net]
    between = ["client", "server"]
    rules = ["100 queue 1 out", "200 pipe 1 in"]
    one-pass = false
    pipes.1 = { rate = "1mbit", delay = "3ms", queue = "30 packets" }
    queues.1 = { pipe = 1, weight = 2 }
"#;

/// Requests at their instants in milliseconds, each of several commands.
const REQUESTS: [(u64, &str); 4] = [
    (
        40,
        "queue 2 config pipe 1 weight 9\nqueue 1 config weight 3\nadd 150 prob 0.4 queue 2 out\npipe 5 config delay 4ms\n\
         add 50 count out\ntable 1 add 10.213.0.1 5\nadd 160 prob 0.5 pipe tablearg src-ip table(1)",
    ),
    // What is let go at this instant meets the rules as they are when it is.
    (
        90,
        "add 120 deny tagged 3\npipe 1 config delay 3ms\nadd 300 deny in\npipe 1 config bw 800Kbit/s delay 3ms",
    ),
    (130, "pipe 5 delete\npipe 5 config bw 400Kbit/s\nset disable 0\nset enable 0\ndelete 300\nzero"),
    (170, "pipe flush\npipe 1 config bw 2Mbit/s\nqueue 1 config pipe 1\nflush\nadd 100 prob 0.5 queue 1 out"),
];

/// The log has the commands of a request in one record, and they were done one after the other.
/// Up to version 2 of the format a queue without a bound held one bandwidth-delay product, and no less than four packets.
#[test]
fn a_log_has_the_default_bound_of_its_time() {
    let text = "[hosts.client]\n[hosts.server]\n[links.access]\nrate = \"10mbit\"\ndelay = \"1ms\"\n\
        between = [\"client\", \"server\"]\n";
    let engine: Engine<()> = Engine::new(Scenario::parse(text, "t").unwrap().network()).unwrap();
    let header = Header {
        program: "narrows test".into(),
        started: WallTime::from_nanos(0),
        seed: Seed(1),
        keep: Keep::Headers,
        scenario: text.into(),
        ports: engine
            .ports()
            .map(|port| Port { name: engine.port_name(port).into(), layer: LinkLayer::Ethernet })
            .collect(),
        links: engine.links().map(|link| engine.view(link).name().into()).collect(),
    };
    let port = engine.ports().next().unwrap();
    let path = common::folder("replay-bounds").join("run.log");
    let mut log = LogWriter::create(&path, &header).unwrap();
    let frame = frame(1300);
    for _ in 0..40 {
        log.arrived(Time::ZERO, Duration::ZERO, port.into(), &frame, 42).unwrap();
    }
    log.write(&Record::Ended(Ended {
        at: Time::from_nanos(1_000_000_000),
        arrivals: 40,
        ..Ended::default()
    }))
    .unwrap();
    drop(log);
    let dropped = || replayed(&path).report.conservation.dropped_packets;
    // One is on the wire, and 20 wait.
    assert_eq!(dropped(), 19);
    let mut bytes = std::fs::read(&path).unwrap();
    assert_eq!(bytes[4], 5);
    bytes[4] = 2;
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(dropped(), 35);
}

#[test]
fn a_request_of_several_commands_replays_as_they_were_done_one_by_one() {
    let path = common::folder("replay-ipfw").join("run.log");
    let mut scenario = Scenario::parse(RULES, "rules.toml").unwrap();
    let mut engine: Engine<()> = Engine::new(scenario.network()).unwrap();
    let ports: Vec<_> = engine.ports().collect();
    let named =
        ports.iter().map(|port| Port { name: engine.port_name(*port).into(), layer: LinkLayer::Ethernet });
    let header = Header {
        program: "narrows test".into(),
        started: WallTime::from_nanos(0),
        seed: Seed(1),
        keep: Keep::Headers,
        scenario: RULES.into(),
        ports: named.collect(),
        links: engine.links().map(|link| engine.view(link).name().into()).collect(),
    };
    let mut log = LogWriter::create(&path, &header).unwrap();
    let (mut verdicts, mut requests) = (0, REQUESTS.iter().peekable());
    let frames: Vec<_> = [40, 400, 1300].iter().map(|length| frame(*length)).collect();
    for n in 0..400u64 {
        let at = Time::from_nanos(n * 500_000);
        if let Some((_, text)) = requests.next_if(|(millis, _)| millis * 1_000_000 <= at.nanos()) {
            let logged: Vec<String> = text.lines().map(|line| format!("ipfw net {line}")).collect();
            log.write(&Record::Changed(Changed { at, text: &logged.join("\n") })).unwrap();
            for line in text.lines() {
                let (command, _) = scenario.ipfw_commands(None, "ipfw", line).unwrap().commands.remove(0);
                for change in scenario.ipfw_at(at, None, &command).unwrap() {
                    change.make(&mut engine, at).unwrap();
                }
            }
        }
        let (frame, port) = (&frames[(n % 3) as usize], ports[usize::from(n % 4 == 3)]);
        let parsed = parse(LinkLayer::Ethernet, frame);
        engine.hand_in(at, port, parsed.with(()));
        log.arrived(at, Duration::ZERO, port.into(), frame, parsed.examined).unwrap();
        while let Some(event) = engine.poll(at) {
            log.write(&Record::Decided(Decided::of(&event))).unwrap();
            verdicts += 1;
        }
    }
    assert!(requests.next().is_none());
    let at = Time::from_nanos(1_000_000_000);
    while let Some(event) = engine.poll(at) {
        log.write(&Record::Decided(Decided::of(&event))).unwrap();
        verdicts += 1;
    }
    let ended = Ended { at, arrivals: 400, verdicts, stragglers: 0, inside: engine.inside() };
    log.write(&Record::Ended(ended)).unwrap();
    log.finish().unwrap();
    let result = replayed(&path);
    assert_eq!(result.differences, [""; 0]);
    assert_eq!((result.changes, result.different, result.same), (4, 0, verdicts));
}

/// Every verdict of the log that is changed shows up, whichever part of it.
#[test]
fn a_wrong_verdict_is_found() {
    let path = recorded("replay-wrong", Keep::Headers);
    let mut reader = LogReader::open(&path).unwrap();
    let mut writer = LogWriter::create(path.with_extension("wrong"), &reader.header().clone()).unwrap();
    let mut verdicts = 0;
    while let Some(record) = reader.read().unwrap() {
        match record {
            Record::Decided(mut decided) => {
                verdicts += 1;
                match verdicts {
                    // A nanosecond late, a copy that never was, and one that is missing.
                    10 => decided.at = decided.at + Duration::from_nanos(1),
                    20 => decided.copy = 77,
                    30 => continue,
                    _ => {}
                }
                writer.write(&Record::Decided(decided)).unwrap();
            }
            other => writer.write(&other).unwrap(),
        }
    }
    writer.finish().unwrap();
    let result = replayed(&path.with_extension("wrong"));
    assert!(!result.agrees());
    // The copy counts twice: the one that never was, and the one that it should have been.
    assert_eq!((result.different, result.same), (4, verdicts - 3));
    let text = result.to_string();
    assert!(text.contains("4 differ"), "{text}");
    assert!(text.contains("copy 77: recorded ") && text.contains(", replayed no verdict"), "{text}");
    assert!(text.contains("recorded no verdict, replayed "), "{text}");
}

#[test]
fn a_log_of_a_killed_run_is_compared_as_far_as_it_goes() {
    let path = recorded("replay-cut", Keep::Whole);
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() / 2 + 3]).unwrap();
    let result = replayed(&path);
    assert!(result.agrees());
    assert!(result.same > 200 && result.same < 500);
    let why = result.cut_short.clone().unwrap();
    assert!(why.contains("is cut short"), "{why}");
    assert!(result.to_string().contains("the log ends early: "));
    assert!(result.report.notes[0].starts_with("the log ends early: "));
}

#[test]
fn another_seed_is_another_run() {
    let path = recorded("replay-seed", Keep::Headers);
    let mut reader = LogReader::open(&path).unwrap();
    let header = Header { seed: Seed(6), ..reader.header().clone() };
    let mut writer = LogWriter::create(path.with_extension("seed"), &header).unwrap();
    while let Some(record) = reader.read().unwrap() {
        writer.write(&record).unwrap();
    }
    writer.finish().unwrap();
    let result = replayed(&path.with_extension("seed"));
    assert!(result.different > 100);
    assert!(result.differences.len() >= 10);
}

/// The outputs of a replay are those of a run, with the instants of the wall clock.
#[test]
fn a_replay_writes_outputs() {
    let path = recorded("replay-outputs", Keep::Whole);
    let out = path.with_extension("pcapng");
    let options = SimOptions { capture: Some(Destination::File(out.clone())), ..SimOptions::default() };
    let result = replay(&path, &options).unwrap();
    let mut reader = narrows_frame::capture::CaptureReader::open(&out).unwrap();
    let mut packets = 0;
    while let Some(packet) = reader.read().unwrap() {
        assert!(packet.instant.nanos() >= 1_700_000_000_000_000_000);
        assert!([54, 82, 442, 1342].contains(&packet.bytes.len()));
        packets += 1;
    }
    assert_eq!(packets, result.same);
}

#[test]
fn another_file_is_no_log() {
    let path = common::folder("replay-foreign").join("x");
    std::fs::write(&path, "not a log").unwrap();
    let error = replay(&path, &SimOptions::default()).unwrap_err();
    assert!(matches!(error, SimError::Read(_)));
    assert!(error.to_string().contains("is not an input log"), "{error}");
}
