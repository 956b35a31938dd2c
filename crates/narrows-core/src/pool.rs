//! Storage of the packets inside the network.
//!
//! Queues and delay lines pass [`PacketRef`]s around; the state behind them does not move. The state is
//! small, 104 bytes, so even with a heap entry a packet takes less than 128 bytes beyond its body.

mod list;
mod trails;
mod visits;

pub use list::PacketList;
pub use trails::Passed;

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::id::LinkId;
use crate::packet::{FlowKey, Fragment, Headers, LinkAddress, Packet, PacketId};
use crate::place::Place;
use crate::random::{Draw, Stream};
use crate::time::{Duration, Time};
use crate::units::Bytes;
use trails::Trails;
use visits::Visits;

/// A reference to a packet inside the network. Valid until the packet leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PacketRef(u32);

impl PacketRef {
    /// The number of its slot.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The packet in the slot with this number. For tests and benchmarks of schedulers; a pool knows only the
    /// references it gave out.
    pub const fn from_number(number: u32) -> Self {
        Self(number)
    }
}

const NONE: u32 = u32::MAX;

/// What the engine keeps for a packet while it is inside.
#[derive(Clone, Debug)]
pub struct PacketState {
    /// The flow key. Header edits (a CE mark, a new DSCP) are applied here immediately.
    pub key: FlowKey,
    /// Bytes from the network header on.
    pub length: u32,
    /// The packet's id.
    pub id: PacketId,
    /// When the packet was handed in.
    pub arrival: Time,
    /// When the packet entered the queue it waits in; in the delay line, when it is due to leave.
    pub entered: Time,
    /// Queueing time so far.
    pub queued: Duration,
    next: u32,
    /// The slot that keeps the body: this one, or for a copy the slot of the original.
    origin: u32,
    /// Index of its bit flips, or `NONE`.
    flips: u32,
    /// For a copy: its lineage. For an original, whose lineage is 0: the lower half counts the packets inside
    /// that use its body, the upper half is the last copy number given out.
    family: u32,
    /// 0 for the packet that was handed in; duplicates and fragments have the numbers after it.
    pub copy: u16,
    /// Offset / 8, the flag "more" and the flag "is a fragment".
    fragment: u16,
    /// Elements visited so far.
    pub(crate) visits: u8,
    /// The lane of its link that it travels in.
    pub(crate) lane: u8,
    /// Bytes of link header before the network header.
    pub link_header: u8,
    /// Bytes of the IPv4 header, 0 for other packets.
    pub network_header: u8,
}

impl PacketState {
    /// Bytes from the link header on, without the frame check sequence.
    pub const fn frame_length(&self) -> u64 {
        self.length as u64 + self.link_header as u64
    }

    /// For a fragment cut by a link, which piece of the packet it is.
    pub const fn fragment(&self) -> Option<Fragment> {
        match self.fragment & 1 {
            0 => None,
            _ => Some(Fragment { offset: self.fragment & !7, more: self.fragment & 2 != 0 }),
        }
    }

    /// The key as masks, rules and routers see it: only the first fragment of a packet has ports and TCP
    /// flags, as if the packet had come in fragmented.
    #[inline]
    pub(crate) const fn seen_key(&self) -> FlowKey {
        match self.fragment & !7 {
            0 => self.key,
            _ => FlowKey { source_port: 0, destination_port: 0, tcp_flags: 0, ..self.key },
        }
    }

    /// What distinguishes copies in the keys of their draws.
    const fn lineage(&self) -> u32 {
        if self.copy == 0 { 0 } else { self.family }
    }

    /// For an original: how many packets inside use its body.
    const fn uses(&self) -> u32 {
        self.family & 0xffff
    }

    pub(crate) const fn set_fragment(&mut self, piece: Fragment) {
        // An offset is a multiple of 8, so its three lowest bits are free.
        self.fragment = piece.offset | (piece.more as u16) << 1 | 1;
    }
}

