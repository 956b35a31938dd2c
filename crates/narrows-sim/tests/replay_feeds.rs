//! A recorded run whose delays came from outside and whose rate follows files, replayed from the log alone.
#![expect(
    clippy::unwrap_used,
    reason = "tests may unwrap, and the lint does not see that helpers here are tests"
)]

mod common;

use std::path::Path;

use narrows_core::{Duration, Engine, LinkId, Seed, Time};
use narrows_frame::craft::Udp;
use narrows_frame::log::{Changed, Decided, Ended, Header, Keep, LogReader, LogWriter, Port, Record};
use narrows_frame::parse::parse;
use narrows_frame::{LinkLayer, WallTime};
use narrows_scenario::Scenario;
use narrows_sim::{SimError, SimOptions, replay};

/// Up: one way, at the opportunities of a file. Down: two-way, in order.
const SCENARIO: &str = r#"
    seed = 5
    [hosts.client]
    [hosts.server]
    [links.access]
    between = ["client", "server"]
    up = { trace = { file = "cell.up", format = "mahimahi" }, queue = "9 packets",
           delay = { feed = "radio", on-empty = "repeat", lead = "40 values", order = "allow" } }
    down = { trace = { file = "cell.up", format = "mahimahi" }, queue = "20 packets",
             delay = { feed = "radio", on-empty = "last", ask = "3ms" } }
"#;

/// What a live run does, with values that come too late and too many, and a change that brings in another file.
fn record(folder: &Path) {
    std::fs::write(folder.join("net.toml"), SCENARIO).unwrap();
    std::fs::write(folder.join("cell.up"), "1\n1\n4\n9\n").unwrap();
    std::fs::write(folder.join("cell.down"), "2\n3\n5\n").unwrap();
    let mut scenario = Scenario::load(folder.join("net.toml")).unwrap();
    let mut engine: Engine<()> = Engine::new(scenario.network()).unwrap();
    let ports: Vec<_> = engine.ports().collect();
    let header = Header {
        program: "narrows test".into(),
        started: WallTime::from_nanos(1_700_000_000_000_000_000),
        seed: Seed(5),
        keep: Keep::Headers,
        scenario: SCENARIO.into(),
        ports: ports
            .iter()
            .map(|port| Port { name: engine.port_name(*port).into(), layer: LinkLayer::Ethernet })
            .collect(),
        links: engine.links().map(|link| engine.view(link).name().into()).collect(),
    };
    let mut log = LogWriter::create(folder.join("run.log"), &header).unwrap();
    let mut known = 0;
    let mut keep_files = |log: &mut LogWriter<_>, scenario: &Scenario| {
        for file in scenario.files().iter().skip(known) {
            log.file(&file.name, &file.contents).unwrap();
            known += 1;
        }
    };
    keep_files(&mut log, &scenario);
    let (up, down) = (engine.link("access.up").unwrap(), engine.link("access.down").unwrap());
    let (mut verdicts, mut questions) = (0, Vec::new());
    let frame = Udp::new("10.213.0.1:1000".parse().unwrap(), "10.213.0.2:2000".parse().unwrap()).ethernet(
        Default::default(),
        Default::default(),
        &[7; 900],
    );
    for n in 0..800u64 {
        let at = Time::from_nanos(n * 700_000);
        let feed = |engine: &mut Engine<()>, log: &mut LogWriter<_>, link: LinkId, values: &[i64]| {
            let taken = engine.feed(at, link, "radio", values);
            log.fed(at, link.into(), "radio", &values[..taken]).unwrap();
        };
        if n % 50 == 0 && n < 500 {
            let values: Vec<i64> =
                (0..30).map(|i| (n as i64 * 77_003 + i * 500_009) % 9_000_000 - 1).collect();
            feed(&mut engine, &mut log, up, &values);
        }
        // The generator answers half of the time, and some answers come too late.
        engine.take_questions(&mut questions);
        if n % 3 == 0 && n % 200 < 120 {
            let answers: Vec<i64> =
                questions.drain(..).map(|question| i64::from(question.length) * 4_000 - 1).collect();
            feed(&mut engine, &mut log, down, &answers);
        }
        if n == 400 {
            let text = r#"access.down.trace={ file = "cell.down", format = "mahimahi" }"#;
            let changes = scenario.assign_at(at, &[text]).unwrap();
            keep_files(&mut log, &scenario);
            for (link, change) in changes {
                let link = engine.link(&link).unwrap();
                engine.change(at, link, change);
            }
            log.write(&Record::Changed(Changed { at, text })).unwrap();
        }
        let (parsed, port) = (parse(LinkLayer::Ethernet, &frame), ports[(n % 2) as usize]);
        engine.hand_in(at, port, parsed.with(()));
        log.arrived(at, Duration::ZERO, port.into(), &frame, parsed.examined).unwrap();
        while let Some(event) = engine.poll(at) {
            log.write(&Record::Decided(Decided::of(&event))).unwrap();
            verdicts += 1;
        }
    }
    let end = Time::from_nanos(600_000_000);
    while let Some(event) = engine.poll(end) {
        log.write(&Record::Decided(Decided::of(&event))).unwrap();
        verdicts += 1;
    }
    for link in [up, down] {
        let counted = engine.view(link).feeds()[0].counters;
        assert!(counted.used > 100 && counted.underruns > 20, "{counted:?}");
    }
    assert!(engine.view(down).feeds()[0].counters.late > 5);
    let ended = Ended { at: end, arrivals: 800, verdicts, stragglers: 0, inside: engine.inside() };
    log.write(&Record::Ended(ended)).unwrap();
    log.finish().unwrap();
}

#[test]
fn a_run_with_feeds_and_files_replays_from_its_log_alone() {
    let folder = common::folder("replay-feeds");
    record(&folder);
    for file in ["net.toml", "cell.up", "cell.down"] {
        std::fs::remove_file(folder.join(file)).unwrap();
    }
    let result =
        replay(&folder.join("run.log"), &SimOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(result.differences, [""; 0]);
    assert_eq!((result.arrivals, result.changes, result.different, result.unknown), (800, 1, 0, 0));
    assert!(result.values > 400 && result.same > 750, "{result}");
    assert!(
        result.to_string().contains(&format!(" and {} values of feeds came in", result.values)),
        "{result}"
    );
}

/// Without a value, or without a file, it is another run, or none.
#[test]
fn what_is_missing_in_the_log_is_missed() {
    let folder = common::folder("replay-feeds-missing");
    record(&folder);
    let without = |name: &str, leave_out: &dyn Fn(&Record<'_>) -> bool| {
        let mut reader = LogReader::open(folder.join("run.log")).unwrap();
        let path = folder.join(name);
        let mut writer = LogWriter::create(&path, &reader.header().clone()).unwrap();
        let mut left_out = false;
        while let Some(record) = reader.read().unwrap() {
            if !left_out && leave_out(&record) {
                left_out = true;
                continue;
            }
            writer.write(&record).unwrap();
        }
        writer.finish().unwrap();
        assert!(left_out);
        replay(&path, &SimOptions::default())
    };
    let values =
        without("values", &|record| matches!(record, Record::Fed(fed) if fed.values.len() > 2)).unwrap();
    assert!(!values.agrees() && values.different > 10, "{values}");
    for name in ["cell.up", "cell.down"] {
        let file = without(name, &|record| matches!(record, Record::File(part) if part.name == name));
        assert!(
            matches!(&file, Err(SimError::Scenario(error)) if error.to_string().contains(name)),
            "{file:?}"
        );
    }
}
