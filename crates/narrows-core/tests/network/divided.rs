//! A network divided among engines: the events of a single one.

use narrows_core::classify::Prefix;
use narrows_core::queue::{Bound, DropAt, Fifo};
use narrows_core::sched::Weight;
use narrows_core::*;
use proptest::prelude::*;

use crate::common::*;

/// An event: when, whether it follows from an input at that instant, and which turn; its packet, verdict, queueing time, flipped bits, routers and links passed.
type Happened = (Time, (bool, u32), PacketId, Verdict, Duration, Vec<u32>, u8, Vec<Passed>);

/// A packet that enters: when, and whether on the left.
type Input = (Time, bool);

/// `left` → link → router → link → … → `right`, and back. The router makes draws depend on the visit.
fn row(delays: &[u64]) -> NetworkConfig {
    let links = delays.len();
    let mut config = NetworkConfig::new(Seed(3));
    let name = |what: &str, number: usize| format!("{what}{number}");
    let target = |name| Target::Link { name, lane: 0 };
    for (number, &nanos) in delays.iter().enumerate() {
        let there = if number + 1 == links {
            Target::Port("right".into())
        } else {
            Target::Router(name("router", number + 1))
        };
        let back =
            if number == 0 { Target::Port("left".into()) } else { Target::Router(name("router", number)) };
        for (what, to) in [("there", there), ("back", back)] {
            let one_in = |count| model::Independent(Probability::from_ratio(1, count).expect("it is one"));
            let mut link = LinkConfig::new(name(what, number), to);
            rate(&mut link, 8_000_000);
            delay(&mut link, nanos);
            link.queue = Box::new(Fifo::new(Bound::Packets(3), DropAt::Tail));
            link.wire_loss = Some(Loss::of(one_in(9)));
            link.corruption = Some(Corruption::of(one_in(5)));
            config.links.push(link);
        }
        if number > 0 {
            let route = |last, to| {
                let ways = vec![(target(to), Weight::ONE)];
                (Prefix::new(address(last, 0), 120), Route { ways, ..Route::default() })
            };
            let routes = vec![route(2, name("there", number)), route(1, name("back", number - 1))];
            config.routers.push(RouterConfig {
                name: name("router", number),
                routes,
                ..RouterConfig::default()
            });
        }
    }
    config.ports.push(port("left", target("there0".into())));
    config.ports.push(port("right", target(name("back", links - 1))));
    config
}

fn engine(config: NetworkConfig) -> Engine<()> {
    let mut engine = Engine::new(config).expect("the network is whole");
    engine.keep_passed(true);
    engine
}

/// Runs an engine up to an instant, with its inputs from the front.
fn run(engine: &mut Engine<()>, inputs: &mut Vec<Input>, end: Time, seen: &mut Vec<Happened>) {
    let mut latest = Time::NEVER;
    loop {
        let input = inputs.last().map(|(at, _)| *at).unwrap_or(Time::NEVER);
        let next = engine.next_event().unwrap_or(Time::NEVER).min(input);
        if next >= end {
            return;
        }
        if engine.next_event() == Some(next) {
            while let Some(event) = engine.poll(next) {
                let Event { at, id, verdict, queued, ref flips, hops, passed, .. } = event;
                let of = (flips.clone(), passed.to_vec());
                seen.push((at, (at == latest, 0), id, verdict, queued, of.0, hops, of.1));
                let turn = engine.turn();
                seen.last_mut().expect("one was just pushed").1.1 = turn;
            }
        } else if let Some((at, is_left)) = inputs.pop() {
            latest = at;
            let there = key(1, 1);
            let back = FlowKey { source: there.destination, destination: there.source, ..there };
            let (name, key) = if is_left { ("left", there) } else { ("right", back) };
            let port = engine.port(name).expect("it is there");
            engine.hand_in(at, port, packet(key, 100));
        }
    }
}