/// The result of [`Pool::remove`].
pub(crate) struct Removed<'a> {
    pub(crate) state: &'a PacketState,
    pub(crate) flips: Vec<u32>,
    /// The slot that keeps the body.
    pub(crate) body_slot: usize,
    /// Whether no other packet uses the body any more.
    pub(crate) last: bool,
    /// The links that it has passed, if they are kept.
    pub(crate) passed: &'a [Passed],
}

/// Extra state of a packet in networks with rules or routers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Carried {
    pub(crate) headers: Headers,
    /// Where the packet continues in the rules that sent it to a pipe.
    pub(crate) place: Place,
    pub(crate) tags: Vec<u16>,
    /// Routers passed.
    hops: u8,
    /// Bytes by which the link header has grown since the arrival: tags put on and taken off.
    growth: i8,
    /// Whether a router has written the link addresses.
    is_readdressed: bool,
}

/// How a packet's link header differs from that in its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkEdit {
    /// Destination and source, if a router wrote them.
    pub addresses: Option<[LinkAddress; 2]>,
    /// Bytes of the link header in the body: 4 more than now if the tag is taken off, 4 fewer if one is put on.
    pub link_header: u8,
    /// The VLAN of the tag; 0 without a tag.
    pub vlan: u16,
}

/// Bytes of a VLAN tag.
const TAG: u8 = 4;
/// Bytes of an Ethernet header without tags.
const ETHERNET: u8 = 14;

/// What distinguishes a packet's draws at one visit from all others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draws {
    origin: u32,
    number: u64,
    visit: u8,
    lineage: u32,
}

impl Draws {
    /// The draws of a stream.
    pub(crate) fn of(&self, stream: &Stream) -> Draw {
        stream.draw(self.origin, self.number, self.visit, self.lineage)
    }
}

const CHUNK: usize = 256;

/// Memory per packet besides its frame, for the memory cap.
const RECORD: u64 = 128;

/// The packets inside the network. Grows in steps of a few kilobytes and reuses free slots.
#[derive(Debug, Default)]
pub struct Pool {
    chunks: Vec<Box<[PacketState; CHUNK]>>,
    free: u32,
    inside: u64,
    bytes: u64,
    memory: u64,
    flips: Vec<Vec<u32>>,
    free_flips: Vec<u32>,
    /// The hash that stands for each port in the keys of draws.
    pub(crate) origins: Vec<u32>,
    /// Visits of packets to elements that they may visit again, by slot.
    visits: Visits,
    /// By slot, in networks that need it.
    carried: Option<Vec<Carried>>,
    /// The links that packets have passed, if they are kept.
    trails: Option<Trails>,
}

impl Pool {
    pub(crate) fn new(memory: Bytes) -> Self {
        Self { free: NONE, memory: memory.get(), ..Self::default() }
    }

    /// From now on, keeps the header fields of arriving packets and what rules and routers add to them.
    pub(crate) fn keep_headers(&mut self) {
        let slots = self.slots();
        // Nothing is known of the packets already inside.
        self.carried.get_or_insert_default().resize_with(slots, Carried::default);
    }

    /// From now on, keeps the links that packets pass, or not.
    pub(crate) fn keep_passed(&mut self, keeps: bool) {
        self.trails = keeps.then(|| self.trails.take().unwrap_or_default());
    }

    /// Whether the links that packets pass are kept.
    #[inline]
    pub(crate) const fn keeps_passed(&self) -> bool {
        self.trails.is_some()
    }

    /// The packet comes to a link.
    pub(crate) fn enter(&mut self, packet: PacketRef, link: LinkId, now: Time) {
        let queued = self.get(packet).queued;
        self.trails.iter_mut().for_each(|trails| trails.enter(packet, link, now, queued));
    }

    /// The packet leaves the link that it is in.
    pub(crate) fn pass(&mut self, packet: PacketRef, now: Time) {
        let queued = self.get(packet).queued;
        self.trails.iter_mut().for_each(|trails| trails.leave(packet, now, queued));
    }

