//! A link of its own for each flow that a mask tells apart.

use narrows_core::classify::FlowMask;
use narrows_core::service::ConstantRate;
use narrows_core::*;
use proptest::prelude::*;

use crate::common::*;

const SECOND: u64 = 1_000_000_000;

#[derive(Debug)]
struct Template {
    bits: u64,
    delay: u64,
}

impl LinkTemplate for Template {
    fn link(&self) -> LinkConfig {
        let mut link = LinkConfig::new("", Target::Port("b".into()));
        rate(&mut link, self.bits);
        delay(&mut link, self.delay);
        link
    }

    fn changes(&self) -> Vec<Change> {
        vec![Change::Service(Box::new(ConstantRate(Rate::from_bits_per_second(self.bits))))]
    }
}

/// One link per low byte of the source, of 1 Mbit/s and 5 ms each.
fn network(most: u32, idle: Duration) -> Engine<()> {
    let template = Template { bits: 1_000_000, delay: 5_000_000 };
    let mut link = LinkConfig { name: "pipe".into(), ..template.link() };
    let mask = FlowMask { source_v4: 0xff, ..FlowMask::NONE };
    link.instances = Some(Box::new(Instances { mask, most, idle, template: Box::new(template) }));
    let mut config = NetworkConfig::new(Seed(1));
    config.links.push(link);
    config.ports.push(port("a", Target::Link { name: "pipe".into(), lane: 0 }));
    config.ports.push(port("b", Target::Port("b".into())));
    Engine::new(config).expect("the network is whole")
}

fn delivered(engine: &Engine<()>) -> Verdict {
    Verdict::Delivered(engine.port("b").expect("it is there"))
}

#[test]
fn each_flow_has_the_whole_rate() {
    let mut engine = network(100, Duration::from_nanos(SECOND));
    let a = engine.port("a").expect("it is there");
    for number in 0..30 {
        engine.hand_in(Time::ZERO, a, packet(key(number % 3, 1), 1000));
    }
    let link = engine.link("pipe").expect("it is there");
    assert_eq!(engine.view(link).instances(Time::ZERO).len(), 3);
    let ended = delivered(&engine);
    for (at, number, verdict) in drain(&mut engine) {
        // The k-th packet of a flow takes k transmissions of 8 ms, whatever the others do.
        assert_eq!((at, verdict), ((number / 3 + 1) * 8_000_000 + 5_000_000, ended));
    }
    let view = engine.view(link);
    assert_eq!(view.counters()[0].left.packets, 30);
    for instance in view.instances(engine.now()) {
        assert_eq!(instance.link.counters()[0].left.packets, 10);
    }
}

#[test]
fn an_idle_link_is_given_up_when_another_is_made_and_its_counts_stay() {
    let mut engine = network(2, Duration::from_nanos(SECOND));
    let (a, link) = (engine.port("a").expect("it is there"), engine.link("pipe").expect("it is there"));
    let send = |engine: &mut Engine<()>, when: u64, from: u8| {
        engine.hand_in(at(when), a, packet(key(from, 1), 1000));
    };
    // Idle from 13 ms on.
    send(&mut engine, 0, 1);
    send(&mut engine, 0, 2);
    // There are two already.
    send(&mut engine, 0, 3);
    drain(&mut engine);
    assert_eq!(
        engine.view(link).instance_counts(),
        Some(InstanceCounts { made: 2, expired: 0, overflowed: 1 })
    );
    // One nanosecond too early, then just in time.
    send(&mut engine, SECOND + 13_000_000 - 1, 4);
    assert_eq!(engine.view(link).instance_counts().expect("it is there").overflowed, 2);
    send(&mut engine, SECOND + 13_000_000, 5);
    assert_eq!(
        engine.view(link).instance_counts(),
        Some(InstanceCounts { made: 3, expired: 2, overflowed: 2 })
    );
    drain(&mut engine);
    let view = engine.view(link);
    assert_eq!(view.instances(engine.now()).len(), 1);
    let counters = &view.counters()[0];
    assert_eq!((counters.arrived.packets, counters.left.packets, counters.inside()), (5, 5, 0));
    assert_eq!(counters.transmissions, (Time::ZERO, at(SECOND + 21_000_000)));
}

