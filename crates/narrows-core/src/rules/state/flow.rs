//! Flows, independent of the direction of their packets.

use crate::classify::has_ports;
use crate::packet::{FlowKey, Protocol};
use crate::random::mix;
use crate::rules::By;

/// One end of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct End {
    pub(super) address: u128,
    /// 0 if the protocol has no ports.
    pub(super) port: u16,
}

/// A flow, as seen from the sender of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flow {
    pub(super) source: End,
    pub(super) destination: End,
    pub(super) protocol: u8,
    /// 4 or 6; 0 for packets that are not IP, which are all one flow.
    pub(super) version: u8,
}

/// The flows that count together toward a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    /// The rule with the limit.
    pub(super) rule: u32,
    /// The fields in which they agree; 0 where they need not agree.
    pub(super) flow: Flow,
}

/// The direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Like the packet that created the state.
    Forward,
    Back,
}

impl Flow {
    /// The flow of a packet.
    pub(super) fn of(key: &FlowKey) -> Self {
        let end = |address, port| End {
            address: u128::from_be_bytes(address),
            port: if has_ports(key.transport) { port } else { 0 },
        };
        Self {
            source: end(key.source, key.source_port),
            destination: end(key.destination, key.destination_port),
            protocol: key.transport,
            version: match key.network {
                Protocol::Other => 0,
                Protocol::Ipv4 | Protocol::Ipv4DontFragment => 4,
                Protocol::Ipv6 => 6,
            },
        }
    }

    /// The direction of `other` in this flow, if it belongs to it.
    pub(super) fn way(&self, other: &Self) -> Option<Way> {
        let reverse = Self { source: other.destination, destination: other.source, ..*other };
        if self == other {
            Some(Way::Forward)
        } else if *self == reverse {
            Some(Way::Back)
        } else {
            None
        }
    }

    /// The same for both directions.
    pub(super) fn hash(&self) -> u32 {
        let (first, second) = if self.source <= self.destination {
            (self.source, self.destination)
        } else {
            (self.destination, self.source)
        };
        hash(first, second, self.protocol, self.version.into())
    }

    /// The part of the flow that counts for a limit.
    pub(super) fn by(&self, by: By) -> Self {
        let end = |end: End, address: bool, port: bool| End {
            address: if address { end.address } else { 0 },
            port: if port { end.port } else { 0 },
        };
        Self {
            source: end(self.source, by.source, by.source_port),
            destination: end(self.destination, by.destination, by.destination_port),
            ..*self
        }
    }
}

impl Share {
    pub(super) fn hash(&self) -> u32 {
        let Flow { source, destination, protocol, version } = self.flow;
        hash(source, destination, protocol, u64::from(self.rule) << 8 | u64::from(version))
    }
}

/// Each word is mixed separately and differently, so that equal words do not cancel out.
fn hash(first: End, second: End, protocol: u8, more: u64) -> u32 {
    let ports = u64::from(first.port) << 32 | u64::from(second.port) << 8 | u64::from(protocol);
    let halves = |address: u128| [(address >> 64) as u64, address as u64];
    let ([a, b], [c, d]) = (halves(first.address), halves(second.address));
    let words = (1u64..).zip([a, b, c, d, ports, more]);
    let spread = words.fold(0, |hash, (place, word)| hash ^ mix(word ^ mix(place)));
    mix(spread) as u32
}
