//! Parses from a frame what the engine needs: lengths and the flow key.
//!
//! - The length counts from the network header on. For IP it is the length in the IP header, so the padding of a
//!   short Ethernet frame does not count.
//! - A frame that is not IP, or whose IP header is truncated or claims more bytes than the frame had, is
//!   [`Protocol::Other`] with the frame's own length. So is IPv4 with a total length of zero, which captures show on
//!   some hosts with offloading.
//! - Of an IP packet's fragments, only the first has known ports. In the others the ports are zero, as they are where
//!   the transport header is truncated.
//! - Behind IPv6 extension headers, the protocol number is that of the header where the chain ends or becomes
//!   unreadable. A payload length of zero before a hop-by-hop header means a jumbogram (RFC 2675): it fills the
//!   frame.
//! - A cooked frame has the sender's link address, which is used if it has six bytes; the receiver's is not in the
//!   frame.
//! - The payload length of a TCP segment follows from the IP header, so it is known for truncated frames, too.
//! - Tunnels are not parsed, and neither are PPPoE and MPLS: they are [`Protocol::Other`].
//!
//! Nothing here allocates.

mod found;
mod options;
mod segment;

pub(crate) use found::{Found, Network, ether_type, protocol};
pub use segment::tcp_options;

use narrows_core::{FlowKey, Headers, Packet, Protocol};

use crate::LinkLayer;
use crate::bytes::{array, byte, word};

/// What a frame's headers say. [`Parsed::with`] adds the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// Bytes from the network header on.
    pub length: u32,
    /// Bytes before the network header. 0 for a frame that ends within its link header.
    pub link_header: u8,
    /// Bytes of the IPv4 header with its options; 0 for other packets.
    pub network_header: u8,
    /// The flow key.
    pub key: FlowKey,
    /// Other fields that rules and routers match.
    pub headers: Headers,
    /// How many of the frame's bytes were examined. A frame truncated to these bytes and passed to [`parse_cut`] with
    /// its original length gives the same result.
    pub examined: u32,
}

impl Parsed {
    /// The packet for the engine.
    pub fn with<B>(self, body: B) -> Packet<B> {
        let Self { length, link_header, network_header, key, headers, .. } = self;
        Packet { length, link_header, network_header, key, headers, body }
    }
}

/// Parses the headers of a complete frame.
pub fn parse(layer: LinkLayer, frame: &[u8]) -> Parsed {
    parse_cut(layer, frame, u32::try_from(frame.len()).unwrap_or(u32::MAX))
}

/// Parses the headers of a frame of `original` bytes, of which a capture kept the first. An `original` smaller than
/// the bytes present counts as their length.
pub fn parse_cut(layer: LinkLayer, frame: &[u8], original: u32) -> Parsed {
    let found = Found::new(layer, frame, original);
    let mut parsed = Parsed {
        length: found.original - found.link_header as u32,
        link_header: found.link_header as u8,
        network_header: 0,
        key: FlowKey::default(),
        headers: link_headers(layer, frame, &found),
        examined: 0,
    };
    let mut examined = match &found.network {
        Network::Other => (found.link_header + MOST_NEEDED_OF_OTHER).min(frame.len()),
        Network::Ipv4(ip) => {
            let header = &frame[found.link_header..ip.payload];
            parsed.length = ip.length;
            parsed.network_header = (ip.payload - found.link_header) as u8;
            parsed.key = ipv4_key(header);
            parsed.headers.hop_limit = header[8];
            parsed.headers.is_later_fragment = ip.later_fragment;
            parsed.headers.ip_id = u16::from_be_bytes([header[4], header[5]]);
            parsed.headers.fragment = header[6] & 0xa0 | u8::from(ip.later_fragment);
            parsed.headers.ip_options = options::of_ipv4(&header[20..]);
            ip.payload
        }
        Network::Ipv6(ip) => {
            parsed.length = ip.length;
            let header = &frame[found.link_header..];
            parsed.key = ipv6_key(header, ip.protocol);
            parsed.headers.flow_label = u32::from_be_bytes([0, header[1] & 0xf, header[2], header[3]]);
            parsed.headers.hop_limit = header[7];
            parsed.headers.is_later_fragment = ip.later_fragment;
            parsed.headers.extension_headers = ip.extensions;
            ip.examined
        }
    };
    if let Some(transport) = found.transport(frame) {
        let mut seen = read_ports(&mut parsed.key, transport);
        let from = frame.len() - found.behind(frame) - transport.len();
        if parsed.key.transport == protocol::TCP {
            // No more than `length`, so it fits.
            let before = (from - found.link_header) as u32;
            parsed.headers.tcp_data_length = tcp_data_length(transport, parsed.length.saturating_sub(before));
            seen = seen.max(read_tcp(&mut parsed.headers, transport));
        }
        if parsed.key.transport == protocol::ICMP && matches!(parsed.key.source_port >> 8, 3 | 4 | 11 | 12) {
            seen = transport.len().min(ERROR_HEADER + MOST_QUOTED);
        }
        examined = examined.max(from + seen);
    }
    parsed.examined = examined as u32;
    parsed
}

