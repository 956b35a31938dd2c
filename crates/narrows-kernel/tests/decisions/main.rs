//! The program's decisions, compiled for this host, compared with the engine's; and the places of what it shares with us.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod floats;
mod harness;
mod headers;
mod management;
mod misfits;

use narrows_core::{DropReason, Engine, Time, Verdict};
use narrows_frame::LinkLayer;
use narrows_frame::parse::parse_cut;
use narrows_kernel::fit;
use narrows_scenario::Scenario;

use harness::{Arrival, Decided, HEAD, Harness, Random};

/// Added to "delivered" where packets are marked.
pub(crate) const HAS_MARK: u64 = 0x80;

/// What the engine decides about the same arrivals at its first port, with these values fed to the link that begins there.
fn by_engine(scenario: &Scenario, marks: bool, mut fed: &[(u64, i64)], arrivals: &[Arrival]) -> Vec<Decided> {
    let mut engine = Engine::<()>::new(scenario.network()).unwrap();
    let port = engine.ports().next().unwrap();
    let mut decided = vec![None; arrivals.len()];
    let mut drain = |engine: &mut Engine<()>, until: Time| {
        while let Some(event) = engine.poll(until) {
            let verdict = match event.verdict {
                Verdict::Delivered(_) if marks && event.key.ecn() == 3 => 1 | HAS_MARK,
                Verdict::Delivered(_) => 1,
                Verdict::Dropped { reason: DropReason::IngressLoss, .. } => 2,
                Verdict::Dropped { reason: DropReason::QueueFull, .. } => 3,
                Verdict::Dropped { reason: DropReason::WireLoss, .. } => 4,
                Verdict::Dropped { reason: DropReason::NoClass, .. } => 5,
                Verdict::Dropped { reason: DropReason::DelayModel, .. } => 6,
                Verdict::Dropped { reason: DropReason::QueueManagement, .. } => 8,
                other => panic!("{other:?}"),
            };
            let flip = event.flips.first().map_or(0, |bit| u64::from(*bit) + 1);
            let flip = if verdict & 0x7f == 1 { flip } else { 0 };
            decided[event.id.number() as usize] = Some((verdict, event.at.nanos(), flip));
        }
    };
    let link = engine.link("wire.up").unwrap();
    let mut feed = |engine: &mut Engine<()>, drain: &mut dyn FnMut(&mut Engine<()>, Time), until: u64| {
        while let Some(((from, value), rest)) = fed.split_first().filter(|((from, _), _)| *from <= until) {
            let from = Time::from_nanos(*from);
            drain(engine, from);
            assert_eq!(engine.feed(from, link, "radio", &[*value]), 1);
            fed = rest;
        }
    };
    for Arrival { at, frame } in arrivals {
        feed(&mut engine, &mut drain, *at);
        let at = Time::from_nanos(*at);
        drain(&mut engine, at);
        let cut = &frame[..frame.len().min(HEAD)];
        engine.hand_in(at, port, parse_cut(LinkLayer::Ethernet, cut, frame.len() as u32).with(()));
    }
    feed(&mut engine, &mut drain, u64::MAX);
    drain(&mut engine, Time::from_nanos(u64::MAX - 1));
    decided.into_iter().map(|decision| decision.expect("every packet gets its verdict")).collect()
}

/// Arrivals with gaps around this mean, some at one instant, of several classes; the first after some seconds, and with a long pause.
fn arrivals(count: usize, mean_gap: u64) -> Vec<Arrival> {
    let (mut random, mut at) = (Random::default(), 4_000_000_007);
    (0..count)
        .map(|number| {
            at += match random.below(8) {
                _ if number == count / 2 => 3_000_000_000,
                0 => 0,
                1 => random.below(16 * mean_gap + 1),
                _ => random.below(mean_gap + 1),
            };
            Arrival { at, frame: random.udp() }
        })
        .collect()
}

