//! Applies the engine's decisions about a packet to its frame.
//!
//! The engine never touches bytes: a delivery says how the packet differs from the frame that arrived. [`Edits`] is
//! that difference, and [`Edits::render`] builds the frame that leaves:
//! 1. A fragment is cut as a router does (RFC 791): it gets the IPv4 header of the whole packet, in which options
//!    without the copy flag are replaced by "no operation" in all fragments but the first. (So every fragment has a
//!    header of the same length, which the engine's accounting relies on. Linux does the same.) For a fragment of a
//!    fragment, the offsets add up, and "more fragments" stays set where it was.
//! 2. The traffic class byte (DSCP and ECN) is set to that of the packet's key.
//! 3. The time to live (IPv6: hop limit) is decremented once for each router that the packet passed.
//! 4. The IPv4 header checksum is updated: incrementally for marks and hops (RFC 1624), so that a wrong checksum
//!    stays wrong; recomputed for a fragment. The transport checksum covers none of these fields.
//! 5. Bits are flipped; no checksum is updated for them.
//! 6. An Ethernet frame gets new link addresses where the network rewrites them, as a router does. On the last link
//!    the sender of the frame supplies them; for switches and filters the engine knows them. A multicast or broadcast
//!    destination stays.
//! 7. What filters and translators wrote is written: EtherType, hop limit, and addresses and ports with the checksums
//!    that cover them, also those of the packet that an ICMP error quotes.
//! 8. A VLAN tag is put on or taken off, if a switch or a filter did so.

use narrows_core::{Event, FlowKey, Fragment, Protocol, Quoted};

use crate::MacAddress;
use crate::bytes::{array, byte, word};
use crate::checksum::{Sum, updated};
use crate::translate::write_ends;

/// How a packet that leaves differs from the frame that arrived.
#[derive(Clone, Copy, Debug)]
pub struct Edits<'a> {
    /// Bytes before the network header in the frame that arrived.
    pub link_header: u8,
    /// The network protocol that the frame was parsed as. [`Protocol::Other`] has no traffic class and is never
    /// fragmented.
    pub network: Protocol,
    /// The new DSCP and ECN.
    pub traffic_class: u8,
    /// The hop limit before the routers, if a filter wrote it.
    pub hop_limit: Option<u8>,
    /// How many routers the packet has passed, since then.
    pub hops: u8,
    /// The new length, from the network header on.
    pub length: u32,
    /// Which fragment of the frame's packet leaves, if it was fragmented.
    pub fragment: Option<Fragment>,
    /// Bits to flip, counted from the network header of the outgoing packet: bit 0 is the most significant bit of the
    /// first byte, as in the diagrams of RFC 791. Bits beyond the end are ignored.
    pub flips: &'a [u32],
    /// The source and destination link addresses on the last link, if they differ from the arriving frame's.
    pub stations: Option<(MacAddress, MacAddress)>,
    /// The EtherType of the payload of an Ethernet frame, if a filter wrote it.
    pub ether_type: Option<u16>,
    /// The flow key whose addresses and ports to write, if a filter or a translator changed them.
    pub ends: Option<FlowKey>,
    /// With them, the ends of the packet that an ICMP error quotes.
    pub quoted: Option<Quoted>,
    /// What happens to the VLAN tag of an Ethernet frame.
    pub tag: Tag,
}

/// What happens to the first VLAN tag of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tag {
    /// It stays, or there is none.
    #[default]
    Stays,
    /// One of this VLAN is put on, with priority 0.
    On(u16),
    /// It is taken off.
    Off,
}

impl<'a> Edits<'a> {
    /// The edits that an event requires. Link addresses change only where the engine knows them.
    pub fn of<B>(event: &'a Event<'_, B>) -> Self {
        let edit = event.header_edit.as_deref();
        let addresses = edit.and_then(|edit| edit.addresses);
        let tag = match edit {
            Some(edit) if edit.link_header < event.link_header => Tag::On(edit.vlan),
            Some(edit) if edit.link_header > event.link_header => Tag::Off,
            _ => Tag::Stays,
        };
        Self {
            link_header: edit.map_or(event.link_header, |edit| edit.link_header),
            network: event.key.network,
            traffic_class: event.key.traffic_class,
            hop_limit: edit.and_then(|edit| edit.hop_limit),
            hops: event.hops,
            length: event.length,
            fragment: event.fragment,
            flips: &event.flips,
            stations: addresses.map(|[to, from]| (MacAddress(from), MacAddress(to))),
            ether_type: edit.and_then(|edit| edit.ether_type),
            ends: edit.is_some_and(|edit| edit.has_new_ends).then_some(event.key),
            quoted: edit.and_then(|edit| edit.quoted),
            tag,
        }
    }

