//! The conditions that most rules test, packed together: they reject nearly every rule that does not match.
//!
//! Which part of a filter rejects a packet is hard to predict, so there is a single branch for all of them. Each part
//! is laid out to take two or three instructions: addresses, and properties with the protocol, are words under masks;
//! both ports are compared with both ends of their ranges at once, each in its half of a word.

use super::address::Address;
use super::field;
use crate::rules::facts::{Bits, Facts};
use crate::rules::hot::Hot;

/// Necessary conditions for a rule to match. If `whole` is true, they are also sufficient.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filter<A: Address> {
    hosts: A::Hosts,
    hosts_mask: A::Hosts,
    kind: u64,
    kind_mask: u64,
    least_ports: u64,
    greatest_ports: u64,
    /// The index of the rule.
    pub(super) rule: u32,
    pub(super) whole: bool,
    /// Whether everything that the rule tests is in a [`View`].
    pub(super) in_view: bool,
    /// Whether a match now is still a match when the walk reaches the rule.
    pub(super) settled: bool,
    /// Whether a match decides and is settled: no later rule is tried.
    pub(super) decides: bool,
}

/// A filter, part by part.
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

/// A range of numbers, from the minimum to the maximum.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span(pub(super) u16, pub(super) u16);

impl Span {
    /// The intersection, if it is not empty.
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

    /// Everything that it contains, the ports last.
    #[inline]
    pub(super) fn all(&self) -> ((A::Hosts, u64), u32) {
        ((self.hosts, self.kind), (self.ports >> 16 | self.ports) as u32)
    }
}

impl<A: Address> Parts<A> {
    /// Accepts every packet.
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

    /// Whether a packet passes.
    #[inline]
    pub(super) fn fits(&self, packet: &View<A>) -> bool {
        // The bit above a port stays set if the difference is not negative.
        let not_less = (packet.ports | ABOVE) - self.least_ports;
        let not_greater = self.greatest_ports - packet.ports;
        let beyond = !(not_less & not_greater) & ABOVE;
        let other_kind = (packet.kind ^ self.kind) & self.kind_mask;
        A::differ(packet.hosts, self.hosts, self.hosts_mask) | other_kind | beyond == 0
    }
}
