//! A scenario's engine, packets for it, and what becomes of them.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use narrows_core::{DropReason, Engine, FlowKey, Headers, Packet, Protocol, Time, Verdict};
use narrows_scenario::Scenario;
use narrows_scenario::ipfw::{Context, Script};

pub(crate) fn at(micros: u64) -> Time {
    Time::from_nanos(micros * 1000)
}

/// `client` and `server` with the link `net` between them, of which these are the lines.
pub(crate) fn net(lines: &str) -> Scenario {
    let text =
        format!("[hosts.client]\n[hosts.server]\n[links.net]\nbetween = [\"client\", \"server\"]\n{lines}\n");
    Scenario::parse(&text, "net.toml").unwrap_or_else(|error| panic!("{error}"))
}

/// The scenario that a script of the examples equals.
pub(crate) fn script(name: &str) -> Scenario {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../scenarios/ipfw/{name}.conf"));
    let text = std::fs::read_to_string(&file).unwrap();
    let names = |name: &str| match name {
        "xy.it" => Ok(vec![IpAddr::from([203, 0, 113, 7])]),
        "luigi-pc" => Ok(vec![IpAddr::from([192, 0, 2, 10])]),
        "my-subnet" => Ok(vec![IpAddr::from([192, 0, 2, 0])]),
        _ => Err(std::io::Error::other("nobody knows it")),
    };
    let context =
        Context { interfaces: &["em0"], outside: &[], hosts: &[], resolve: names, ..Context::default() };
    let script =
        Script::parse(&text, &file.display().to_string(), &context).unwrap_or_else(|error| panic!("{error}"));
    let text = script.to_toml("net", ["client", "server"]);
    Scenario::parse(&text, &file.display().to_string()).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

/// A packet of UDP from an address to 10.0.0.1.
pub(crate) fn from(source: [u8; 4]) -> FlowKey {
    let bytes = |address: [u8; 4]| Ipv4Addr::from(address).to_ipv6_mapped().octets();
    FlowKey {
        source: bytes(source),
        destination: bytes([10, 0, 0, 1]),
        source_port: 4000,
        destination_port: 5000,
        network: Protocol::Ipv4,
        transport: 17,
        ..FlowKey::default()
    }
}

/// The same to an address.
pub(crate) fn to(destination: [u8; 4]) -> FlowKey {
    let key = from([10, 0, 0, 2]);
    FlowKey { destination: Ipv4Addr::from(destination).to_ipv6_mapped().octets(), ..key }
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    /// Its number among those sent.
    pub(crate) number: usize,
    pub(crate) at: Time,
    /// Why it was dropped, if it was.
    pub(crate) dropped: Option<DropReason>,
}

pub(crate) struct Bed {
    pub(crate) engine: Engine<usize>,
    sent: usize,
}

impl Bed {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        Self { engine: Engine::new(scenario.network()).unwrap(), sent: 0 }
    }

    /// Hands in a packet of so many bytes.
    pub(crate) fn send(&mut self, at: Time, host: &str, key: FlowKey, length: u32) {
        self.send_with(at, host, key, Headers::default(), length);
    }

    /// The same with these headers.
    pub(crate) fn send_with(&mut self, at: Time, host: &str, key: FlowKey, headers: Headers, length: u32) {
        let port = self.engine.port(&format!("{host}.net")).unwrap();
        let packet = Packet { length, link_header: 14, network_header: 20, headers, key, body: self.sent };
        self.sent += 1;
        self.engine.hand_in(at, port, packet);
    }

    /// All that left by this instant, in its order.
    pub(crate) fn until(&mut self, now: Time) -> Vec<Left> {
        let mut all = Vec::new();
        while let Some(event) = self.engine.poll(now) {
            let dropped = match event.verdict {
                Verdict::Delivered(_) => None,
                Verdict::Dropped { reason, .. } => Some(reason),
            };
            all.push(Left { number: *event.body.get(), at: event.at, dropped });
        }
        all
    }

    pub(crate) fn rest(&mut self) -> Vec<Left> {
        let mut all = Vec::new();
        while let Some(next) = self.engine.next_event() {
            all.extend(self.until(next));
        }
        all
    }
}

/// How many there are, and the instants at which they leave.
pub(crate) fn instants(left: &[Left]) -> Vec<u64> {
    left.iter().map(|left| left.at.nanos()).collect()
}
