//! Replaces addresses and ports in a frame, as address translation does, and keeps its checksums right.
//!
//! A flow is what translation tells apart: for TCP and UDP the two addresses and ports, for ICMP echo the addresses and
//! the identifier, which takes the place of both ports (RFC 5508, 3.1). An ICMP error belongs to the flow of the packet
//! that it quotes (RFC 5508, 4). Checksums are updated by the difference (RFC 1624): a wrong one stays wrong. The
//! transport checksum inside a quotation stays as it is; hosts do not check it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use narrows_core::{Engine, FlowKey, Protocol, Quoted};

use crate::LinkLayer;
use crate::bytes::{array, byte, word};
use crate::checksum::updated;
use crate::parse::{ERROR_HEADER, Found, Network, protocol};

/// An address with a port of TCP or UDP, or the identifier of an ICMP echo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    /// The address.
    pub address: IpAddr,
    /// The port or identifier.
    pub port: u16,
}

/// A flow, in the direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The IP protocol number.
    pub protocol: u8,
    /// The sender.
    pub source: Endpoint,
    /// The receiver.
    pub destination: Endpoint,
}

/// One end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The sender.
    Source,
    /// The receiver.
    Destination,
}

/// What kind of packet a frame has, for translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A packet of a flow.
    Flow(Flow),
    /// An ICMP error about a packet of a flow, as quoted.
    Error(Flow),
    /// A fragment other than the first; those of one IPv4 packet have one number. `None` for IPv6.
    Fragment(Option<FragmentOf>),
    /// Anything else.
    Other,
}

/// The packet that an IPv4 fragment belongs to (RFC 791, 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentOf {
    source: Ipv4Addr,
    destination: Ipv4Addr,
    protocol: u8,
    identification: u16,
}

/// The positions in a frame of a packet's headers.
#[derive(Clone, Copy)]
struct Layout {
    is_ipv4: bool,
    network: usize,
    protocol: u8,
    /// The transport header; `None` in fragments other than the first.
    transport: Option<usize>,
}

/// The kind of packet in an Ethernet frame.
pub fn kind(frame: &[u8]) -> Kind {
    let Some(layout) = Layout::of(frame, LinkLayer::Ethernet, 0) else { return Kind::Other };
    let Some(transport) = layout.transport else {
        return Kind::Fragment(FragmentOf::read(frame));
    };
    if let Some(flow) = layout.flow(frame) {
        return Kind::Flow(flow);
    }
    if !layout.is_error(frame, transport) {
        return Kind::Other;
    }
    match Layout::quoted(frame, transport).and_then(|quoted| quoted.flow(frame)) {
        Some(flow) => Kind::Error(flow),
        None => Kind::Other,
    }
}

impl FragmentOf {
    /// Of an Ethernet frame with an IPv4 fragment, also the first; `None` for a whole packet.
    pub fn read(frame: &[u8]) -> Option<Self> {
        let found = Found::new(LinkLayer::Ethernet, frame, 0);
        let Network::Ipv4(ip) = &found.network else { return None };
        let packet = found.packet(frame);
        (ip.later_fragment || ip.more_fragments).then_some(Self {
            source: Ipv4Addr::from_octets(array(packet, 12)?),
            destination: Ipv4Addr::from_octets(array(packet, 16)?),
            protocol: ip.protocol,
            identification: word(packet, 4)?,
        })
    }
}

/// Replaces one end of the flow that a frame belongs to. For a fragment other than the first, only the address; of an
/// ICMP error, the address that the end of the quoted packet's flow has in the error's own header, too. Returns whether
/// it was replaced: the addresses must be of one IP version.
pub fn replace(frame: &mut [u8], end: End, with: Endpoint) -> bool {
    let Some(layout) = Layout::of(frame, LinkLayer::Ethernet, 0) else { return false };
    if layout.is_ipv4 != with.address.is_ipv4() {
        return false;
    }
    match kind(frame) {
        Kind::Flow(_) => layout.replace(frame, end, with, None),
        Kind::Fragment(_) => layout.replace_address(frame, end, with.address, None),
        Kind::Error(_) => {
            let Some(transport) = layout.transport else { return false };
            let Some(quoted) = Layout::quoted(frame, transport) else { return false };
            quoted.replace(frame, end, with, Some(transport + ICMP_CHECKSUM));
            // The error goes the other way.
            let own = match end {
                End::Source => End::Destination,
                End::Destination => End::Source,
            };
            layout.replace_address(frame, own, with.address, None);
        }
        Kind::Other => return false,
    }
    true
}

