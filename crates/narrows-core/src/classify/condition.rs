//! A condition on the header fields and the length of a packet.

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use crate::pool::PacketState;

/// What a packet must be like: every part that is given must hold, and a part that lists several things holds when one of
/// them does. A list without entries stands for anything. The default holds for every packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// Networks that the source address is in.
    pub sources: Vec<Prefix>,
    /// Networks that the destination address is in.
    pub destinations: Vec<Prefix>,
    /// Source ports. A packet without ports has none of them.
    pub source_ports: Vec<RangeInclusive<u16>>,
    /// Destination ports. A packet without ports has none of them.
    pub destination_ports: Vec<RangeInclusive<u16>>,
    /// IP protocol numbers.
    pub protocols: Vec<u8>,
    /// The set of code points (RFC 2474), one bit for each; nothing for any. A packet that is not IP has none of them.
    pub dscps: Option<u64>,
    /// Bytes from the network header on.
    pub lengths: Option<RangeInclusive<u32>>,
    /// The lane of the link: on a shared medium, where the packet comes from.
    pub lane: Option<u8>,
}

/// Addresses with the same first bits. IPv4 is mapped into IPv6, so its prefixes are 96 bits longer than written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    pub fn holds(&self, packet: &PacketState) -> bool {
        let key = &packet.key;
        let within = |prefixes: &[Prefix], address| {
            prefixes.is_empty() || prefixes.iter().any(|prefix| prefix.contains(address))
        };
        let among = |ranges: &[RangeInclusive<u16>], port| {
            ranges.is_empty() || ranges.iter().any(|range| range.contains(&port))
        };
        self.dscps.is_none_or(|set| set >> key.dscp() & 1 == 1)
            && (self.protocols.is_empty() || self.protocols.contains(&key.transport))
            && self.lengths.as_ref().is_none_or(|range| range.contains(&packet.length))
            && self.lane.is_none_or(|lane| lane == packet.lane)
            && among(&self.destination_ports, key.destination_port)
            && among(&self.source_ports, key.source_port)
            && within(&self.sources, key.source)
            && within(&self.destinations, key.destination)
    }
}
