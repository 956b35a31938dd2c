//! Builds frames from scratch: for probes, for virtual traffic that needs frames, and for tests.

mod other;

pub use other::Other;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::MacAddress;
use crate::checksum::Sum;
use crate::parse::{ether_type, protocol};

/// A UDP datagram and the headers around it.
///
/// ```
/// use narrows_frame::{LinkLayer, MacAddress, craft::Udp, parse::parse};
///
/// let probe = Udp::new("10.0.0.1:4000".parse()?, "10.0.0.2:5000".parse()?);
/// let frame = probe.ethernet(MacAddress::BROADCAST, MacAddress([2, 0, 0, 0, 0, 1]), b"how long?");
/// let parsed = parse(LinkLayer::Ethernet, &frame);
/// assert_eq!((parsed.length, parsed.key.destination_port), (20 + 8 + 9, 5000));
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Udp {
    /// The source address and port.
    pub source: SocketAddr,
    /// The destination address and port. If its IP version differs from the source's, the packet is IPv6 and the IPv4
    /// address is mapped.
    pub destination: SocketAddr,
    /// The traffic class byte: DSCP and ECN.
    pub traffic_class: u8,
    /// Time to live, or hop limit.
    pub hop_limit: u8,
    /// IPv4 identification, shared by the fragments of a packet.
    pub identification: u16,
    /// IPv4 "don't fragment" flag.
    pub dont_fragment: bool,
}

impl Udp {
    /// Defaults: hop limit 64, best effort, fragmentation allowed, identification 0.
    pub const fn new(source: SocketAddr, destination: SocketAddr) -> Self {
        Self { source, destination, traffic_class: 0, hop_limit: 64, identification: 0, dont_fragment: false }
    }

    /// The maximum payload of a packet between these two addresses.
    pub const fn most_payload(&self) -> usize {
        match (self.source, self.destination) {
            (SocketAddr::V4(_), SocketAddr::V4(_)) => 65_535 - 20 - UDP_HEADER,
            _ => 65_535 - UDP_HEADER,
        }
    }

    /// An Ethernet frame, without padding or frame check sequence.
    ///
    /// # Panics
    /// If the payload is longer than [`Udp::most_payload`].
    pub fn ethernet(&self, destination: MacAddress, source: MacAddress, payload: &[u8]) -> Vec<u8> {
        let mut frame = Vec::with_capacity(14 + 40 + UDP_HEADER + payload.len());
        let kind = match (self.source, self.destination) {
            (SocketAddr::V4(_), SocketAddr::V4(_)) => ether_type::IPV4,
            _ => ether_type::IPV6,
        };
        ethernet_header(destination, source, kind, &mut frame);
        self.append(payload, &mut frame);
        frame
    }

    /// The IP packet alone.
    ///
    /// # Panics
    /// If the payload is longer than [`Udp::most_payload`].
    pub fn packet(&self, payload: &[u8]) -> Vec<u8> {
        let mut packet = Vec::with_capacity(40 + UDP_HEADER + payload.len());
        self.append(payload, &mut packet);
        packet
    }

    /// Appends the IP packet.
    ///
    /// # Panics
    /// If the payload is longer than [`Udp::most_payload`].
    pub fn append(&self, payload: &[u8], out: &mut Vec<u8>) {
        assert!(payload.len() <= self.most_payload(), "{} bytes do not fit in a datagram", payload.len());
        let length = UDP_HEADER + payload.len();
        let pseudo = match (self.source.ip(), self.destination.ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let flags = if self.dont_fragment { DONT_FRAGMENT } else { 0 };
                let header = Ipv4Header {
                    traffic_class: self.traffic_class,
                    identification: self.identification,
                    flags,
                    hop_limit: self.hop_limit,
                    protocol: protocol::UDP,
                    source,
                    destination,
                };
                header.append(length, out);
                Sum::default().pseudo_header(&source.octets(), &destination.octets(), length, protocol::UDP)
            }
            (source, destination) => {
                let (source, destination) = (as_ipv6(source), as_ipv6(destination));
                let header = Ipv6Header {
                    traffic_class: self.traffic_class,
                    hop_limit: self.hop_limit,
                    protocol: protocol::UDP,
                    source,
                    destination,
                };
                header.append(length, out);
                Sum::default().pseudo_header(&source.octets(), &destination.octets(), length, protocol::UDP)
            }
        };
        let start = out.len();
        out.extend_from_slice(&self.source.port().to_be_bytes());
        out.extend_from_slice(&self.destination.port().to_be_bytes());
        out.extend_from_slice(&(length as u16).to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(payload);
        // A checksum of zero is sent as all ones; zero would mean "no checksum".
        let checksum = match pseudo.bytes(&out[start..]).complement() {
            0 => 0xffff,
            checksum => checksum,
        };
        out[start + 6..start + 8].copy_from_slice(&checksum.to_be_bytes());
    }
}

const UDP_HEADER: usize = 8;
pub(crate) const DONT_FRAGMENT: u16 = 0x4000;

fn as_ipv6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

