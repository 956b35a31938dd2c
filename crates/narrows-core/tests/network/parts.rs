//! Parts of a network that have nothing to do with one another.

use std::collections::BTreeMap;

use narrows_core::classify::{FlowMask, Prefix};
use narrows_core::queue::{Bound, DropAt, Fifo};
use narrows_core::rules::{Action, Argument, RuleChange, RuleSetConfig, Which};
use narrows_core::sched::Weight;
use narrows_core::*;
use proptest::prelude::*;

use crate::common::*;
use crate::rules::rule;

/// A link that draws for each packet, and on which packets wait.
fn rough(name: String, lanes: Vec<Target>) -> LinkConfig {
    let mut link = LinkConfig { lanes, ..LinkConfig::new(name, Target::Port(String::new())) };
    let one_in = |count| model::Independent(Probability::from_ratio(1, count).expect("it is one"));
    rate(&mut link, 2_000_000);
    let (low, high) = (Duration::from_nanos(1_000_000), Duration::from_nanos(9_000_000));
    link.delay = Box::new(model::Uniform::new(low, high).expect("they are in order"));
    link.settings.order = Order::Allow;
    link.queue = Box::new(Fifo::new(Bound::Packets(5), DropAt::Head));
    link.wire_loss = Some(Loss::of(one_in(7)));
    link.duplication = Some(Box::new(one_in(5)));
    link
}

#[derive(Debug)]
struct Pipe(usize);

impl LinkTemplate for Pipe {
    fn link(&self) -> LinkConfig {
        let back = |incoming| Target::FromPipe { rules: format!("rules{}", self.0), incoming };
        rough(String::new(), vec![back(false), back(true)])
    }

    fn changes(&self) -> Vec<Change> {
        Vec::new()
    }
}

/// `a` → rules with a pipe for each source → router → medium → `b` → medium → `a`, all with this number.
fn add(config: &mut NetworkConfig, number: usize) {
    let of = |name: &str| format!("{name}{number}");
    let medium = |lane| Target::Link { name: of("medium"), lane };
    let mut pipe = LinkConfig { name: of("pipe"), ..Pipe(number).link() };
    let mask = FlowMask { source_v4: 0xff, ..FlowMask::NONE };
    let idle = Duration::from_nanos(50_000_000);
    pipe.instances = Some(Box::new(Instances { mask, most: 3, idle, template: Box::new(Pipe(number)) }));
    config.links.push(pipe);
    config.links.push(rough(of("medium"), vec![Target::Port(of("b")), Target::Port(of("a"))]));
    config.rules.push(RulesConfig {
        name: of("rules"),
        rules: RuleSetConfig {
            rules: vec![rule(100, Action::Pipe(Argument::Number(1)), &[])],
            ..RuleSetConfig::default()
        },
        pipes: vec![(1, PipeConfig { link: of("pipe"), mark: 0 })],
        queues: Vec::new(),
        one_pass: true,
        exits: [Target::Router(of("router")), Target::Port(of("a"))],
    });
    let route = Route {
        ways: vec![(medium(0), Weight::ONE)],
        spread: Spread::Packet,
        local: false,
        ..Route::default()
    };
    let routes = vec![(Prefix::new(address(2, 0), 120), route)];
    config.routers.push(RouterConfig { name: of("router"), routes, ..RouterConfig::default() });
    config.ports.push(port(&of("a"), Target::Rules { name: of("rules"), incoming: false }));
    config.ports.push(port(&of("b"), medium(1)));
}

fn network(count: usize) -> Engine<()> {
    let mut config = NetworkConfig::new(Seed(1));
    (0..count).for_each(|number| add(&mut config, number));
    // One that nothing leads to.
    config.links.push(LinkConfig::new("unused", Target::Port("alone".into())));
    config.ports.push(port("alone", Target::Port("alone".into())));
    Engine::new(config).expect("the network is whole")
}