    /// Only for networks that keep headers.
    pub(crate) fn carried(&self, packet: PacketRef) -> &Carried {
        let all = self.carried.as_ref().expect("rules and routers make the network keep headers");
        &all[packet.0 as usize]
    }

    /// As [`Pool::carried`].
    pub(crate) fn carried_mut(&mut self, packet: PacketRef) -> &mut Carried {
        let all = self.carried.as_mut().expect("rules and routers make the network keep headers");
        &mut all[packet.0 as usize]
    }

    /// Fills in the extra state of a newly taken slot.
    #[inline]
    fn carry(&mut self, packet: PacketRef, from: impl FnOnce(&mut [Carried], usize)) {
        if let Some(all) = &mut self.carried {
            if all.len() <= packet.0 as usize {
                all.resize_with(self.chunks.len() * CHUNK, Carried::default);
            }
            from(all, packet.0 as usize);
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
        }
        passes
    }

    /// Writes the link addresses: destination and source.
    pub(crate) fn readdress(&mut self, packet: PacketRef, [destination, source]: [LinkAddress; 2]) {
        let carried = self.carried_mut(packet);
        carried.headers.link_destination = destination;
        carried.headers.link_source = source;
        carried.is_readdressed = true;
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

    /// How many routers the packet has passed, and how its link header differs from that in its body.
    #[inline]
    pub(crate) fn edits(&self, packet: PacketRef) -> (u8, Option<Box<LinkEdit>>) {
        match &self.carried {
            None => (0, None),
            Some(all) => {
                let carried = &all[packet.0 as usize];
                (carried.hops, self.link_edit(packet, carried))
            }
        }
    }

    fn link_edit(&self, packet: PacketRef, carried: &Carried) -> Option<Box<LinkEdit>> {
        let &Carried { headers, growth, is_readdressed, .. } = carried;
        if growth == 0 && !is_readdressed {
            return None;
        }
        let addresses = is_readdressed.then_some([headers.link_destination, headers.link_source]);
        let link_header = self.get(packet).link_header.wrapping_add_signed(-growth);
        Some(Box::new(LinkEdit { addresses, link_header, vlan: headers.vlan }))
    }

    /// The flow label, which masks look at in addition to the key.
    pub(crate) fn flow_label(&self, packet: PacketRef) -> u32 {
        self.carried.as_ref().map_or(0, |all| all[packet.0 as usize].headers.flow_label)
    }

    /// The packet's state.
    pub fn get(&self, packet: PacketRef) -> &PacketState {
        let at = packet.0 as usize;
        &self.chunks[at / CHUNK][at % CHUNK]
    }

    /// The packet's state, mutable.
    pub fn get_mut(&mut self, packet: PacketRef) -> &mut PacketState {
        let at = packet.0 as usize;
        &mut self.chunks[at / CHUNK][at % CHUNK]
    }

    /// How many packets are inside: those without a verdict. Packets with a verdict do not count, polled or
    /// not.
    pub const fn len(&self) -> u64 {
        self.inside
    }

    /// Whether no packet is inside.
    pub const fn is_empty(&self) -> bool {
        self.inside == 0
    }

    /// Bytes of the packets inside, link headers included. A body shared by several copies counts once for
    /// each.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the packets inside exceed the memory cap.
    pub(crate) const fn over_memory_cap(&self) -> bool {
        self.bytes + RECORD * self.inside > self.memory
    }

    /// A packet's bit flips: offsets in bits from the network header.
    pub fn flips(&self, packet: PacketRef) -> &[u32] {
        match self.get(packet).flips {
            NONE => &[],
            at => &self.flips[at as usize],
        }
    }

    pub(crate) fn flip(&mut self, packet: PacketRef, bit: u32) {
        let at = match self.get(packet).flips {
            NONE => {
                let at = self.take_flips();
                self.get_mut(packet).flips = at;
                at
            }
            at => at,
        };
        self.flips[at as usize].push(bit);
    }

    fn take_flips(&mut self) -> u32 {
        self.free_flips.pop().unwrap_or_else(|| {
            self.flips.push(Vec::new());
            (self.flips.len() - 1) as u32
        })
    }

    #[inline]
    pub(crate) fn insert<B>(&mut self, id: PacketId, at: Time, packet: &Packet<B>) -> PacketRef {
        let slot = self.allocate();
        let state = self.get_mut(slot);
        *state = PacketState {
            key: packet.key,
            length: packet.length,
            id,
            arrival: at,
            entered: at,
            queued: Duration::ZERO,
            next: NONE,
            origin: slot.0,
            flips: NONE,
            family: 1,
            copy: 0,
            fragment: 0,
            visits: 0,
            lane: 0,
            link_header: packet.link_header,
            network_header: packet.network_header,
        };
        let frame_length = state.frame_length();
        self.inside += 1;
        self.bytes += frame_length;
        self.carry(slot, |all, at| {
            let Carried { headers, place, tags, hops, growth, is_readdressed } = &mut all[at];
            (*headers, *place, *tags, *hops) = (packet.headers, Place::default(), Vec::new(), 0);
            (*growth, *is_readdressed) = (0, false);
        });
        if let Some(trails) = &mut self.trails {
            trails.begin(slot);
        }
        slot
    }

    /// Another packet with the same body and edits; `None` when the packet has already had 65,534 copies. The
    /// key of a copy's draws contains the place and the visit at which it was made, and its number there.
    pub(crate) fn duplicate(
        &mut self,
        packet: PacketRef,
        maker: &Stream,
        visit: u8,
        nth: u16,
    ) -> Option<PacketRef> {
        let origin = PacketRef(self.get(packet).origin);
        let source = self.get_mut(origin);
        let copy = (source.family >> 16) as u16 + 1;
        if copy == u16::MAX {
            return None;
        }
        source.family += 1 << 16 | 1; // uses ≤ copies + 1 ≤ 65,535: neither half overflows
        let slot = self.allocate();
        let flips = match self.get(packet).flips {
            NONE => NONE,
            from => {
                let to = self.take_flips();
                self.flips[to as usize] = self.flips[from as usize].clone();
                to
            }
        };
        let parent = self.get(packet);
        let family = maker.lineage(parent.lineage(), visit, nth);
        *self.get_mut(slot) = PacketState { copy, family, flips, next: NONE, ..parent.clone() };
        self.visits.inherit(packet, slot);
        self.carry(slot, |all, at| all[at] = all[packet.0 as usize].clone());
        if let Some(trails) = &mut self.trails {
            trails.inherit(packet, slot);
        }
        self.inside += 1;
        self.bytes += self.get(slot).frame_length();
        Some(slot)
    }

    /// Cuts the packet down to a fragment of itself: its header and `length` bytes of its payload from
    /// `offset` on.
    pub(crate) fn cut(&mut self, packet: PacketRef, offset: u32, length: u32, piece: Fragment) {
        let state = self.get_mut(packet);
        let (header, before) = (u32::from(state.network_header), state.frame_length());
        state.length = header + length;
        state.set_fragment(piece);
        let (after, flips) = (state.frame_length(), state.flips);
        if let Some(all) = &mut self.carried {
            let headers = &mut all[packet.0 as usize].headers;
            headers.is_later_fragment |= piece.offset > 0;
            headers.tcp_data_length = match headers.is_later_fragment {
                true => 0,
                // Shorter by up to 65,535 bytes, because no longer packet is cut.
                false => headers.tcp_data_length.saturating_sub((before - after) as u16),
            };
        }
        self.bytes = self.bytes - before + after;
        if flips != NONE {
            // A bit flipped in the header is flipped in every fragment; a bit flipped in the payload, in the
            // fragment that contains it.
            let (payload, from, to) = (8 * header, 8 * (header + offset), 8 * (header + offset + length));
            let flips = &mut self.flips[flips as usize];
            flips.retain(|&bit| bit < payload || (from..to).contains(&bit));
            flips.iter_mut().filter(|bit| **bit >= payload).for_each(|bit| *bit -= from - payload);
        }
    }

    /// Counts a visit of the packet to an element that it may visit again.
    #[inline]
    pub(crate) fn count_visit(&mut self, packet: PacketRef, element: u32) {
        self.visits.count(packet, element);
    }

    /// How many visits of the packet to such an element came before the latest one.
    #[inline]
    pub(crate) fn earlier_visits(&self, packet: PacketRef, element: u32) -> u8 {
        self.visits.earlier(packet, element)
    }

    pub(crate) const fn slot(packet: PacketRef) -> usize {
        packet.0 as usize
    }

    /// The random draws of `stream` for this packet. `visit` distinguishes its visits to one element.
    pub(crate) fn draw(&self, stream: &Stream, packet: PacketRef, visit: u8) -> Draw {
        let state = self.get(packet);
        let origin = self.origins[usize::from(state.id.port().index())];
        stream.draw(origin, state.id.number(), visit, state.lineage())
    }

    /// The packet has its verdict: it is no longer inside, but stays stored until it is removed. Returns its
    /// length.
    #[inline]
    pub(crate) fn leave(&mut self, packet: PacketRef) -> u32 {
        let state = self.get(packet);
        let (length, frame_length) = (state.length, state.frame_length());
        self.inside -= 1;
        self.bytes -= frame_length;
        self.visits.forget(packet);
        length
    }

    /// Frees the slot of a packet that has left. A slot that keeps a body is freed when the last copy is
    /// removed.
    #[inline]
    pub(crate) fn remove(&mut self, packet: PacketRef) -> Removed<'_> {
        let origin = self.get(packet).origin;
        if packet.0 != origin {
            self.release(packet);
        }
        let supervisor = self.get_mut(PacketRef(origin));
        supervisor.family -= 1;
        let last = supervisor.uses() == 0;
        if last {
            self.release(PacketRef(origin));
        }
        let at = packet.0 as usize;
        let state = &mut self.chunks[at / CHUNK][at % CHUNK];
        let flips = match core::mem::replace(&mut state.flips, NONE) {
            NONE => Vec::new(),
            at => {
                self.free_flips.push(at);
                core::mem::take(&mut self.flips[at as usize])
            }
        };
        let passed = self.trails.as_ref().map_or(&[][..], |trails| trails.get(packet));
        Removed { state, flips, body_slot: origin as usize, last, passed }
    }

