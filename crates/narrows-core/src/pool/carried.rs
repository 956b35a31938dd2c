//! What is kept beside a packet's state, in networks that need it: its headers, what rules, routers and switches have
//! done to it, and the links that it has passed.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{CHUNK, Draws, PacketRef, PacketState, Pool};
use crate::id::LinkId;
use crate::known::KnownOnce;
use crate::labels::Labels;
use crate::packet::{Headers, LinkAddress, Quoted, TcpOptions};
use crate::place::Place;
use crate::time::{Duration, Time};

/// Extra state of a packet. What each router needs is in one line of the processor's cache.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
pub(crate) struct Carried {
    pub(crate) headers: Headers,
    /// Routers passed.
    hops: u8,
    /// Bytes by which the link header has grown since the arrival: tags put on and taken off.
    growth: i8,
    /// Whether a router or a filter has written the link addresses.
    is_readdressed: bool,
    /// What else filters have written.
    written: Written,
    /// What routers found for its destination.
    pub(crate) known: KnownOnce,
    /// The rest, once the slot has needed it.
    rest: Option<Box<Rest>>,
}

/// What only some networks need.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rest {
    pub(crate) extra: Extra,
    /// Where the packet continues in the rules that sent it to a pipe.
    pub(crate) place: Place,
    pub(crate) labels: Labels,
    /// Whether it is inside the last of the links in `passed`. Of that one, `queued` is its queueing time before.
    is_inside: bool,
    /// The links that it has passed, if they are kept.
    passed: Vec<Passed>,
}

/// What only few packets have, and few networks look at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extra {
    /// The options of a TCP segment that has any, if they are kept.
    tcp_options: Option<Box<TcpOptions>>,
    /// The packet that an ICMP error quotes, if that is kept.
    pub(crate) quoted: Option<Box<Quoted>>,
}

/// Fields that filters have written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Written {
    ether_type: bool,
    hop_limit: bool,
    /// Addresses or ports.
    ends: bool,
}

/// A link that a packet has passed, or that dropped it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// The link. For an instance of a link, the link that it was made of.
    pub link: LinkId,
    /// When the packet reached the link.
    pub entered: Time,
    /// How long it waited there for transmission.
    pub queued: Duration,
    /// When it left, or was dropped.
    pub left: Time,
}

/// How a packet's headers differ from those in its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderEdit {
    /// Destination and source of the link layer, if a router or a filter wrote them.
    pub addresses: Option<[LinkAddress; 2]>,
    /// Bytes of the link header in the body: 4 more than now if the tag is taken off, 4 fewer if one is put on.
    pub link_header: u8,
    /// The VLAN of the tag; 0 without a tag.
    pub vlan: u16,
    /// The EtherType of the payload, if a filter wrote it.
    pub ether_type: Option<u16>,
    /// The hop limit, if a filter wrote it.
    pub hop_limit: Option<u8>,
    /// Whether a filter or a translator wrote addresses or ports of the flow key.
    pub has_new_ends: bool,
    /// The packet that an ICMP error quotes, if a translator has changed something.
    pub quoted: Option<Quoted>,
}

/// Bytes of a VLAN tag.
const TAG: u8 = 4;
/// Bytes of an Ethernet header without tags.
const ETHERNET: u8 = 14;
/// A longer list of links is freed when its slot is used again. 32 entries are a kilobyte.
const KEPT: usize = 32;

impl Carried {
    /// A packet takes the slot.
    pub(super) fn begin(&mut self, headers: Headers, next: Extra) {
        let rest = self.rest.take();
        *self = Self { headers, rest, ..Self::default() };
        if let Some(rest) = &mut self.rest {
            rest.begin(next);
        } else if next.tcp_options.is_some() || next.quoted.is_some() {
            self.rest_mut().extra = next;
        }
    }

    /// The rest, if the slot has one; otherwise all of it is as it was when the packet arrived.
    pub(crate) fn rest(&self) -> Option<&Rest> {
        self.rest.as_deref()
    }

    pub(crate) fn rest_mut(&mut self) -> &mut Rest {
        self.rest.get_or_insert_default()
    }

    /// The headers, and the rest.
    pub(crate) fn parts(&mut self) -> (&Headers, &mut Rest) {
        (&self.headers, self.rest.get_or_insert_default())
    }

    /// Routers passed.
    pub(super) const fn hops(&self) -> u8 {
        self.hops
    }

    pub(super) fn passed(&self) -> &[Passed] {
        self.rest().map_or(&[], |rest| &rest.passed)
    }

    /// Addresses or ports of the flow key have been written.
    pub(crate) fn note_new_ends(&mut self) {
        self.written.ends = true;
        self.known = KnownOnce::default();
    }