#[test]
fn what_packets_can_come_to_is_one_part() {
    let engine = network(3);
    let parts = engine.parts();
    assert_eq!(parts.count(), 4, "three, and a port that leads to itself");
    for number in 0..3 {
        let of = |name: &str| format!("{name}{number}");
        let expected = parts.of_port(engine.port(&of("a")).expect("it is there"));
        assert_eq!(expected, number, "in the order of the ports");
        let port = engine.port(&of("b")).expect("it is there");
        let link = |name: &str| Element::Link(engine.link(&of(name)).expect("it is there"));
        let rules = Element::Rules(engine.rules_of(&of("rules")).expect("they are there"));
        let router = Element::Router(engine.router(&of("router")).expect("it is there"));
        assert_eq!(parts.of_port(port), expected);
        for element in [link("pipe"), link("medium"), rules, router] {
            assert_eq!(parts.of_element(element), expected, "{}", engine.element_name(element));
        }
    }
    let unused = engine.link("unused").expect("it is there");
    assert_eq!(
        parts.of_element(Element::Link(unused)),
        parts.of_port(engine.port("alone").expect("it is there"))
    );
}

#[test]
fn a_link_that_is_added_is_of_the_part_of_its_rules() {
    let mut engine = network(3);
    let back = |incoming| Target::FromPipe { rules: "rules2".into(), incoming };
    let link = engine.add_link(Time::ZERO, rough("later".into(), vec![back(false), back(true)]));
    let link = link.expect("it leads somewhere");
    let rules = engine.rules_of("rules2").expect("they are there");
    let pipe = PipeConfig { link: "later".into(), mark: 0 };
    engine.change_rules(Time::ZERO, rules, RulesChange::Pipe(2, Some(pipe))).expect("there is such a link");
    let parts = engine.parts();
    assert_eq!(parts.of_element(Element::Link(link)), 2);
    assert_eq!(parts.of_element(Element::Rules(rules)), 2);
}

/// What became of packets, by port and number.
type Verdicts = BTreeMap<(u16, u64), Vec<(u64, Verdict, u64)>>;

fn take(engine: &mut Engine<()>, until: Time, verdicts: &mut Verdicts) {
    while let Some(event) = engine.poll(until) {
        let of_packet = verdicts.entry((event.id.port().index(), event.id.number())).or_default();
        of_packet.push((event.at.nanos(), event.verdict, event.queued.nanos()));
    }
}

proptest! {
    /// Packets in three parts, and rules that are taken away and put back, on one engine; and on one engine for each part,
    /// each of which has all changes, but no packets of others.
    #[test]
    fn an_engine_for_each_part_gives_the_verdicts_of_one_for_all(
        inputs in proptest::collection::vec((0usize..7, 0u64..2_000_000, 40u32..1500, 0u8..6), 1..300)
    ) {
        let mut whole = network(3);
        let mut each: Vec<_> = (0..3).map(|_| network(3)).collect();
        let parts = whole.parts();
        let (mut expected, mut found) = (Verdicts::new(), Verdicts::new());
        let mut now = Time::ZERO;
        for (what, gap, length, from) in inputs {
            now = now + Duration::from_nanos(gap);
            if what == 6 {
                let rules = whole.rules_of("rules1").expect("they are there");
                let change = RulesChange::OnePass(from % 2 == 0);
                let deny = rule(50, Action::Deny, &[]);
                let toggled = RuleChange::Delete(Which { numbers: Some(50..=50), set: None });
                let more = if from < 2 { RuleChange::Add(deny) } else { toggled };
                for engine in each.iter_mut().chain([&mut whole]) {
                    engine.change_rules(now, rules, change.clone()).expect("it is one");
                    // Refused by all where there is nothing to delete.
                    let _ = engine.change_rules(now, rules, RulesChange::Rules(more.clone()));
                }
                continue;
            }
            let name = format!("{}{}", if what % 2 == 0 { "a" } else { "b" }, what / 2);
            let port = whole.port(&name).expect("it is there");
            let mut packet = packet(key(from, 1), length);
            packet.headers.hop_limit = 64;
            whole.hand_in(now, port, packet.clone());
            each[parts.of_port(port)].hand_in(now, port, packet);
            if from == 0 {
                take(&mut whole, now, &mut expected);
            } else {
                take(&mut each[usize::from(from) % 3], now, &mut found);
            }
        }
        let end = now + Duration::from_nanos(10_000_000_000);
        take(&mut whole, end, &mut expected);
        each.iter_mut().for_each(|engine| take(engine, end, &mut found));
        prop_assert_eq!(expected, found);
        prop_assert_eq!(whole.inside(), each.iter().map(Engine::inside).sum::<u64>());
    }
}
