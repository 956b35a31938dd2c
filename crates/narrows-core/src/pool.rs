//! Storage of the packets inside the network.
//!
//! Queues and delay lines pass [`PacketRef`]s around; the state behind them does not move. The state is
//! small, 104 bytes, so even with a heap entry a packet takes less than 128 bytes beyond its body.

mod carried;
mod list;
mod travelling;
mod visits;

pub use carried::{HeaderEdit, Passed};
pub use list::PacketList;
pub(crate) use travelling::Travelling;

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::packet::{FlowKey, Fragment, Packet, PacketId};
use crate::random::{Draw, Stream};
use crate::time::{Duration, Time};
use crate::units::Bytes;
use carried::{Carried, Extra};
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

    /// Counts a visit to an element. Returns whether one of `most` was left.
    #[inline]
    pub(crate) const fn count_visit(&mut self, most: u8) -> bool {
        let has_left = self.visits < most;
        self.visits = self.visits.saturating_add(1);
        has_left
    }

    /// One packet fewer uses the body of this original. Frees its slot if it was the last, and returns whether it was.
    #[inline]
    fn give_up(&mut self, slot: u32, free: &mut u32) -> bool {
        self.family -= 1;
        let last = self.uses() == 0;
        if last {
            self.next = core::mem::replace(free, slot);
        }
        last
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
    /// Routers passed.
    pub(crate) hops: u8,
    /// How its link header differs from that in its body.
    pub(crate) header_edit: Option<Box<HeaderEdit>>,
    /// The links that it has passed, if they are kept.
    pub(crate) passed: &'a [Passed],
}

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
    /// Whether headers are kept in `carried`.
    keeps_headers: bool,
    /// Whether the options of TCP segments are kept in `carried`.
    keeps_tcp_options: bool,
    /// Whether the packets that ICMP errors quote are kept in `carried`.
    keeps_quoted: bool,
    /// Those of the packet that comes next.
    next: Extra,
    /// Whether the links that packets pass are kept in `carried`.
    keeps_passed: bool,
}

impl Pool {
    pub(crate) fn new(memory: Bytes) -> Self {
        Self { free: NONE, memory: memory.get(), ..Self::default() }
    }

    /// The packet's state.
    #[inline]
    pub fn get(&self, packet: PacketRef) -> &PacketState {
        let at = packet.0 as usize;
        &self.chunks[at / CHUNK][at % CHUNK]
    }

    /// The packet's state, mutable.
    #[inline]
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
        self.memory_used() > self.memory
    }

    /// The memory that the packets inside take, as the cap counts it.
    pub(crate) const fn memory_used(&self) -> u64 {
        self.bytes + RECORD * self.inside
    }

    /// The memory that a packet takes.
    pub(crate) fn memory_of<B>(packet: &Packet<B>) -> u64 {
        RECORD + u64::from(packet.length) + u64::from(packet.link_header)
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
        if self.free == NONE {
            self.grow();
        }
        let slot = PacketRef(self.free);
        let state = self.get_mut(slot);
        let free = state.next;
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
        self.free = free;
        self.inside += 1;
        self.bytes += u64::from(packet.length) + u64::from(packet.link_header);
        self.carry(slot, |all, at, next| all[at].begin(packet.headers, core::mem::take(next)));
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
        self.carry(slot, |all, at, _| all[at] = all[packet.0 as usize].clone());
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
        let at = packet.0 as usize;
        let origin = self.get(packet).origin;
        let elsewhere = (packet.0 != origin).then(|| {
            self.release(packet);
            let of = origin as usize;
            self.chunks[of / CHUNK][of % CHUNK].give_up(origin, &mut self.free)
        });
        let state = &mut self.chunks[at / CHUNK][at % CHUNK];
        let last = elsewhere.unwrap_or_else(|| state.give_up(packet.0, &mut self.free));
        let flips = match core::mem::replace(&mut state.flips, NONE) {
            NONE => Vec::new(),
            at => {
                self.free_flips.push(at);
                core::mem::take(&mut self.flips[at as usize])
            }
        };
        let (mut hops, mut header_edit, mut passed) = (0, None, &[][..]);
        if let Some(all) = &self.carried {
            let carried = &all[at];
            (hops, header_edit, passed) = (carried.hops(), carried.header_edit(state), carried.passed());
        }
        Removed { state, flips, body_slot: origin as usize, last, hops, header_edit, passed }
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