    /// Whether bytes change that a transport checksum covers, or where it stands.
    pub fn affect_checksum(&self) -> bool {
        self.fragment.is_some() || !self.flips.is_empty() || self.ends.is_some() || self.tag != Tag::Stays
    }

    /// Whether the frame has to change at all. If not, it can leave as it is, without a copy.
    pub fn needed(&self, frame: &[u8]) -> bool {
        self.fragment.is_some()
            || !self.flips.is_empty()
            || self.new_class(frame).is_some()
            || self.new_hop_limit(frame).is_some()
            || self.new_stations(frame).is_some()
            || self.ether_type.is_some()
            || self.ends.is_some()
            || self.tag != Tag::Stays
    }

    /// Writes the addresses and ports that were changed into the frame that arrived, which stays otherwise, and takes
    /// them out of the edits: for whoever changes addresses after the network.
    pub fn write_ends(&mut self, frame: &mut [u8]) {
        if let (Some(key), Some(packet)) = (self.ends.take(), frame.get_mut(usize::from(self.link_header)..))
        {
            write_ends(packet, &key, self.quoted.take());
        }
    }

    /// Writes the outgoing frame to `out`. Of a frame that a capture truncated, writes the part that is there.
    pub fn render(&self, frame: &[u8], out: &mut Vec<u8>) {
        out.clear();
        let network = usize::from(self.link_header);
        match self.fragment {
            Some(piece) => self.cut(frame, piece, out),
            None => out.extend_from_slice(frame),
        }
        if let Some(class) = self.new_class(out) {
            mark(&mut out[network..], self.network, class);
        }
        if let Some(hop_limit) = self.new_hop_limit(out) {
            limit_hops(&mut out[network..], self.network, hop_limit);
        }
        if let (Some(key), Some(packet)) = (&self.ends, out.get_mut(network..)) {
            write_ends(packet, key, self.quoted);
        }
        if let Some(ether_type) = self.ether_type.filter(|_| network >= 14 && out.len() >= network) {
            out[network - 2..network].copy_from_slice(&ether_type.to_be_bytes());
        }
        if let Some(stations) = self.new_stations(out) {
            out[..12].copy_from_slice(&stations);
        }
        if let Some(packet) = out.get_mut(network..) {
            let end = packet.len().min(self.length as usize);
            for &bit in self.flips {
                if let Some(byte) = packet[..end].get_mut(bit as usize / 8) {
                    *byte ^= 0x80 >> (bit % 8);
                }
            }
        }
        self.tag(out);
    }

    /// Puts the VLAN tag on or takes it off; it follows the two addresses. A frame that is too short stays as it is.
    fn tag(&self, frame: &mut Vec<u8>) {
        const AT: usize = 12;
        const LENGTH: usize = 4;
        match self.tag {
            Tag::On(vlan) if frame.len() >= AT => {
                let [high, low] = vlan.to_be_bytes();
                frame.splice(AT..AT, [0x81, 0x00, high, low]);
            }
            Tag::Off if frame.len() >= AT + LENGTH => drop(frame.drain(AT..AT + LENGTH)),
            _ => {}
        }
    }

    /// The traffic class to set, if the frame's differs.
    fn new_class(&self, frame: &[u8]) -> Option<u8> {
        let at = usize::from(self.link_header);
        let now = match self.network {
            Protocol::Other => return None,
            Protocol::Ipv4 | Protocol::Ipv4DontFragment => byte(frame, at + 1)?,
            Protocol::Ipv6 => (word(frame, at)? >> 4) as u8,
        };
        (now != self.traffic_class).then_some(self.traffic_class)
    }

    /// The hop limit to set, if the frame's differs. It is 0 if the packet passed more routers than it had hops left.
    fn new_hop_limit(&self, frame: &[u8]) -> Option<u8> {
        let network = usize::from(self.link_header);
        let now = match self.network {
            Protocol::Other => return None,
            Protocol::Ipv4 | Protocol::Ipv4DontFragment => byte(frame, network + TIME_TO_LIVE)?,
            Protocol::Ipv6 => byte(frame, network + HOP_LIMIT)?,
        };
        let new = self.hop_limit.unwrap_or(now).saturating_sub(self.hops);
        (new != now).then_some(new)
    }

