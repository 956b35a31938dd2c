//! How long packets stay inside at least.

use narrows_core::model::{Constant, DelayModel, Independent, Propagation};
use narrows_core::{
    Change, Draw, Duration, Engine, FlowKey, LinkConfig, Mtu, MtuPolicy, NetworkConfig, Packet, PacketState,
    PortConfig, Probability, Reorder, Seed, Target, Time,
};

const DELAY: Duration = Duration::from_millis(5);

fn constant(delay: Duration) -> Box<dyn DelayModel> {
    Box::new(Constant(delay))
}

/// From `in` through the links in turn to `out`, and back through none, or the first.
fn through(mut links: Vec<LinkConfig>, back: Option<Duration>) -> Engine<()> {
    let mut network = NetworkConfig::new(Seed(1));
    let to = |link: &LinkConfig| Target::Link { name: link.name.clone(), lane: 0 };
    let first = to(&links[0]);
    for at in 0..links.len() {
        let next = links.get(at + 1).map_or(Target::Port("out".into()), to);
        links[at].lanes = vec![next];
    }
    network.links = links;
    let mut home = Target::Port("in".into());
    if let Some(delay) = back {
        let link = LinkConfig { delay: constant(delay), ..LinkConfig::new("back", home) };
        home = to(&link);
        network.links.push(link);
    }
    network.ports =
        vec![PortConfig { name: "in".into(), entry: first }, PortConfig { name: "out".into(), entry: home }];
    Engine::new(network).expect("it leads somewhere")
}

fn link(name: &str, change: impl FnOnce(&mut LinkConfig)) -> LinkConfig {
    let mut link = LinkConfig { delay: constant(DELAY), ..LinkConfig::new(name, Target::Port("out".into())) };
    change(&mut link);
    link
}

/// Longer by the packet's length in microseconds.
#[derive(Debug)]
struct ByLength;

impl DelayModel for ByLength {
    fn delay(&mut self, _: Time, packet: &PacketState, _: &mut Draw) -> Propagation {
        Propagation::After(Duration::from_micros(packet.length.into()))
    }

    fn mean(&self) -> Option<Duration> {
        None
    }
}

/// Hands in a packet now; returns how long it takes.
fn took(engine: &mut Engine<()>, from: &str) -> Duration {
    let (now, port) = (engine.now(), engine.port(from).expect("it is there"));
    let (key, headers) = (FlowKey::default(), Default::default());
    engine.hand_in(
        now,
        port,
        Packet { length: 100, link_header: 14, network_header: 0, headers, key, body: () },
    );
    loop {
        let at = engine.next_event().expect("it is inside");
        if engine.poll(at).is_some() {
            return at.since(now);
        }
    }
}

#[test]
fn it_is_the_shortest_constant_delay_of_any_link() {
    let half = Duration::from_micros(2500);
    let mut engine =
        through(vec![link("one", |_| {}), link("two", |link| link.delay = constant(half))], Some(DELAY));
    assert_eq!(engine.least_transit(), half);
    assert_eq!((took(&mut engine, "in"), took(&mut engine, "out")), (DELAY + half, DELAY));
    let two = engine.link("two").expect("it is there");
    engine.change(engine.now(), two, Change::Delay(constant(Duration::from_secs(1))));
    assert_eq!(engine.least_transit(), DELAY, "the others are shorter now");
    engine.change(engine.now(), two, Change::Delay(Box::new(ByLength)));
    assert_eq!(engine.least_transit(), Duration::ZERO);
}

#[test]
fn it_is_nothing_where_packets_may_leave_or_be_answered_at_once() {
    let always = || Box::new(Independent(Probability::ONE));
    let mtu = Some(Mtu { bytes: 1280, policy: MtuPolicy::default() });
    let whole = through(vec![link("one", |_| {})], Some(DELAY)).least_transit();
    assert_eq!(whole, DELAY);
    let mut skips = through(
        vec![link("one", |link| link.reorder = Some(Reorder { selector: always(), gap: 1 }))],
        Some(DELAY),
    );
    assert_eq!((skips.least_transit(), took(&mut skips, "in")), (Duration::ZERO, Duration::ZERO));
    let tells = through(vec![link("one", |link| link.settings.mtu = mtu)], Some(DELAY));
    assert_eq!(tells.least_transit(), Duration::ZERO);
    let mut one_way = through(vec![link("one", |_| {})], None);
    assert_eq!((one_way.least_transit(), took(&mut one_way, "out")), (Duration::ZERO, Duration::ZERO));
}
