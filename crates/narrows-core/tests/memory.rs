//! How much memory packets in flight and idle links take, as the allocator sees it.

mod counting;

use counting::live;
use narrows_core::classify::Condition;
use narrows_core::model::{ByClass, Constant, Fed, FeedConfig, Normal};
use narrows_core::service::ConstantRate;
use narrows_core::{
    Duration, Engine, FlowKey, LinkConfig, NetworkConfig, Order, Packet, PacketState, PortConfig, Rate, Seed,
    Target, Time,
};

/// A network with so many links between `in` and `out`, of which the first is in use.
fn config(links: usize, link: impl Fn(&mut LinkConfig)) -> NetworkConfig {
    let mut config = NetworkConfig::new(Seed(1));
    for number in 0..links {
        let mut one = LinkConfig::new(format!("link {number}"), Target::Port("out".into()));
        link(&mut one);
        config.links.push(one);
    }
    let entry = Target::Link { name: "link 0".into(), lane: 0 };
    config.ports = vec![
        PortConfig { name: "in".into(), entry },
        PortConfig { name: "out".into(), entry: Target::Port("out".into()) },
    ];
    config
}

/// Bytes for each packet in flight, beyond its body, when so many come at 1 µs and none has left.
fn bytes_in_flight<B>(packets: u64, body: impl Fn() -> B, link: impl Fn(&mut LinkConfig)) -> f64 {
    let mut engine = Engine::new(config(1, link)).expect("names are unique and lead somewhere");
    let port = engine.port("in").expect("it was just configured");
    let before = live();
    for n in 0..packets {
        let at = Time::from_nanos(n * 1_000);
        assert!(engine.poll(at).is_none());
        let packet = Packet {
            length: 100,
            link_header: 14,
            network_header: 20,
            headers: Default::default(),
            key: FlowKey::default(),
            body: body(),
        };
        engine.hand_in(at, port, packet);
    }
    assert_eq!(engine.inside(), packets);
    (live() - before) as f64 / packets as f64 - size_of::<B>() as f64
}

#[test]
fn a_packet_in_flight_takes_at_most_128_bytes_beyond_its_body() {
    let constant = |link: &mut LinkConfig| {
        link.service = Box::new(ConstantRate(Rate::from_bits_per_second(1_000_000_000)));
        link.delay = Box::new(Constant(Duration::from_secs(1)));
    };
    let jitter = |link: &mut LinkConfig| {
        constant(link);
        link.delay = Box::new(Normal { mean: Duration::from_secs(2), sd: Duration::from_millis(100) });
        link.settings.order = Order::Allow;
    };
    for packets in [1_000, 5_000, 20_000, 100_000] {
        for (what, bytes) in [
            ("constant delay, handles", bytes_in_flight(packets, || 7u32, constant)),
            ("jitter, handles", bytes_in_flight(packets, || 7u32, jitter)),
            // An empty slice allocates nothing, so that what is counted is the engine's.
            ("constant delay, frames", bytes_in_flight(packets, Box::<[u8]>::default, constant)),
            ("jitter, frames", bytes_in_flight(packets, Box::<[u8]>::default, jitter)),
        ] {
            println!("{packets:>7} in flight, {what}: {bytes:.1} bytes each beyond the body");
            assert!(bytes <= 128.0, "{packets}, {what}: {bytes}");
        }
    }
    assert_eq!(size_of::<PacketState>(), 104);
}

#[test]
fn an_idle_link_takes_at_most_a_kibibyte() {
    let live = |links| {
        let before = live();
        let engine = Engine::<u32>::new(config(links, |_| {})).expect("names are unique and lead somewhere");
        let bytes = live() - before;
        drop(engine);
        bytes
    };
    let bytes = (live(2_000) - live(1_000)) / 1_000;
    println!("{bytes} bytes for an idle link");
    assert!(bytes <= 1_024, "{bytes}");
}

/// What is delivered leaves nothing behind but the pool, which the next packets use.
#[test]
fn memory_does_not_grow_with_packets_that_have_left() {
    let constant = |link: &mut LinkConfig| link.delay = Box::new(Constant(Duration::from_micros(100)));
    let mut engine = Engine::new(config(1, constant)).expect("names are unique and lead somewhere");
    let port = engine.port("in").expect("it was just configured");
    let mut high = 0;
    for n in 0..100_000 {
        let at = Time::from_nanos(n * 1_000);
        while engine.poll(at).is_some() {}
        let packet = Packet {
            length: 100,
            link_header: 14,
            network_header: 20,
            headers: Default::default(),
            key: FlowKey::default(),
            body: (),
        };
        engine.hand_in(at, port, packet);
        if n == 1_000 {
            high = live();
        }
    }
    assert_eq!(live(), high);
}

/// Packets that may overtake go past one whose question stays open.
#[test]
fn memory_does_not_grow_with_packets_that_went_past_an_open_question() {
    let classes = |link: &mut LinkConfig| {
        let feed = |name: &str, ask| {
            let config = FeedConfig { ask: Some(Duration::from_secs(ask)), lead: 1, ..FeedConfig::new(name) };
            Box::new(Fed::new(config))
        };
        let long = Condition { lengths: Some(700..=u32::MAX), ..Condition::default() };
        link.delay = Box::new(ByClass::new(vec![(long, feed("long", 3_600) as _)], feed("short", 1)));
        link.settings.order = Order::Allow;
    };
    let mut engine = Engine::new(config(1, classes)).expect("names are unique and lead somewhere");
    let port = engine.port("in").expect("it was just configured");
    let link = engine.link("link 0").expect("it was just configured");
    let mut high = 0;
    for n in 0..100_000 {
        let at = Time::from_nanos(n * 1_000);
        while engine.poll(at).is_some() {}
        let length = if n == 0 { 1_000 } else { 100 };
        let packet = Packet {
            length,
            link_header: 14,
            network_header: 20,
            headers: Default::default(),
            key: FlowKey::default(),
            body: (),
        };
        engine.hand_in(at, port, packet);
        assert_eq!(engine.feed(at, link, "short", &[500]), usize::from(n > 0));
        if n == 1_000 {
            high = live();
        }
    }
    assert_eq!((live(), engine.inside()), (high, 2));
}
