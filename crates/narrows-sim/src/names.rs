//! Names behind numbers, for outputs: an event borrows the engine that knows them.

use std::net::Ipv6Addr;
use std::ops::Deref;

use narrows_core::{Engine, FlowKey, Protocol};
use narrows_frame::ElementNames;

#[derive(Debug)]
pub(crate) struct Names {
    elements: ElementNames,
    pub(crate) feeds: Vec<String>,
}

impl Names {
    pub(crate) fn new<B>(engine: &Engine<B>, feeds: Vec<String>) -> Self {
        Self { elements: ElementNames::of(engine), feeds }
    }

    /// The network may have more links than before.
    pub(crate) fn update<B>(&mut self, engine: &Engine<B>) {
        self.elements = ElementNames::of(engine);
    }
}

impl Deref for Names {
    type Target = ElementNames;

    fn deref(&self) -> &ElementNames {
        &self.elements
    }
}

/// An address of a packet, as files show it: nothing for one without, IPv4 in its own form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address(Protocol, [u8; 16]);

impl Address {
    /// Where it comes from.
    pub fn source(key: &FlowKey) -> Self {
        Self(key.network, key.source)
    }

    /// Where it goes.
    pub fn destination(key: &FlowKey) -> Self {
        Self(key.network, key.destination)
    }
}

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

/// The name of a transport protocol, or its number; empty for what is not IP.
pub fn transport(key: &FlowKey) -> std::borrow::Cow<'static, str> {
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