/// Tells an engine that looks at it what a frame quotes, before the frame is handed in.
pub fn tell_quoted<B>(engine: &mut Engine<B>, layer: LinkLayer, frame: &[u8], original: u32) {
    if engine.looks_at_quoted()
        && let Some(quoted) = quoted(layer, frame, original)
    {
        engine.set_quoted(quoted);
    }
}

/// The flow of the IPv4 packet that a frame's ICMP error quotes. `original` is the length of a truncated frame.
pub fn quoted(layer: LinkLayer, frame: &[u8], original: u32) -> Option<Quoted> {
    let error = Layout::of(frame, layer, original).filter(|layout| layout.is_ipv4)?;
    let transport = error.transport.filter(|&at| error.is_error(frame, at))?;
    let quoted = Layout::quoted(frame, transport).filter(|quoted| quoted.is_ipv4)?;
    // Of a later fragment, the ports are not known.
    quoted.transport?;
    let end = |end| match quoted.address(frame, end)? {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    };
    let ports = match quoted.ports(frame) {
        Some([source, destination]) => [word(frame, source)?, word(frame, destination)?],
        None => [0; 2],
    };
    let (source, destination) = ((end(End::Source)?, ports[0]), (end(End::Destination)?, ports[1]));
    Some(Quoted { protocol: quoted.protocol, source, destination })
}

/// Writes the addresses and ports of a flow key into a packet, which begins with its IP header, and those of the packet
/// that it quotes. A part that the packet does not have is not written, nor are the ports of SCTP, whose checksum covers
/// the whole packet (RFC 9260).
pub fn write_ends(packet: &mut [u8], key: &FlowKey, quoted: Option<Quoted>) {
    // Also where only the beginning is there.
    let Some(layout) = Layout::of(packet, LinkLayer::Ip, u32::MAX) else { return };
    if layout.is_ipv4 == (key.network == Protocol::Ipv6) {
        return;
    }
    let address = |mapped: [u8; 16]| match (layout.is_ipv4, mapped) {
        (true, [.., a, b, c, d]) => IpAddr::from([a, b, c, d]),
        (false, address) => IpAddr::from(address),
    };
    let transport = layout.checksum(packet);
    layout.replace_address(packet, End::Source, address(key.source), None);
    layout.replace_address(packet, End::Destination, address(key.destination), None);
    let has_ports =
        [protocol::TCP, protocol::UDP, protocol::DCCP, protocol::UDP_LITE].contains(&layout.protocol);
    if let Some(at) = layout.transport.filter(|_| has_ports) {
        let sums = Sums { header: None, transport, around: None };
        put(packet, at, &key.source_port.to_be_bytes(), sums);
        put(packet, at + 2, &key.destination_port.to_be_bytes(), sums);
    }
    let has_identifier = layout.protocol == protocol::ICMP && layout.is_ipv4;
    if let Some(at) = layout.transport.filter(|_| has_identifier)
        && matches!(byte(packet, at), Some(0 | 8 | 13 | 14))
    {
        let sums = Sums { header: None, transport, around: None };
        put(packet, at + IDENTIFIER, &key.destination_port.to_be_bytes(), sums);
    }
    layout.settle(packet, transport);
    if let Some(quoted) = quoted
        && let Some(at) = layout.transport.filter(|&at| layout.is_error(packet, at))
        && let Some(inner) = Layout::quoted(packet, at)
    {
        let ends = [(End::Source, quoted.source), (End::Destination, quoted.destination)];
        for (end, (address, port)) in ends {
            let around = Some(at + ICMP_CHECKSUM);
            match inner.ports(packet) {
                // An echo's identifier stands for both.
                Some([one, other]) if one == other && end == End::Destination => {
                    inner.replace_address(packet, end, address.into(), around);
                }
                Some(_) => {
                    inner.replace(packet, end, Endpoint { address: address.into(), port }, around);
                }
                None => inner.replace_address(packet, end, address.into(), around),
            }
        }
    }
}

