//! ICMP errors: destination unreachable, "fragmentation needed" (RFC 792, with the next hop's MTU as in RFC 1191),
//! time exceeded; and the ICMPv6 equivalents (RFC 4443).
//!
//! An error goes to the sender of a packet, unless it could cause a storm or reach a host that sent nothing:
//! - over IPv4 (RFC 1122, 3.2.2; RFC 1812, 4.3.2.7), there is no error about an ICMP error or an ICMP type that is
//!   not known to be a query or a reply, about a multicast or broadcast packet, about a fragment other than the
//!   first, or to a source address that does not identify a single host;
//! - over IPv6 (RFC 4443, 2.4 e), there is no error about an ICMPv6 error or a redirect, about a multicast packet, or
//!   to a source address that does not identify a single host. "Packet too big" is still sent about a multicast
//!   packet: RFC 4443 makes this exception so that path MTU discovery works for multicast.
//!
//! An error quotes the packet: over IPv4 as much as fits in 576 bytes (RFC 1812, 4.3.2.3), over IPv6 in 1,280 (RFC
//! 4443, 2.4 c). Whether an address is a subnet's broadcast address is not known here and not checked.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use narrows_core::Bytes;

use crate::bytes::{array, byte};
use crate::checksum::Sum;
use crate::craft::{DONT_FRAGMENT, Ipv4Header, Ipv6Header};
use crate::parse::{Found, Network, protocol};
use crate::{LinkLayer, MacAddress};

/// Why a packet is not forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IcmpError {
    /// It exceeds the MTU of the next hop, which is this.
    TooBig(Bytes),
    /// Its hop limit is exceeded.
    HopLimit,
    /// No route leads to its destination.
    NoRoute,
    /// The destination, or the next router, does not answer address resolution.
    NoHost,
    /// Its destination port is closed.
    NoPort,
    /// Its protocol is not supported. IPv4 only: ICMPv6 would have to point at the offending header field, which no
    /// receiver uses.
    NoProtocol,
    /// "Destination unreachable" with this code, which the IP versions number differently.
    Unreachable(u8),
}

impl IcmpError {
    /// ICMP's type and code, and the 32-bit word after the checksum.
    fn of_ipv4(self) -> ([u8; 2], u32) {
        match self {
            // RFC 1191, section 4: sixteen bits of zero, then the MTU.
            Self::TooBig(mtu) => ([3, 4], u16::try_from(mtu.get()).unwrap_or(u16::MAX).into()),
            Self::HopLimit => ([11, 0], 0),
            // RFC 1812, 5.2.7.1: a router that has no route at all says that the network is unreachable.
            Self::NoRoute => ([3, 0], 0),
            Self::NoHost => ([3, 1], 0),
            Self::NoPort => ([3, 3], 0),
            Self::NoProtocol => ([3, 2], 0),
            Self::Unreachable(code) => ([3, code], 0),
        }
    }

    /// The same for ICMPv6.
    fn of_ipv6(self) -> Option<([u8; 2], u32)> {
        match self {
            Self::TooBig(mtu) => Some(([2, 0], u32::try_from(mtu.get()).unwrap_or(u32::MAX))),
            Self::HopLimit => Some(([3, 0], 0)),
            Self::NoRoute => Some(([1, 0], 0)),
            // RFC 4443, 3.1: "address unreachable".
            Self::NoHost => Some(([1, 3], 0)),
            Self::NoPort => Some(([1, 4], 0)),
            Self::NoProtocol => None,
            Self::Unreachable(code) => Some(([1, code], 0)),
        }
    }
}

/// Writes to `out` the frame that reports an error to the sender of `frame`. Returns whether there is one; if not,
/// `out` is unchanged.
///
/// The error is sent from the address `source`; there is none if that is of the other IP version. On Ethernet the
/// error goes back to the station that sent the frame, from the one that it was sent to, with the same tags. Frames
/// with cooked headers cannot be answered: no error.
pub fn icmp_error(
    layer: LinkLayer,
    frame: &[u8],
    error: IcmpError,
    source: IpAddr,
    out: &mut Vec<u8>,
) -> bool {
    if !matches!(layer, LinkLayer::Ethernet | LinkLayer::Ip) {
        return false;
    }
    let found = Found::new(layer, frame, 0);
    let packet = found.packet(frame);
    let transport = found.transport(frame).unwrap_or_default();
    let to_group = layer == LinkLayer::Ethernet && byte(frame, 0).is_some_and(|first| first & 1 != 0);
    match (&found.network, source) {
        (Network::Ipv4(ip), IpAddr::V4(source)) => {
            let Some(destination) = ipv4_sender(packet) else { return false };
            let about_icmp = ip.protocol == protocol::ICMP && !is_ipv4_query(transport);
            if to_group || about_icmp || ip.later_fragment {
                return false;
            }
            link_header(&frame[..found.link_header], out);
            append_icmp(packet, error, source, destination, out);
        }
        (Network::Ipv6(ip), IpAddr::V6(source)) => {
            let (Some(destination), Some(what)) = (ipv6_sender(packet), error.of_ipv6()) else {
                return false;
            };
            let to_group = to_group || byte(packet, 24) == Some(0xff);
            if ip.protocol == protocol::ICMPV6 && is_ipv6_error(transport)
                || to_group && !matches!(error, IcmpError::TooBig(_))
            {
                return false;
            }
            link_header(&frame[..found.link_header], out);
            append_icmpv6(packet, what, source, destination, out);
        }
        _ => return false,
    }
    true
}

