//! The program's decisions, compiled for this host, compared with the engine's; and the places of what it shares with us.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use narrows_core::{DropReason, Engine, Packet, Time, Verdict};
use narrows_io::kernel_end::Layout;
use narrows_kernel::{Parameters, fit};
use narrows_scenario::Scenario;

/// The harness `link.c`, compiled; removed at the end.
struct Harness(PathBuf);

impl Harness {
    fn new(name: &str) -> Self {
        let program = std::env::temp_dir().join(format!("narrows-link-{name}-{}", std::process::id()));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/link.c");
        let done = Command::new("cc")
            .args(["-O2", "-Wall", "-Wextra", "-Werror", "-o"])
            .arg(&program)
            .arg(source)
            .status();
        assert!(done.unwrap().success());
        Self(program)
    }

    /// What is decided about these arrivals (time, length): (verdict, time).
    fn decide(&self, parameters: &Parameters, arrivals: &[(u64, u32)]) -> Vec<(u64, u64)> {
        let mut input = parameters.bytes(65_536, 65_536).to_vec();
        for &(at, length) in arrivals {
            input.extend(at.to_ne_bytes());
            input.extend(u64::from(length).to_ne_bytes());
        }
        let mut child = Command::new(&self.0).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || stdin.write_all(&input).unwrap());
        let output = child.wait_with_output().unwrap().stdout;
        writer.join().unwrap();
        let (numbers, []) = output.as_chunks::<16>() else { panic!("half a decision") };
        let number = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap());
        numbers.iter().map(|both| (number(&both[..8]), number(&both[8..]))).collect()
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// What the engine decides about the same arrivals at its first port.
fn by_engine(scenario: &Scenario, arrivals: &[(u64, u32)]) -> Vec<(u64, u64)> {
    let mut engine = Engine::<()>::new(scenario.network()).unwrap();
    let port = engine.ports().next().unwrap();
    let mut decided = vec![None; arrivals.len()];
    let mut drain = |engine: &mut Engine<()>, until: Time| {
        while let Some(event) = engine.poll(until) {
            let verdict = match event.verdict {
                Verdict::Delivered(_) => 0,
                Verdict::Dropped { reason: DropReason::IngressLoss, .. } => 1,
                Verdict::Dropped { reason: DropReason::QueueFull, .. } => 2,
                Verdict::Dropped { reason: DropReason::WireLoss, .. } => 3,
                other => panic!("{other:?}"),
            };
            decided[event.id.number() as usize] = Some((verdict, event.at.nanos()));
        }
    };
    for &(at, length) in arrivals {
        let at = Time::from_nanos(at);
        drain(&mut engine, at);
        let (key, headers) = (Default::default(), Default::default());
        engine.hand_in(
            at,
            port,
            Packet { length, link_header: 14, network_header: 20, key, headers, body: () },
        );
    }
    drain(&mut engine, Time::from_nanos(u64::MAX - 1));
    decided.into_iter().map(|decision| decision.expect("every packet gets its verdict")).collect()
}

/// Arrivals with gaps around the time that a packet takes, some at one instant, from a generator of its own.
fn arrivals(count: usize, mean_gap: u64) -> Vec<(u64, u32)> {
    let (mut state, mut at) = (0x2545_f491_4f6c_dd1d_u64, 1_000_000_007);
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..count)
        .map(|_| {
            at += match next() % 8 {
                0 => 0,
                1 => next() % (16 * mean_gap + 1),
                _ => next() % (mean_gap + 1),
            };
            (at, 28 + (next() % 1473) as u32)
        })
        .collect()
}

