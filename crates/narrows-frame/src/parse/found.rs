//! Locates the headers of a frame.

use crate::LinkLayer;
use crate::bytes::{byte, word};

/// Numbers of IP protocols and IPv6 extension headers (IANA).
pub(crate) mod protocol {
    pub(crate) const HOP_BY_HOP: u8 = 0;
    pub(crate) const ICMP: u8 = 1;
    pub(crate) const TCP: u8 = 6;
    pub(crate) const UDP: u8 = 17;
    pub(crate) const DCCP: u8 = 33;
    pub(crate) const ROUTING: u8 = 43;
    pub(crate) const FRAGMENT: u8 = 44;
    pub(crate) const SECURITY_PAYLOAD: u8 = 50;
    pub(crate) const AUTHENTICATION: u8 = 51;
    pub(crate) const ICMPV6: u8 = 58;
    pub(crate) const DESTINATION_OPTIONS: u8 = 60;
    pub(crate) const SCTP: u8 = 132;
    pub(crate) const MOBILITY: u8 = 135;
    pub(crate) const UDP_LITE: u8 = 136;
    pub(crate) const HOST_IDENTITY: u8 = 139;
    pub(crate) const SHIM6: u8 = 140;
}

/// EtherType numbers (IANA, IEEE).
pub(crate) mod ether_type {
    pub(crate) const IPV4: u16 = 0x0800;
    pub(crate) const ARP: u16 = 0x0806;
    pub(crate) const IPV6: u16 = 0x86dd;
    /// Tag types of IEEE 802.1Q and 802.1ad, and the older number for an outer tag.
    pub(crate) const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
}

/// More VLAN tags or IPv6 extension headers than any sane frame has: whatever follows is not parsed.
const MOST_TAGS: usize = 8;
const MOST_EXTENSIONS: usize = 16;

/// The positions of a frame's headers.
#[derive(Debug)]
pub(crate) struct Found {
    /// Bytes before the network header.
    pub(crate) link_header: usize,
    /// The EtherType; 0 if truncated.
    pub(crate) ether_type: u16,
    pub(crate) network: Network,
    /// The length of the frame before truncation.
    pub(super) original: u32,
}

#[derive(Debug)]
pub(crate) enum Network {
    Other,
    Ipv4(Ipv4),
    Ipv6(Ipv6),
}

/// A valid, complete IPv4 header.
#[derive(Debug)]
pub(crate) struct Ipv4 {
    /// Bytes of the IP packet.
    pub(super) length: u32,
    /// The offset in the frame where the header ends.
    pub(crate) payload: usize,
    pub(crate) protocol: u8,
    /// Whether this is a fragment other than the first.
    pub(crate) later_fragment: bool,
    /// Whether it is a fragment other than the last.
    pub(crate) more_fragments: bool,
}

/// A valid, complete IPv6 header.
#[derive(Debug)]
pub(crate) struct Ipv6 {
    /// Bytes of the IP packet.
    pub(super) length: u32,
    /// The offset in the frame of the last readable header, if it is there.
    pub(crate) transport: Option<usize>,
    pub(crate) protocol: u8,
    /// Whether this is a fragment other than the first.
    pub(crate) later_fragment: bool,
    /// Whether it is a fragment other than the last.
    pub(crate) more_fragments: bool,
    /// The extension headers, as in [`narrows_core::Headers::extension_headers`].
    pub(super) extensions: u8,
    /// How many bytes of the header chain were read.
    pub(super) examined: usize,
}

impl Found {
    pub(crate) fn new(layer: LinkLayer, frame: &[u8], original: u32) -> Self {
        let original = original.max(u32::try_from(frame.len()).unwrap_or(u32::MAX));
        let (link_header, ether_type) = link_header(layer, frame);
        let packet = &frame[link_header..];
        let room = original - link_header as u32;
        let network = match ether_type {
            ether_type::IPV4 => ipv4(packet, room, link_header).map(Network::Ipv4),
            ether_type::IPV6 => ipv6(packet, room, link_header).map(Network::Ipv6),
            _ => None,
        };
        Self { link_header, ether_type, network: network.unwrap_or(Network::Other), original }
    }

    /// The VLAN of the first tag of an Ethernet frame; 0 without a tag, or with one that only gives a priority.
    pub(super) fn vlan(&self, frame: &[u8]) -> u16 {
        const UNTAGGED: usize = 14;
        // The low twelve bits of the tag's second half (IEEE 802.1Q-2018, 9.6).
        let tag = word(frame, UNTAGGED).filter(|_| self.link_header > UNTAGGED);
        tag.unwrap_or_default() & 0xfff
    }

    /// Whether the transport is this protocol.
    pub(super) const fn is_of(&self, protocol: u8) -> bool {
        match &self.network {
            Network::Other => false,
            Network::Ipv4(ip) => ip.protocol == protocol,
            Network::Ipv6(ip) => ip.protocol == protocol,
        }
    }