    /// The link addresses to set, if the frame's differ; `None` for a frame without an Ethernet header.
    fn new_stations(&self, frame: &[u8]) -> Option<[u8; 12]> {
        let (from, to) = self.stations?;
        let now: [u8; 12] = array(frame, 0).filter(|_| self.link_header >= 14)?;
        let mut new = now;
        if !MacAddress(array(frame, 0)?).is_group() {
            new[..6].copy_from_slice(&to.0);
        }
        new[6..].copy_from_slice(&from.0);
        (new != now).then_some(new)
    }

    /// Copies a fragment of an IPv4 packet. A frame without an IPv4 header is copied whole: it is never fragmented.
    fn cut(&self, frame: &[u8], piece: Fragment, out: &mut Vec<u8>) {
        let network = usize::from(self.link_header);
        let Some(header) = ipv4_header(frame, network) else {
            out.extend_from_slice(frame);
            return;
        };
        let payload = &frame[network + header..];
        let from = payload.len().min(usize::from(piece.offset));
        let length = (self.length as usize).saturating_sub(header);
        let to = payload.len().min(from + length);
        out.extend_from_slice(&frame[..network + header]);
        out.extend_from_slice(&payload[from..to]);

        let header = &mut out[network..network + header];
        if piece.offset > 0 {
            blank_uncopied_options(&mut header[20..]);
        }
        header[2..4].copy_from_slice(&(self.length as u16).to_be_bytes());
        let old = u16::from_be_bytes([header[6], header[7]]);
        let more = if piece.more { MORE_FRAGMENTS } else { 0 };
        let offset = (old & OFFSET).wrapping_add(piece.offset / 8) & OFFSET;
        let place = old & !OFFSET | more | offset;
        header[6..8].copy_from_slice(&place.to_be_bytes());
        header[10..12].fill(0);
        let checksum = Sum::default().bytes(header).complement();
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
}

/// The offset of the time to live in the header.
const TIME_TO_LIVE: usize = 8;
const HOP_LIMIT: usize = 7;
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET: u16 = 0x1fff;

/// The length of the IPv4 header at `network`, if it is complete.
fn ipv4_header(frame: &[u8], network: usize) -> Option<usize> {
    let header = usize::from(byte(frame, network)? & 15) * 4;
    (header >= 20 && frame.len() >= network + header).then_some(header)
}

/// Sets the traffic class of a packet that is long enough to have one.
fn mark(packet: &mut [u8], network: Protocol, class: u8) {
    if network == Protocol::Ipv6 {
        packet[0] = packet[0] & 0xf0 | class >> 4;
        packet[1] = packet[1] & 0x0f | class << 4;
        return;
    }
    let old = u16::from_be_bytes([packet[0], packet[1]]);
    packet[1] = class;
    let new = u16::from_be_bytes([packet[0], packet[1]]);
    if let Some(checksum) = word(packet, 10) {
        packet[10..12].copy_from_slice(&updated(checksum, old, new).to_be_bytes());
    }
}

/// Sets the hop limit of a packet that is long enough to have one.
fn limit_hops(packet: &mut [u8], network: Protocol, limit: u8) {
    if network == Protocol::Ipv6 {
        packet[HOP_LIMIT] = limit;
        return;
    }
    // The 16-bit word that the checksum covers: time to live and protocol.
    let old = word(packet, TIME_TO_LIVE);
    packet[TIME_TO_LIVE] = limit;
    let new = word(packet, TIME_TO_LIVE);
    if let (Some(old), Some(new), Some(checksum)) = (old, new, word(packet, 10)) {
        packet[10..12].copy_from_slice(&updated(checksum, old, new).to_be_bytes());
    }
}

/// Options end at "end of options". "No operation" has one byte; all others have their length in the second byte, and
/// the top bit of their type says whether later fragments carry them.
fn blank_uncopied_options(mut options: &mut [u8]) {
    const END: u8 = 0;
    const NO_OPERATION: u8 = 1;
    const COPIED: u8 = 0x80;
    while let [kind, rest @ ..] = &*options {
        let kind = *kind;
        let length = match (kind, rest.first()) {
            (END, _) => return,
            (NO_OPERATION, _) => 1,
            (_, Some(&length)) => usize::from(length),
            (_, None) => return,
        };
        // Not a valid option length: the rest cannot be parsed and is left unchanged.
        if length == 0 || length > options.len() || (length == 1 && kind != NO_OPERATION) {
            return;
        }
        let (option, rest) = options.split_at_mut(length);
        if kind & COPIED == 0 {
            option.fill(NO_OPERATION);
        }
        options = rest;
    }
}

#[cfg(test)]
mod tests;