/// The sender of an IPv4 packet, if an error about that packet may be sent to it.
pub(super) fn ipv4_sender(packet: &[u8]) -> Option<Ipv4Addr> {
    let sender = Ipv4Addr::from_octets(array(packet, 12)?);
    let destination = Ipv4Addr::from_octets(array(packet, 16)?);
    let group = |address: Ipv4Addr| address.is_multicast() || address.is_broadcast();
    // 240.0.0.0/4 is reserved, and 0.0.0.0/8 only means "this host".
    let one_host = !group(sender) && !sender.is_loopback() && !matches!(sender.octets()[0], 0 | 240..);
    (one_host && !group(destination)).then_some(sender)
}

/// The ICMP types that are queries or replies (IANA). All others are errors, obsolete or unknown.
fn is_ipv4_query(icmp: &[u8]) -> bool {
    matches!(byte(icmp, 0), Some(0 | 8 | 9 | 10 | 13..=18 | 42 | 43))
}

/// The sender of an IPv6 packet, if the address identifies a single host.
pub(super) fn ipv6_sender(packet: &[u8]) -> Option<Ipv6Addr> {
    let sender = Ipv6Addr::from_octets(array(packet, 8)?);
    let one_host = !sender.is_unspecified() && !sender.is_multicast() && !sender.is_loopback();
    one_host.then_some(sender)
}

/// Types below 128 are errors. A type that cannot be read is treated as one. 137 is a redirect.
fn is_ipv6_error(icmp: &[u8]) -> bool {
    byte(icmp, 0).is_none_or(|kind| kind < 128 || kind == 137)
}

/// The link header of the reply; nothing for a frame without a link header.
pub(super) fn link_header(link: &[u8], out: &mut Vec<u8>) {
    out.clear();
    if let (Some(to), Some(from), Some(rest)) = (array(link, 6), array(link, 0), link.get(12..)) {
        let (MacAddress(to), MacAddress(from)) = (MacAddress(to), one_station(MacAddress(from)));
        out.extend_from_slice(&to);
        out.extend_from_slice(&from);
        out.extend_from_slice(rest);
    }
}

/// The reply to a multicast cannot come from the group address: it gets that address with the group bit cleared and
/// the "locally administered" bit set.
fn one_station(mac: MacAddress) -> MacAddress {
    if !mac.is_group() {
        return mac;
    }
    let mut address = mac;
    address.0[0] = address.0[0] & !1 | 2;
    address
}

/// RFC 1812, 4.3.2.5: precedence "internetwork control".
const INTERNETWORK_CONTROL: u8 = 6 << 5;
/// The hop limit of frames that the network itself sends.
pub(super) const HOP_LIMIT: u8 = 64;

fn append_icmp(packet: &[u8], error: IcmpError, source: Ipv4Addr, destination: Ipv4Addr, out: &mut Vec<u8>) {
    const QUOTE: usize = 576 - 20 - 8;
    let quote = &packet[..packet.len().min(QUOTE)];
    let header = Ipv4Header {
        traffic_class: INTERNETWORK_CONTROL,
        identification: 0,
        flags: DONT_FRAGMENT,
        hop_limit: HOP_LIMIT,
        protocol: protocol::ICMP,
        source,
        destination,
    };
    header.append(8 + quote.len(), out);
    let start = out.len();
    append_message(error.of_ipv4(), quote, out);
    let checksum = Sum::default().bytes(&out[start..]).complement();
    out[start + 2..start + 4].copy_from_slice(&checksum.to_be_bytes());
}

fn append_icmpv6(
    packet: &[u8],
    what: ([u8; 2], u32),
    source: Ipv6Addr,
    destination: Ipv6Addr,
    out: &mut Vec<u8>,
) {
    const QUOTE: usize = 1280 - 40 - 8;
    let quote = &packet[..packet.len().min(QUOTE)];
    let (traffic_class, hop_limit, protocol) = (0, HOP_LIMIT, protocol::ICMPV6);
    let header = Ipv6Header { traffic_class, hop_limit, protocol, source, destination };
    header.append(8 + quote.len(), out);
    let start = out.len();
    append_message(what, quote, out);
    let checksum = Sum::default()
        .pseudo_header(&source.octets(), &destination.octets(), 8 + quote.len(), protocol)
        .bytes(&out[start..])
        .complement();
    out[start + 2..start + 4].copy_from_slice(&checksum.to_be_bytes());
}

/// Appends type and code, an empty checksum, the 32-bit word and the quoted packet.
fn append_message((kind, word): ([u8; 2], u32), quote: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&kind);
    out.extend_from_slice(&[0, 0]);
    out.extend_from_slice(&word.to_be_bytes());
    out.extend_from_slice(quote);
}

#[cfg(test)]
mod tests;
