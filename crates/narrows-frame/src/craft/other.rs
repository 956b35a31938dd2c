//! Packets of protocols other than UDP, for virtual traffic of those protocols.

use std::net::{IpAddr, SocketAddr};

use super::{DONT_FRAGMENT, Ipv4Header, Ipv6Header, as_ipv6};
use crate::checksum::Sum;
use crate::parse::protocol;

/// A packet of any IP protocol. TCP gets its full header, with acknowledgement number 0; DCCP, SCTP and UDP-Lite get
/// only their ports, and all other protocols no header.
///
/// ```
/// use narrows_frame::{LinkLayer, craft::Other, parse::parse};
///
/// let mut packet = Vec::new();
/// Other::new("10.0.0.1:4000".parse()?, "10.0.0.2:80".parse()?, 6).append(&[0; 1460], &mut packet);
/// let parsed = parse(LinkLayer::Ip, &packet);
/// assert_eq!((parsed.length, parsed.key.destination_port), (1500, 80));
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Other {
    /// The source address and port; the port is used only for protocols that have ports.
    pub source: SocketAddr,
    /// The destination address and port, as in [`Udp`](super::Udp).
    pub destination: SocketAddr,
    /// The IP protocol number.
    pub protocol: u8,
    /// The traffic class byte: DSCP and ECN.
    pub traffic_class: u8,
    /// IPv4 identification.
    pub identification: u16,
    /// IPv4 "don't fragment" flag.
    pub dont_fragment: bool,
}

impl Other {
    /// Defaults: best effort, fragmentation allowed, identification 0. The hop limit is always 64.
    pub const fn new(source: SocketAddr, destination: SocketAddr, protocol: u8) -> Self {
        let (traffic_class, identification, dont_fragment) = (0, 0, false);
        Self { source, destination, protocol, traffic_class, identification, dont_fragment }
    }

    /// The bytes between the IP header and the payload.
    pub const fn header(&self) -> usize {
        match self.protocol {
            protocol::TCP => 20,
            protocol::DCCP | protocol::SCTP | protocol::UDP_LITE => 4,
            _ => 0,
        }
    }

    /// Appends the IP packet.
    ///
    /// # Panics
    /// If the packet would be longer than 65,535 bytes (IPv6: without its header).
    pub fn append(&self, payload: &[u8], out: &mut Vec<u8>) {
        let Self { traffic_class, identification, protocol, .. } = *self;
        let length = self.header() + payload.len();
        let hop_limit = 64;
        let pseudo = match (self.source.ip(), self.destination.ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                assert!(length <= 65_535 - 20, "{length} bytes do not fit in a packet");
                let flags = if self.dont_fragment { DONT_FRAGMENT } else { 0 };
                Ipv4Header { traffic_class, identification, flags, hop_limit, protocol, source, destination }
                    .append(length, out);
                Sum::default().pseudo_header(&source.octets(), &destination.octets(), length, protocol)
            }
            (source, destination) => {
                assert!(length <= 65_535, "{length} bytes do not fit in a packet");
                let (source, destination) = (as_ipv6(source), as_ipv6(destination));
                Ipv6Header { traffic_class, hop_limit, protocol, source, destination }.append(length, out);
                Sum::default().pseudo_header(&source.octets(), &destination.octets(), length, protocol)
            }
        };
        let start = out.len();
        if self.header() > 0 {
            out.extend_from_slice(&self.source.port().to_be_bytes());
            out.extend_from_slice(&self.destination.port().to_be_bytes());
        }
        if protocol == protocol::TCP {
            let (words, acknowledges) = (5 << 4, 0x10);
            out.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, words, acknowledges, 0xff, 0xff, 0, 0, 0, 0]);
        }
        out.extend_from_slice(payload);
        if protocol == protocol::TCP {
            let checksum = pseudo.bytes(&out[start..]).complement();
            out[start + 16..start + 18].copy_from_slice(&checksum.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Another implementation of the same headers gives the same bytes.
        #[test]
        fn segments_are_those_of_another_implementation(
            payload in proptest::collection::vec(any::<u8>(), 0..200),
            wide: ([u8; 16], [u8; 16]), ports: (u16, u16), four: bool,
        ) {
            let [from, to] = [wide.0, wide.1].map(|a| [a[0], a[1], a[2], a[3]]);
            let (source, destination): (SocketAddr, SocketAddr) = match four {
                true => ((from, ports.0).into(), (to, ports.1).into()),
                false => ((wide.0, ports.0).into(), (wide.1, ports.1).into()),
            };
            let builder = match four {
                true => etherparse::PacketBuilder::ipv4(from, to, 64),
                false => etherparse::PacketBuilder::ipv6(wide.0, wide.1, 64),
            };
            let mut expected = Vec::new();
            builder.tcp(ports.0, ports.1, 0, 0xffff).ack(0).write(&mut expected, &payload).expect("a vector takes it");
            let mut found = Vec::new();
            let segment = Other { dont_fragment: true, ..Other::new(source, destination, protocol::TCP) };
            segment.append(&payload, &mut found);
            prop_assert_eq!(found, expected);
        }
    }
}
