//! A condition on a packet's header fields and length, and static analysis of conditions.

mod headers;
mod reach;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

pub use headers::{Fragments, HeaderCondition, LinkPattern};

use crate::packet::{FlowKey, Protocol};
use crate::pool::{PacketRef, PacketState, Pool};

/// A condition on packets. Every field that is set must match. A field with several entries matches if one of them
/// does. An empty list matches anything. The default condition matches every packet.
///
/// A field of the IP header matches IP packets only. A port matches only protocols with ports: TCP, UDP, DCCP, SCTP
/// and UDP-Lite.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// Networks of the source address.
    pub sources: Vec<Prefix>,
    /// Networks of the destination address.
    pub destinations: Vec<Prefix>,
    /// Source ports.
    pub source_ports: Vec<RangeInclusive<u16>>,
    /// Destination ports.
    pub destination_ports: Vec<RangeInclusive<u16>>,
    /// Ports, one of which must be the source port or the destination port.
    pub ports: Vec<RangeInclusive<u16>>,
    /// IP protocol numbers.
    pub protocols: Vec<u8>,
    /// Types and codes of ICMP and ICMPv6: the type in the upper byte. Matches packets of these protocols only; a later
    /// fragment of one counts as type 0, code 0.
    pub icmp: Vec<RangeInclusive<u16>>,
    /// The set of DSCP code points (RFC 2474), one bit each. `None` for any.
    pub dscps: Option<u64>,
    /// The set of ECN field values (RFC 3168), one bit for each of the four. `None` for any.
    pub ecns: Option<u8>,
    /// Length in bytes from the network header on.
    pub lengths: Option<RangeInclusive<u32>>,
    /// The network protocols. `None` for any.
    pub families: Option<Families>,
    /// Flags of the TCP header. `None` for any packet, of TCP or not.
    pub tcp_flags: Option<TcpFlags>,
    /// The lanes of the link: on a shared medium, the senders.
    pub lane: Option<Lanes>,
    /// Fields that are not in a flow key. `None` for any.
    pub headers: Option<Box<HeaderCondition>>,
}

/// A set of network protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Families(u8);

impl Families {
    /// None.
    pub const NONE: Self = Self(0);
    /// IPv4.
    pub const IPV4: Self = Self(1);
    /// IPv6.
    pub const IPV6: Self = Self(2);
    /// Whatever is neither IPv4 nor IPv6, such as ARP.
    pub const OTHER: Self = Self(4);
    /// All of them.
    pub const ALL: Self = Self(7);

    /// Those of both sets.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those that are in both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Those of this set that are not in the other.
    const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    const fn has(self, network: Protocol) -> bool {
        let one = match network {
            Protocol::Ipv4 | Protocol::Ipv4DontFragment => Self::IPV4,
            Protocol::Ipv6 => Self::IPV6,
            Protocol::Other => Self::OTHER,
        };
        !self.and(one).is_empty()
    }
}

/// Flags of the TCP header that must be set, and flags that must not be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TcpFlags {
    /// Those that must be set.
    pub set: u8,
    /// Those that must not be set.
    pub clear: u8,
}

impl TcpFlags {
    const fn hold(self, flags: u8) -> bool {
        flags & self.set == self.set && flags & self.clear == 0
    }
}

/// An address prefix. IPv4 is mapped into IPv6, so its prefixes are 96 bits longer than written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix {
    address: u128,
    bits: u8,
}

impl Prefix {
    /// The prefix of `bits` bits, 0 to 128, of this address.
    pub fn new(address: [u8; 16], bits: u8) -> Self {
        let bits = bits.min(128);
        Self { address: u128::from_be_bytes(address) & mask(bits), bits }
    }

    /// The first address of the prefix.
    pub const fn address(&self) -> [u8; 16] {
        self.address.to_be_bytes()
    }

    /// The prefix length, 0 to 128 bits.
    pub const fn bits(&self) -> u8 {
        self.bits
    }

    /// Whether the prefix contains an address.
    pub fn contains(&self, address: [u8; 16]) -> bool {
        u128::from_be_bytes(address) & mask(self.bits) == self.address
    }
}

/// The lanes of a link whose numbers agree in some bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lanes {
    mask: u8,
    value: u8,
}

impl Lanes {
    /// This lane.
    pub const fn only(lane: u8) -> Self {
        Self { mask: u8::MAX, value: lane }
    }

