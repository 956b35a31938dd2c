//! Names behind numbers, for outputs: an event borrows the engine that knows them.

use narrows_core::{Element, Engine, FlowKey, PortId, Protocol};
use std::net::Ipv6Addr;

#[derive(Debug)]
pub(crate) struct Names {
    ports: Vec<String>,
    links: Vec<String>,
    rules: Vec<String>,
    routers: Vec<String>,
    pub(crate) feeds: Vec<String>,
}

impl Names {
    pub(crate) fn new<B>(engine: &Engine<B>, feeds: Vec<String>) -> Self {
        let named = |elements: &mut dyn Iterator<Item = Element>| {
            elements.map(|element| engine.element_name(element).to_owned()).collect()
        };
        Self {
            ports: engine.ports().map(|port| engine.port_name(port).to_owned()).collect(),
            links: engine.links().map(|link| engine.view(link).name().to_owned()).collect(),
            rules: named(&mut engine.rules().map(Element::Rules)),
            routers: named(&mut engine.routers().map(Element::Router)),
            feeds,
        }
    }

    /// The network may have more links than before.
    pub(crate) fn update<B>(&mut self, engine: &Engine<B>) {
        let feeds = std::mem::take(&mut self.feeds);
        *self = Self::new(engine, feeds);
    }

    pub(crate) fn port(&self, port: PortId) -> &str {
        &self.ports[usize::from(port.index())]
    }

    /// The name of an element; nobody knows that of one that was never there.
    pub(crate) fn element(&self, element: Element) -> &str {
        let (names, place) = match element {
            Element::Link(link) => (&self.links, link.index()),
            Element::Rules(rules) => (&self.rules, rules.index()),
            Element::Router(router) => (&self.routers, router.index()),
        };
        names.get(place as usize).map_or("?", String::as_str)
    }

    pub(crate) fn ports(&self) -> &[String] {
        &self.ports
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

#[cfg(test)]
mod tests {
    use narrows_core::{LinkConfig, NetworkConfig, PortConfig, Seed, Target, Time};

    use super::*;

    #[test]
    fn links_that_are_added_have_names() {
        let mut config = NetworkConfig::new(Seed(1));
        let end = Target::Port("end".into());
        config.links.push(LinkConfig::new("wire", end.clone()));
        config.ports.push(PortConfig { name: "end".into(), entry: end.clone() });
        let mut engine: Engine<()> = Engine::new(config).unwrap();
        let mut names = Names::new(&engine, Vec::new());
        // By name it would come first.
        let added = engine.add_link(Time::ZERO, LinkConfig::new("added", end)).unwrap();
        assert_eq!(names.element(Element::Link(added)), "?");
        for _ in 0..2 {
            names.update(&engine);
            assert_eq!(names.element(Element::Link(added)), "added");
            assert_eq!(names.links, ["wire", "added"]);
        }
    }
}
