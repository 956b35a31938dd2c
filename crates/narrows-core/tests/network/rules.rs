//! Rules in a network: pipes, what comes back from them, what is counted where.

use narrows_core::queue::{Bound, DropAt, Fifo};
use narrows_core::rules::{Action, Answer, Argument, Rule, RuleChange, RuleSetConfig, Term, Test};
use narrows_core::*;
use proptest::prelude::*;

use crate::common::*;

pub(crate) fn rule(number: u16, action: Action, tests: &[Test]) -> Rule {
    Rule { terms: tests.iter().cloned().map(Term::from).collect(), ..Rule::new(number, action) }
}

fn pipe(number: u32) -> Action {
    Action::Pipe(Argument::Number(number))
}

/// A pipe with a rate, a delay, and room for `bound` packets.
fn lanes(name: &str, bits: u64, nanos: u64, bound: u64) -> LinkConfig {
    let back = |incoming| Target::FromPipe { rules: "rules".into(), incoming };
    let mut link = LinkConfig::new(name, back(false));
    link.lanes.push(back(true));
    rate(&mut link, bits);
    delay(&mut link, nanos);
    link.queue = Box::new(Fifo::new(Bound::Packets(bound), DropAt::Tail));
    link
}

/// `a` is inside, `b` outside; pipes 1, 2, … are the links.
fn network(rules: Vec<Rule>, links: Vec<LinkConfig>, one_pass: bool) -> Engine<()> {
    Engine::new(config(rules, links, one_pass)).expect("the network is whole")
}

fn config(rules: Vec<Rule>, links: Vec<LinkConfig>, one_pass: bool) -> NetworkConfig {
    let mut config = NetworkConfig::new(Seed(3));
    let pipes =
        (1..).zip(&links).map(|(number, link)| (number, PipeConfig { link: link.name.clone(), mark: 0 }));
    config.rules.push(RulesConfig {
        name: "rules".into(),
        rules: RuleSetConfig { rules, ..RuleSetConfig::default() },
        pipes: pipes.collect(),
        queues: Vec::new(),
        one_pass,
        exits: [Target::Port("b".into()), Target::Port("a".into())],
    });
    config.links = links;
    config.ports.push(port("a", Target::Rules { name: "rules".into(), incoming: false }));
    config.ports.push(port("b", Target::Rules { name: "rules".into(), incoming: true }));
    config
}

fn at_port(engine: &Engine<()>, name: &str) -> Verdict {
    Verdict::Delivered(engine.port(name).expect("it was configured"))
}

#[test]
fn pipes_in_series_take_the_sum_to_the_nanosecond() {
    // (l + Q)/B + t_D for each: 1,000 bytes at 1 Mbit/s and 50 ms, then at 4 Mbit/s and 1 ms.
    let rules = vec![rule(100, pipe(1), &[]), rule(200, pipe(2), &[])];
    let links = || vec![lanes("p1", 1_000_000, 50_000_000, 50), lanes("p2", 4_000_000, 1_000_000, 50)];
    let mut once = network(rules.clone(), links(), true);
    let mut twice = network(rules, links(), false);
    for engine in [&mut once, &mut twice] {
        let a = engine.port("a").expect("it was configured");
        for _ in 0..3 {
            engine.hand_in(Time::ZERO, a, packet(key(1, 1), 1000));
        }
    }
    let instants = |engine: &mut Engine<()>| drain(engine).iter().map(|seen| seen.0).collect::<Vec<_>>();
    assert_eq!(instants(&mut once), [58_000_000, 66_000_000, 74_000_000]);
    assert_eq!(instants(&mut twice), [61_000_000, 69_000_000, 77_000_000]);
    let counters =
        |engine: &Engine<()>| engine.rules_counters(engine.rules_of("rules").expect("they are there"));
    let (one, two) = (counters(&once), counters(&twice));
    assert_eq!((one.piped.packets, one.returned.packets, one.passed.packets), (3, 3, 3));
    assert_eq!((two.piped.packets, two.returned.packets, two.passed.packets), (6, 6, 3));
}