    /// All lanes with even numbers.
    pub const EVEN: Self = Self { mask: 1, value: 0 };
    /// All lanes with odd numbers.
    pub const ODD: Self = Self { mask: 1, value: 1 };

    const fn has(self, lane: u8) -> bool {
        lane & self.mask == self.value
    }
}

const fn mask(bits: u8) -> u128 {
    if bits == 0 { 0 } else { u128::MAX << (128 - bits as u32) }
}

impl Condition {
    /// Whether a packet matches one of these; true if there is none.
    pub(crate) fn any_holds(these: &[Self], packet: PacketRef, pool: &Pool) -> bool {
        these.is_empty() || these.iter().any(|condition| condition.holds(packet, pool))
    }

    /// Whether one of these looks at header fields that are not in a flow key.
    pub(crate) fn any_looks_at_headers(these: &[Self]) -> bool {
        these.iter().any(|condition| condition.headers.is_some())
    }

    /// Whether a packet matches.
    #[inline]
    pub fn holds(&self, packet: PacketRef, pool: &Pool) -> bool {
        let state = pool.get(packet);
        self.admits(&state.key, state.length, state.lane)
            && self.headers.as_ref().is_none_or(|condition| condition.holds(pool.headers(packet)))
    }

    /// As [`Condition::holds`], for one whose headers are not known.
    pub(crate) fn holds_by_key(&self, packet: &PacketState) -> bool {
        self.headers.is_none() && self.admits(&packet.key, packet.length, packet.lane)
    }

    /// Whether a packet with this flow key and length, in this lane of a link, matches, if its other headers do.
    pub fn admits(&self, key: &FlowKey, length: u32, lane: u8) -> bool {
        let within = |prefixes: &[Prefix], address| {
            prefixes.is_empty() || prefixes.iter().any(|prefix| prefix.contains(address))
        };
        let among = |ranges: &[RangeInclusive<u16>], port| ranges.iter().any(|range| range.contains(&port));
        let among_if_any = |ranges: &[RangeInclusive<u16>], port| ranges.is_empty() || among(ranges, port);
        self.dscps.is_none_or(|set| set >> key.dscp() & 1 == 1)
            && self.ecns.is_none_or(|set| set >> key.ecn() & 1 == 1)
            && (self.protocols.is_empty() || self.protocols.contains(&key.transport))
            && self.lengths.as_ref().is_none_or(|range| range.contains(&length))
            && self.lane.is_none_or(|lanes| lanes.has(lane))
            && self.families.is_none_or(|set| set.has(key.network))
            && self.tcp_flags.is_none_or(|flags| key.transport == TCP && flags.hold(key.tcp_flags))
            && among_if_any(&self.destination_ports, key.destination_port)
            && among_if_any(&self.source_ports, key.source_port)
            && (self.icmp.is_empty() || is_icmp(key.transport) && among(&self.icmp, key.source_port))
            && (self.ports.is_empty()
                || among(&self.ports, key.source_port)
                || among(&self.ports, key.destination_port))
            && within(&self.sources, key.source)
            && within(&self.destinations, key.destination)
            // Last, because it is nearly always true. Fields that a packet does not have are zero in its key.
            && (key.network != Protocol::Other || !self.is_about_ip())
            && (has_ports(key.transport) || !self.is_about_ports())
    }

    /// Whether it matches IP packets only.
    fn is_about_ip(&self) -> bool {
        self.dscps.is_some()
            || self.ecns.is_some()
            || self.tcp_flags.is_some()
            || !self.icmp.is_empty()
            || !(self.protocols.is_empty() && self.sources.is_empty() && self.destinations.is_empty())
            || self.headers.as_ref().is_some_and(|headers| !headers.hop_limits.is_empty())
            || self.is_about_ports()
    }

    /// Whether it matches only packets that have ports.
    fn is_about_ports(&self) -> bool {
        !(self.source_ports.is_empty() && self.destination_ports.is_empty() && self.ports.is_empty())
    }
}

const TCP: u8 = 6;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

const fn is_icmp(protocol: u8) -> bool {
    matches!(protocol, ICMP | ICMPV6)
}

/// Whether an IP protocol has ports.
pub(crate) const fn has_ports(protocol: u8) -> bool {
    // TCP, UDP, DCCP, SCTP, UDP-Lite
    matches!(protocol, 6 | 17 | 33 | 132 | 136)
}