    /// How the headers differ from those in the body.
    pub(super) fn header_edit(&self, state: &PacketState) -> Option<Box<HeaderEdit>> {
        let &Self { headers, growth, is_readdressed, written, .. } = self;
        if growth == 0 && !is_readdressed && written == Written::default() {
            return None;
        }
        let addresses = is_readdressed.then_some([headers.link_destination, headers.link_source]);
        let link_header = state.link_header.wrapping_add_signed(-growth);
        Some(Box::new(HeaderEdit {
            addresses,
            link_header,
            vlan: headers.vlan,
            ether_type: written.ether_type.then_some(headers.ether_type),
            hop_limit: written.hop_limit.then_some(headers.hop_limit),
            has_new_ends: written.ends,
            quoted: self
                .rest()
                .and_then(|rest| rest.extra.quoted.as_deref().copied())
                .filter(|_| written.ends),
        }))
    }
}

impl Rest {
    /// A packet takes the slot. Its list of links stays allocated.
    fn begin(&mut self, extra: Extra) {
        let mut passed = core::mem::take(&mut self.passed);
        passed.clear();
        if passed.capacity() > KEPT {
            passed = Vec::new();
        }
        *self = Self { extra, passed, ..Self::default() };
    }
}

impl Pool {
    fn keep_carried(&mut self) -> &mut [Carried] {
        let slots = self.slots();
        let all = self.carried.get_or_insert_default();
        all.resize_with(slots, Carried::default);
        all
    }

    /// From now on, keeps the header fields of arriving packets and what rules and routers add to them.
    pub(crate) fn keep_headers(&mut self) {
        if !self.keeps_headers {
            self.keeps_headers = true;
            // Nothing is known of the packets already inside.
            self.keep_carried().iter_mut().for_each(|carried| carried.headers = Headers::default());
        }
    }

    /// From now on, keeps the options of arriving TCP segments, too.
    pub(crate) fn keep_tcp_options(&mut self) {
        self.keep_headers();
        self.keeps_tcp_options = true;
    }

    /// Whether the options of TCP segments are kept.
    pub(crate) const fn keeps_tcp_options(&self) -> bool {
        self.keeps_tcp_options
    }

    /// The segment that comes next has these options.
    pub(crate) fn set_next_tcp_options(&mut self, options: TcpOptions) {
        if self.keeps_tcp_options {
            self.next.tcp_options = Some(Box::new(options));
        }
    }

    /// From now on, keeps the packets that arriving ICMP errors quote.
    pub(crate) fn keep_quoted(&mut self) {
        self.keep_headers();
        self.keeps_quoted = true;
    }

    /// Whether the packets that ICMP errors quote are kept.
    pub(crate) const fn keeps_quoted(&self) -> bool {
        self.keeps_quoted
    }

    /// The packet that comes next is an ICMP error that quotes this one.
    pub(crate) fn set_next_quoted(&mut self, quoted: Quoted) {
        if self.keeps_quoted {
            self.next.quoted = Some(Box::new(quoted));
        }
    }

    /// The options of a TCP segment that has any, if they are kept.
    pub(crate) fn tcp_options(&self, packet: PacketRef) -> Option<&TcpOptions> {
        self.carried.as_ref()?[packet.0 as usize].rest()?.extra.tcp_options.as_deref()
    }

    /// From now on, keeps the links that packets pass, or not.
    pub(crate) fn keep_passed(&mut self, keeps: bool) {
        if keeps != self.keeps_passed {
            self.keeps_passed = keeps;
            let rests = self.keep_carried().iter_mut().filter_map(|carried| carried.rest.as_mut());
            rests.for_each(|rest| (rest.is_inside, rest.passed) = (false, Vec::new()));
        }
    }

    /// Whether the links that packets pass are kept.
    #[inline]
    pub(crate) const fn keeps_passed(&self) -> bool {
        self.keeps_passed
    }

    /// The packet enters a link. Only if the links that packets pass are kept.
    pub(crate) fn enter(&mut self, packet: PacketRef, link: LinkId, now: Time) {
        let queued = self.get(packet).queued;
        let rest = self.carried_mut(packet).rest_mut();
        rest.passed.push(Passed { link, entered: now, queued, left: now });
        rest.is_inside = true;
    }

    /// The packet leaves the link that it is in, or is dropped there. Only if the links that packets pass are kept.
    pub(crate) fn pass(&mut self, packet: PacketRef, now: Time) {
        let queued = self.get(packet).queued;
        let rest = self.carried_mut(packet).rest_mut();
        if let Some(last) = rest.passed.last_mut().filter(|_| rest.is_inside) {
            last.queued = Duration::from_nanos(queued.nanos().saturating_sub(last.queued.nanos()));
            last.left = now;
        }
        rest.is_inside = false;
    }

    /// Only for networks that keep headers or the links that packets pass.
    pub(crate) fn carried(&self, packet: PacketRef) -> &Carried {
        let all = self.carried.as_ref().expect("rules and routers make the network keep headers");
        &all[packet.0 as usize]
    }