#[test]
fn every_packet_gets_the_verdict_and_the_instant_that_the_engine_gives_it() {
    let harness = Harness::new("verdicts");
    let cases: [(&str, u64); 9] = [
        ("delay = \"5ms\"", 1_000),
        ("rate = \"10mbit\"\nqueue = \"20 packets\"\ndelay = \"3ms\"\nloss = \"2%\"", 500_000),
        ("rate = \"7777777bit\"\nqueue = \"9000 bytes\"\nloss = \"0.1%\"", 700_000),
        ("rate = \"1gbit\"\noverhead = \"ethernet\"\nqueue = \"3 packets\"", 4_000),
        ("rate = \"3mbit\"\noverhead = \"atm\"\nloss = { ingress = \"10%\", wire = \"30%\" }", 2_000_000),
        ("loss = \"50%\"", 100),
        ("loss = \"100%\"\ndelay = \"1s\"", 100),
        ("rate = \"99gbit\"\ndelay = \"123456ns\"", 50),
        ("rate = \"1kbit\"\nqueue = \"1 packet\"", 5_000_000_000),
    ];
    for (keys, gap) in cases {
        let text =
            format!("seed = 7\n[hosts.a]\n[hosts.b]\n[links.wire]\nbetween = [\"a\", \"b\"]\n{keys}\n");
        let scenario = Scenario::parse(&text, "case.toml").unwrap_or_else(|error| panic!("{error}"));
        let [up, _] = fit(&scenario).unwrap_or_else(|error| panic!("{keys}: {error}"));
        let arrivals = arrivals(20_000, gap);
        let (ours, engines) = (harness.decide(&up, &arrivals), by_engine(&scenario, &arrivals));
        let differing = ours.iter().zip(&engines).filter(|(ours, engines)| ours != engines).count();
        let first = ours.iter().zip(&engines).position(|(ours, engines)| ours != engines);
        let first = first.map(|at| (at, arrivals[at], ours[at], engines[at]));
        assert_eq!((ours.len(), differing), (arrivals.len(), 0), "{keys}: {first:?}");
        if keys.contains("loss") || keys.contains("queue") {
            assert!(engines.iter().any(|&(verdict, _)| verdict > 0), "{keys}: nothing is dropped");
        }
    }
}

#[test]
fn what_is_shared_lies_where_both_sides_expect_it() {
    let harness = Harness::new("layout");
    let output = Command::new(&harness.0).arg("layout").output().unwrap().stdout;
    let found: Vec<usize> =
        String::from_utf8(output).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    let expected = [
        Layout::PARAMETERS,
        Layout::DIRECTION,
        Layout::NUMBER,
        Layout::LINE_IN,
        Layout::LINE_OUT,
        Layout::BEGUN,
        Layout::DONE,
        Layout::READ,
        Layout::NO_ROOM,
        Layout::UNSUPPORTED,
        Layout::TRAINS,
        Layout::BYPASSED,
        Layout::RECORD,
        Layout::ARRIVAL,
        Layout::AT,
        Layout::LENGTH,
        Layout::FRAME_LENGTH,
        Layout::VERDICT,
        Layout::HEAD_LENGTH,
        Layout::HEAD,
        Layout::HEAD_MOST,
        Layout::DEPARTURE,
        16,
        256,
    ];
    assert_eq!(found, expected);
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let refused = |text: &str, keys: &[&str]| {
        let scenario = Scenario::parse(text, "case.toml").unwrap_or_else(|error| panic!("{text}: {error}"));
        let misfits = fit(&scenario).unwrap_err();
        let found: Vec<&str> = misfits.all().iter().map(|misfit| misfit.key.as_str()).collect();
        assert_eq!(found, keys, "{text}");
        let text = misfits.to_string();
        assert!(keys.iter().all(|key| text.contains(key)) && text.contains("af_packet"), "{text}");
    };
    let link = |keys: &str| format!("[hosts.a]\n[hosts.b]\n[links.wire]\nbetween = [\"a\", \"b\"]\n{keys}");
    for (keys, found) in [
        ("delay = \"5ms\"\njitter = \"1ms\"", &["wire.up.delay", "wire.down.delay"][..]),
        ("up = { duplicate = \"1%\" }", &["wire.up.duplicate"]),
        (
            "up = { corrupt = \"1%\", reorder = \"5%\" }\ndown = { delay = \"1ms\" }",
            &["wire.up.corrupt", "wire.up.reorder"],
        ),
        ("queue = { drop = \"head\" }", &["wire.up.queue", "wire.down.queue"]),
        ("up = { queue = \"codel\" }", &["wire.up.queue"]),
        ("up = { rate = \"1mbit\", scheduler = \"sfq\" }", &["wire.up.queue"]),
        ("up = { loss = { gilbert-elliott = { p = 0.01, r = 0.2 } } }", &["wire.up.loss"]),
    ] {
        refused(&link(keys), found);
    }
    let three = "[hosts.a]\n[hosts.b]\n[hosts.c]\n[links.x]\nbetween = [\"a\", \"b\"]\n[links.y]\nbetween = [\"b\", \"c\"]";
    refused(three, &["3 hosts, 2 links"]);
    refused(
        &(link("") + "\n[[timeline]]\nat = \"1s\"\nset = { \"wire.up.delay\" = \"1ms\" }"),
        &["timeline"],
    );
}
