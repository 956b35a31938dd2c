//! How a router answers packets addressed to itself, like a host on which no services run: echo replies (RFC 1122,
//! 3.2.2.6; RFC 4443, 4.2) and TCP resets (RFC 9293, 3.5.2). For other closed ports it sends an
//! [`icmp_error`](super::icmp_error).
//!
//! There is no reassembly, so fragments are not answered. Nor are damaged packets, or packets from a source address
//! that does not identify a single host.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::icmp_error::{HOP_LIMIT, ipv4_sender, ipv6_sender, link_header};
use crate::LinkLayer;
use crate::bytes::{array, byte, word};
use crate::checksum::Sum;
use crate::craft::{DONT_FRAGMENT, Ipv4Header, Ipv6Header};
use crate::parse::{Found, Network, protocol};

/// Writes to `out` the reply to the echo request in `frame`, sent from the address that was pinged. Returns whether
/// `frame` is such a request; if not, `out` is unchanged. Link addresses are as in an
/// [`icmp_error`](super::icmp_error).
pub fn echo_reply(layer: LinkLayer, frame: &[u8], out: &mut Vec<u8>) -> bool {
    const REQUEST: u8 = 8;
    const REPLY: u8 = 0;
    const REQUEST_6: u8 = 128;
    const REPLY_6: u8 = 129;
    let Some(asked) = Asked::read(layer, frame) else { return false };
    let reply = match (asked.protocol, byte(asked.transport, 0), byte(asked.transport, 1)) {
        (protocol::ICMP, Some(REQUEST), Some(0)) => REPLY,
        (protocol::ICMPV6, Some(REQUEST_6), Some(0)) => REPLY_6,
        _ => return false,
    };
    // Type, code, checksum, identifier and sequence number, at least.
    if asked.transport.len() < 8 {
        return false;
    }
    let mut message = asked.transport.to_vec();
    message[0] = reply;
    asked.answer(&mut message, 2, out);
    true
}

/// Writes to `out` the reset that answers the TCP segment in `frame`, as from a host that knows no such connection.
/// Returns whether there is one; if not, `out` is unchanged. Link addresses are as for [`echo_reply`].
pub fn tcp_reset(layer: LinkLayer, frame: &[u8], out: &mut Vec<u8>) -> bool {
    const FIN: u8 = 1;
    const SYN: u8 = 2;
    const RST: u8 = 4;
    const ACK: u8 = 16;
    let Some(asked) = Asked::read(layer, frame) else { return false };
    let segment = asked.transport;
    let (Some(ports), Some(sequence), Some(acknowledgement), Some(offset), Some(flags)) = (
        array::<4>(segment, 0),
        array(segment, 4).map(u32::from_be_bytes),
        array::<4>(segment, 8),
        byte(segment, 12),
        byte(segment, 13),
    ) else {
        return false;
    };
    let header = usize::from(offset >> 4) * 4;
    if asked.protocol != protocol::TCP || header < 20 || header > segment.len() || flags & RST != 0 {
        return false;
    }
    let mut reset = vec![ports[2], ports[3], ports[0], ports[1]];
    if flags & ACK != 0 {
        reset.extend_from_slice(&acknowledgement);
        reset.extend_from_slice(&[0, 0, 0, 0, 5 << 4, RST]);
    } else {
        // The sequence space of the segment: its data, plus one each for SYN and FIN.
        let flagged = u32::from(flags & SYN != 0) + u32::from(flags & FIN != 0);
        let taken = ((segment.len() - header) as u32).wrapping_add(flagged);
        reset.extend_from_slice(&[0; 4]);
        reset.extend_from_slice(&sequence.wrapping_add(taken).to_be_bytes());
        reset.extend_from_slice(&[5 << 4, RST | ACK]);
    }
    // Zero window, checksum filled in later, no urgent pointer.
    reset.extend_from_slice(&[0; 6]);
    asked.answer(&mut reset, 16, out);
    true
}

