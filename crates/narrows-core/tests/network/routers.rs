//! Routers.

use narrows_core::classify::Prefix;
use narrows_core::rules::{Action, NextHop, Rule, RuleSetConfig};
use narrows_core::sched::Weight;
use narrows_core::*;

use crate::common::*;

/// `a`, then `count` routers in a row with links of 1 ms, then `b`; the last router leads back to the first where `loops`.
fn row(count: usize, loops: bool) -> Engine<()> {
    let mut config = NetworkConfig::new(Seed(1));
    for number in 0..count {
        let to = match number + 1 == count {
            true if loops => Target::Router("r0".into()),
            true => Target::Port("b".into()),
            false => Target::Router(format!("r{}", number + 1)),
        };
        let mut link = LinkConfig::new(format!("l{number}"), to);
        delay(&mut link, 1_000_000);
        config.links.push(link);
        let way = (Target::Link { name: format!("l{number}"), lane: 0 }, Weight::ONE);
        let route = Route { ways: vec![way], spread: Spread::Flow, local: false, ..Route::default() };
        let own = Route {
            ways: vec![(Target::Port(format!("r{number}")), Weight::ONE)],
            spread: Spread::Flow,
            local: true,
            ..Route::default()
        };
        let routes =
            vec![(Prefix::new(address(2, 0), 120), route), (Prefix::new(address(9, number as u8), 128), own)];
        config.routers.push(RouterConfig { name: format!("r{number}"), routes, ..RouterConfig::default() });
        config.ports.push(port(&format!("r{number}"), Target::Router(format!("r{number}"))));
    }
    config.ports.push(port("a", Target::Router("r0".into())));
    config.ports.push(port("b", Target::Port("b".into())));
    Engine::new(config).expect("the network is whole")
}

fn limited(hop_limit: u8, key: FlowKey) -> Packet<()> {
    let mut packet = packet(key, 100);
    packet.headers.hop_limit = hop_limit;
    packet
}

#[test]
fn a_hop_limit_of_n_dies_at_the_nth_router() {
    let mut engine = row(3, false);
    let a = engine.port("a").expect("it is there");
    for limit in 0..=4 {
        engine.hand_in(Time::ZERO, a, limited(limit, key(1, 1)));
    }
    let dropped = |router: &str| Verdict::Dropped {
        at: Some(Element::Router(engine.router(router).expect("it is there"))),
        reason: DropReason::HopLimit,
    };
    let expected = [
        (0, 0, dropped("r0")),
        (0, 1, dropped("r0")),
        (1_000_000, 2, dropped("r1")),
        (2_000_000, 3, dropped("r2")),
        (3_000_000, 4, Verdict::Delivered(engine.port("b").expect("it is there"))),
    ];
    assert_eq!(drain(&mut engine), expected);
    let counters = engine.router_counters(engine.router("r1").expect("it is there"));
    assert_eq!((counters.arrived.packets, counters.hop_limit.packets, counters.forwarded.packets), (3, 1, 2));
}

#[test]
fn a_delivery_says_how_many_routers_it_passed() {
    let mut engine = row(3, false);
    let a = engine.port("a").expect("it is there");
    engine.hand_in(Time::ZERO, a, packet(key(1, 1), 100));
    let mut hops = Vec::new();
    while let Some(next) = engine.next_event() {
        while let Some(event) = engine.poll(next) {
            hops.push(event.hops);
        }
    }
    assert_eq!(hops, [3]);
}

#[test]
fn what_a_router_sends_loses_no_hop_there() {
    let mut engine = row(3, false);
    // At r1 itself; and from `a` past r0, r1 and r2.
    for (from, limit) in [("r1", 1), ("r1", 2), ("r1", 64), ("a", 64)] {
        let port = engine.port(from).expect("it is there");
        engine.hand_in(Time::ZERO, port, limited(limit, key(1, 1)));
    }
    let mut seen = Vec::new();
    while let Some(next) = engine.next_event() {
        while let Some(event) = engine.poll(next) {
            seen.push((outcome(&event), event.hops));
        }
    }
    // With a limit of 1 it leaves r1, and dies at r2.
    assert_eq!(seen, [("dropped", 0), ("delivered", 1), ("delivered", 1), ("delivered", 3)]);
    let r1 = engine.router_counters(engine.router("r1").expect("it is there"));
    assert_eq!((r1.arrived.packets, r1.forwarded.packets, r1.hop_limit.packets), (4, 4, 0));
}

