//! What is left of runs and said about them: logs that are replayed, reports, replies of runs and agents.

use std::ops::ControlFlow;

use narrows_core::{Duration, Engine, Seed, Time};
use narrows_frame::log::{Changed, Decided, Ended, Header, Keep, LogReader, LogWriter, Port, Record};
use narrows_frame::parse::parse;
use narrows_frame::{LinkLayer, WallTime};
use narrows_live::agent::{Answer, Order};
use narrows_live::control::{
    Changed as ChangeMade, Checked, CurrentScenario, Entrance, EventsSince, HostOfRun, PacketsSince, Reply,
    Stale, Stats, Status,
};
use narrows_report::{Kind, Look, Meter, Now, Report, RunInfo};
use narrows_scenario::printable;
use narrows_sim::{SimOptions, replay_log};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::{files, frames, odd};

/// With an even first byte, a log of any kind: it is replayed, or an error. With an odd one, frames and changes through a
/// network, as in the target `network`: they are recorded as a live run does, and the replay has the same verdicts.
///
/// # Panics
/// When it has others.
pub fn replay(bytes: &[u8]) {
    match bytes.split_first() {
        Some((kind, log)) if kind % 2 == 0 => any_log(log),
        Some((_, steps)) => recorded(steps),
        None => {}
    }
}

