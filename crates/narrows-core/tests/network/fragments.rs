//! Packets that a link cuts, and what rules, masks and routers behind it see of the pieces.

use narrows_core::classify::{FlowMask, Prefix};
use narrows_core::rules::{Action, Argument, RuleSetConfig, Test};
use narrows_core::sched::Weight;
use narrows_core::*;

use crate::common::*;
use crate::rules::rule;

const TCP: u8 = 6;

/// A link that takes no more than `mtu` bytes.
fn narrow(name: &str, mtu: u32, to: Target) -> LinkConfig {
    let mut link = LinkConfig::new(name, to);
    link.settings.mtu = Some(Mtu { bytes: mtu, policy: MtuPolicy::Fragment });
    link
}

/// From `a` over a link with an MTU of 420 bytes to rules, and then to `b`; pipe 1 leads back to the rules.
fn network(tests: &[Test], action: Action, one_pass: bool) -> Engine<()> {
    let mut config = NetworkConfig::new(Seed(1));
    config.links.push(narrow("narrow", 420, Target::Rules { name: "rules".into(), incoming: false }));
    let back = |incoming| Target::FromPipe { rules: "rules".into(), incoming };
    let mut pipe = narrow("pipe", 220, back(false));
    pipe.lanes.push(back(true));
    config.links.push(pipe);
    config.rules.push(RulesConfig {
        name: "rules".into(),
        rules: RuleSetConfig { rules: vec![rule(100, action, tests)], ..RuleSetConfig::default() },
        pipes: vec![(1, PipeConfig { link: "pipe".into(), mark: 0 })],
        queues: Vec::new(),
        one_pass,
        exits: [Target::Port("b".into()), Target::Port("a".into())],
    });
    config.ports.push(port("a", Target::Link { name: "narrow".into(), lane: 0 }));
    config.ports.push(port("b", Target::Port("b".into())));
    Engine::new(config).expect("the network is whole")
}

/// Where the pieces of a TCP segment of 1,000 bytes begin that match, of its 980 bytes of payload: pieces of 400, 400 and 180.
fn denied(tests: &[Test]) -> Vec<u16> {
    let mut engine = network(tests, Action::Deny, true);
    let a = engine.port("a").expect("it is there");
    // ACK.
    let key = FlowKey { transport: TCP, tcp_flags: 16, ..key(1, 1) };
    engine.hand_in(Time::ZERO, a, packet(key, 1000));
    let mut offsets = Vec::new();
    while let Some(event) = engine.poll(Time::ZERO) {
        let piece = event.fragment.expect("it was cut");
        // Those who tell packets apart outside still know whose piece it is.
        assert_eq!((event.key.source_port, event.key.destination_port), (1000, 80));
        if matches!(event.verdict, Verdict::Dropped { reason: DropReason::Denied, .. }) {
            offsets.push(piece.offset);
        }
    }
    assert_eq!(engine.inside(), 0);
    offsets
}

#[test]
fn pieces_but_for_the_first_are_fragments_without_ports_and_flags() {
    let (first, later, all) = (vec![0], vec![400, 800], vec![0, 400, 800]);
    for (test, expected) in [
        (Test::Fragment, &later),
        (Test::DestinationPort(vec![80..=80]), &first),
        (Test::SourcePort(vec![0..=65_535]), &first),
        (Test::Established, &first),
        // 400 bytes less 20 of the TCP header, behind which the whole packet has 960.
        (Test::TcpDataLength(vec![380..=380]), &first),
        (Test::Protocol(TCP), &all),
        (Test::Length(vec![420..=420]), &vec![0, 400]),
        (Test::HopLimit(vec![64..=64]), &all),
    ] {
        assert_eq!(denied(std::slice::from_ref(&test)), *expected, "{test:?}");
    }
}

#[test]
fn pieces_of_pieces_go_on_behind_the_rule_that_sent_them_to_the_pipe() {
    for one_pass in [true, false] {
        let mut engine = network(&[], Action::Pipe(Argument::Number(1)), one_pass);
        let (a, rules) =
            (engine.port("a").expect("it is there"), engine.rules_of("rules").expect("it is there"));
        engine.hand_in(Time::ZERO, a, packet(key(1, 1), 1000));
        let mut offsets = Vec::new();
        while let Some(event) = engine.poll(Time::ZERO) {
            let piece = event.fragment.expect("it was cut");
            offsets.push((piece.offset, piece.more));
        }
        assert_eq!(offsets, [(0, true), (200, true), (400, true), (600, true), (800, false)]);
        let counters = engine.rules_counters(rules);
        let counted = [counters.arrived[0], counters.piped, counters.returned, counters.passed];
        assert_eq!(counted.map(|tally| tally.packets), [3, 3, 5, 5]);
        // The first two have a header more.
        assert_eq!(counted.map(|tally| tally.bytes), [1040, 1040, 1080, 1080]);
    }
}

#[test]
fn masks_and_routers_know_the_ports_of_the_first_piece_only() {
    let mut config = NetworkConfig::new(Seed(1));
    config.links.push(narrow("narrow", 420, Target::Router("router".into())));
    let mut pipe = LinkConfig::new("pipe", Target::Port("b".into()));
    let mask = FlowMask { destination_port: u16::MAX, ..FlowMask::NONE };
    let idle = Duration::from_nanos(1);
    pipe.instances = Some(Box::new(Instances { mask, most: 9, idle, template: Box::new(Plain) }));
    config.links.push(pipe);
    let ways = vec![(Target::Link { name: "pipe".into(), lane: 0 }, Weight::ONE)];
    let route = Route { ways, spread: Spread::Flow, local: false, ..Route::default() };
    let routes = vec![(Prefix::new(address(0, 0), 96), route)];
    config.routers.push(RouterConfig { name: "router".into(), routes, ..RouterConfig::default() });
    config.ports.push(port("a", Target::Link { name: "narrow".into(), lane: 0 }));
    config.ports.push(port("b", Target::Port("b".into())));
    let mut engine = Engine::new(config).expect("the network is whole");
    let (a, link) = (engine.port("a").expect("it is there"), engine.link("pipe").expect("it is there"));
    engine.hand_in(Time::ZERO, a, packet(key(1, 1), 1000));
    let mut hops = Vec::new();
    let mut poll = |engine: &mut Engine<()>, now| {
        while let Some(event) = engine.poll(now) {
            hops.push(event.hops);
        }
    };
    poll(&mut engine, Time::ZERO);
    let flows = engine.view(link).instances(Time::ZERO);
    let flows: Vec<_> =
        flows.iter().map(|one| (one.flow.destination_port, one.link.counters()[0].arrived.packets)).collect();
    assert_eq!(flows, [(0, 2), (80, 1)]);
    poll(&mut engine, at(1_000));
    assert_eq!(hops, [1, 1, 1]);
}

#[derive(Debug)]
struct Plain;

impl LinkTemplate for Plain {
    fn link(&self) -> LinkConfig {
        let mut link = LinkConfig::new("", Target::Port(String::new()));
        delay(&mut link, 1_000);
        link
    }

    fn changes(&self) -> Vec<Change> {
        Vec::new()
    }
}
