//! Routers: which way packets go, when they arrive, and what becomes of those that do not.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod addresses;
mod bad_input;
mod explanation;
mod multipath;
mod paths;
mod travel;

use std::net::IpAddr;

use narrows_core::{Engine, FlowKey, Headers, Packet, Protocol, Time, Verdict};
use narrows_scenario::Scenario;

pub(crate) fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "net.toml").unwrap_or_else(|error| panic!("{error}"))
}

/// What became of a packet: its number among those handed in, when, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Outcome {
    pub(crate) number: u64,
    pub(crate) nanos: u64,
    /// A port, or an element and a reason.
    pub(crate) place: String,
    /// The routers that it passed.
    pub(crate) hops: u8,
}

/// A scenario's network, and packets through it.
pub(crate) struct Run {
    pub(crate) scenario: Scenario,
    pub(crate) engine: Engine<u64>,
    handed: u64,
}

/// Bytes of a packet.
pub(crate) const LENGTH: u32 = 1000;

impl Run {
    pub(crate) fn new(text: &str) -> Self {
        let scenario = parse(text);
        let engine = Engine::new(scenario.network()).unwrap();
        Self { scenario, engine, handed: 0 }
    }

    /// The first address at a port or at an end of a link at a router.
    pub(crate) fn address(&self, name: &str) -> IpAddr {
        let ports = self.scenario.ports().iter().map(|port| (&port.name, &port.addresses));
        let ends = self.scenario.interfaces().iter().map(|end| (&end.name, &end.addresses));
        let found = ports.chain(ends).find(|(own, _)| *own == name);
        found.unwrap_or_else(|| panic!("no end is called {name}")).1[0].ip
    }

    /// Hands a packet in at a port, to this address, with this source port.
    pub(crate) fn send(&mut self, at: u64, port: &str, to: IpAddr, flow: u16, hop_limit: u8) {
        let bytes = |ip: IpAddr| match ip {
            IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
            IpAddr::V6(ip) => ip.octets(),
        };
        let network = if to.is_ipv4() { Protocol::Ipv4 } else { Protocol::Ipv6 };
        let source =
            bytes(if to.is_ipv4() { "10.0.0.9".parse().unwrap() } else { "fd00::9".parse().unwrap() });
        let key = FlowKey {
            source,
            destination: bytes(to),
            network,
            transport: 17,
            source_port: flow,
            destination_port: 9,
            ..FlowKey::default()
        };
        let headers = Headers { hop_limit, ..Headers::plain(&key, LENGTH) };
        let body = self.handed;
        self.handed += 1;
        let port = self.engine.port(port).unwrap();
        let packet = Packet { length: LENGTH, link_header: 14, network_header: 20, key, headers, body };
        self.engine.hand_in(Time::from_nanos(at), port, packet);
    }

    /// What is decided up to an instant.
    pub(crate) fn poll(&mut self, nanos: u64) -> Vec<Outcome> {
        let mut all = Vec::new();
        while let Some(event) = self.engine.poll(Time::from_nanos(nanos)) {
            let (number, nanos, hops, verdict) =
                (*event.body.get(), event.at.nanos(), event.hops, event.verdict);
            let place = match verdict {
                Verdict::Delivered(port) => self.engine.port_name(port).to_owned(),
                Verdict::Dropped { at, reason } => {
                    let at = at.map_or("", |at| self.engine.element_name(at));
                    format!("{at}: {}", reason.name())
                }
            };
            all.push(Outcome { number, nanos, place, hops });
        }
        all
    }

    /// One packet from a port to the first address of an end.
    pub(crate) fn travel(&mut self, from: &str, to: &str) -> Outcome {
        let (at, to) = (self.engine.now().nanos(), self.address(to));
        self.send(at, from, to, 5000, 64);
        let mut all = self.poll(at + 100_000_000_000);
        assert_eq!(all.len(), 1, "{all:?}");
        let mut outcome = all.remove(0);
        outcome.nanos -= at;
        outcome
    }
}