fn any_log(log: &[u8]) {
    // Names of hosts in rules would be looked up in the world.
    if log.windows(4).any(|four| matches!(four, b"rule" | b"ipfw")) {
        return;
    }
    let Ok(reader) = LogReader::new("fuzz", log) else { return };
    let mut looks = 0;
    let mut watch = |_| {
        looks += 1;
        if looks > 20 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    if let Ok(result) = replay_log(reader, "fuzz.log", &SimOptions::default(), &mut watch) {
        assert!(result.report.conservation.violations.is_empty(), "{:#?}", result.report.conservation);
        drop(result.to_string());
    }
}

/// Changes of the networks; where one does not fit, it is not made.
const CHANGES: [&str; 6] = [
    "one.up.rate=20mbit",
    "one.down.delay=3ms",
    "one.loss=10%\none.up.queue=5 packets",
    "one.up.outage=true",
    "one.up.outage=false",
    "two.up.mtu=600",
];

/// A frame of this length stands for a change.
const CHANGE: u16 = 0xffff;

fn recorded(steps: &[u8]) {
    let Some((&which, mut rest)) = steps.split_first() else { return };
    let (text, mut scenario) = frames::scenario(which);
    let mut engine: Engine<()> = Engine::new(scenario.network()).expect("a network");
    let ports: Vec<_> = engine.ports().collect();
    let named = |port| Port { name: engine.port_name(port).into(), layer: LinkLayer::Ethernet };
    let header = Header {
        program: "narrows".into(),
        started: WallTime::from_nanos(0),
        seed: Seed(scenario.seed),
        keep: if which & 0x80 == 0 { Keep::Headers } else { Keep::Whole },
        scenario: text,
        ports: ports.iter().copied().map(named).collect(),
        links: engine.links().map(|link| engine.view(link).name().into()).collect(),
    };
    let mut log = LogWriter::new("fuzz", Vec::new(), &header).expect("a vector takes it");
    let (mut at, mut arrivals, mut verdicts) = (Time::ZERO, 0, 0);
    let mut poll = |engine: &mut Engine<()>, log: &mut LogWriter<Vec<u8>>, at| {
        while let Some(event) = engine.poll(at) {
            log.write(&Record::Decided(Decided::of(&event))).expect("a vector takes it");
            verdicts += 1;
        }
    };
    while let Some(([high, low, place], more)) = rest.split_first_chunk::<3>() {
        let length = u16::from_be_bytes([*high, *low]);
        at = at + Duration::from_micros(16 * u64::from(place >> 1));
        if length == CHANGE {
            rest = more;
            let text = CHANGES[usize::from(*place) % CHANGES.len()];
            let lines: Vec<_> = text.lines().collect();
            let Ok(changes) = scenario.assign_all(&lines) else { continue };
            for (link, change) in changes {
                engine.change(at, engine.link(&link).expect("a link of the scenario"), change);
            }
            log.write(&Record::Changed(Changed { at, text })).expect("a vector takes it");
            continue;
        }
        let (frame, behind) = more.split_at(more.len().min(usize::from(length)));
        rest = behind;
        let port = ports[usize::from(place & 1)];
        let parsed = parse(LinkLayer::Ethernet, frame);
        let examined = parsed.examined;
        engine.hand_in(at, port, parsed.with(()));
        log.arrived(at, Duration::ZERO, port.into(), frame, examined).expect("a vector takes it");
        arrivals += 1;
        // A live run polls when it gets to it.
        if place & 4 == 0 {
            poll(&mut engine, &mut log, at);
        }
    }
    let end = at + Duration::from_secs(2);
    poll(&mut engine, &mut log, end);
    let ended = Ended { at: end, arrivals, verdicts, stragglers: 0, inside: engine.inside() };
    log.write(&Record::Ended(ended)).expect("a vector takes it");
    let log = log.finish().expect("a vector takes it");
    let reader = LogReader::new("fuzz", &log[..]).expect("it was written");
    let result = replay_log(reader, "fuzz", &SimOptions::default(), &mut |_| ControlFlow::Continue(()))
        .expect("a run that was recorded can be replayed");
    assert!(result.agrees() && result.same == verdicts, "{result}");
}

/// Logs, and each kind of frames through each network.
pub fn replays() -> Vec<Vec<u8>> {
    let logs = files::logs().into_iter().map(|log| [&[0][..], &log].concat());
    let change = |steps: Vec<u8>| [&[1][..], &steps, &[0xff, 0xff, 8], &[0xff, 0xff, 3]].concat();
    logs.chain(frames::seeds().into_iter().step_by(7).map(change)).collect()
}

/// A report as JSON: it has a text, and a summary that sends nothing but text to a terminal.
///
/// # Panics
/// When it does, or when the report cannot be read any more once it is written.
pub fn report(bytes: &[u8]) {
    let Ok(report) = serde_json::from_slice::<Report>(bytes) else { return };
    drop(report.text().to_string());
    for width in [0, 80, 500] {
        let summary = report.summary(Look { width, colour: false }).to_string();
        assert_eq!(printable(&summary), summary);
    }
    written_again(&report);
}

fn written_again<T: Serialize + DeserializeOwned>(value: &T) {
    let text = serde_json::to_string(value).expect("a string takes it");
    serde_json::from_str::<T>(&text).unwrap_or_else(|error| panic!("{text}\n{error}"));
}

/// The report of a small run.
fn a_report() -> Report {
    let mut all = Vec::new();
    for which in 0..6 {
        let (_, scenario) = frames::scenario(which);
        let mut engine: Engine<Vec<u8>> = Engine::new(scenario.network()).expect("a network");
        let ports: Vec<_> = engine.ports().collect();
        let mut meter = Meter::new(ports.len());
        for number in 0..50 {
            let frame = odd::datagram(number % 2 == 0, &[1; 30]);
            let at = Time::ZERO + Duration::from_micros(300 * number);
            engine.hand_in(at, ports[0], parse(LinkLayer::Ethernet, &frame).with(frame));
        }
        while let Some(event) = engine.poll(Time::NEVER) {
            meter.verdict(&event);
        }
        let mut info = RunInfo::of(&scenario, Kind::Live);
        info.span = (Time::ZERO, Time::ZERO + Duration::from_secs(1));
        all.push(Report::new(&info, &engine, &meter));
    }
    let mut one = all.swap_remove(0);
    for other in all {
        one.directions.extend(other.directions.into_iter().take(1));
        one.rules.extend(other.rules);
        one.routers.extend(other.routers);
        one.pairs.extend(other.pairs);
        one.ports.extend(other.ports);
    }
    one
}

/// A report, and the same in a few lines.
pub fn reports() -> Vec<Vec<u8>> {
    vec![serde_json::to_vec(&a_report()).expect("a vector takes it")]
}

/// What a run replies to its clients, and what a coordinator and its agents say to each other, one a line: each is read, or
/// an error; what is read and written again is read once more.
///
/// # Panics
/// When it is not.
pub fn replies(bytes: &[u8]) {
    for line in bytes.split(|&byte| byte == b'\n').take(20) {
        if let Ok(order) = serde_json::from_slice::<Order>(line) {
            written_again(&order);
            if let Order::Prepare(plan) = order
                && !plan.text.contains("rules")
                && plan.text.len() < 4000
                && let Ok(scenario) = plan.scenario()
            {
                Engine::<()>::new(scenario.network()).unwrap_or_else(|error| panic!("accepted, but {error}"));
            }
        }
        drop(serde_json::from_slice::<Answer>(line).map(|answer| written_again(&answer)));
        let Ok(Reply::Ok(told)) = serde_json::from_slice(line) else { continue };
        let all: [fn(&RawValue); 11] = [
            data::<ChangeMade>,
            data::<Checked>,
            data::<Stats>,
            data::<Status>,
            data::<Stale>,
            data::<Now>,
            data::<EventsSince>,
            data::<PacketsSince>,
            data::<Vec<HostOfRun>>,
            data::<Entrance>,
            data::<CurrentScenario>,
        ];
        all.into_iter().for_each(|data| data(&told));
    }
}

fn data<T: Serialize + DeserializeOwned>(told: &RawValue) {
    drop(serde_json::from_slice(told.get().as_bytes()).map(|data: T| written_again(&data)));
}

/// One of each.
pub fn lines() -> Vec<Vec<u8>> {
    let report = a_report();
    let stats = Stats { generation: 3, report: report.clone(), now: None, text: "text".into() };
    let ended = Answer::Ended { report: Box::new(report), figures: [].into(), broken: None };
    let written = |value: &dyn Fn() -> serde_json::Result<String>| value().expect("a string takes it");
    let mut all: Vec<String> = vec![
        written(&|| serde_json::to_string(&serde_json::json!({ "ok": stats }))),
        written(&|| serde_json::to_string(&ended)),
    ];
    all.extend(
        [
            r#"{"ok":{"generation":7,"at_ns":5,"text":""}}"#,
            r#"{"ok":{"generation":7,"undo":["a.up.rate=1mbit"]}}"#,
            r#"{"stale":{"generation":7,"changes":["x"]}}"#,
            r#"{"error":"no such link"}"#,
            r#"{"ok":{"generation":2,"trust":"accurate","inside_packets":3,"delivered":{"packets_per_second":1.5,"bps":100.0}}}"#,
            r#"{"hello":{"version":"0.1.0","address":"10.0.0.1","user":0,"is_privileged":true}}"#,
            r#"{"bound":{"ports":{"beta":4711}}}"#,
            r#"{"failed":{"why":"no room"}}"#,
            r#""alive""#,
            r#"{"bind":{"address":"10.0.0.1","peers":["beta"]}}"#,
            r#"{"measure":{"peers":{"beta":"10.0.0.2:5000"}}}"#,
            r#"{"prepare":{"machine":"alpha","file":"x.toml","text":"[hosts.a]\n[hosts.b]\n[links.l]\nbetween=[\"a\",\"b\"]\ndelay=\"9ms\"\n",
            "files":{"x":[1,2]},"set":["l.rate=1mbit"],"seed":7,"nodes":{"a":"alpha","b":"beta"},
            "cuts":[{"link":"l","peer":"beta","identifier":1,"payload":1400,"subtract_ns":100}],"limits":{"beta":9}}}"#,
            r#"{"start":{"name":null,"tunnels":{"l":"10.0.0.2:5001"}}}"#,
        ]
        .map(|line| line.replace('\n', "")),
    );
    all.into_iter().map(String::into_bytes).collect()
}