#[test]
fn one_pipe_for_both_directions_is_a_shared_medium() {
    let mut engine = network(vec![rule(100, pipe(1), &[])], vec![lanes("p", 1_000_000, 0, 50)], true);
    let (a, b) = (engine.port("a").expect("it is there"), engine.port("b").expect("it is there"));
    engine.hand_in(Time::ZERO, a, packet(key(1, 1), 1000));
    engine.hand_in(Time::ZERO, b, packet(key(1, 1), 1000));
    let (to_a, to_b) = (at_port(&engine, "a"), at_port(&engine, "b"));
    assert_eq!(drain(&mut engine), [(8_000_000, 0, to_b), (16_000_000, 0, to_a)]);
    let view = engine.view(engine.link("p").expect("it is there"));
    assert_eq!(view.counters().iter().map(|lane| lane.left.packets).collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn what_a_rule_denies_and_a_pipe_that_there_is_not_are_counted_where_they_happen() {
    let udp = [Test::Protocol(17)];
    let rules = vec![rule(100, pipe(9), &[Test::In]), rule(200, Action::Deny, &udp)];
    let mut engine = network(rules, Vec::new(), true);
    let (a, b) = (engine.port("a").expect("it is there"), engine.port("b").expect("it is there"));
    engine.hand_in(Time::ZERO, a, packet(key(1, 1), 100));
    engine.hand_in(Time::ZERO, b, packet(key(1, 1), 100));
    engine.hand_in(Time::ZERO, a, packet(FlowKey { transport: 6, ..key(1, 1) }, 100));
    let rules = engine.rules_of("rules").expect("they are there");
    let dropped = |reason| Verdict::Dropped { at: Some(Element::Rules(rules)), reason };
    let to_b = at_port(&engine, "b");
    assert_eq!(
        drain(&mut engine),
        [(0, 0, dropped(DropReason::Denied)), (0, 0, dropped(DropReason::NoPipe)), (0, 1, to_b)]
    );
    let counters = engine.rules_counters(rules);
    assert_eq!((counters.denied.packets, counters.no_pipe.packets, counters.passed.packets), (1, 1, 1));
    assert_eq!(counters.arrived.map(|tally| tally.packets), [2, 1]);
}

#[test]
fn what_a_rule_rejects_is_denied_and_says_what_the_sender_is_told() {
    for (answer, told) in [
        (Answer::Reset, [true, false, false]),
        (Answer::Reset6, [false, true, false]),
        (Answer::Unreachable(13), [true, false, false]),
        (Answer::Unreachable6(1), [false, true, false]),
        (Answer::FragmentationNeeded(1400), [true, false, false]),
    ] {
        let mut engine = network(vec![rule(100, Action::Reject(answer), &[])], Vec::new(), true);
        let (b, rules) =
            (engine.port("b").expect("it is there"), engine.rules_of("rules").expect("they are there"));
        let networks = [Protocol::Ipv4, Protocol::Ipv6, Protocol::Other];
        for network in networks {
            engine.hand_in(Time::ZERO, b, packet(FlowKey { network, ..key(1, 1) }, 100));
        }
        for told in told {
            let event = engine.poll(Time::ZERO).expect("each packet has a verdict");
            let at = Some(Element::Rules(rules));
            assert_eq!(event.verdict, Verdict::Dropped { at, reason: DropReason::Denied });
            assert_eq!(event.answer, told.then_some(answer));
        }
        let counters = engine.rules_counters(rules);
        assert_eq!((counters.denied.packets, counters.passed.packets), (3, 0));
    }
}

#[test]
fn a_running_network_gets_rules_and_pipes() {
    let mut engine = network(Vec::new(), Vec::new(), false);
    let (a, rules) =
        (engine.port("a").expect("it is there"), engine.rules_of("rules").expect("they are there"));
    engine.add_link(at(5), lanes("late", 8_000_000, 0, 50)).expect("the name is free");
    assert!(engine.add_link(at(5), lanes("late", 8_000_000, 0, 50)).is_err());
    let to = PipeConfig { link: "late".into(), mark: 0 };
    engine.change_rules(at(5), rules, RulesChange::Pipe(1, Some(to))).expect("the link is there");
    let add = RulesChange::Rules(RuleChange::Add(rule(100, pipe(1), &[])));
    engine.change_rules(at(5), rules, add).expect("the rule is right");
    let nowhere = PipeConfig { link: "nowhere".into(), mark: 0 };
    assert!(engine.change_rules(at(5), rules, RulesChange::Pipe(2, Some(nowhere))).is_err());
    engine.hand_in(at(10), a, packet(key(1, 1), 1000));
    // What is inside leaves, though its number stands for nothing any more.
    engine.change_rules(at(20), rules, RulesChange::Pipe(1, None)).expect("it may go");
    engine.hand_in(at(30), a, packet(key(1, 1), 1000));
    let seen = drain(&mut engine);
    let no_pipe = Verdict::Dropped { at: Some(Element::Rules(rules)), reason: DropReason::NoPipe };
    assert_eq!(seen, [(30, 1, no_pipe), (1_000_010, 0, at_port(&engine, "b"))]);
}

#[test]
fn a_pipe_that_packets_come_to_again_only_later_draws_anew_at_each_visit() {
    let run = |later: bool, one_pass_before: bool| {
        let rules = vec![rule(100, pipe(1), &[]), rule(200, pipe(1), &[])];
        let mut link = lanes("p", 1_000_000_000, 0, 1_000);
        let half = Probability::from_ratio(1, 2).expect("it is one");
        link.wire_loss = Some(Loss::of(model::Independent(half)));
        let mut config = config(rules, vec![link], one_pass_before);
        if later {
            config.rules[0].pipes.clear();
        }
        let mut engine = Engine::new(config).expect("the network is whole");
        let a = engine.port("a").expect("it is there");
        if later {
            let rules = engine.rules_of("rules").expect("they are there");
            let to = RulesChange::Pipe(1, Some(PipeConfig { link: "p".into(), mark: 0 }));
            engine.change_rules(Time::ZERO, rules, to).expect("the link is there");
        }
        if one_pass_before {
            let rules = engine.rules_of("rules").expect("they are there");
            engine.change_rules(Time::ZERO, rules, RulesChange::OnePass(false)).expect("it may change");
        }
        (0..400).for_each(|_| _ = engine.hand_in(Time::ZERO, a, packet(key(1, 1), 100)));
        let to_b = at_port(&engine, "b");
        let passed = drain(&mut engine).iter().filter(|seen| seen.2 == to_b).count();
        // A quarter of them, within four standard deviations: half of them would be.
        assert!((65..=135).contains(&passed), "{passed}");
        passed
    };
    let plain = run(false, false);
    for (later, one_pass_before) in [(true, false), (false, true), (true, true)] {
        assert_eq!(run(later, one_pass_before), plain);
    }
}

/// A set of rules whose packets go through pipes up to three times, both ways, lose some, and are dropped in some places.
fn busy(one_pass: bool) -> Engine<()> {
    let half = |rule: Rule| Rule { probability: Probability::from_ratio(1, 2), ..rule };
    let rules = vec![
        half(rule(100, pipe(1), &[])),
        rule(200, pipe(2), &[Test::Out]),
        half(rule(300, Action::Deny, &[Test::DestinationPort(vec![80..=80])])),
        rule(400, pipe(1), &[Test::In]),
        half(rule(500, pipe(7), &[])),
    ];
    network(rules, vec![lanes("p1", 3_000_000, 4_000_000, 3), lanes("p2", 2_000_000, 9_000_000, 2)], one_pass)
}

proptest! {
    #[test]
    fn nothing_is_lost_and_late_polls_change_nothing(
        packets in proptest::collection::vec((0u64..6_000_000, any::<bool>(), 40u32..1500), 1..80),
        one_pass: bool,
        polls in proptest::collection::vec(any::<bool>(), 80),
    ) {
        let run = |polls: &[bool]| {
            let mut engine = busy(one_pass);
            let ports = ["a", "b"].map(|name| engine.port(name).expect("it is there"));
            let (mut now, mut seen) = (0, Vec::new());
            for (&(gap, inbound, length), &polls_now) in packets.iter().zip(polls.iter().cycle()) {
                now += gap;
                if polls_now {
                    poll(&mut engine, at(now), &mut seen);
                }
                engine.hand_in(at(now), ports[usize::from(inbound)], packet(key(1, 1), length));
            }
            seen.extend(drain(&mut engine));
            let counters = engine.rules_counters(engine.rules_of("rules").expect("they are there"));
            (seen, counters)
        };
        let (early, late) = (run(&[true]), run(&polls));
        prop_assert_eq!(&early, &late);
        prop_assert_eq!(early.0.len(), packets.len());
        let c = early.1;
        let came: u64 = c.arrived.iter().map(|tally| tally.packets).sum();
        prop_assert_eq!(
            came + c.returned.packets,
            c.passed.packets + c.piped.packets + c.denied.packets + c.no_pipe.packets + c.looped.packets
        );
    }
}
