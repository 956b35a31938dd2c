//! Converts a segment's bytes into a packet of the engine.

use narrows_core::{Packet, PortId, Protocol};
use narrows_frame::parse::parse_cut;
use narrows_frame::{LinkLayer, MacAddress};

use super::wire::{LINK_HEADER, Sent, transport};
use crate::body::Frame;

/// A packet to be sent, and its position in the stream.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) packet: Packet<Option<Box<Frame>>>,
    /// The sequence number after it, if it takes up any: its bytes, plus one each for SYN and FIN.
    pub(super) until: Option<u32>,
    /// A retransmission: all of it was sent before.
    pub(crate) again: bool,
}

impl Segment {
    /// Completes an IP packet: writes the Ethernet header for a frame between two ports, the traffic class, and the
    /// checksums.
    pub(super) fn new(sent: Sent, traffic_class: u8, from: PortId, to: PortId) -> Self {
        let Sent { mut bytes, original } = sent;
        let (link, ip) = bytes.split_at_mut(LINK_HEADER);
        let network = if ip[0] >> 4 == 6 { Protocol::Ipv6 } else { Protocol::Ipv4 };
        link.copy_from_slice(&ethernet_header(to, from, network));
        let start = transport(ip);
        let addresses = match network {
            Protocol::Ipv6 => {
                ip[0] = 0x60 | traffic_class >> 4;
                ip[1] = ip[1] & 0xf | traffic_class << 4;
                8..40
            }
            _ => {
                ip[1] = traffic_class;
                let sum = !folded(sum(&ip[..start]));
                ip[10..12].copy_from_slice(&sum.to_be_bytes());
                12..20
            }
        };
        let tcp = &ip[start..];
        let header = usize::from(tcp[12] >> 4) * 4;
        // RFC 9293, 3.1. The payload is zeros, and adds nothing.
        let length = (original - LINK_HEADER - start) as u32;
        let all = sum(&ip[addresses]) + u32::from(TCP) + length + sum(&tcp[..header]);
        let sequence = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
        let (syn, fin) = (u32::from(tcp[13] >> 1 & 1), u32::from(tcp[13] & 1));
        ip[start + 16..start + 18].copy_from_slice(&(!folded(all)).to_be_bytes());
        let original = original as u32;
        let parsed = parse_cut(LinkLayer::Ethernet, &bytes, original);
        let length = u32::from(parsed.headers.tcp_data_length) + syn + fin;
        let packet = parsed.with(Some(Box::new(Frame { bytes, original, layer: LinkLayer::Ethernet })));
        Self { packet, until: (length > 0).then(|| sequence.wrapping_add(length)), again: false }
    }
}

/// Whether a frame made from a segment is a reset.
pub(super) fn resets(frame: &[u8]) -> bool {
    const RESET: u8 = 4;
    let ip = &frame[LINK_HEADER..];
    ip[transport(ip) + 13] & RESET != 0
}

/// The Ethernet header of a frame between two ports: locally administered addresses that contain the port numbers.
pub fn ethernet_header(to: PortId, from: PortId, network: Protocol) -> [u8; LINK_HEADER] {
    let address = |port: PortId| {
        let [high, low] = port.index().to_be_bytes();
        MacAddress([2, 0, 0, 0, high, low])
    };
    let mut header = [0; LINK_HEADER];
    header[..6].copy_from_slice(&address(to).0);
    header[6..12].copy_from_slice(&address(from).0);
    header[12..].copy_from_slice(if network == Protocol::Ipv6 { &[0x86, 0xdd] } else { &[0x08, 0x00] });
    header
}

/// The protocol number.
const TCP: u8 = 6;

/// The sum of RFC 1071 over an even number of bytes.
fn sum(bytes: &[u8]) -> u32 {
    bytes.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum()
}

/// With the carries added.
fn folded(sum: u32) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}