    /// The transport header and payload, as far as present.
    pub(crate) fn transport<'a>(&self, frame: &'a [u8]) -> Option<&'a [u8]> {
        let from = match &self.network {
            Network::Other => None,
            Network::Ipv4(ip) => (!ip.later_fragment).then_some(ip.payload),
            Network::Ipv6(ip) => ip.transport,
        }?;
        frame.get(from..frame.len() - self.behind(frame))
    }

    /// The IP packet, as far as present.
    pub(crate) fn packet<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        &frame[self.link_header..frame.len() - self.behind(frame)]
    }

    /// Bytes of padding behind the IP packet.
    pub(super) fn behind(&self, frame: &[u8]) -> usize {
        let length = match &self.network {
            Network::Other => return 0,
            Network::Ipv4(ip) => ip.length,
            Network::Ipv6(ip) => ip.length,
        };
        frame.len().saturating_sub(self.link_header + length as usize)
    }
}

/// Bytes before the network header, and the EtherType.
fn link_header(layer: LinkLayer, frame: &[u8]) -> (usize, u16) {
    let (mut header, kind) = match layer {
        LinkLayer::Ethernet => (14, word(frame, 12)),
        LinkLayer::Ip => {
            let version = byte(frame, 0).map(|first| first >> 4);
            let kind = match version {
                Some(4) => ether_type::IPV4,
                Some(6) => ether_type::IPV6,
                _ => 0,
            };
            return (0, kind);
        }
        LinkLayer::LinuxCooked => (16, word(frame, 14)),
        LinkLayer::LinuxCooked2 => (20, word(frame, 0)),
    };
    if frame.len() < header {
        return (0, 0);
    }
    let mut kind = kind.unwrap_or_default();
    for _ in 0..MOST_TAGS {
        if !ether_type::TAGS.contains(&kind) {
            break;
        }
        let Some(inner) = word(frame, header + 2) else { return (header, 0) };
        (header, kind) = (header + 4, inner);
    }
    (header, kind)
}

/// `room` is how many bytes the frame has for the packet, of which `packet` has the first ones.
fn ipv4(packet: &[u8], room: u32, link_header: usize) -> Option<Ipv4> {
    let first = byte(packet, 0)?;
    let header = usize::from(first & 15) * 4;
    let length = u32::from(word(packet, 2)?);
    let sane = first >> 4 == 4 && header >= 20 && packet.len() >= header;
    if !sane || (length as usize) < header || length > room {
        return None;
    }
    Some(Ipv4 {
        length,
        payload: link_header + header,
        protocol: packet[9],
        later_fragment: word(packet, 6)? & 0x1fff != 0,
        more_fragments: packet[6] & 0x20 != 0,
    })
}

/// Like [`ipv4`].
fn ipv6(packet: &[u8], room: u32, link_header: usize) -> Option<Ipv6> {
    const HEADER: usize = 40;
    if byte(packet, 0)? >> 4 != 6 || packet.len() < HEADER {
        return None;
    }
    let mut protocol = packet[6];
    let length = match word(packet, 4)? {
        0 if protocol == protocol::HOP_BY_HOP => room,
        payload => HEADER as u32 + u32::from(payload),
    };
    if length > room {
        return None;
    }
    let packet = &packet[..packet.len().min(length as usize)];
    let mut at = HEADER;
    let mut examined = HEADER;
    let mut extensions = 0;
    let (mut readable, mut later_fragment, mut more_fragments) = (true, false, false);
    for _ in 0..MOST_EXTENSIONS {
        if !is_extension(protocol) {
            break;
        }
        examined = (at + 4).min(packet.len());
        let (Some(next), Some(size), Some(offset)) =
            (byte(packet, at), byte(packet, at + 1), word(packet, at + 2))
        else {
            readable = false;
            break;
        };
        let kind = protocol;
        protocol = next;
        // The upper byte of the second word is the type of a routing header.
        extensions |= extension(kind, offset >> 8);
        at += match kind {
            protocol::FRAGMENT => 8,
            protocol::AUTHENTICATION => (usize::from(size) + 2) * 4,
            _ => (usize::from(size) + 1) * 8,
        };
        if kind == protocol::FRAGMENT {
            (later_fragment, more_fragments) = (offset >> 3 != 0, offset & 1 != 0);
            if later_fragment {
                readable = false;
                break;
            }
        }
    }
    let transport = (readable && !is_extension(protocol) && at <= packet.len()).then_some(link_header + at);
    let examined = link_header + examined;
    extensions |= extension(protocol, 0) & ESP;
    Some(Ipv6 { length, transport, protocol, later_fragment, more_fragments, extensions, examined })
}

/// The bit of ESP among those of extension headers.
const ESP: u8 = 0x10;

/// The bits of a header of the chain: see [`narrows_core::Headers::extension_headers`].
const fn extension(protocol: u8, kind: u16) -> u8 {
    match (protocol, kind) {
        (protocol::FRAGMENT, _) => 0x01,
        (protocol::HOP_BY_HOP, _) => 0x02,
        (protocol::ROUTING, 0) => 0x04 | 0x40,
        (protocol::ROUTING, 2) => 0x04 | 0x80,
        (protocol::ROUTING, _) => 0x04,
        (protocol::AUTHENTICATION, _) => 0x08,
        (protocol::SECURITY_PAYLOAD, _) => ESP,
        (protocol::DESTINATION_OPTIONS, _) => 0x20,
        _ => 0,
    }
}

const fn is_extension(protocol: u8) -> bool {
    matches!(
        protocol,
        protocol::HOP_BY_HOP
            | protocol::ROUTING
            | protocol::FRAGMENT
            | protocol::AUTHENTICATION
            | protocol::DESTINATION_OPTIONS
            | protocol::MOBILITY
            | protocol::HOST_IDENTITY
            | protocol::SHIM6
    )
}
