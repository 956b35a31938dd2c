//! Packets between two hosts, and all that becomes of them.

use narrows_core::service::ConstantRate;
use narrows_core::*;

/// What became of a packet: when, its number, its verdict.
pub(crate) type Seen = (u64, u64, Verdict);

/// 10.0.`b`.`c`, mapped.
pub(crate) fn address(b: u8, c: u8) -> [u8; 16] {
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, b, c]
}

/// From 10.0.1.`from` to 10.0.2.`to`.
pub(crate) fn key(from: u8, to: u8) -> FlowKey {
    FlowKey {
        source: address(1, from),
        destination: address(2, to),
        source_port: 1000,
        destination_port: 80,
        network: Protocol::Ipv4,
        transport: 17,
        ..FlowKey::default()
    }
}

pub(crate) fn packet(key: FlowKey, length: u32) -> Packet<()> {
    let headers = Headers::plain(&key, length);
    Packet { length, link_header: 14, network_header: 20, key, headers, body: () }
}

pub(crate) fn at(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

pub(crate) fn rate(link: &mut LinkConfig, bits: u64) {
    link.service = Box::new(ConstantRate(Rate::from_bits_per_second(bits)));
}

pub(crate) fn delay(link: &mut LinkConfig, nanos: u64) {
    link.delay = Box::new(model::Constant(Duration::from_nanos(nanos)));
}

pub(crate) fn port(name: &str, entry: Target) -> PortConfig {
    PortConfig { name: name.into(), entry }
}

/// Polls until nothing is due at `now`.
pub(crate) fn poll(engine: &mut Engine<()>, now: Time, seen: &mut Vec<Seen>) {
    while let Some(event) = engine.poll(now) {
        seen.push((event.at.nanos(), event.id.number(), event.verdict));
    }
}

/// Polls at each event's own instant until the network is at rest.
pub(crate) fn drain(engine: &mut Engine<()>) -> Vec<Seen> {
    let mut seen = Vec::new();
    while let Some(next) = engine.next_event() {
        poll(engine, next, &mut seen);
    }
    seen
}
