//! What a router reads from a packet that it may forward.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::LinkLayer;
use crate::bytes::array;
use crate::checksum::Sum;
use crate::parse::{Found, Network};

/// The parts of an IP header that decide where a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpHeader {
    /// The sender's address.
    pub source: IpAddr,
    /// The receiver's address.
    pub destination: IpAddr,
    /// Time to live, or hop limit.
    pub hop_limit: u8,
}

/// Why a frame has no header to forward by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unroutable {
    /// It is not IP, or it has a VLAN tag.
    NotIp,
    /// It claims to be IP, but its header is truncated, its lengths contradict each other, or its checksum is wrong.
    Malformed,
}

impl IpHeader {
    /// Reads the header of an untagged Ethernet frame. Makes the checks of RFC 1812, 5.2.2: a router drops a packet
    /// whose header checksum is wrong.
    ///
    /// # Errors
    /// If there is no such header.
    pub fn read(frame: &[u8]) -> Result<Self, Unroutable> {
        const UNTAGGED: usize = 14;
        let found = Found::new(LinkLayer::Ethernet, frame, 0);
        if found.link_header != UNTAGGED {
            return Err(Unroutable::NotIp);
        }
        let packet = found.packet(frame);
        match &found.network {
            Network::Ipv4(ip) => {
                let header = &frame[UNTAGGED..ip.payload];
                if Sum::default().bytes(header).complement() != 0 {
                    return Err(Unroutable::Malformed);
                }
                let of = |at| array(packet, at).map(Ipv4Addr::from_octets).map(IpAddr::from);
                Self::of(of(12), of(16), packet[8])
            }
            Network::Ipv6(_) => {
                let of = |at| array(packet, at).map(Ipv6Addr::from_octets).map(IpAddr::from);
                Self::of(of(8), of(24), packet[7])
            }
            Network::Other if claims_ip(found.ether_type) => Err(Unroutable::Malformed),
            Network::Other => Err(Unroutable::NotIp),
        }
    }

    fn of(source: Option<IpAddr>, destination: Option<IpAddr>, hop_limit: u8) -> Result<Self, Unroutable> {
        let (source, destination) = source.zip(destination).ok_or(Unroutable::Malformed)?;
        Ok(Self { source, destination, hop_limit })
    }

    /// Whether routers forward such packets: between two hosts, beyond one link (RFC 1812, 5.3.7; RFC 3927, 7; RFC 4291,
    /// 2.5).
    pub fn is_forwardable(&self) -> bool {
        let stays = |address: &IpAddr| match address {
            IpAddr::V4(address) => {
                address.is_link_local()
                    || address.is_broadcast()
                    || address.octets()[0] == 0
                    || address.octets()[0] >= 240
            }
            IpAddr::V6(address) => address.is_unicast_link_local(),
        };
        let both = [self.source, self.destination];
        both.iter().all(|address| {
            !address.is_multicast() && !address.is_loopback() && !address.is_unspecified() && !stays(address)
        })
    }
}

fn claims_ip(ether_type: u16) -> bool {
    [crate::parse::ether_type::IPV4, crate::parse::ether_type::IPV6].contains(&ether_type)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MacAddress;
    use crate::craft::Udp;

    fn frame(from: &str, to: &str) -> Vec<u8> {
        let udp = Udp { hop_limit: 9, ..Udp::new(from.parse().unwrap(), to.parse().unwrap()) };
        udp.ethernet(MacAddress([2, 0, 0, 0, 0, 1]), MacAddress([2, 0, 0, 0, 0, 2]), b"x")
    }

    #[test]
    fn addresses_and_hop_limit_are_read_and_damage_is_noticed() {
        for (from, to) in [("10.0.0.1:1", "10.1.0.1:2"), ("[fd00::1]:1", "[fd01::1]:2")] {
            let frame = frame(from, to);
            let header = IpHeader::read(&frame).unwrap();
            let ip = |text: &str| text.parse::<std::net::SocketAddr>().unwrap().ip();
            assert_eq!(header, IpHeader { source: ip(from), destination: ip(to), hop_limit: 9 });
            assert!(header.is_forwardable());
            assert_eq!(IpHeader::read(&frame[..20]), Err(Unroutable::Malformed));
            let mut tagged = frame.clone();
            tagged.splice(12..12, [0x81, 0, 0, 5]);
            assert_eq!(IpHeader::read(&tagged), Err(Unroutable::NotIp));
        }
        let mut frame = frame("10.0.0.1:1", "10.1.0.1:2");
        frame[14 + 8] += 1;
        assert_eq!(IpHeader::read(&frame), Err(Unroutable::Malformed), "its checksum is wrong");
        assert_eq!(IpHeader::read(&[0xff; 60]), Err(Unroutable::NotIp));
    }

    #[test]
    fn what_belongs_to_one_link_stays_there() {
        for (from, to) in [
            ("10.0.0.1:1", "224.0.0.1:2"),
            ("10.0.0.1:1", "255.255.255.255:2"),
            ("169.254.0.1:1", "10.1.0.1:2"),
            ("0.0.0.0:1", "10.1.0.1:2"),
            ("10.0.0.1:1", "127.0.0.1:2"),
            ("[fe80::1]:1", "[fd00::1]:2"),
            ("[fd00::1]:1", "[ff02::1]:2"),
        ] {
            assert!(!IpHeader::read(&frame(from, to)).unwrap().is_forwardable(), "{from} {to}");
        }
    }
}