    #[inline]
    fn release(&mut self, packet: PacketRef) {
        self.get_mut(packet).next = self.free;
        self.free = packet.0;
    }

    #[inline]
    fn allocate(&mut self) -> PacketRef {
        if self.free == NONE {
            self.grow();
        }
        let slot = PacketRef(self.free);
        self.free = self.get(slot).next;
        slot
    }

    fn grow(&mut self) {
        let first = self.chunks.len() * CHUNK;
        assert!(first + CHUNK < NONE as usize, "four thousand million packets inside");
        let blank = |at: usize| PacketState {
            key: FlowKey::default(),
            length: 0,
            id: PacketId::new(crate::id::PortId::new(0), 0),
            arrival: Time::ZERO,
            entered: Time::ZERO,
            queued: Duration::ZERO,
            next: if at + 1 < first + CHUNK { at as u32 + 1 } else { NONE },
            origin: at as u32,
            flips: NONE,
            family: 0,
            copy: 0,
            fragment: 0,
            visits: 0,
            lane: 0,
            link_header: 0,
            network_header: 0,
        };
        let chunk: Box<[PacketState]> = (first..first + CHUNK).map(blank).collect();
        self.chunks.push(chunk.try_into().expect("it was made with that many"));
        self.free = first as u32;
    }

    /// All slots, in use or not.
    pub(crate) fn slots(&self) -> usize {
        self.chunks.len() * CHUNK
    }
}

#[cfg(test)]
mod tests;