/// The offsets of checksums and of an echo's identifier.
const ICMP_CHECKSUM: usize = 2;
const UDP_CHECKSUM: usize = 6;
const TCP_CHECKSUM: usize = 16;
const IPV4_CHECKSUM: usize = 10;
const IDENTIFIER: usize = 4;

impl Layout {
    fn of(frame: &[u8], layer: LinkLayer, original: u32) -> Option<Self> {
        let found = Found::new(layer, frame, original);
        let network = found.link_header;
        match found.network {
            Network::Other => None,
            Network::Ipv4(ip) => {
                let transport = (!ip.later_fragment).then_some(ip.payload);
                Some(Self { is_ipv4: true, network, protocol: ip.protocol, transport })
            }
            Network::Ipv6(ip) => {
                let transport = ip.transport.filter(|_| !ip.later_fragment);
                Some(Self { is_ipv4: false, network, protocol: ip.protocol, transport })
            }
        }
    }

    /// The packet that an error quotes, of which only the beginning may be there.
    fn quoted(frame: &[u8], transport: usize) -> Option<Self> {
        let from = transport + ERROR_HEADER;
        let quoted = Self::of(frame.get(from..)?, LinkLayer::Ip, u32::MAX)?;
        let transport = quoted.transport.map(|at| at + from);
        Some(Self { network: quoted.network + from, transport, ..quoted })
    }

    fn is_error(&self, frame: &[u8], transport: usize) -> bool {
        let kind = byte(frame, transport);
        match self.protocol {
            // RFC 792: unreachable, source quench, time exceeded, parameter problem.
            protocol::ICMP if self.is_ipv4 => matches!(kind, Some(3 | 4 | 11 | 12)),
            protocol::ICMPV6 if !self.is_ipv4 => kind.is_some_and(|kind| kind < 128),
            _ => false,
        }
    }

    /// The offsets of the two ports, if the packet is of a flow.
    fn ports(&self, frame: &[u8]) -> Option<[usize; 2]> {
        let transport = self.transport?;
        let is_echo = |kinds: [u8; 2]| byte(frame, transport).is_some_and(|kind| kinds.contains(&kind));
        match self.protocol {
            protocol::TCP | protocol::UDP => Some([transport, transport + 2]),
            protocol::ICMP if self.is_ipv4 && is_echo([0, 8]) => Some([transport + IDENTIFIER; 2]),
            protocol::ICMPV6 if !self.is_ipv4 && is_echo([128, 129]) => Some([transport + IDENTIFIER; 2]),
            _ => None,
        }
    }

    fn flow(&self, frame: &[u8]) -> Option<Flow> {
        let [source, destination] = self.ports(frame)?;
        let end = |end, port| Some(Endpoint { address: self.address(frame, end)?, port: word(frame, port)? });
        Some(Flow {
            protocol: self.protocol,
            source: end(End::Source, source)?,
            destination: end(End::Destination, destination)?,
        })
    }

    fn address_at(&self, end: End) -> usize {
        self.network
            + match (self.is_ipv4, end) {
                (true, End::Source) => 12,
                (true, End::Destination) => 16,
                (false, End::Source) => 8,
                (false, End::Destination) => 24,
            }
    }

    fn address(&self, frame: &[u8], end: End) -> Option<IpAddr> {
        let at = self.address_at(end);
        Some(match self.is_ipv4 {
            true => Ipv4Addr::from_octets(array(frame, at)?).into(),
            false => Ipv6Addr::from_octets(array(frame, at)?).into(),
        })
    }