/// Both decide the same. Returns the verdicts, and how many packets overtook others.
fn agree(harness: &Harness, keys: &str, gap: u64) -> (Vec<Decided>, usize) {
    agree_with(harness, keys, gap, &[])
}

/// The same, with values that are fed.
fn agree_with(harness: &Harness, keys: &str, gap: u64, fed: &[(u64, i64)]) -> (Vec<Decided>, usize) {
    let text = format!("seed = 7\n[hosts.a]\n[hosts.b]\n[links.wire]\nbetween = [\"a\", \"b\"]\n{keys}\n");
    let scenario = Scenario::parse(&text, "case.toml").unwrap_or_else(|error| panic!("{keys}: {error}"));
    let fitting = fit(&scenario).unwrap_or_else(|error| panic!("{keys}: {error}"));
    let arrivals = arrivals(20_000, gap);
    let ours = harness.decide(&fitting.directions[0], fed, &arrivals);
    let engines = by_engine(&scenario, fitting.directions[0].queue.marks(), fed, &arrivals);
    let differing = ours.iter().zip(&engines).filter(|(ours, engines)| ours != engines).count();
    let first = ours.iter().zip(&engines).position(|(ours, engines)| ours != engines);
    let first = first.map(|at| (at, arrivals[at].at, ours[at], engines[at]));
    assert_eq!((ours.len(), differing), (arrivals.len(), 0), "{keys}: {first:?}");
    let delivered: Vec<u64> =
        engines.iter().filter(|(verdict, ..)| *verdict == 1).map(|(_, at, _)| *at).collect();
    let overtaking = delivered.windows(2).filter(|pair| pair[1] < pair[0]).count();
    (engines, overtaking)
}

#[test]
fn every_packet_gets_the_verdict_and_the_instant_that_the_engine_gives_it() {
    let harness = Harness::new("verdicts");
    for (keys, gap) in [
        ("delay = \"5ms\"", 1_000),
        ("rate = \"10mbit\"\nqueue = \"20 packets\"\ndelay = \"3ms\"\nloss = \"2%\"", 500_000),
        ("rate = \"7777777bit\"\nqueue = \"9000 bytes\"\nloss = \"0.1%\"", 700_000),
        ("rate = \"1gbit\"\noverhead = \"ethernet\"\nqueue = \"3 packets\"", 4_000),
        ("rate = \"3mbit\"\noverhead = \"atm\"\nloss = { ingress = \"10%\", wire = \"30%\" }", 2_000_000),
        ("loss = \"50%\"", 100),
        ("loss = \"100%\"\ndelay = \"1s\"", 100),
        ("rate = \"99gbit\"\ndelay = \"123456ns\"", 50),
        ("rate = \"1kbit\"\nqueue = \"1 packet\"", 5_000_000_000),
    ] {
        let (verdicts, _) = agree(&harness, keys, gap);
        if keys.contains("loss") || keys.contains("queue") {
            assert!(verdicts.iter().any(|&(verdict, ..)| verdict > 1), "{keys}: nothing is dropped");
        }
    }
}

#[test]
fn delays_are_those_that_the_engine_draws_and_packets_overtake_as_there() {
    let harness = Harness::new("delays");
    for (keys, overtake) in [
        ("delay = \"5ms\"\njitter = \"1ms\"", false),
        ("delay = \"5ms\"\njitter = \"2ms\"\norder = \"allow\"", true),
        (
            "delay = { uniform = { low = \"1ms\", high = \"9ms\" }, order = \"allow\" }\nrate = \"50mbit\"\nloss = \"3%\"",
            true,
        ),
        ("delay = { gamma = { mean = \"20ms\", sd = \"9ms\" }, order = \"allow\" }", true),
        (
            "delay = { normal = { mean = \"5ms\", sd = \"2ms\" }, correlation = \"25%\", order = \"allow\" }\nloss = \"9%\"",
            true,
        ),
        (
            "delay = { normal = { mean = \"1ms\", sd = \"3ms\" }, correlation = \"99%\" }\nrate = \"90mbit\"",
            false,
        ),
    ] {
        let (verdicts, overtaking) = agree(&harness, keys, 100_000);
        assert!(verdicts.iter().any(|&(verdict, ..)| verdict == 1), "{keys}");
        assert_eq!(overtaking > 1000, overtake, "{keys}: {overtaking}");
    }
}