/// A complete, undamaged packet from a single host.
struct Asked<'a> {
    link: &'a [u8],
    ends: Ends,
    traffic_class: u8,
    /// Copied from the IPv4 packet, as is "don't fragment": a reply that repeats the whole packet crosses the same links.
    identification: u16,
    flags: u16,
    protocol: u8,
    transport: &'a [u8],
}

#[derive(Clone, Copy)]
enum Ends {
    V4 { source: Ipv4Addr, destination: Ipv4Addr },
    V6 { source: Ipv6Addr, destination: Ipv6Addr },
}

impl<'a> Asked<'a> {
    fn read(layer: LinkLayer, frame: &'a [u8]) -> Option<Self> {
        if !matches!(layer, LinkLayer::Ethernet | LinkLayer::Ip) {
            return None;
        }
        let found = Found::new(layer, frame, 0);
        let (packet, transport) = (found.packet(frame), found.transport(frame)?);
        let link = &frame[..found.link_header];
        let asked = match &found.network {
            Network::Ipv4(ip) if !ip.more_fragments => {
                let header = &packet[..ip.payload - found.link_header];
                if Sum::default().bytes(header).complement() != 0 {
                    return None;
                }
                let (source, destination) = (ipv4_sender(packet)?, Ipv4Addr::from_octets(array(packet, 16)?));
                Self {
                    link,
                    ends: Ends::V4 { source, destination },
                    traffic_class: packet[1],
                    identification: word(packet, 4)?,
                    flags: word(packet, 6)? & DONT_FRAGMENT,
                    protocol: ip.protocol,
                    transport,
                }
            }
            Network::Ipv6(ip) if !ip.more_fragments => {
                let (source, destination) = (ipv6_sender(packet)?, Ipv6Addr::from_octets(array(packet, 24)?));
                Self {
                    link,
                    ends: Ends::V6 { source, destination },
                    traffic_class: packet[0] << 4 | packet[1] >> 4,
                    identification: 0,
                    flags: 0,
                    protocol: ip.protocol,
                    transport,
                }
            }
            _ => return None,
        };
        (asked.ends.checksum(asked.protocol, transport) == 0).then_some(asked)
    }

    /// Sends `message` back, computing the checksum at `place`.
    fn answer(&self, message: &mut [u8], place: usize, out: &mut Vec<u8>) {
        let ends = self.ends.reversed();
        message[place..place + 2].fill(0);
        let checksum = ends.checksum(self.protocol, message);
        message[place..place + 2].copy_from_slice(&checksum.to_be_bytes());
        link_header(self.link, out);
        let Self { identification, flags, protocol, .. } = *self;
        // The same DSCP; an echoed ECN congestion mark would be meaningless.
        let (traffic_class, hop_limit) = (self.traffic_class & !3, HOP_LIMIT);
        match ends {
            Ends::V4 { source, destination } => {
                Ipv4Header { traffic_class, identification, flags, hop_limit, protocol, source, destination }
                    .append(message.len(), out);
            }
            Ends::V6 { source, destination } => {
                Ipv6Header { traffic_class, hop_limit, protocol, source, destination }
                    .append(message.len(), out);
            }
        }
        out.extend_from_slice(message);
    }
}

impl Ends {
    fn reversed(self) -> Self {
        match self {
            Self::V4 { source, destination } => Self::V4 { source: destination, destination: source },
            Self::V6 { source, destination } => Self::V6 { source: destination, destination: source },
        }
    }

    /// The checksum of a transport message between the two addresses; zero for a message that contains its correct
    /// checksum.
    fn checksum(self, protocol: u8, message: &[u8]) -> u16 {
        let sum = Sum::default();
        let sum = match self {
            // Only ICMP over IPv4 has no pseudo header.
            Self::V4 { .. } if protocol == protocol::ICMP => sum,
            Self::V4 { source, destination } => {
                sum.pseudo_header(&source.octets(), &destination.octets(), message.len(), protocol)
            }
            Self::V6 { source, destination } => {
                sum.pseudo_header(&source.octets(), &destination.octets(), message.len(), protocol)
            }
        };
        sum.bytes(message).complement()
    }
}

#[cfg(test)]
mod tests;
