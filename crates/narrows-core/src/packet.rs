//! What the engine knows about a packet.

mod options;
mod quoted;

pub use options::TcpOptions;
pub use quoted::Quoted;

use crate::id::PortId;

/// A packet as it is handed in. The engine uses its length, flow key and headers; it never reads or clones
/// the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet<B> {
    /// Bytes from the network header on (for IPv4 and IPv6, the length of the IP packet).
    pub length: u32,
    /// Bytes of link header before the network header: 14 for Ethernet, 18 with one VLAN tag, 0 without a link layer.
    pub link_header: u8,
    /// Bytes of the IPv4 header including options, which every fragment repeats; 0 for other packets.
    pub network_header: u8,
    /// The flow key.
    pub key: FlowKey,
    /// Header fields that only some networks need.
    pub headers: Headers,
    /// The rest: a frame, a handle to one, or nothing.
    pub body: B,
}

/// The header fields that classifiers, masks and queue management look at.
///
/// IPv4 addresses are mapped into IPv6 (`::ffff:a.b.c.d`). A field that the packet does not have is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowKey {
    /// Source address.
    pub source: [u8; 16],
    /// Destination address.
    pub destination: [u8; 16],
    /// A mark that classifiers may set; not part of the packet on the wire.
    pub mark: u32,
    /// Source port (TCP, UDP, SCTP, …), or the ICMP type and code.
    pub source_port: u16,
    /// Destination port, or the ICMP identifier.
    pub destination_port: u16,
    /// The network-layer protocol, and whether the packet may be fragmented.
    pub network: Protocol,
    /// IP protocol number.
    pub transport: u8,
    /// The IPv4 TOS or IPv6 traffic class byte: DSCP in the upper six bits, ECN in the lower two.
    pub traffic_class: u8,
    /// TCP flags.
    pub tcp_flags: u8,
}

/// A link address (MAC address), in the order of its bytes on the wire.
pub type LinkAddress = [u8; 6];

/// Header fields that only rules, routers, switches and filters of links look at. A field that the packet does not have is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Headers {
    /// Source address of the link layer.
    pub link_source: LinkAddress,
    /// Destination address of the link layer.
    pub link_destination: LinkAddress,
    /// EtherType of the payload, after any VLAN tags.
    pub ether_type: u16,
    /// The VLAN of the first tag; 0 without a tag.
    pub vlan: u16,
    /// Bytes after the TCP header, in the whole packet.
    pub tcp_data_length: u16,
    /// IPv6 flow label, 20 bits.
    pub flow_label: u32,
    /// IPv4 TTL or IPv6 hop limit.
    pub hop_limit: u8,
    /// Whether this is a fragment other than the first.
    pub is_later_fragment: bool,
    /// The fragmentation fields of IPv4 in one byte: 0x80 reserved, 0x20 more fragments, 0x01 the offset is not 0.
    /// "Don't fragment", 0x40, is in [`FlowKey::network`].
    pub fragment: u8,
    /// The identification of an IPv4 packet.
    pub ip_id: u16,
    /// The options of IPv4: 1 loose source route, 2 strict source route, 4 record route, 8 timestamp;
    /// [`Self::MALFORMED_OPTIONS`].
    pub ip_options: u8,
    /// The extension headers of IPv6, and ESP, as far as they are readable: 0x01 fragment, 0x02 hop-by-hop options, 0x04
    /// routing, 0x08 authentication, 0x10 ESP, 0x20 destination options; 0x40 routing of type 0, 0x80 of type 2.
    pub extension_headers: u8,
    /// The options of TCP: [`Self::TCP_OPTION_MSS`], 2 window scale, 4 selective acknowledgement or its permission, 8
    /// timestamps, 16 connection count (RFC 1644).
    pub tcp_options: u8,
    /// The window of TCP, not scaled.
    pub tcp_window: u16,
    /// The maximum segment size of the TCP option.
    pub tcp_mss: u16,
    /// The TCP sequence number.
    pub tcp_sequence: u32,
    /// The TCP acknowledgement number.
    pub tcp_acknowledgement: u32,
}

impl Headers {
    /// The options of IPv4 end in an impossible length.
    pub const MALFORMED_OPTIONS: u8 = 0x80;
    /// TCP's maximum segment size is an option of the segment.
    pub const TCP_OPTION_MSS: u8 = 1;

    /// The headers of a generated packet of `length` bytes from the network header on: no options, no
    /// extension headers, a hop limit of 64.
    pub fn plain(key: &FlowKey, length: u32) -> Self {
        const TCP: u8 = 6;
        let (ether_type, network, hop_limit) = match key.network {
            Protocol::Other => return Self::default(),
            Protocol::Ipv4 | Protocol::Ipv4DontFragment => (0x0800, 20, 64),
            Protocol::Ipv6 => (0x86dd, 40, 64),
        };
        let data = if key.transport == TCP { length.saturating_sub(network + 20) } else { 0 };
        let tcp_data_length = u16::try_from(data).unwrap_or(u16::MAX);
        Self { ether_type, hop_limit, tcp_data_length, ..Self::default() }
    }
}

/// The network layer of a packet, as far as links need it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Protocol {
    /// Neither IPv4 nor IPv6.
    #[default]
    Other,
    /// IPv4 that routers may fragment.
    Ipv4,
    /// IPv4 with "don't fragment" set.
    Ipv4DontFragment,
    /// IPv6, which routers never fragment.
    Ipv6,
}

impl FlowKey {
    /// The ECN field of a packet whose transport is not ECN-capable.
    pub const NOT_ECN_CAPABLE: u8 = 0;
    /// The ECN field of a packet of a low-latency, scalable congestion control, ECT(1) (RFC 9331).
    pub const ECT_1: u8 = 1;
    /// The ECN field of a packet that has met congestion.
    pub const CONGESTION_EXPERIENCED: u8 = 3;

    /// The DSCP (differentiated services code point), 0 to 63.
    pub const fn dscp(&self) -> u8 {
        self.traffic_class >> 2
    }

    /// The ECN field: 0 not ECN-capable, 1 and 2 ECN-capable, 3 congestion experienced (RFC 3168).
    pub const fn ecn(&self) -> u8 {
        self.traffic_class & 3
    }
}

/// A packet's id: the port where it came in and its number among that port's arrivals, from 0.
///
/// Numbers use 48 bits, enough for 300 days at ten million packets a second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketId(u64);

impl PacketId {
    /// The `number`th arrival at `port`.
    pub const fn new(port: PortId, number: u64) -> Self {
        Self((port.index() as u64) << 48 | (number & ((1 << 48) - 1)))
    }

    /// The port where the packet came in.
    pub const fn port(self) -> PortId {
        PortId::new((self.0 >> 48) as u16)
    }

    /// The packet's number among the arrivals there.
    pub const fn number(self) -> u64 {
        self.0 & ((1 << 48) - 1)
    }
}

impl core::fmt::Debug for PacketId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}#{}", self.port().index(), self.number())
    }
}

/// A fragment of an IPv4 packet that a link cut because of its MTU. Lengths are in bytes of payload, without
/// the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Offset of the fragment in the payload of the original packet; a multiple of 8.
    pub offset: u16,
    /// Whether more fragments follow.
    pub more: bool,
}
