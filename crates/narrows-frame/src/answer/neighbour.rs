//! A router's own address resolution: requests for the link address of a neighbour, and what neighbours' frames tell.
//!
//! Over IPv4 the request is an ARP request (RFC 826), over IPv6 a neighbour solicitation (RFC 4861, 4.3). Addresses are
//! learned from ARP requests and replies, from the source of solicitations and from the target of advertisements, as a
//! host does (RFC 826, "packet reception"; RFC 4861, 7.2.3 and 7.2.5). Duplicate address detection tells nothing: its
//! sender has no address yet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::resolution::{
    ADVERTISEMENT, ARP_KIND, ARP_REPLY, ARP_REQUEST, SOLICITATION, SOURCE_LINK_ADDRESS, TARGET_LINK_ADDRESS,
    checksum, link_address,
};
use crate::bytes::{array, word};
use crate::craft::{Ipv6Header, ethernet_header};
use crate::parse::{Found, Network, ether_type, protocol};
use crate::{LinkLayer, MacAddress};

/// An address and the link address of the station that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Its IP address.
    pub address: IpAddr,
    /// Its link address.
    pub mac: MacAddress,
}

/// Writes to `out` the frame by which the station `own` asks who has the address `wanted`: to everybody (over IPv6, to
/// the group of that address), or only to the station that had it. Returns whether there is one: both addresses must
/// be of one IP version. If not, `out` is unchanged.
pub fn ask_neighbour(wanted: IpAddr, own: Neighbour, had: Option<MacAddress>, out: &mut Vec<u8>) -> bool {
    match (wanted, own.address) {
        (IpAddr::V4(wanted), IpAddr::V4(source)) => {
            out.clear();
            ethernet_header(had.unwrap_or(MacAddress::BROADCAST), own.mac, ether_type::ARP, out);
            out.extend_from_slice(&ARP_KIND);
            out.extend_from_slice(&ARP_REQUEST.to_be_bytes());
            out.extend_from_slice(&own.mac.0);
            out.extend_from_slice(&source.octets());
            out.extend_from_slice(&[0; 6]);
            out.extend_from_slice(&wanted.octets());
            true
        }
        (IpAddr::V6(wanted), IpAddr::V6(source)) => {
            out.clear();
            solicit(wanted, Ipv6Neighbour { address: source, mac: own.mac }, had, out);
            true
        }
        _ => false,
    }
}

#[derive(Clone, Copy)]
struct Ipv6Neighbour {
    address: Ipv6Addr,
    mac: MacAddress,
}

fn solicit(wanted: Ipv6Addr, own: Ipv6Neighbour, had: Option<MacAddress>, out: &mut Vec<u8>) {
    const LENGTH: usize = 32;
    let [.., a, b, c] = wanted.octets();
    // RFC 4291, 2.7.1, and RFC 2464, 7: the solicited-node group, and the link address of that group.
    let group = Ipv6Addr::from_octets([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c]);
    let (destination, mac) = match had {
        Some(mac) => (wanted, mac),
        None => (group, MacAddress([0x33, 0x33, 0xff, a, b, c])),
    };
    ethernet_header(mac, own.mac, ether_type::IPV6, out);
    let header = Ipv6Header {
        traffic_class: 0,
        hop_limit: 255,
        protocol: protocol::ICMPV6,
        source: own.address,
        destination,
    };
    header.append(LENGTH, out);
    let start = out.len();
    out.extend_from_slice(&[SOLICITATION, 0, 0, 0, 0, 0, 0, 0]);
    out.extend_from_slice(&wanted.octets());
    out.extend_from_slice(&[SOURCE_LINK_ADDRESS, 1]);
    out.extend_from_slice(&own.mac.0);
    let sum = checksum(&own.address, &destination, &out[start..]);
    out[start + 2..start + 4].copy_from_slice(&sum.to_be_bytes());
}