#[test]
fn a_template_changes_the_links_that_there_are_and_those_to_come() {
    let mut engine = network(100, Duration::from_nanos(SECOND));
    let (a, link) = (engine.port("a").expect("it is there"), engine.link("pipe").expect("it is there"));
    engine.hand_in(Time::ZERO, a, packet(key(1, 1), 1000));
    // Half of the first packet has been sent: the rest takes 2 ms at twice the rate.
    let template = Template { bits: 2_000_000, delay: 5_000_000 };
    engine.change(at(4_000_000), link, Change::Template(Box::new(template)));
    engine.hand_in(at(4_000_000), a, packet(key(2, 1), 1000));
    let instants: Vec<_> = drain(&mut engine).iter().map(|seen| seen.0).collect();
    assert_eq!(instants, [11_000_000, 13_000_000]);
}

/// What the links have that were made on first use, by the low byte of the source: how many have arrived.
fn present(engine: &Engine<()>, link: LinkId) -> Vec<(u8, u64)> {
    let view = engine.view(link);
    let all = view.instances(engine.now()).into_iter();
    all.map(|one| (one.flow.source as u8, one.link.counters()[0].arrived.packets)).collect()
}

#[test]
fn another_template_leaves_those_alone_that_were_given_up() {
    let mut engine = network(100, Duration::from_nanos(SECOND));
    let (a, link) = (engine.port("a").expect("it is there"), engine.link("pipe").expect("it is there"));
    for from in 1..=3 {
        engine.hand_in(Time::ZERO, a, packet(key(from, 1), 1000));
    }
    drain(&mut engine);
    // All three are given up, and one of them is used again.
    engine.hand_in(at(2 * SECOND), a, packet(key(4, 1), 1000));
    drain(&mut engine);
    let template = || Box::new(Template { bits: 2_000_000, delay: 5_000_000 });
    engine.change(at(3 * SECOND), link, Change::Template(template()));
    assert_eq!(present(&engine, link), [(4, 1)]);
    engine.hand_in(at(3 * SECOND), a, packet(key(5, 1), 1000));
    engine.hand_in(at(3 * SECOND), a, packet(key(6, 1), 1000));
    let instants: Vec<_> = drain(&mut engine).iter().map(|seen| seen.0).collect();
    assert_eq!(instants, [3 * SECOND + 9_000_000; 2]);
    assert_eq!(present(&engine, link), [(4, 1), (5, 1), (6, 1)]);
}

#[test]
fn another_template_is_no_use_of_a_link() {
    let mut engine = network(100, Duration::from_nanos(SECOND));
    let (a, link) = (engine.port("a").expect("it is there"), engine.link("pipe").expect("it is there"));
    // Idle from 13 ms on.
    engine.hand_in(Time::ZERO, a, packet(key(1, 1), 1000));
    drain(&mut engine);
    let template = Template { bits: 2_000_000, delay: 5_000_000 };
    engine.change(at(SECOND), link, Change::Template(Box::new(template)));
    assert_eq!(present(&engine, link), [(1, 1)]);
    engine.hand_in(at(SECOND + 13_000_000), a, packet(key(2, 1), 1000));
    assert_eq!(present(&engine, link), [(2, 1)]);
}

#[test]
fn a_flow_that_comes_back_after_the_term_has_a_new_link_whatever_others_do() {
    for others in [false, true] {
        let mut engine = network(100, Duration::from_nanos(SECOND));
        let (a, link) = (engine.port("a").expect("it is there"), engine.link("pipe").expect("it is there"));
        for (at_nanos, arrived) in [(0, 1), (SECOND + 12_999_999, 2), (2 * SECOND + 25_999_999, 1)] {
            if others {
                engine.hand_in(at(at_nanos), a, packet(key(9, 1), 1000));
            }
            engine.hand_in(at(at_nanos), a, packet(key(1, 1), 1000));
            assert_eq!(present(&engine, link)[0], (1, arrived));
            drain(&mut engine);
        }
        assert_eq!(engine.view(link).counters()[0].left.packets, if others { 6 } else { 3 });
    }
}

#[derive(Debug)]
struct Slotted;