proptest! {
    #[test]
    fn its_events_are_those_of_a_single_engine(
        delays in proptest::collection::vec(1_u64..6, 2..6),
        gaps in proptest::collection::vec((0_u64..8, any::<bool>()), 1..120),
        count in 2_usize..4,
    ) {
        // All instants are multiples of a transmission, so that much happens at once.
        const STEP: u64 = 114_000;
        let delays: Vec<u64> = delays.into_iter().map(|delay| delay * STEP).collect();
        let mut now = 0;
        let mut inputs: Vec<Input> = Vec::new();
        for (gap, is_left) in gaps {
            // An instant has one input, so that no order of inputs is needed.
            now += (gap + 1) * STEP / 2;
            inputs.push((at(now), is_left));
        }
        inputs.reverse();

        let mut single = engine(row(&delays));
        let mut expected = Vec::new();
        run(&mut single, &mut inputs.clone(), Time::NEVER, &mut expected);

        let least = Duration::from_nanos(*delays.iter().min().expect("there are some"));
        let regions = single.regions(least, &[]).expect("it is divisible");
        prop_assert!(single.is_divisible());
        prop_assert_eq!(regions.count(), delays.len() + 1);
        let owner = |region: usize| region % count;
        let mut engines: Vec<_> = (0..count).map(|_| engine(row(&delays))).collect();
        engines.iter_mut().for_each(|engine| engine.lead_away([]));
        let mut crossing = Vec::new();
        for link in single.links() {
            prop_assert!(single.crossing_delay(link).is_some_and(|delay| delay >= least));
            let (front, back) = (owner(regions.of_element(Element::Link(link))), owner(regions.beyond(link)));
            if front != back {
                engines[front].lead_away([link]);
                crossing.push((link, front, back));
            }
        }
        let mut all = inputs.clone();
        let mut ports: Vec<Vec<Input>> = vec![Vec::new(); count];
        for input in all.drain(..) {
            let port = single.port(if input.1 { "left" } else { "right" }).expect("it is there");
            ports[owner(regions.of_port(port))].push(input);
        }
        let mut found: Vec<Vec<Happened>> = vec![Vec::new(); count];
        loop {
            let next = |(engine, inputs): (&Engine<()>, &Vec<Input>)| {
                let input = inputs.last().map(|(at, _)| *at);
                engine.next_event().into_iter().chain(input).min()
            };
            let Some(next) = engines.iter().zip(&ports).filter_map(next).min() else { break };
            let mut under_way = Vec::new();
            for (number, engine) in engines.iter_mut().enumerate() {
                run(engine, &mut ports[number], next + least, &mut found[number]);
                prop_assert!(engine.take_crossing(|crossing| under_way.push(crossing)));
            }
            for crossing in under_way {
                prop_assert!(crossing.due() >= next + least);
                engines[owner(regions.beyond(crossing.link()))].take_over(crossing);
            }
        }
        let mut merged: Vec<_> = found.concat();
        merged.sort_by_key(|event| (event.0, event.1));
        let without_turns = |events: &[Happened]| {
            events.iter().map(|event| (event.0, event.2, event.3, event.4, event.5.clone(), event.6, event.7.clone())).collect::<Vec<_>>()
        };
        prop_assert_eq!(without_turns(&merged), without_turns(&expected));

        let (came, went) = engines.iter().map(Engine::crossed).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        prop_assert_eq!(came, went);
        for (link, front, back) in crossing {
            let [front, back] = engines.get_disjoint_mut([front, back]).expect("they differ");
            front.reunite(link, back);
            prop_assert_eq!(front.view(link).counters(), single.view(link).counters());
            prop_assert_eq!(back.view(link).counters()[0].left.packets, 0);
        }
    }
}

/// Halfway, the packets inside are in one engine or another, with the memory that they take; reunited, a link has its own.
#[test]
fn packets_in_flight_are_in_one_engine() {
    let delays = [1_000_000, 1_000_000];
    let [mut front, mut back] = [(); 2].map(|()| engine(row(&delays)));
    let link = front.link("there0").expect("it is there");
    front.lead_away([link]);
    let left = front.port("left").expect("it is there");
    for _ in 0..3 {
        front.hand_in(at(0), left, packet(key(1, 1), 100));
    }
    let whole = front.memory_used();
    assert_eq!(whole, 3 * Engine::memory_of(&packet(key(1, 1), 100)));
    // Two have been sent, of which one or none is lost on the wire.
    run(&mut front, &mut Vec::new(), at(250_000), &mut Vec::new());
    let mut crossing = Vec::new();
    assert!(front.take_crossing(|one| crossing.push(one)));
    let count = crossing.len() as u64;
    assert!(count > 0 && crossing.iter().all(|one| one.link() == link && one.due() > at(1_000_000)));
    crossing.into_iter().for_each(|one| back.take_over(one));
    assert_eq!((front.crossed(), back.crossed()), ((0, count), (count, 0)));
    assert_eq!(back.inside(), count);
    assert_eq!(back.memory_used(), count * whole / 3);
    assert_eq!((front.view(link).in_flight(), back.view(link).in_flight()), (0, count));
    front.reunite(link, &mut back);
    assert_eq!((front.view(link).in_flight(), back.view(link).in_flight()), (count, 0));
    assert_eq!((back.inside(), back.memory_used()), (0, 0));
}

