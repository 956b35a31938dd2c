//! Changes of a packet's headers by a filter: what routers, firewalls and switches write on the way.
//!
//! Sources: Linux's actions `act_skbmod.c`, `act_pedit.c` with `act_csum.c`, `act_vlan.c`, `act_nat.c`. As with
//! `csum`, whoever writes the bytes of a packet updates its checksums.
//!
//! The change applies to everything behind the filter: later filters, classes, flows, routers and the frame that
//! leaves. A field that the packet does not have is not written.

use crate::packet::{FlowKey, LinkAddress, Protocol};
use crate::pool::{PacketRef, Pool};
use crate::queue::Context;

/// Header fields to write; those that are `None` stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeaderChange {
    /// Whether source and destination of the link layer change places, after they are written.
    pub swaps_link_addresses: bool,
    /// Source address of the link layer.
    pub link_source: Option<LinkAddress>,
    /// Destination address of the link layer.
    pub link_destination: Option<LinkAddress>,
    /// EtherType of the payload. The engine goes on to treat the packet by its network header.
    pub ether_type: Option<u16>,
    /// The VLAN of a tag that is put on packets without one: 1 to 4094. 0 takes the first tag off.
    pub vlan: Option<u16>,
    /// IPv4 TTL or IPv6 hop limit.
    pub hop_limit: Option<u8>,
    /// The DSCP, 0 to 63.
    pub dscp: Option<u8>,
    /// The ECN field, 0 to 3.
    pub ecn: Option<u8>,
    /// Whether ECN-capable packets are marked with "congestion experienced".
    pub marks: bool,
    /// Source address, for packets of its family.
    pub source: Option<[u8; 16]>,
    /// Destination address, for packets of its family.
    pub destination: Option<[u8; 16]>,
    /// Source port, for TCP, UDP, UDP-Lite and DCCP.
    pub source_port: Option<u16>,
    /// Destination port, for the same.
    pub destination_port: Option<u16>,
}

impl HeaderChange {
    /// Writes the fields.
    pub(super) fn apply(&self, packet: PacketRef, context: &mut Context<'_>) {
        self.write_link_header(packet, context);
        if self.marks {
            context.mark(packet);
        }
        let pool = &mut *context.pool;
        let state = pool.get_mut(packet);
        if state.key.network == Protocol::Other {
            return;
        }
        let (dscp, ecn) = (self.dscp.unwrap_or(state.key.dscp()), self.ecn.unwrap_or(state.key.ecn()));
        state.key.traffic_class = dscp << 2 | ecn;
        if self.write_ends(&mut pool.get_mut(packet).key) {
            pool.note_new_ends(packet);
        }
        if let Some(hop_limit) = self.hop_limit {
            pool.set_hop_limit(packet, hop_limit);
        }
    }

    fn write_link_header(&self, packet: PacketRef, context: &mut Context<'_>) {
        let pool = &mut *context.pool;
        let headers = &pool.carried(packet).headers;
        // A generated packet has none, and of one that came before headers were kept they are not known.
        let has_addresses = [headers.link_source, headers.link_destination] != [LinkAddress::default(); 2];
        let writes =
            self.swaps_link_addresses || self.link_source.is_some() || self.link_destination.is_some();
        if writes && has_addresses {
            let source = self.link_source.unwrap_or(headers.link_source);
            let destination = self.link_destination.unwrap_or(headers.link_destination);
            let addresses =
                if self.swaps_link_addresses { [source, destination] } else { [destination, source] };
            pool.readdress(packet, addresses);
        }
        if let Some(ether_type) = self.ether_type {
            pool.set_ether_type(packet, ether_type);
        }
        // A frame has one tag at most that is put on here.
        let is_tagged = |pool: &Pool| pool.carried(packet).headers.vlan != 0;
        if let Some(vlan) = self.vlan.filter(|&vlan| vlan == 0 || !is_tagged(pool)) {
            pool.set_vlan(packet, vlan);
        }
    }

    /// Returns whether an address or a port is another than before.
    fn write_ends(&self, key: &mut FlowKey) -> bool {
        let before = *key;
        let is_ipv6 = key.network == Protocol::Ipv6;
        let fits = |address: &[u8; 16]| is_mapped(address) != is_ipv6;
        key.source = self.source.filter(fits).unwrap_or(key.source);
        key.destination = self.destination.filter(fits).unwrap_or(key.destination);
        if matches!(key.transport, TCP | UDP | DCCP | UDP_LITE) {
            key.source_port = self.source_port.unwrap_or(key.source_port);
            key.destination_port = self.destination_port.unwrap_or(key.destination_port);
        }
        *key != before
    }
}

/// The protocols whose ports can be written. The checksum of SCTP covers the whole packet.
const TCP: u8 = 6;
const UDP: u8 = 17;
const DCCP: u8 = 33;
const UDP_LITE: u8 = 136;

/// Whether this stands for an IPv4 address.
const fn is_mapped(address: &[u8; 16]) -> bool {
    u128::from_be_bytes(*address) >> 32 == 0xffff
}
