//! A packet's flow key in words, for records of packets.

use std::borrow::Cow;
use std::fmt;
use std::net::Ipv6Addr;

use narrows_core::{FlowKey, Protocol};

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

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = Ipv6Addr::from(self.1);
        match (self.0, address.to_ipv4_mapped()) {
            (Protocol::Other, _) => Ok(()),
            (Protocol::Ipv6, _) | (_, None) => address.fmt(f),
            (_, Some(four)) => four.fmt(f),
        }
    }
}

/// The name of a transport protocol, or its number; empty for packets that are not IP.
pub fn transport(key: &FlowKey) -> Cow<'static, str> {
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