/// A packet that has a copy stays: both have one body.
#[test]
fn a_packet_with_a_copy_does_not_cross() {
    let mut config = row(&[1_000, 1_000]);
    config.links[0].duplication =
        Some(Box::new(model::Independent(Probability::from_ratio(1, 1).expect("it is one"))));
    let mut front = engine(config);
    assert!(!front.is_divisible() && front.regions(Duration::from_nanos(1), &[]).is_none());
    let link = front.link("there0").expect("it is there");
    assert!(front.makes_copies(link));
    front.lead_away([link]);
    let left = front.port("left").expect("it is there");
    front.hand_in(at(0), left, packet(key(1, 1), 100));
    run(&mut front, &mut Vec::new(), at(10_000_000), &mut Vec::new());
    assert!(!front.take_crossing(|_| ()));
}

/// A link divides a network if it delays all packets alike, and does nothing else to packets in flight.
#[test]
fn only_plain_delays_divide_a_network() {
    let divides = |change: &dyn Fn(&mut LinkConfig)| {
        let mut config = row(&[1_000]);
        change(&mut config.links[0]);
        let engine = engine(config);
        let link = engine.link("there0").expect("it is there");
        engine.crossing_delay(link)
    };
    assert_eq!(divides(&|_| ()), Some(Duration::from_nanos(1_000)));
    let (low, high) = (Duration::from_nanos(1_000), Duration::from_nanos(9_000));
    assert_eq!(
        divides(&|link| link.delay = Box::new(model::Uniform::new(low, high).expect("in order"))),
        None
    );
    assert_eq!(divides(&|link| delay(link, 0)), None);
    assert_eq!(divides(&|link| link.settings.line_limit = Some(5)), None);
    assert_eq!(divides(&|link| link.lanes.push(Target::Port("left".into()))), None);
    let least =
        |nanos| engine(row(&[1_000, 5_000])).regions(Duration::from_nanos(nanos), &[]).map(|all| all.count());
    assert_eq!([least(1), least(1_001), least(5_001)], [Some(3), Some(2), Some(1)]);
    let both = engine(row(&[1_000, 5_000]));
    let ends = ["left", "right"].map(|name| both.port(name).expect("it is there"));
    assert_eq!(both.regions(Duration::from_nanos(1), &[(ends[0], ends[1])]).map(|all| all.count()), Some(2));
}

/// A rate that ends sends what waits at once: it crosses although nothing arrives at that instant, and no link has an event.
#[test]
fn what_a_change_sends_crosses() {
    let [mut front, mut back] = [(); 2].map(|()| engine(row(&[1_000_000, 1_000_000])));
    let link = front.link("there0").expect("it is there");
    front.lead_away([link]);
    back.lead_away([]);
    let left = front.port("left").expect("it is there");
    for _ in 0..4 {
        front.hand_in(at(0), left, packet(key(1, 1), 100));
    }
    let mut dropped = Vec::new();
    run(&mut front, &mut Vec::new(), at(10_000), &mut dropped);
    front.change(at(10_000), link, Change::Service(Box::new(service::ConstantRate(Rate::UNLIMITED))));
    let mut crossing = Vec::new();
    assert!(front.take_crossing(|one| crossing.push(one)));
    assert!(
        crossing.len() >= 2 && crossing.iter().all(|one| one.due() == at(1_010_000)),
        "{}",
        crossing.len()
    );
    run(&mut front, &mut Vec::new(), Time::NEVER, &mut dropped);
    assert_eq!(front.inside(), 0);
    assert_eq!(crossing.len() + dropped.len(), 4);
}