pub(crate) fn ethernet_header(destination: MacAddress, source: MacAddress, kind: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(&destination.0);
    out.extend_from_slice(&source.0);
    out.extend_from_slice(&kind.to_be_bytes());
}

/// An IPv4 header without options.
pub(crate) struct Ipv4Header {
    pub(crate) traffic_class: u8,
    pub(crate) identification: u16,
    pub(crate) flags: u16,
    pub(crate) hop_limit: u8,
    pub(crate) protocol: u8,
    pub(crate) source: Ipv4Addr,
    pub(crate) destination: Ipv4Addr,
}

impl Ipv4Header {
    /// Appends the header of a packet with `payload` bytes.
    pub(crate) fn append(&self, payload: usize, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0x45, self.traffic_class]);
        out.extend_from_slice(&((20 + payload) as u16).to_be_bytes());
        out.extend_from_slice(&self.identification.to_be_bytes());
        out.extend_from_slice(&self.flags.to_be_bytes());
        out.extend_from_slice(&[self.hop_limit, self.protocol, 0, 0]);
        out.extend_from_slice(&self.source.octets());
        out.extend_from_slice(&self.destination.octets());
        let checksum = Sum::default().bytes(&out[start..]).complement();
        out[start + 10..start + 12].copy_from_slice(&checksum.to_be_bytes());
    }
}

/// An IPv6 header with flow label 0.
pub(crate) struct Ipv6Header {
    pub(crate) traffic_class: u8,
    pub(crate) hop_limit: u8,
    pub(crate) protocol: u8,
    pub(crate) source: Ipv6Addr,
    pub(crate) destination: Ipv6Addr,
}

impl Ipv6Header {
    /// Appends the header of a packet with `payload` bytes.
    pub(crate) fn append(&self, payload: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&[0x60 | self.traffic_class >> 4, self.traffic_class << 4, 0, 0]);
        out.extend_from_slice(&(payload as u16).to_be_bytes());
        out.extend_from_slice(&[self.protocol, self.hop_limit]);
        out.extend_from_slice(&self.source.octets());
        out.extend_from_slice(&self.destination.octets());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Another implementation of the same headers gives the same bytes.
        #[test]
        fn frames_are_those_of_another_implementation(
            payload in proptest::collection::vec(any::<u8>(), 0..200),
            addresses: ([u8; 4], [u8; 4]), wide: ([u8; 16], [u8; 16]), ports: (u16, u16),
            class: u8, hop_limit: u8, identification: u16, dont_fragment: bool,
        ) {
            let (to, from) = (MacAddress([2, 0, 0, 0, 0, 9]), MacAddress([2, 0, 0, 0, 0, 8]));
            let four = Udp {
                source: (addresses.0, ports.0).into(),
                destination: (addresses.1, ports.1).into(),
                traffic_class: class, hop_limit, identification, dont_fragment,
            };
            let mut header = etherparse::Ipv4Header {
                dscp: (class >> 2).try_into().expect("six bits"), ecn: (class & 3).try_into().expect("two bits"),
                identification, dont_fragment, time_to_live: hop_limit, protocol: etherparse::IpNumber::UDP,
                source: addresses.0, destination: addresses.1, total_len: 28 + payload.len() as u16,
                ..Default::default()
            };
            header.header_checksum = header.calc_header_checksum();
            let mut expected = Vec::new();
            etherparse::PacketBuilder::ethernet2(from.0, to.0)
                .ip(etherparse::IpHeaders::Ipv4(header, Default::default()))
                .udp(ports.0, ports.1)
                .write(&mut expected, &payload)
                .expect("a vector takes it");
            prop_assert_eq!(four.ethernet(to, from, &payload), expected);

            let six = Udp {
                source: (wide.0, ports.0).into(), destination: (wide.1, ports.1).into(), ..four
            };
            let header = etherparse::Ipv6Header {
                traffic_class: class, hop_limit, source: wide.0, destination: wide.1,
                next_header: etherparse::IpNumber::UDP, ..Default::default()
            };
            let mut expected = Vec::new();
            etherparse::PacketBuilder::ethernet2(from.0, to.0)
                .ip(etherparse::IpHeaders::Ipv6(header, Default::default()))
                .udp(ports.0, ports.1)
                .write(&mut expected, &payload)
                .expect("a vector takes it");
            prop_assert_eq!(six.ethernet(to, from, &payload), expected);
            prop_assert_eq!(&six.packet(&payload), &six.ethernet(to, from, &payload)[14..]);
        }
    }

    #[test]
    fn the_longest_payload_fits() {
        let four = Udp::new(([10, 0, 0, 1], 1).into(), ([10, 0, 0, 2], 2).into());
        assert_eq!(four.packet(&vec![0; four.most_payload()]).len(), 65_535);
    }

    #[test]
    fn a_checksum_of_zero_is_sent_as_all_ones() {
        let udp = Udp::new(([10, 0, 0, 1], 1).into(), ([10, 0, 0, 2], 2).into());
        // Two bytes that bring the sum of all to 0xffff, whose complement is zero.
        let checksum = udp.packet(&[0, 0])[26..28].to_vec();
        assert_eq!(udp.packet(&checksum)[26..28], [0xff, 0xff]);
    }
}