/// The header of an ICMP error, before the quoted packet.
pub(crate) const ERROR_HEADER: usize = 8;
/// How much of the quoted packet tells its flow: the longest IPv4 header, and ports.
const MOST_QUOTED: usize = 60 + 8;

/// How much of a packet that is not IP, or is malformed, must be kept to recognise that again: the longest IPv4
/// header.
const MOST_NEEDED_OF_OTHER: usize = 60;

/// The link-layer addresses, where there are any, and the type of what the link layer carries.
fn link_headers(layer: LinkLayer, frame: &[u8], found: &Found) -> Headers {
    let mut headers = Headers { ether_type: found.ether_type, ..Headers::default() };
    let is_there = found.link_header > 0;
    match layer {
        LinkLayer::Ethernet if is_there => {
            headers.link_destination = array(frame, 0).unwrap_or_default();
            headers.link_source = array(frame, 6).unwrap_or_default();
            headers.vlan = found.vlan(frame);
        }
        // Both kinds of cooked header contain the address length and reserve eight bytes for the address.
        LinkLayer::LinuxCooked if is_there && word(frame, 4) == Some(6) => {
            headers.link_source = array(frame, 6).unwrap_or_default();
        }
        LinkLayer::LinuxCooked2 if is_there && byte(frame, 11) == Some(6) => {
            headers.link_source = array(frame, 12).unwrap_or_default();
        }
        _ => {}
    }
    headers
}

/// The payload bytes of a TCP segment of `length` bytes; 0 if its header is malformed or truncated.
fn tcp_data_length(transport: &[u8], length: u32) -> u16 {
    let header = byte(transport, 12).map_or(u32::MAX, |offset| u32::from(offset >> 4) * 4);
    u16::try_from(length.saturating_sub(header)).unwrap_or(u16::MAX)
}

/// Sets the other fields of a TCP header and its options, and returns how many of its bytes were examined.
fn read_tcp(headers: &mut Headers, transport: &[u8]) -> usize {
    let number = |at| array(transport, at).map(u32::from_be_bytes).unwrap_or_default();
    headers.tcp_sequence = number(4);
    headers.tcp_acknowledgement = number(8);
    headers.tcp_window = word(transport, 14).unwrap_or_default();
    let whole = usize::from(byte(transport, 12).unwrap_or_default() >> 4) * 4;
    let end = whole.max(TCP_HEADER).min(transport.len());
    if let Some(options) = transport.get(TCP_HEADER..end) {
        (headers.tcp_options, headers.tcp_mss) = options::of_tcp(options);
    }
    end
}

/// Bytes of a TCP header without options.
const TCP_HEADER: usize = 20;

/// Fills the key from an IPv4 header, which is complete.
fn ipv4_key(header: &[u8]) -> FlowKey {
    let mapped = |at| {
        let mut address = [0; 16];
        address[10..12].copy_from_slice(&[0xff; 2]);
        address[12..].copy_from_slice(&header[at..at + 4]);
        address
    };
    let dont_fragment = header[6] & 0x40 != 0;
    FlowKey {
        source: mapped(12),
        destination: mapped(16),
        network: if dont_fragment { Protocol::Ipv4DontFragment } else { Protocol::Ipv4 },
        transport: header[9],
        traffic_class: header[1],
        ..FlowKey::default()
    }
}

/// Fills the key from an IPv6 header, which is complete.
fn ipv6_key(header: &[u8], transport: u8) -> FlowKey {
    FlowKey {
        source: array(header, 8).unwrap_or_default(),
        destination: array(header, 24).unwrap_or_default(),
        network: Protocol::Ipv6,
        transport,
        traffic_class: header[0] << 4 | header[1] >> 4,
        ..FlowKey::default()
    }
}

/// Sets the ports and flags, and returns how many bytes of the transport header were examined.
fn read_ports(key: &mut FlowKey, transport: &[u8]) -> usize {
    let pair = |key: &mut FlowKey| {
        if let (Some(source), Some(destination)) = (word(transport, 0), word(transport, 2)) {
            (key.source_port, key.destination_port) = (source, destination);
        }
    };
    let needed = match key.transport {
        protocol::TCP => {
            pair(key);
            key.tcp_flags = byte(transport, 13).unwrap_or_default();
            14
        }
        protocol::UDP | protocol::DCCP | protocol::SCTP | protocol::UDP_LITE => {
            pair(key);
            4
        }
        protocol::ICMP | protocol::ICMPV6 => {
            key.source_port = word(transport, 0).unwrap_or_default();
            // Echo, timestamp, information and address mask messages carry an identifier; so does ICMPv6 echo.
            let identified = match (key.transport, key.source_port >> 8) {
                (protocol::ICMP, kind) => matches!(kind, 0 | 8 | 13..=18),
                (_, kind) => matches!(kind, 128 | 129),
            };
            if identified {
                key.destination_port = word(transport, 4).unwrap_or_default();
            }
            6
        }
        _ => 0,
    };
    needed.min(transport.len())
}

#[cfg(test)]
mod tests;