#[test]
fn bursts_of_losses_hit_the_same_packets() {
    let harness = Harness::new("losses");
    let wire = "rate = \"20mbit\"\nqueue = \"30 packets\"";
    for (keys, share) in [
        ("loss = { gilbert-elliott = { p = \"1%\", r = \"20%\" } }", 0.0476),
        (
            "loss = { gilbert-elliott = { p = \"2%\", r = \"30%\", loss-bad = \"50%\", loss-good = \"1%\" } }",
            0.0406,
        ),
        ("loss = { gilbert-elliott = { p = \"0.1%\", r = 0 } }", 1.0),
    ] {
        let (verdicts, _) = agree(&harness, &format!("{keys}\n{wire}"), 300_000);
        let lost = verdicts.iter().filter(|&&(verdict, ..)| verdict == 4).count() as f64;
        let sent = verdicts.iter().filter(|&&(verdict, ..)| verdict != 3).count() as f64;
        assert!((lost / sent - share).abs() < 0.1 * share, "{keys}: {lost} of {sent}");
    }
}

#[test]
fn patterns_of_losses_hit_the_same_packets() {
    let harness = Harness::new("patterns");
    let folder = std::env::temp_dir().join(format!("narrows-patterns-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (text, hits) in [("1-5,50,100", 7), ("1", 1), ("2-99", 98), ("", 0), ("1-100", 100)] {
        let ranges: String = text
            .split(',')
            .filter(|range| !range.is_empty())
            .fold(String::new(), |all, range| all + range + "\n");
        std::fs::write(folder.join("x.pattern"), format!("pattern loss\nper packet\nlength 100\n{ranges}"))
            .unwrap();
        let keys =
            format!("loss = {{ ingress = {{ pattern = {{ file = {:?} }} }} }}", folder.join("x.pattern"));
        let (verdicts, _) = agree(&harness, &keys, 300_000);
        assert_eq!(verdicts.iter().filter(|&&(verdict, ..)| verdict == 2).count(), 200 * hits, "{text}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn values_that_are_fed_go_to_the_same_packets() {
    let harness = Harness::new("feeds");
    for (on_empty, lost) in [("zero", 0.02), ("last", 0.02), ("repeat", 0.04), ("drop", 0.3)] {
        for keys in ["order = \"allow\"", "rate = \"20mbit\"\nqueue = \"30 packets\"\nloss = \"1%\""] {
            let (mut random, mut at) = (Random::default(), 1_000_000_000);
            // Sometimes more than packets, sometimes fewer.
            let mut next = || {
                at += if at / 40_000_000 % 3 == 0 { random.below(200_000) } else { random.below(800_000) };
                let delay = match random.below(20) {
                    0 => -1,
                    _ => 1_000_000 + random.below(9_000_000) as i64,
                };
                (at, delay)
            };
            let fed: Vec<(u64, i64)> = (0..9_000).map(|_| next()).collect();
            let keys = format!(
                "delay = {{ feed = \"radio\", on-empty = \"{on_empty}\", lead = \"20000 values\" }}\n{keys}"
            );
            let (verdicts, _) = agree_with(&harness, &keys, 200_000, &fed);
            let share =
                verdicts.iter().filter(|&&(verdict, ..)| verdict == 6).count() as f64 / verdicts.len() as f64;
            assert!(share > lost, "{keys}: {share}");
        }
    }
}

#[test]
fn classes_are_served_in_the_order_of_the_engine() {
    let harness = Harness::new("classes");
    for (kind, [one, two, three]) in [
        ("prio", ["", "", ""]),
        ("drr", [", quantum = \"300B\"", ", quantum = \"900B\"", ", quantum = \"20B\""]),
        ("drr", [", weight = 3", ", weight = 1", ", weight = 7"]),
        ("wf2q+", [", weight = 3", ", weight = 1", ", weight = 7"]),
        ("wf2q+", [", weight = 16777216", ", weight = 1", ", weight = 65537"]),
        ("hpd", ["", ", ddp = 2", ", ddp = 4"]),
        ("hpd", [", g = 0", ", ddp = 3, g = 1024, gamma = 100", ", ddp = 7, estimator = \"ewma-pe\""]),
        ("hpd", [", limit = \"2ms\", estimator = \"ewma-r\"", ", ddp = 2, limit = \"4ms\"", ", ddp = 4"]),
        (
            "hpd\", bound-order = \"earliest-deadline\", bound-reading = \"has-violated",
            [", limit = \"20ms\"", ", ddp = 2, limit = \"4ms\"", ", ddp = 4"],
        ),
        // Their least common multiple is too large for a common denominator.
        (
            "hpd",
            [
                ", ddp = 4294967291",
                ", ddp = 4294967279",
                ", ddp = 4294967231, estimator = { type = \"ewma-r\", threshold = 3, cycle = \"1s\" }",
            ],
        ),
    ] {
        let classes = format!(
            "{{ name = \"one\", match = {{ dscp = 10 }}{one} }}, {{ name = \"two\", match = {{ dscp = [20, 21] }}, queue = \"7 packets\"{two} }}, {{ name = \"three\"{three} }}"
        );
        for (rate, gap) in [("10mbit", 600_000), ("10mbit", 500_000), ("100mbit", 30_000), ("1gbit", 6_500)] {
            let keys = format!(
                "rate = \"{rate}\"\nqueue = \"25 packets\"\nscheduler = {{ type = \"{kind}\", classes = [{classes}] }}"
            );
            let (verdicts, overtaking) = agree(&harness, &keys, gap);
            assert!(verdicts.iter().any(|&(verdict, ..)| verdict == 3), "{keys}: nothing is dropped");
            assert!(overtaking > 1000, "{keys}: {overtaking}");
        }
    }
}

#[test]
fn classes_look_at_what_the_engine_looks_at() {
    let harness = Harness::new("matches");
    for filter in [
        "{ protocol = \"udp\", destination-port = 53 }",
        "{ protocol = \"tcp\" }",
        "{ port = [\"300-400\", 565] }",
        "{ source-port = 5000, length = \"..300 bytes\" }",
        "[{ dscp = \"ef\" }, { ecn = \"ce\", destination = \"b\" }]",
        "{ source = \"10.0.0.0/31\" }",
        "{ destination = [\"10.0.0.3\", \"10.0.0.2/32\"] }",
    ] {
        let classes = format!("{{ name = \"one\", match = {filter} }}, {{ name = \"two\" }}");
        let keys = format!(
            "rate = \"10mbit\"\nqueue = \"25 packets\"\nscheduler = {{ type = \"prio\", classes = [{classes}] }}"
        );
        agree(&harness, &keys, 500_000);
    }
}

#[test]
fn bits_are_flipped_as_the_engine_flips_them() {
    let harness = Harness::new("flips");
    for keys in ["corrupt = \"10%\"", "corrupt = \"100%\"\nrate = \"20mbit\"\nloss = \"5%\""] {
        let (verdicts, _) = agree(&harness, keys, 300_000);
        let flipped = verdicts.iter().filter(|&&(.., flip)| flip > 0).count();
        let delivered = verdicts.iter().filter(|&&(verdict, ..)| verdict == 1).count();
        let expected = if keys.contains("100") { delivered } else { delivered / 10 };
        assert!(flipped.abs_diff(expected) < 200, "{keys}: {flipped} of {delivered}");
    }
}
