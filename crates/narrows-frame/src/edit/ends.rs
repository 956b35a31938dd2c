//! Writes addresses and ports into an IP packet, and updates the checksums that cover them (RFC 1624): that of the IPv4
//! header, and those of TCP, UDP, UDP-Lite, DCCP and ICMPv6. A wrong checksum stays wrong.
//!
//! Ports of SCTP are not written: its checksum covers the whole packet (RFC 9260). Packets inside ICMP errors stay as
//! they are.

use narrows_core::{FlowKey, Protocol};

use crate::LinkLayer;
use crate::bytes::word;
use crate::checksum::updated;
use crate::parse::{Found, Network, protocol};

/// Writes the addresses and ports of `key` into a packet, which begins with its IP header. A part that the packet does
/// not have is not written.
pub(super) fn write_ends(packet: &mut [u8], key: &FlowKey) {
    let found = Found::new(LinkLayer::Ip, packet, u32::try_from(packet.len()).unwrap_or(u32::MAX));
    let transport =
        found.transport(packet).map(|transport| (packet.len() - found.behind(packet)) - transport.len());
    match found.network {
        Network::Ipv4(_) if key.network != Protocol::Ipv6 => {
            let checksums = [Some(10), transport.and_then(|at| checksum_at(packet, at, key.transport))];
            write(packet, 12, &key.source[12..], checksums);
            write(packet, 16, &key.destination[12..], checksums);
        }
        Network::Ipv6(_) if key.network == Protocol::Ipv6 => {
            let checksums = [None, transport.and_then(|at| checksum_at(packet, at, key.transport))];
            write(packet, 8, &key.source, checksums);
            write(packet, 24, &key.destination, checksums);
        }
        _ => return,
    }
    let has_ports =
        matches!(key.transport, protocol::TCP | protocol::UDP | protocol::DCCP | protocol::UDP_LITE);
    if let Some(at) = transport.filter(|at| has_ports && packet.len() >= at + 4) {
        let checksums = [None, checksum_at(packet, at, key.transport)];
        write(packet, at, &key.source_port.to_be_bytes(), checksums);
        write(packet, at + 2, &key.destination_port.to_be_bytes(), checksums);
    }
}

/// Where the checksum of a transport header at `transport` is, if addresses and ports count in it and it is present.
fn checksum_at(packet: &[u8], transport: usize, number: u8) -> Option<usize> {
    let offset = match number {
        protocol::TCP => 16,
        protocol::UDP | protocol::UDP_LITE | protocol::DCCP => 6,
        protocol::ICMPV6 => 2,
        _ => return None,
    };
    let at = transport + offset;
    let now = word(packet, at)?;
    // A datagram without a checksum (RFC 768).
    (number != protocol::UDP || now != 0).then_some(at)
}

/// Writes an even number of bytes at an even offset, and updates the checksums at these places.
fn write(packet: &mut [u8], at: usize, bytes: &[u8], checksums: [Option<usize>; 2]) {
    for (offset, new) in (at..).step_by(2).zip(bytes.chunks_exact(2)) {
        let (Some(old), new) = (word(packet, offset), [new[0], new[1]]) else { return };
        packet[offset..offset + 2].copy_from_slice(&new);
        for place in checksums.into_iter().flatten() {
            let Some(checksum) = word(packet, place) else { continue };
            let sum = updated(checksum, old, u16::from_be_bytes(new));
            // For UDP, zero would mean that there is none; both zeros are the same sum.
            let is_transport = checksums[1] == Some(place);
            let sum = if is_transport && sum == 0 { 0xffff } else { sum };
            packet[place..place + 2].copy_from_slice(&sum.to_be_bytes());
        }
    }
}
