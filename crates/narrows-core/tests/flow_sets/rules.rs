//! Rules give packets to flow sets by the numbers of queues.

use narrows_core::classify::FlowMask;
use narrows_core::rules::{Action, Argument, Rule, RuleSetConfig, Test};
use narrows_core::sched::Wf2q;
use narrows_core::{
    Engine, FlowKey, Headers, Packet, PipeConfig, Protocol, Rate, RulesConfig, Target, Time, Verdict,
};

use crate::shares::network;
use crate::stand::{queue, set, weight};

/// `add N queue QUEUE ipV`
fn rule(number: u16, queue: u32, version: u8) -> Rule {
    let terms = vec![Test::IpVersion(version).into()];
    Rule { terms, ..Rule::new(number, Action::Queue(Argument::Number(queue))) }
}

/// Queue 30 is for IPv4; queue 20 tells IPv6 packets apart by their flow labels, which are in the headers that the network
/// keeps for the rules.
#[test]
fn by_number_of_the_queue_and_by_flow_label() {
    let labels = FlowMask { flow_label: 0xf_ffff, ..FlowMask::NONE };
    let sets = vec![set(labels, weight(1)), set(FlowMask::NONE, weight(2))];
    let mut config = network(Rate::from_bits_per_second(8_000_000), Box::new(queue(Wf2q::default(), sets)));
    let (out, back) = (Target::Port("out".into()), Target::Port("in".into()));
    config.links[0].lanes = vec![out.clone(), back.clone()];
    config.ports[0].entry = Target::Rules { name: "rules".into(), incoming: false };
    let pipe = |mark| PipeConfig { link: "link".into(), mark };
    let rules = RuleSetConfig { rules: vec![rule(100, 30, 4), rule(200, 20, 6)], ..RuleSetConfig::default() };
    config.rules = vec![RulesConfig {
        name: "rules".into(),
        rules,
        pipes: Vec::new(),
        queues: vec![(20, pipe(0)), (30, pipe(1))],
        one_pass: true,
        exits: [out, back],
    }];
    let mut engine = Engine::new(config).expect("names lead somewhere");
    let port = engine.port("in").expect("it was configured");
    // 100 packets of 1 ms each in all: half of the wire is IPv4's.
    for _ in 0..60 {
        for flow_label in 0..3 {
            let network = if flow_label == 0 { Protocol::Ipv4 } else { Protocol::Ipv6 };
            let key = FlowKey { network, ..FlowKey::default() };
            let headers = Headers { flow_label, ..Headers::plain(&key, 1_000) };
            let packet =
                Packet { length: 1_000, link_header: 0, network_header: 20, key, headers, body: flow_label };
            engine.hand_in(Time::ZERO, port, packet);
        }
    }
    let mut left = [0_i32; 3];
    while let Some(event) = engine.poll(Time::from_nanos(100_000_000)) {
        assert!(matches!(event.verdict, Verdict::Delivered(_)));
        left[*event.body.get() as usize] += 1;
    }
    for (flow_label, expected) in [(0, 50), (1, 25), (2, 25)] {
        assert!((left[flow_label] - expected).abs() <= 2, "{left:?}");
    }
    let view = engine.view(engine.link("link").expect("it was configured"));
    let flows = view.masked_flows(Time::ZERO);
    let seen: Vec<_> = flows
        .iter()
        .map(|flow| (flow.set, flow.flow.map(|flow| flow.flow_label), flow.arrived.packets))
        .collect();
    assert_eq!(seen, [(0, Some(1), 60), (0, Some(2), 60), (1, Some(0), 60)]);
}