fn outcome(event: &Event<'_, ()>) -> &'static str {
    match event.verdict {
        Verdict::Delivered(_) => "delivered",
        Verdict::Dropped { .. } => "dropped",
    }
}

#[test]
fn a_router_takes_what_is_for_itself_whatever_its_hop_limit() {
    let mut engine = row(2, false);
    let a = engine.port("a").expect("it is there");
    let to = |destination| FlowKey { destination, ..key(1, 1) };
    engine.hand_in(Time::ZERO, a, limited(1, to(address(9, 0))));
    // Nobody has told r0 where r1's address is.
    engine.hand_in(Time::ZERO, a, limited(64, to(address(9, 1))));
    let arp = Packet { key: FlowKey::default(), ..packet(key(1, 1), 28) };
    engine.hand_in(Time::ZERO, a, arp);
    let no_route = Verdict::Dropped {
        at: Some(Element::Router(engine.router("r0").expect("it is there"))),
        reason: DropReason::NoRoute,
    };
    let own = Verdict::Delivered(engine.port("r0").expect("it is there"));
    assert_eq!(drain(&mut engine), [(0, 0, own), (0, 1, no_route), (0, 2, no_route)]);
}

#[test]
fn a_loop_ends_by_the_hop_limit_or_by_the_visits() {
    let mut engine = row(2, true);
    let a = engine.port("a").expect("it is there");
    engine.hand_in(Time::ZERO, a, limited(10, key(1, 1)));
    engine.hand_in(Time::ZERO, a, limited(255, key(1, 1)));
    let seen = drain(&mut engine);
    let [(9_000_000, 0, first), (64_000_000, 1, second)] = seen[..] else { panic!("{seen:?}") };
    assert!(matches!(first, Verdict::Dropped { reason: DropReason::HopLimit, .. }));
    assert!(matches!(second, Verdict::Dropped { reason: DropReason::Loop, .. }));
    assert_eq!(engine.inside(), 0);
}

#[test]
fn routers_that_send_packets_to_each_other_as_their_own_end_by_the_hop_limit() {
    let mut config = NetworkConfig::new(Seed(1));
    for (name, other) in [("r0", "r1"), ("r1", "r0")] {
        let ways = vec![(Target::Router(other.into()), Weight::ONE)];
        let route = Route { ways, spread: Spread::Flow, local: true, ..Route::default() };
        let routes = vec![(Prefix::new(address(0, 0), 96), route)];
        config.routers.push(RouterConfig { name: name.into(), routes, ..RouterConfig::default() });
    }
    config.ports.push(port("a", Target::Router("r0".into())));
    let mut engine = Engine::new(config).expect("the network is whole");
    let a = engine.port("a").expect("it is there");
    engine.hand_in(Time::ZERO, a, limited(255, key(1, 1)));
    let last = Verdict::Dropped {
        at: Some(Element::Router(engine.router("r0").expect("it is there"))),
        reason: DropReason::HopLimit,
    };
    assert_eq!(drain(&mut engine), [(0, 0, last)]);
    let counters = engine.router_counters(engine.router("r0").expect("it is there"));
    assert_eq!((counters.arrived.packets, counters.forwarded.packets, counters.local.packets), (128, 127, 0));
}

/// From `a` to `b` over two links, with weights 3 and 7.
fn two_paths(spread: Spread) -> Engine<()> {
    let mut config = NetworkConfig::new(Seed(5));
    let mut ways = Vec::new();
    for (name, weight, nanos) in [("slow", 3, 100), ("fast", 7, 20)] {
        let mut link = LinkConfig::new(name, Target::Port("b".into()));
        delay(&mut link, nanos);
        config.links.push(link);
        ways.push((Target::Link { name: name.into(), lane: 0 }, Weight::new(weight).expect("it is there")));
    }
    let route = Route { ways, spread, local: false, ..Route::default() };
    let routes = vec![(Prefix::new(address(0, 0), 96), route)];
    config.routers.push(RouterConfig { name: "r".into(), routes, ..RouterConfig::default() });
    config.ports.push(port("a", Target::Router("r".into())));
    config.ports.push(port("b", Target::Port("b".into())));
    Engine::new(config).expect("the network is whole")
}

#[test]
fn packets_or_flows_are_spread_as_the_weights_say() {
    const COUNT: u64 = 20_000;
    // Three standard deviations of a binomial of probability 0.3.
    let off = |slow: u64| (slow as f64 - 0.3 * COUNT as f64).abs() / (COUNT as f64 * 0.21).sqrt();
    for spread in [Spread::Packet, Spread::Flow] {
        let mut engine = two_paths(spread);
        let a = engine.port("a").expect("it is there");
        let mut seen = Vec::new();
        for number in 0..COUNT {
            let source_port = match spread {
                Spread::Packet => 1,
                Spread::Flow => number as u16,
            };
            engine.hand_in(at(number * 1000), a, packet(FlowKey { source_port, ..key(1, 1) }, 100));
            poll(&mut engine, at(number * 1000 + 999), &mut seen);
        }
        let slow = seen.iter().filter(|(at, number, _)| at - number * 1000 == 100).count() as u64;
        assert_eq!(seen.len() as u64, COUNT);
        assert!(off(slow) < 3.0, "{spread:?}: {slow}");
    }
    // And one flow keeps its path.
    let mut engine = two_paths(Spread::Flow);
    let a = engine.port("a").expect("it is there");
    for number in 0..100 {
        engine.hand_in(at(number * 1000), a, packet(key(1, 1), 100));
    }
    let mut delays: Vec<_> = drain(&mut engine).iter().map(|(at, number, _)| at - number * 1000).collect();
    delays.dedup();
    assert_eq!(delays.len(), 1);
}

/// From `a` through rules to router `one`, which has a short way to `b` and a long one by router `two`.
fn detour(rules: Vec<Rule>) -> Engine<()> {
    let mut config = NetworkConfig::new(Seed(5));
    let link = |name: &str, to: Target, nanos| {
        let mut link = LinkConfig::new(name, to);
        delay(&mut link, nanos);
        link
    };
    config.links.push(link("short", Target::Port("b".into()), 10));
    config.links.push(link("long", Target::Router("two".into()), 100));
    config.links.push(link("last", Target::Port("b".into()), 1_000));
    let way = |name: &str| Route {
        ways: vec![(Target::Link { name: name.into(), lane: 0 }, Weight::ONE)],
        spread: Spread::Flow,
        local: false,
        ..Route::default()
    };
    let to_two = (Prefix::new(address(9, 2), 128), way("long"));
    let to_b = |name: &str| (Prefix::new(address(2, 0), 120), way(name));
    let routers = [("one", vec![to_b("short"), to_two]), ("two", vec![to_b("last")])];
    for (name, routes) in routers {
        config.routers.push(RouterConfig { name: name.into(), routes, ..RouterConfig::default() });
    }
    config.rules.push(RulesConfig {
        name: "rules".into(),
        rules: RuleSetConfig { rules, ..RuleSetConfig::default() },
        pipes: Vec::new(),
        queues: Vec::new(),
        one_pass: true,
        exits: [Target::Router("one".into()), Target::Port("a".into())],
    });
    config.ports.push(port("a", Target::Rules { name: "rules".into(), incoming: false }));
    config.ports.push(port("b", Target::Port("b".into())));
    Engine::new(config).expect("the network is whole")
}

/// The next router goes by the next hop of `fwd`; those behind it go by the destination, and the packet is not changed.
#[test]
fn a_router_sends_to_the_next_hop_that_rules_have_set() {
    let forward = |to| Rule::new(100, Action::Forward(NextHop::Address(to)));
    let arrivals = |rules| {
        let mut engine = detour(rules);
        let a = engine.port("a").expect("it is there");
        engine.hand_in(at(0), a, packet(key(1, 1), 100));
        let seen = drain(&mut engine);
        seen.iter()
            .map(|(at, _, verdict)| (*at, matches!(verdict, Verdict::Delivered(_))))
            .collect::<Vec<_>>()
    };
    assert_eq!(arrivals(vec![]), [(10, true)]);
    assert_eq!(arrivals(vec![forward(address(9, 2))]), [(1_100, true)]);
    // No route leads there.
    assert_eq!(arrivals(vec![forward(address(8, 8))]), [(0, false)]);
}

/// A router has routes of its own, and two to groups of destinations.
#[test]
fn the_longest_prefix_counts_among_own_routes_and_destinations() {
    let mut config = NetworkConfig::new(Seed(1));
    let to = |port: &str| Route {
        ways: vec![(Target::Port(port.into()), Weight::ONE)],
        spread: Spread::Flow,
        local: false,
        ..Route::default()
    };
    let nets = [(address(2, 0), 120), (address(2, 16), 124), (address(2, 32), 124), (address(2, 64), 122)];
    let nets = nets.map(|(address, bits)| Prefix::new(address, bits));
    // The router has no way to the last group, and an own route to the first network.
    config.destinations = nets.into_iter().zip([0, 1, 2, 3]).collect();
    let own = [(Prefix::new(address(2, 18), 128), "own"), (nets[0], "own"), (nets[2], "own")];
    config.routers.push(RouterConfig {
        name: "r".into(),
        routes: own.map(|(prefix, port)| (prefix, to(port))).into(),
        ways: vec![to("one"), to("two")],
        groups: [0, 1, 0, u16::MAX].into(),
        ..RouterConfig::default()
    });
    config.ports.push(port("a", Target::Router("r".into())));
    config.ports.extend(["own", "one", "two"].map(|name| port(name, Target::Port(name.into()))));
    let mut engine = Engine::new(config).expect("the network is whole");
    let a = engine.port("a").expect("it is there");
    for to in [1, 17, 18, 33, 65] {
        engine.hand_in(Time::ZERO, a, limited(9, key(1, to)));
    }
    let to = |name: &str| Verdict::Delivered(engine.port(name).expect("it is there"));
    let expected = [
        // Both have this prefix.
        to("own"),
        // The group's is longer.
        to("two"),
        // A whole address is longest.
        to("own"),
        to("own"),
        // No way to the group: the next shorter prefix.
        to("own"),
    ];
    let seen: Vec<_> = drain(&mut engine).into_iter().map(|(.., verdict)| verdict).collect();
    assert_eq!(seen, expected);
}

/// What the first router finds for a destination counts at the next one, too, unless the destination has changed.
#[test]
fn a_new_destination_is_looked_up_again() {
    let to = |target: Target| Route {
        ways: vec![(target, Weight::ONE)],
        spread: Spread::Flow,
        local: false,
        ..Route::default()
    };
    let router = |name: &str, ways: [Target; 2]| RouterConfig {
        name: name.into(),
        ways: ways.map(to).into(),
        groups: [0, 1].into(),
        ..RouterConfig::default()
    };
    let link = || Target::Link { name: "link".into(), lane: 0 };
    let out = |name: &str| Target::Port(name.into());
    let seen = |change: Option<HeaderChange>| {
        let mut config = NetworkConfig::new(Seed(1));
        let nets = [(address(2, 0), 124), (address(2, 16), 124)].map(|(at, bits)| Prefix::new(at, bits));
        config.destinations = nets.into_iter().zip([0, 1]).collect();
        config.routers = vec![router("first", [link(), link()]), router("second", [out("one"), out("two")])];
        let mut between = LinkConfig::new("link", Target::Router("second".into()));
        between.ingress = change.map(|change| {
            Ingress::new(vec![IngressFilter::Edit { only: Vec::new(), change, goes_on: true }])
        });
        config.links.push(between);
        config.ports.push(port("a", Target::Router("first".into())));
        config.ports.extend(["one", "two"].map(|name| port(name, out(name))));
        let mut engine = Engine::new(config).expect("the network is whole");
        let (a, two) = (engine.port("a").expect("it is there"), engine.port("two").expect("it is there"));
        // To a network of either group, and to none.
        for to in [1, 17, 200] {
            engine.hand_in(Time::ZERO, a, limited(9, key(1, to)));
        }
        let all = drain(&mut engine).into_iter().map(|(.., verdict)| verdict == Verdict::Delivered(two));
        all.collect::<Vec<_>>()
    };
    assert_eq!(seen(None), [false, true, false]);
    let change = HeaderChange { destination: Some(address(2, 18)), ..HeaderChange::default() };
    assert_eq!(seen(Some(change)), [true, true, false]);
}
