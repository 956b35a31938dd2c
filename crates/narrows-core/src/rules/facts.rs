//! Properties of a packet that rules test repeatedly, computed once.

use super::passing::Passing;
use crate::classify::has_ports;
use crate::packet::{FlowKey, Headers, Protocol};

/// Properties of a packet, one bit each. The lower half of a word says what is true, the upper half what is false. So
/// a rule that tests any combination needs a single mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bits(u32);

impl Bits {
    pub(super) const NONE: Self = Self(0);
    pub(super) const IN: Self = Self(1);
    pub(super) const IPV4: Self = Self(1 << 1);
    pub(super) const IPV6: Self = Self(1 << 2);
    pub(super) const IP: Self = Self(1 << 3);
    /// Has ports in this very packet.
    pub(super) const PORTS: Self = Self(1 << 4);
    /// Has a TCP header.
    pub(super) const TCP: Self = Self(1 << 5);
    /// Has an ICMP header.
    pub(super) const ICMP: Self = Self(1 << 6);
    pub(super) const ICMP6: Self = Self(1 << 7);
    /// A fragment other than the first.
    pub(super) const FRAGMENT: Self = Self(1 << 8);
    /// Has a link header.
    pub(super) const LAYER2: Self = Self(1 << 9);
    pub(super) const SETUP: Self = Self(1 << 10);
    pub(super) const ESTABLISHED: Self = Self(1 << 11);

    const HALF: u32 = 16;
    const LOWER: u32 = (1 << Self::HALF) - 1;

    /// The negation of one bit.
    pub(super) const fn not(self) -> Self {
        Self(self.0.rotate_left(Self::HALF))
    }

    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `need` holds.
    pub(super) const fn fulfil(self, need: Self) -> bool {
        self.0 & need.0 == need.0
    }

    /// Whether a property is required together with its negation, or two IP versions are.
    pub(super) const fn contradict(self) -> bool {
        self.0 >> Self::HALF & self.0 & Self::LOWER != 0 || self.fulfil(Self::IPV4.and(Self::IPV6))
    }

    /// Whether a property is required whose negation is known.
    pub(super) const fn oppose(self, known: Self) -> bool {
        self.0 & known.not().0 != 0
    }

    pub(super) const fn word(self) -> u32 {
        self.0
    }

    /// Whether exactly one property is required.
    pub(super) const fn is_one(self) -> bool {
        self.0.is_power_of_two()
    }

    /// The properties of a packet that all packets of its IP version share, and of its direction if `directed`.
    pub(super) const fn kind(self, directed: bool) -> Self {
        let kind = Self::IPV4.0 | Self::IPV6.0 | Self::IP.0 | if directed { Self::IN.0 } else { 0 };
        let never = match (self.fulfil(Self::IPV4), self.fulfil(Self::IPV6)) {
            (true, _) => Self::ICMP6.0,
            (_, true) => Self::ICMP.0,
            // A packet that is not IP has only a link header.
            _ => Self::LOWER & !(Self::LAYER2.0 | Self::IN.0),
        };
        let both = kind | never;
        Self(self.0 & (both | both << Self::HALF))
    }

    /// Like [`Self::kind`], for all packets of an IP version, or of none, in one direction.
    pub(super) const fn of_kind(version: Option<Self>, incoming: bool, directed: bool) -> Self {
        let way = if incoming { Self::IN } else { Self::NONE };
        let ip = match version {
            Some(version) => Self::IP.and(version),
            None => Self::NONE,
        };
        ip.and(way).complete().kind(directed)
    }

    /// With the negation of every bit that is not set.
    const fn complete(self) -> Self {
        Self(self.0 & Self::LOWER | (!self.0 & Self::LOWER) << Self::HALF)
    }
}

const TCP: u8 = 6;
const ICMP: u8 = 1;
const ICMP6: u8 = 58;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// A packet as rules see it, without what rules can change: code point and tags.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    pub(super) source: u128,
    pub(super) destination: u128,
    pub(super) bits: Bits,
    pub(super) length: u32,
    pub(super) source_port: u16,
    pub(super) destination_port: u16,
    pub(super) protocol: u8,
}

impl Facts {
    #[inline]
    pub(super) fn of(packet: &Passing<'_>) -> Self {
        let key = &*packet.key;
        Self {
            source: u128::from_be_bytes(key.source),
            destination: u128::from_be_bytes(key.destination),
            bits: bits(key, packet.headers, packet.link_header, packet.incoming),
            length: packet.length,
            source_port: key.source_port,
            destination_port: key.destination_port,
            protocol: key.transport,
        }
    }
}

#[inline]
fn bits(key: &FlowKey, headers: &Headers, link_header: u8, incoming: bool) -> Bits {
    let when = |so: bool, bit: Bits| Bits(if so { bit.0 } else { 0 });
    let outside = when(incoming, Bits::IN).and(when(link_header > 0, Bits::LAYER2));
    let ip = match key.network {
        Protocol::Other => return outside.complete(),
        Protocol::Ipv4 | Protocol::Ipv4DontFragment => Bits::IP.and(Bits::IPV4),
        Protocol::Ipv6 => Bits::IP.and(Bits::IPV6),
    };
    if headers.is_later_fragment {
        return outside.and(ip).and(Bits::FRAGMENT).complete();
    }
    // What a packet has in addition to its IP header.
    let flags = key.tcp_flags;
    let more = match key.transport {
        TCP => Bits::PORTS
            .and(Bits::TCP)
            .and(when(flags & (SYN | ACK) == SYN, Bits::SETUP))
            .and(when(flags & (RST | ACK) != 0, Bits::ESTABLISHED)),
        ICMP => when(ip.fulfil(Bits::IPV4), Bits::ICMP),
        ICMP6 => when(ip.fulfil(Bits::IPV6), Bits::ICMP6),
        protocol => when(has_ports(protocol), Bits::PORTS),
    };
    outside.and(ip).and(more).complete()
}
