//! A condition on the header fields and the length of a packet, and what can be said of two of them without a packet.

mod reach;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use crate::packet::{FlowKey, Protocol};
use crate::pool::PacketState;

/// What a packet must be like: every part that is given must hold, and a part that lists several things holds when one of
/// them does. A list without entries stands for anything. The default holds for every packet.
///
/// A part that asks for something in the IP header holds for IP packets only, and one that asks for a port only for the
/// protocols that have ports: TCP, UDP, DCCP, SCTP and UDP-Lite.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// Networks that the source address is in.
    pub sources: Vec<Prefix>,
    /// Networks that the destination address is in.
    pub destinations: Vec<Prefix>,
    /// Source ports.
    pub source_ports: Vec<RangeInclusive<u16>>,
    /// Destination ports.
    pub destination_ports: Vec<RangeInclusive<u16>>,
    /// Ports of which the source port or the destination port is one.
    pub ports: Vec<RangeInclusive<u16>>,
    /// IP protocol numbers.
    pub protocols: Vec<u8>,
    /// The set of code points (RFC 2474), one bit for each; nothing for any.
    pub dscps: Option<u64>,
    /// The set of values of the ECN field (RFC 3168), one bit for each of the four; nothing for any.
    pub ecns: Option<u8>,
    /// Bytes from the network header on.
    pub lengths: Option<RangeInclusive<u32>>,
    /// The lane of the link: on a shared medium, where the packet comes from.
    pub lane: Option<u8>,
}

/// Addresses with the same first bits. IPv4 is mapped into IPv6, so its prefixes are 96 bits longer than written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix {
    address: u128,
    bits: u8,
}

impl Prefix {
    /// The addresses that share their first `bits` bits, 0 to 128, with this one.
    pub fn new(address: [u8; 16], bits: u8) -> Self {
        let bits = bits.min(128);
        Self { address: u128::from_be_bytes(address) & mask(bits), bits }
    }

    /// The first of the addresses.
    pub const fn address(&self) -> [u8; 16] {
        self.address.to_be_bytes()
    }

    /// How many bits they share, 0 to 128.
    pub const fn bits(&self) -> u8 {
        self.bits
    }

    /// Whether an address is among them.
    pub fn contains(&self, address: [u8; 16]) -> bool {
        u128::from_be_bytes(address) & mask(self.bits) == self.address
    }
}

const fn mask(bits: u8) -> u128 {
    if bits == 0 { 0 } else { u128::MAX << (128 - bits as u32) }
}

impl Condition {
    /// Whether a packet fulfils it.
    #[inline]
    pub fn holds(&self, packet: &PacketState) -> bool {
        self.admits(&packet.key, packet.length, packet.lane)
    }

    /// Whether a packet of this flow and length, in this lane of a link, fulfils it.
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
            && self.lane.is_none_or(|own| own == lane)
            && among_if_any(&self.destination_ports, key.destination_port)
            && among_if_any(&self.source_ports, key.source_port)
            && (self.ports.is_empty()
                || among(&self.ports, key.source_port)
                || among(&self.ports, key.destination_port))
            && within(&self.sources, key.source)
            && within(&self.destinations, key.destination)
            // Last, as it is nearly always so: what a packet does not have is zero in its key.
            && (key.network != Protocol::Other || !self.is_about_ip())
            && (has_ports(key.transport) || !self.is_about_ports())
    }

    /// Whether it holds for IP packets only.
    fn is_about_ip(&self) -> bool {
        self.dscps.is_some()
            || self.ecns.is_some()
            || !(self.protocols.is_empty() && self.sources.is_empty() && self.destinations.is_empty())
            || self.is_about_ports()
    }

    /// Whether it holds only for packets that have ports.
    fn is_about_ports(&self) -> bool {
        !(self.source_ports.is_empty() && self.destination_ports.is_empty() && self.ports.is_empty())
    }
}

/// Whether an IP protocol has ports.
pub(crate) const fn has_ports(protocol: u8) -> bool {
    // TCP, UDP, DCCP, SCTP, UDP-Lite
    matches!(protocol, 6 | 17 | 33 | 132 | 136)
}
