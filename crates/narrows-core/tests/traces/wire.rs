//! One link without delay: what leaves it does so at the end of its transmission.

use narrows_core::queue::{Bound, DropAt, Fifo};
use narrows_core::service::{Overhead, ServiceCurve};
use narrows_core::{
    Change, Engine, FlowKey, LinkConfig, NetworkConfig, Packet, PortConfig, Seed, Target, Time, Verdict,
};

/// Beyond everything that a test schedules.
pub(crate) const END: Time = Time::from_nanos(u64::MAX / 2);

pub(crate) fn link(service: impl ServiceCurve + 'static) -> LinkConfig {
    let mut link = LinkConfig::new("wire", Target::Port("b".into()));
    link.service = Box::new(service);
    link.queue = Box::new(Fifo::new(Bound::Packets(u64::MAX), DropAt::Tail));
    link
}

/// Mahimahi counts the header of the TUN device.
pub(crate) const TUN: Overhead = Overhead { extra: 4, ..Overhead::IP };

/// Packets, by instant and length, and changes go through a link. Returns when each packet left or was dropped, and which
/// of it.
pub(crate) fn run(link: LinkConfig, packets: &[(u64, u32)], changes: Vec<(u64, Change)>) -> Vec<(u64, bool)> {
    let mut config = NetworkConfig::new(Seed(1));
    config.links.push(link);
    let entry = Target::Link { name: "wire".into(), lane: 0 };
    config.ports.push(PortConfig { name: "a".into(), entry });
    config.ports.push(PortConfig { name: "b".into(), entry: Target::Port("b".into()) });
    let mut engine = Engine::new(config).expect("it is a network");
    let (a, wire) = (engine.port("a").expect("a port"), engine.link("wire").expect("a link"));
    let mut changes = changes.into_iter().peekable();
    for (number, &(at, length)) in packets.iter().enumerate() {
        while let Some((at, change)) = changes.next_if(|change| change.0 <= at) {
            engine.change(Time::from_nanos(at), wire, change);
        }
        let key = FlowKey::default();
        let packet = Packet {
            length,
            link_header: 0,
            network_header: 0,
            headers: Default::default(),
            key,
            body: number,
        };
        engine.hand_in(Time::from_nanos(at), a, packet);
    }
    for (at, change) in changes {
        engine.change(Time::from_nanos(at), wire, change);
    }
    let mut left = vec![(0, false); packets.len()];
    while let Some(event) = engine.poll(END) {
        left[*event.body.get()] = (event.at.nanos(), matches!(event.verdict, Verdict::Delivered(_)));
    }
    assert_eq!(engine.inside(), 0, "the wire comes up again");
    left
}

/// When each packet left, of those that all do.
pub(crate) fn ends(link: LinkConfig, packets: &[(u64, u32)], changes: Vec<(u64, Change)>) -> Vec<u64> {
    let left = run(link, packets, changes);
    assert!(left.iter().all(|packet| packet.1));
    left.into_iter().map(|packet| packet.0).collect()
}
