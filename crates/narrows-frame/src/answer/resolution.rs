//! Address resolution: ARP (RFC 826), and the part of IPv6 neighbour discovery with the same purpose (RFC 4861, 7.2).
//!
//! Probes for duplicate addresses must not be answered, or a host could not take the address it was assigned: an ARP
//! probe (RFC 5227: the sender's address is zero) and a solicitation from the unspecified address (RFC 4862) get no
//! reply. Nor does an announcement, an ARP request for the sender's own address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::bytes::{array, byte, word};
use crate::checksum::Sum;
use crate::craft::Ipv6Header;
use crate::parse::{Found, Network, ether_type, protocol};
use crate::{LinkLayer, MacAddress};

/// Whether this Ethernet frame is address resolution: ARP, a neighbour solicitation or a neighbour advertisement;
/// request, reply, probe or malformed.
pub fn is_address_resolution(frame: &[u8]) -> bool {
    let found = Found::new(LinkLayer::Ethernet, frame, 0);
    match &found.network {
        Network::Other => found.ether_type == ether_type::ARP,
        Network::Ipv4(_) => false,
        Network::Ipv6(ip) => {
            let kind = found.transport(frame).and_then(|icmp| byte(icmp, 0));
            ip.protocol == protocol::ICMPV6 && matches!(kind, Some(SOLICITATION | ADVERTISEMENT))
        }
    }
}

/// The address that this Ethernet frame asks for, if it is a well-formed request that should be answered.
pub fn asked_address(frame: &[u8]) -> Option<IpAddr> {
    match Question::read(frame)? {
        Question::Arp(arp) => Some(IpAddr::V4(arp.target)),
        Question::Neighbour(solicitation) => Some(IpAddr::V6(solicitation.target)),
    }
}

/// Writes the answer to an Ethernet frame to `out`: `mac` has the address. Returns whether there is one; if not,
/// `out` is unchanged. VLAN tags are those of the request.
pub fn answer_resolution(frame: &[u8], mac: MacAddress, out: &mut Vec<u8>) -> bool {
    let Some(question) = Question::read(frame) else { return false };
    out.clear();
    match question {
        Question::Arp(arp) => arp.reply(mac, out),
        Question::Neighbour(solicitation) => solicitation.advertise(mac, out),
    }
    true
}

enum Question<'a> {
    Arp(ArpRequest<'a>),
    Neighbour(Solicitation<'a>),
}

impl<'a> Question<'a> {
    fn read(frame: &'a [u8]) -> Option<Self> {
        let found = Found::new(LinkLayer::Ethernet, frame, 0);
        let (link, rest) = frame.split_at(found.link_header);
        match &found.network {
            Network::Other if found.ether_type == ether_type::ARP => {
                ArpRequest::read(link, rest).map(Self::Arp)
            }
            // The extension headers of a solicitation do not matter, and it is never fragmented (RFC 6980).
            Network::Ipv6(ip) if ip.protocol == protocol::ICMPV6 => {
                Solicitation::read(link, found.packet(frame), found.transport(frame)?).map(Self::Neighbour)
            }
            _ => None,
        }
    }
}

struct ArpRequest<'a> {
    link: &'a [u8],
    sender_mac: MacAddress,
    sender: Ipv4Addr,
    target: Ipv4Addr,
}

/// Hardware type Ethernet with 6-byte addresses, protocol type IPv4 with 4-byte addresses.
pub(super) const ARP_KIND: [u8; 6] = [0, 1, 8, 0, 6, 4];
pub(super) const ARP_REQUEST: u16 = 1;
pub(super) const ARP_REPLY: u16 = 2;

impl<'a> ArpRequest<'a> {
    fn read(link: &'a [u8], arp: &[u8]) -> Option<Self> {
        if array(arp, 0)? != ARP_KIND || word(arp, 6)? != ARP_REQUEST {
            return None;
        }
        let sender_mac = MacAddress(array(arp, 8)?);
        let sender = Ipv4Addr::from_octets(array(arp, 14)?);
        let target = Ipv4Addr::from_octets(array(arp, 24)?);
        let deserves = !sender_mac.is_group()
            && !sender.is_unspecified()
            && sender != target
            && !target.is_unspecified()
            && !target.is_broadcast()
            && !target.is_multicast();
        deserves.then_some(Self { link, sender_mac, sender, target })
    }

