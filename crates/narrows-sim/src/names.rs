//! Names behind numbers, for outputs: an event borrows the engine that knows them.

use narrows_core::{Engine, FlowKey, LinkId, PortId, Protocol};
use std::net::Ipv6Addr;

#[derive(Debug)]
pub(crate) struct Names {
    ports: Vec<String>,
    links: Vec<String>,
    pub(crate) feeds: Vec<String>,
}

impl Names {
    pub(crate) fn new<B>(engine: &Engine<B>, feeds: Vec<String>) -> Self {
        Self {
            ports: engine.ports().map(|port| engine.port_name(port).to_owned()).collect(),
            links: engine.links().map(|link| engine.view(link).name().to_owned()).collect(),
            feeds,
        }
    }

    pub(crate) fn port(&self, port: PortId) -> &str {
        &self.ports[usize::from(port.index())]
    }

    pub(crate) fn link(&self, link: LinkId) -> &str {
        &self.links[link.index() as usize]
    }

    pub(crate) fn ports(&self) -> &[String] {
        &self.ports
    }

    pub(crate) fn links(&self) -> &[String] {
        &self.links
    }
}

/// A value of a CSV file: in quotes where it has to be (RFC 4180).
pub(crate) fn csv(value: &str) -> std::borrow::Cow<'_, str> {
    if value.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", value.replace('"', "\"\"")).into()
    } else {
        value.into()
    }
}

/// An address of a packet: nothing for one without, IPv4 in its own form.
pub(crate) struct Address(pub(crate) Protocol, pub(crate) [u8; 16]);

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let address = Ipv6Addr::from(self.1);
        match (self.0, address.to_ipv4_mapped()) {
            (Protocol::Other, _) => Ok(()),
            (Protocol::Ipv6, _) | (_, None) => address.fmt(f),
            (_, Some(four)) => four.fmt(f),
        }
    }
}

/// The name of a transport protocol, or its number.
pub(crate) fn transport(key: &FlowKey) -> std::borrow::Cow<'static, str> {
    match (key.network, key.transport) {
        (Protocol::Other, _) => "".into(),
        (_, 1) => "icmp".into(),
        (_, 6) => "tcp".into(),
        (_, 17) => "udp".into(),
        (_, 58) => "icmpv6".into(),
        (_, 132) => "sctp".into(),
        (_, number) => number.to_string().into(),
    }
}