    /// A packet's headers, if they are kept.
    pub(crate) fn headers(&self, packet: PacketRef) -> Option<&Headers> {
        let all = self.carried.as_ref().filter(|_| self.keeps_headers)?;
        Some(&all[packet.0 as usize].headers)
    }

    /// As [`Pool::carried`].
    pub(crate) fn carried_mut(&mut self, packet: PacketRef) -> &mut Carried {
        let all = self.carried.as_mut().expect("rules and routers make the network keep headers");
        &mut all[packet.0 as usize]
    }

    /// Fills in the extra state of a newly taken slot.
    #[inline]
    pub(super) fn carry(&mut self, packet: PacketRef, from: impl FnOnce(&mut [Carried], usize, &mut Extra)) {
        if let Some(all) = &mut self.carried {
            if all.len() <= packet.0 as usize {
                all.resize_with(self.chunks.len() * CHUNK, Carried::default);
            }
            from(all, packet.0 as usize, &mut self.next);
        }
    }

    /// A packet's state, its extra state and its draws, all that rules need. Only for networks that keep
    /// headers.
    pub(crate) fn for_rules(
        &mut self,
        packet: PacketRef,
        visit: u8,
    ) -> (&mut PacketState, &mut Carried, Draws) {
        let at = packet.0 as usize;
        let state = &mut self.chunks[at / CHUNK][at % CHUNK];
        let all = self.carried.as_mut().expect("rules and routers make the network keep headers");
        let origin = self.origins[usize::from(state.id.port().index())];
        let draws = Draws { origin, number: state.id.number(), visit, lineage: state.lineage() };
        (state, &mut all[at], draws)
    }

    /// Decrements the hop limit at a router. Returns whether the router may forward the packet.
    pub(crate) fn take_hop(&mut self, packet: PacketRef) -> bool {
        let carried = self.carried_mut(packet);
        // A router drops a packet that arrives with a hop limit of one.
        let passes = carried.headers.hop_limit > 1;
        if passes {
            carried.headers.hop_limit -= 1;
            carried.hops += 1;
            // It sends the packet with a link header of its own.
            carried.is_readdressed = false;
        }
        passes
    }

    /// Takes the address that rules want the next router to send the packet towards.
    pub(crate) fn take_next_hop(&mut self, packet: PacketRef) -> Option<[u8; 16]> {
        self.carried_mut(packet).rest.as_mut()?.labels.next_hop.take()
    }

    /// Writes the link addresses: destination and source.
    pub(crate) fn readdress(&mut self, packet: PacketRef, [destination, source]: [LinkAddress; 2]) {
        let carried = self.carried_mut(packet);
        carried.headers.link_destination = destination;
        carried.headers.link_source = source;
        carried.is_readdressed = true;
    }

    /// Writes the EtherType of the payload.
    pub(crate) fn set_ether_type(&mut self, packet: PacketRef, ether_type: u16) {
        let carried = self.carried_mut(packet);
        (carried.headers.ether_type, carried.written.ether_type) = (ether_type, true);
    }

    /// Writes the hop limit.
    pub(crate) fn set_hop_limit(&mut self, packet: PacketRef, hop_limit: u8) {
        let carried = self.carried_mut(packet);
        (carried.headers.hop_limit, carried.written.hop_limit) = (hop_limit, true);
        // Routers count from here.
        carried.hops = 0;
    }

    /// Addresses or ports of the flow key have been written.
    pub(crate) fn note_new_ends(&mut self, packet: PacketRef) {
        self.carried_mut(packet).note_new_ends();
    }

    /// Puts on a tag of this VLAN, or takes the tag off if it is 0. Packets without an Ethernet header only
    /// count as of the VLAN.
    pub(crate) fn set_vlan(&mut self, packet: PacketRef, vlan: u16) {
        let at = packet.0 as usize;
        let Some(carried) = self.carried.as_mut().map(|all| &mut all[at]) else { return };
        let state = &mut self.chunks[at / CHUNK][at % CHUNK];
        let before = core::mem::replace(&mut carried.headers.vlan, vlan);
        match (before, vlan) {
            (0, 1..) if (ETHERNET..=u8::MAX - TAG).contains(&state.link_header) => {
                state.link_header += TAG;
                self.bytes += u64::from(TAG);
                carried.growth += TAG as i8;
            }
            (1.., 0) if state.link_header >= ETHERNET + TAG => {
                state.link_header -= TAG;
                self.bytes -= u64::from(TAG);
                carried.growth -= TAG as i8;
            }
            _ => {}
        }
    }

    /// The flow label, which masks look at in addition to the key. 0 in a network that does not keep headers.
    pub(crate) fn flow_label(&self, packet: PacketRef) -> u32 {
        let all = self.carried.as_ref().filter(|_| self.keeps_headers);
        all.map_or(0, |all| all[packet.0 as usize].headers.flow_label)
    }
}
