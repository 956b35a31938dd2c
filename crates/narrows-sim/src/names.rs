//! Names for numbers, for outputs: an event borrows the engine, so the names must be kept separately.

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

    /// Updates the names: the network may have more links than before.
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

/// A packet's address as shown in files: empty if there is none; IPv4 in dotted form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address(Protocol, [u8; 16]);

impl Address {
    /// The source address.
    pub fn source(key: &FlowKey) -> Self {
        Self(key.network, key.source)
    }

    /// The destination address.
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

/// The name of a transport protocol, or its number; empty for packets that are not IP.
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