/// The neighbour that an Ethernet frame tells of, if it is well-formed address resolution.
pub fn heard_neighbour(frame: &[u8]) -> Option<Neighbour> {
    let found = Found::new(LinkLayer::Ethernet, frame, 0);
    let (link, rest) = frame.split_at(found.link_header);
    let told = match &found.network {
        Network::Other if found.ether_type == ether_type::ARP => heard_by_arp(rest),
        Network::Ipv6(ip) if ip.protocol == protocol::ICMPV6 => {
            heard_by_discovery(link, found.packet(frame), found.transport(frame)?)
        }
        _ => None,
    };
    told.filter(|told| !told.mac.is_group() && is_of_one_host(told.address))
}

fn heard_by_arp(arp: &[u8]) -> Option<Neighbour> {
    let operation = word(arp, 6)?;
    let is_known = array(arp, 0)? == ARP_KIND && [ARP_REQUEST, ARP_REPLY].contains(&operation);
    let mac = MacAddress(array(arp, 8)?);
    let address = Ipv4Addr::from_octets(array(arp, 14)?).into();
    is_known.then_some(Neighbour { address, mac })
}

fn heard_by_discovery(link: &[u8], packet: &[u8], icmp: &[u8]) -> Option<Neighbour> {
    const HOP_LIMIT: usize = 7;
    let source = Ipv6Addr::from_octets(array(packet, 8)?);
    let destination = Ipv6Addr::from_octets(array(packet, 24)?);
    let [kind, code] = array(icmp, 0)?;
    let target = Ipv6Addr::from_octets(array(icmp, 8)?);
    if packet[HOP_LIMIT] != 255 || code != 0 || checksum(&source, &destination, icmp) != 0 {
        return None;
    }
    let (address, option) = match kind {
        SOLICITATION => (source, SOURCE_LINK_ADDRESS),
        ADVERTISEMENT => (target, TARGET_LINK_ADDRESS),
        _ => return None,
    };
    let mac = link_address(option, icmp.get(24..)?)?.or(array(link, 6).map(MacAddress))?;
    Some(Neighbour { address: address.into(), mac })
}

fn is_of_one_host(address: IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !address.is_unspecified() && !address.is_multicast() && !address.is_loopback() && !is_broadcast
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::{answer_resolution, asked_address};

    const OURS: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    const THEIRS: MacAddress = MacAddress([2, 0, 0, 0, 0, 9]);

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_request_is_understood_and_its_answer_tells_the_neighbour() {
        for (own, wanted) in [("10.0.0.1", "10.0.0.9"), ("fd00::1", "fd00::9"), ("fe80::1", "fd00::9")] {
            let own = Neighbour { address: address(own), mac: OURS };
            for had in [None, Some(THEIRS)] {
                let (mut asked, mut answer) = (Vec::new(), Vec::new());
                assert!(ask_neighbour(address(wanted), own, had, &mut asked));
                assert_eq!(asked_address(&asked), Some(address(wanted)));
                assert_eq!(heard_neighbour(&asked), Some(own), "who asks also tells");
                assert_eq!(had.is_none(), MacAddress(array(&asked, 0).unwrap()).is_group());
                assert!(answer_resolution(&asked, THEIRS, &mut answer));
                let told = Neighbour { address: address(wanted), mac: THEIRS };
                assert_eq!(heard_neighbour(&answer), Some(told));
            }
        }
        let own = Neighbour { address: address("10.0.0.1"), mac: OURS };
        assert!(!ask_neighbour(address("fd00::9"), own, None, &mut Vec::new()));
    }

    #[test]
    fn probes_and_damaged_frames_tell_nothing() {
        let own = Neighbour { address: address("0.0.0.0"), mac: OURS };
        let mut frame = Vec::new();
        assert!(ask_neighbour(address("10.0.0.9"), own, None, &mut frame));
        assert_eq!(heard_neighbour(&frame), None, "an ARP probe has no sender");
        let own = Neighbour { address: address("fd00::1"), mac: OURS };
        assert!(ask_neighbour(address("fd00::9"), own, None, &mut frame));
        for at in 0..frame.len() {
            assert_eq!(heard_neighbour(&frame[..at]), None, "cut at {at}");
        }
        *frame.last_mut().unwrap() ^= 1;
        assert_eq!(heard_neighbour(&frame), None, "its checksum is wrong");
    }
}