impl LinkTemplate for Slotted {
    fn link(&self) -> LinkConfig {
        let mut link = LinkConfig::new("", Target::Port("b".into()));
        let gap = SlotGap::Between(Duration::ZERO, Duration::from_nanos(SECOND));
        link.slots = Some(Slots { gap, packets: 1, bytes: Bytes::new(0) });
        link
    }

    fn changes(&self) -> Vec<Change> {
        Vec::new()
    }
}

#[test]
fn a_link_that_is_made_anew_draws_other_slots() {
    let mut config = NetworkConfig::new(Seed(1));
    let mut link = LinkConfig { name: "pipe".into(), ..Slotted.link() };
    let idle = Duration::from_nanos(SECOND);
    link.instances =
        Some(Box::new(Instances { mask: FlowMask::ALL, most: 9, idle, template: Box::new(Slotted) }));
    config.links.push(link);
    config.ports.push(port("a", Target::Link { name: "pipe".into(), lane: 0 }));
    config.ports.push(port("b", Target::Port("b".into())));
    let mut engine = Engine::new(config).expect("the network is whole");
    let (a, link) = (engine.port("a").expect("it is there"), engine.link("pipe").expect("it is there"));
    let times = 0..20;
    let gaps: std::collections::BTreeSet<u64> = times
        .map(|turn| {
            engine.hand_in(at(turn * 5 * SECOND), a, packet(key(1, 1), 100));
            drain(&mut engine)[0].0 - turn * 5 * SECOND
        })
        .collect();
    assert_eq!(engine.view(link).instance_counts().expect("it has them").made, 20);
    assert_eq!(gaps.len(), 20);
}

#[test]
fn a_link_with_instances_may_be_added_while_packets_are_inside() {
    let mut config = NetworkConfig::new(Seed(1));
    let mut wire = LinkConfig::new("wire", Target::Port("b".into()));
    delay(&mut wire, 1_000);
    config.links.push(wire);
    config.ports.push(port("a", Target::Link { name: "wire".into(), lane: 0 }));
    config.ports.push(port("b", Target::Port("b".into())));
    let mut engine = Engine::new(config).expect("the network is whole");
    let a = engine.port("a").expect("it is there");
    engine.hand_in(Time::ZERO, a, packet(key(1, 1), 1000));
    let template = Template { bits: 1_000_000, delay: 0 };
    let mut link = LinkConfig { name: "pipe".into(), ..template.link() };
    let (mask, idle) = (FlowMask { source_v4: 0xff, ..FlowMask::NONE }, Duration::ZERO);
    link.instances = Some(Box::new(Instances { mask, most: 9, idle, template: Box::new(template) }));
    engine.add_link(at(10), link).expect("the name is free");
    let ended = delivered(&engine);
    assert_eq!(drain(&mut engine), [(1_000, 0, ended)]);
}

proptest! {
    #[test]
    fn late_polls_change_nothing_and_nothing_is_lost(
        packets in proptest::collection::vec((0u64..30_000_000, 0u8..8, 40u32..1500), 1..60),
        most in 1u32..6,
        idle in 0u64..40_000_000,
        polls in proptest::collection::vec(any::<bool>(), 60),
    ) {
        let run = |polls: &[bool]| {
            let mut engine = network(most, Duration::from_nanos(idle));
            let (a, link) = (engine.port("a").expect("it is there"), engine.link("pipe").expect("it is there"));
            let (mut now, mut seen) = (0, Vec::new());
            for (&(gap, from, length), &polls_now) in packets.iter().zip(polls.iter().cycle()) {
                now += gap;
                if polls_now {
                    poll(&mut engine, at(now), &mut seen);
                }
                engine.hand_in(at(now), a, packet(key(from, 1), length));
                let view = engine.view(link);
                let sending =
                    view.counters()[0].inside() - view.backlog().packets - view.in_flight();
                // No more than one for each link that there is, and for the configured one.
                assert!(sending <= view.instances(engine.now()).len() as u64 + 1);
            }
            seen.extend(drain(&mut engine));
            (seen, engine.view(link).instance_counts())
        };
        let (early, late) = (run(&[true]), run(&polls));
        prop_assert_eq!(&early, &late);
        prop_assert_eq!(early.0.len(), packets.len());
    }
}