    /// The transport checksum, if there is one.
    fn checksum(&self, frame: &[u8]) -> Option<usize> {
        let at = self.transport?
            + match self.protocol {
                protocol::TCP => TCP_CHECKSUM,
                protocol::UDP | protocol::UDP_LITE | protocol::DCCP => UDP_CHECKSUM,
                protocol::ICMP | protocol::ICMPV6 => ICMP_CHECKSUM,
                _ => return None,
            };
        // RFC 768: zero means that there is none.
        let is_there = word(frame, at).is_some_and(|sum| self.protocol != protocol::UDP || sum != 0);
        is_there.then_some(at)
    }

    /// Replaces address and port; `around` is a checksum that covers the whole packet, which is quoted then.
    fn replace(&self, frame: &mut [u8], end: End, with: Endpoint, around: Option<usize>) {
        let Some(ports) = self.ports(frame) else { return };
        let port = match end {
            End::Source => ports[0],
            End::Destination => ports[1],
        };
        let own = self.own_checksum(frame, around);
        self.replace_address(frame, end, with.address, around);
        put(frame, port, &with.port.to_be_bytes(), Sums { header: None, transport: own, around });
        self.settle(frame, own);
    }

    /// A checksum of zero would say that there is none, or is not allowed: it is sent as all ones (RFC 768, RFC 3828).
    fn settle(&self, frame: &mut [u8], transport: Option<usize>) {
        if let Some(at) = transport.filter(|_| [protocol::UDP, protocol::UDP_LITE].contains(&self.protocol))
            && word(frame, at) == Some(0)
        {
            set(frame, at, 0xffff);
        }
    }

    fn replace_address(&self, frame: &mut [u8], end: End, with: IpAddr, around: Option<usize>) {
        let at = self.address_at(end);
        // ICMP's checksum has no pseudo header.
        let transport = self.own_checksum(frame, around).filter(|_| self.protocol != protocol::ICMP);
        let header = self.is_ipv4.then_some(self.network + IPV4_CHECKSUM);
        let sums = Sums { header, transport, around };
        match with {
            IpAddr::V4(with) => put(frame, at, &with.octets(), sums),
            IpAddr::V6(with) => put(frame, at, &with.octets(), sums),
        }
    }

    /// The transport checksum to update: that of a quoted packet stays.
    fn own_checksum(&self, frame: &[u8], around: Option<usize>) -> Option<usize> {
        self.checksum(frame).filter(|_| around.is_none())
    }
}

/// The checksums that cover a field.
#[derive(Clone, Copy)]
struct Sums {
    header: Option<usize>,
    transport: Option<usize>,
    /// Also covers the header's checksum.
    around: Option<usize>,
}

/// Writes words and updates the checksums that cover them. Bytes that are not there are left out.
fn put(frame: &mut [u8], at: usize, new: &[u8], sums: Sums) {
    for (place, new) in (at..).step_by(2).zip(new.chunks_exact(2)) {
        let new = u16::from_be_bytes([new[0], new[1]]);
        let Some(old) = word(frame, place) else { return };
        set(frame, place, new);
        update(frame, sums.transport, old, new);
        update(frame, sums.around, old, new);
        if let Some((before, now)) = update(frame, sums.header, old, new) {
            update(frame, sums.around, before, now);
        }
    }
}

/// Updates a checksum; returns what it was and is.
fn update(frame: &mut [u8], at: Option<usize>, old: u16, new: u16) -> Option<(u16, u16)> {
    let before = word(frame, at?)?;
    let now = updated(before, old, new);
    set(frame, at?, now);
    Some((before, now))
}

fn set(frame: &mut [u8], at: usize, word: u16) {
    if let Some(place) = frame.get_mut(at..at + 2) {
        place.copy_from_slice(&word.to_be_bytes());
    }
}

#[cfg(test)]
mod tests;
