//! What most rules ask for, side by side: nearly every rule that does not match is seen not to here.
//!
//! Which part of a filter a packet fails at is hard to foresee, so there is one branch for all of them, and each part is laid
//! out so that it takes two or three instructions: addresses, and the yes and no with the protocol, are words under masks;
//! both ports are held against both ends of their ranges at once, each in its half of a word.

use super::address::Address;
use super::field;
use crate::rules::facts::{Bits, Facts};
use crate::rules::hot::Hot;

/// What a packet must be like for a rule to match. It is all that a rule asks for where `whole` says so.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filter<A: Address> {
    hosts: A::Hosts,
    hosts_mask: A::Hosts,
    kind: u64,
    kind_mask: u64,
    least_ports: u64,
    greatest_ports: u64,
    /// Where the rule is among all.
    pub(super) rule: u32,
    pub(super) whole: bool,
    /// Whether all that it asks for is in a [`View`].
    pub(super) in_view: bool,
    /// Whether what matches now matches still when it comes to it.
    pub(super) settled: bool,
    /// Whether a match decides, and is settled: no rule behind is tried.
    pub(super) decides: bool,
}

/// The same, part by part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts<A> {
    /// By [`field::SOURCE`] and [`field::DESTINATION`]: an address and its mask.
    pub(super) hosts: [(A, A); 2],
    pub(super) need: Bits,
    pub(super) protocol: Option<u8>,
    pub(super) source_port: Span,
    pub(super) destination_port: Span,
    pub(super) whole: bool,
    pub(super) in_view: bool,
}

/// Numbers, from the least to the greatest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span(pub(super) u16, pub(super) u16);

impl Span {
    /// What both have, if they have something in common.
    pub(super) fn and(self, other: Self) -> Option<Self> {
        let (least, greatest) = (self.0.max(other.0), self.1.min(other.1));
        (least <= greatest).then_some(Self(least, greatest))
    }
}

/// A packet, as filters and trees see it.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<A: Address> {
    /// By [`field`], shifted to the top.
    pub(super) fields: [A; field::COUNT],
    hosts: A::Hosts,
    kind: u64,
    ports: u64,
}

/// The bit above each port.
const ABOVE: u64 = 1 << 63 | 1 << 31;

const fn ports(source: u16, destination: u16) -> u64 {
    (source as u64) << 32 | destination as u64
}

const fn kind(bits: Bits, protocol: u8) -> u64 {
    (protocol as u64) << 32 | bits.word() as u64
}

impl<A: Address> View<A> {
    #[inline]
    pub(super) fn of(facts: &Facts) -> Self {
        let (source, destination) = (A::of(facts.source), A::of(facts.destination));
        Self {
            fields: [
                source,
                destination,
                A::top(facts.source_port, 16),
                A::top(facts.destination_port, 16),
                A::top(facts.protocol.into(), 8),
            ],
            hosts: A::both(source, destination),
            kind: kind(facts.bits, facts.protocol),
            ports: ports(facts.source_port, facts.destination_port),
        }
    }

    /// All that it knows, the ports at the end.
    #[inline]
    pub(super) fn all(&self) -> ((A::Hosts, u64), u32) {
        ((self.hosts, self.kind), (self.ports >> 16 | self.ports) as u32)
    }
}

impl<A: Address> Parts<A> {
    /// Lets everything through.
    pub(super) fn all() -> Self {
        Self {
            hosts: [(A::default(), A::default()); 2],
            need: Bits::NONE,
            protocol: None,
            source_port: Span(0, u16::MAX),
            destination_port: Span(0, u16::MAX),
            whole: true,
            in_view: true,
        }
    }
}

impl<A: Address> Filter<A> {
    pub(super) fn new(rule: u32, hot: &Hot, parts: &Parts<A>) -> Self {
        let [(source, source_mask), (destination, destination_mask)] = parts.hosts;
        let (from, to) = (parts.source_port, parts.destination_port);
        Self {
            hosts: A::both(source, destination),
            hosts_mask: A::both(source_mask, destination_mask),
            kind: kind(parts.need, parts.protocol.unwrap_or(0)),
            kind_mask: kind(parts.need, if parts.protocol.is_some() { u8::MAX } else { 0 }),
            least_ports: ports(from.0, to.0),
            greatest_ports: ports(from.1, to.1) | ABOVE,
            rule,
            whole: parts.whole,
            in_view: parts.in_view,
            settled: hot.is(Hot::SETTLED),
            decides: hot.is(Hot::DECIDES),
        }
    }

    /// Whether a packet gets through.
    #[inline]
    pub(super) fn fits(&self, packet: &View<A>) -> bool {
        // The bit above a port stays where the difference is not below zero.
        let not_less = (packet.ports | ABOVE) - self.least_ports;
        let not_greater = self.greatest_ports - packet.ports;
        let beyond = !(not_less & not_greater) & ABOVE;
        let other_kind = (packet.kind ^ self.kind) & self.kind_mask;
        A::differ(packet.hosts, self.hosts, self.hosts_mask) | other_kind | beyond == 0
    }
}