    fn reply(&self, mac: MacAddress, out: &mut Vec<u8>) {
        reply_link_header(self.link, self.sender_mac, mac, out);
        out.extend_from_slice(&ARP_KIND);
        out.extend_from_slice(&ARP_REPLY.to_be_bytes());
        out.extend_from_slice(&mac.0);
        out.extend_from_slice(&self.target.octets());
        out.extend_from_slice(&self.sender_mac.0);
        out.extend_from_slice(&self.sender.octets());
    }
}

struct Solicitation<'a> {
    link: &'a [u8],
    sender_mac: MacAddress,
    sender: Ipv6Addr,
    target: Ipv6Addr,
}

pub(super) const SOLICITATION: u8 = 135;
pub(super) const ADVERTISEMENT: u8 = 136;
pub(super) const SOURCE_LINK_ADDRESS: u8 = 1;
pub(super) const TARGET_LINK_ADDRESS: u8 = 2;
/// The flags "solicited" and "override". Not "router": the network does not route.
const FLAGS: u8 = 0x60;

impl<'a> Solicitation<'a> {
    /// Makes the checks that RFC 4861, 7.1.1 requires of a host.
    fn read(link: &'a [u8], packet: &[u8], icmp: &[u8]) -> Option<Self> {
        const HOP_LIMIT: usize = 7;
        let sender = Ipv6Addr::from_octets(array(packet, 8)?);
        let destination = Ipv6Addr::from_octets(array(packet, 24)?);
        let target = Ipv6Addr::from_octets(array(icmp, 8)?);
        let valid = packet[HOP_LIMIT] == 255
            && icmp[..2] == [SOLICITATION, 0]
            && checksum(&sender, &destination, icmp) == 0
            && !target.is_multicast();
        if !valid || sender.is_unspecified() || sender.is_multicast() {
            return None;
        }
        let option = source_link_address(icmp.get(24..)?)?;
        let sender_mac = option.unwrap_or(MacAddress(array(link, 6)?));
        (!sender_mac.is_group()).then_some(Self { link, sender_mac, sender, target })
    }

    fn advertise(&self, mac: MacAddress, out: &mut Vec<u8>) {
        const LENGTH: usize = 32;
        reply_link_header(self.link, self.sender_mac, mac, out);
        let header = Ipv6Header {
            traffic_class: 0,
            hop_limit: 255,
            protocol: protocol::ICMPV6,
            source: self.target,
            destination: self.sender,
        };
        header.append(LENGTH, out);
        let start = out.len();
        out.extend_from_slice(&[ADVERTISEMENT, 0, 0, 0, FLAGS, 0, 0, 0]);
        out.extend_from_slice(&self.target.octets());
        out.extend_from_slice(&[TARGET_LINK_ADDRESS, 1]);
        out.extend_from_slice(&mac.0);
        let checksum = checksum(&self.target, &self.sender, &out[start..]);
        out[start + 2..start + 4].copy_from_slice(&checksum.to_be_bytes());
    }
}

pub(super) fn checksum(source: &Ipv6Addr, destination: &Ipv6Addr, icmp: &[u8]) -> u16 {
    Sum::default()
        .pseudo_header(&source.octets(), &destination.octets(), icmp.len(), protocol::ICMPV6)
        .bytes(icmp)
        .complement()
}

/// The sender's own link address, if the options give one; `None` if the options are malformed.
fn source_link_address(options: &[u8]) -> Option<Option<MacAddress>> {
    link_address(SOURCE_LINK_ADDRESS, options)
}

/// The link address in an option of this kind, if there is one; `None` if the options are malformed.
pub(super) fn link_address(kind: u8, mut options: &[u8]) -> Option<Option<MacAddress>> {
    let mut found = None;
    while !options.is_empty() {
        let length = usize::from(byte(options, 1)?) * 8;
        if length == 0 || length > options.len() {
            return None;
        }
        if options[0] == kind && length == 8 {
            found = array(options, 2).map(MacAddress);
        }
        options = &options[length..];
    }
    Some(found)
}

/// The link header of the reply, with the same tags and type.
fn reply_link_header(link: &[u8], to: MacAddress, from: MacAddress, out: &mut Vec<u8>) {
    out.extend_from_slice(&to.0);
    out.extend_from_slice(&from.0);
    out.extend_from_slice(&link[12..]);
}

#[cfg(test)]
mod tests;
