//! Where the packets inside the network are kept.
//!
//! Queues and delay lines pass [`PacketRef`]s; the state behind them stays where it is. It is laid out to be small:
//! 104 bytes, so that even with an entry in a heap a packet takes less than 128 bytes beyond its body.

mod list;
mod visits;

pub use list::PacketList;

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::packet::{FlowKey, Fragment, Headers, Packet, PacketId};
use crate::place::Place;
use crate::random::{Draw, Stream};
use crate::time::{Duration, Time};
use crate::units::Bytes;
use visits::Visits;

/// A packet inside the network. Valid until the packet leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PacketRef(u32);

impl PacketRef {
    /// The number of its place.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The packet at the place of that number. A scheduler's own tests and benches make them up; a pool knows only
    /// those that it gave out.
    pub const fn from_number(number: u32) -> Self {
        Self(number)
    }
}

const NONE: u32 = u32::MAX;

/// What the engine keeps of a packet while it is inside.
#[derive(Clone, Debug)]
pub struct PacketState {
    /// What tells its flow apart; header edits (a CE mark, a new DSCP) are made here at once.
    pub key: FlowKey,
    /// Bytes from the network header on.
    pub length: u32,
    /// Which packet it is.
    pub id: PacketId,
    /// When it was handed in.
    pub arrival: Time,
    /// When it joined the queue where it waits; from the delay line on, when it is due to leave that.
    pub entered: Time,
    /// How long it has waited in queues so far.
    pub queued: Duration,
    next: u32,
    /// The slot that keeps the body: this one, or that of the packet that this is a copy of.
    origin: u32,
    /// Index of its bit flips, or `NONE`.
    flips: u32,
    /// At a copy: its lineage. At an origin, whose lineage is 0: in the lower half how many packets inside use its
    /// body, in the upper half the copy number given out last.
    family: u32,
    /// 0 for the packet that came in; duplicates and fragments count on.
    pub copy: u16,
    /// Offset / 8, the flag "more" and the flag "is a fragment".
    fragment: u16,
    /// Elements visited so far.
    pub(crate) visits: u8,
    /// Which of its link's lanes it travels in.
    pub(crate) lane: u8,
    /// Bytes of link header before the network header.
    pub link_header: u8,
    /// Bytes of the IPv4 header, 0 for other packets.
    pub network_header: u8,
}

impl PacketState {
    /// Bytes from the link header on, without a frame check sequence.
    pub const fn frame_length(&self) -> u64 {
        self.length as u64 + self.link_header as u64
    }

    /// Which piece of the packet this is, if a link cut it.
    pub const fn fragment(&self) -> Option<Fragment> {
        match self.fragment & 1 {
            0 => None,
            _ => Some(Fragment { offset: self.fragment & !7, more: self.fragment & 2 != 0 }),
        }
    }

    /// Its key as masks, rules and routers see it: of a packet that was cut, no piece but the first has ports or TCP flags, as
    /// if it had come in as a fragment.
    #[inline]
    pub(crate) const fn seen_key(&self) -> FlowKey {
        match self.fragment & !7 {
            0 => self.key,
            _ => FlowKey { source_port: 0, destination_port: 0, tcp_flags: 0, ..self.key },
        }
    }

    /// What tells copies apart in the keys of their draws.
    const fn lineage(&self) -> u32 {
        if self.copy == 0 { 0 } else { self.family }
    }

    /// At an origin: how many packets inside use its body.
    const fn uses(&self) -> u32 {
        self.family & 0xffff
    }

    pub(crate) const fn set_fragment(&mut self, piece: Fragment) {
        // An offset is a multiple of 8, so its three lowest bits are free.
        self.fragment = piece.offset | (piece.more as u16) << 1 | 1;
    }
}

/// What [`Pool::remove`] has to say.
pub(crate) struct Removed<'a> {
    pub(crate) state: &'a PacketState,
    pub(crate) flips: Vec<u32>,
    /// Where the body is kept.
    pub(crate) body_slot: usize,
    /// Whether no other packet uses it any more.
    pub(crate) last: bool,
}

/// What a packet has with it where there are rules or routers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Carried {
    pub(crate) headers: Headers,
    /// Where it goes on in the rules that sent it to a pipe.
    pub(crate) place: Place,
    pub(crate) tags: Vec<u16>,
    /// How many routers it has passed.
    hops: u8,
}

/// What tells a packet's draws at one visit apart from all others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draws {
    origin: u32,
    number: u64,
    visit: u8,
    lineage: u32,
}

impl Draws {
    /// Those of a stream.
    pub(crate) fn of(&self, stream: &Stream) -> Draw {
        stream.draw(self.origin, self.number, self.visit, self.lineage)
    }
}

const CHUNK: usize = 256;

/// What the engine keeps of a packet beside its frame, for the memory cap.
const RECORD: u64 = 128;

/// The packets inside the network. Grows in steps of a few kilobytes and reuses what is free.
#[derive(Debug, Default)]
pub struct Pool {
    chunks: Vec<Box<[PacketState; CHUNK]>>,
    free: u32,
    inside: u64,
    bytes: u64,
    memory: u64,
    flips: Vec<Vec<u32>>,
    free_flips: Vec<u32>,
    /// What stands for each port in the key of a draw.
    pub(crate) origins: Vec<u32>,
    /// How often packets came to elements to which they may come again, by slot.
    visits: Visits,
    /// By slot, in networks that need it.
    carried: Option<Vec<Carried>>,
}

impl Pool {
    pub(crate) fn new(memory: Bytes) -> Self {
        Self { free: NONE, memory: memory.get(), ..Self::default() }
    }

    /// Keeps the header fields of packets that come in from now on, and what rules and routers add to them.
    pub(crate) fn keep_headers(&mut self) {
        let slots = self.slots();
        // Of those inside nothing is known.
        self.carried.get_or_insert_default().resize_with(slots, Carried::default);
    }

    /// Only for packets of networks that keep headers.
    pub(crate) fn carried(&self, packet: PacketRef) -> &Carried {
        let all = self.carried.as_ref().expect("rules and routers make the network keep headers");
        &all[packet.0 as usize]
    }

    /// As [`Pool::carried`].
    pub(crate) fn carried_mut(&mut self, packet: PacketRef) -> &mut Carried {
        let all = self.carried.as_mut().expect("rules and routers make the network keep headers");
        &mut all[packet.0 as usize]
    }

    /// What is written down for a slot that is taken now.
    #[inline]
    fn carry(&mut self, packet: PacketRef, from: impl FnOnce(&mut [Carried], usize)) {
        if let Some(all) = &mut self.carried {
            if all.len() <= packet.0 as usize {
                all.resize_with(self.chunks.len() * CHUNK, Carried::default);
            }
            from(all, packet.0 as usize);
        }
    }

    /// The state of a packet, what it has with it, and its draws: all that rules need, to be had at once. Only for packets
    /// of networks that keep headers.
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

    /// How many routers the packet has passed.
    pub(crate) fn hops(&self, packet: PacketRef) -> u8 {
        self.carried.as_ref().map_or(0, |all| all[packet.0 as usize].hops)
    }

    /// A router passes the packet on, if its hop limit allows that; whether it does.
    pub(crate) fn take_hop(&mut self, packet: PacketRef) -> bool {
        let carried = self.carried_mut(packet);
        // A router that gets a packet with a limit of one drops it.
        let passes = carried.headers.hop_limit > 1;
        if passes {
            carried.headers.hop_limit -= 1;
            carried.hops += 1;
        }
        passes
    }

    /// What masks look at besides the key.
    pub(crate) fn flow_label(&self, packet: PacketRef) -> u32 {
        self.carried.as_ref().map_or(0, |all| all[packet.0 as usize].headers.flow_label)
    }

    /// The packet's state.
    pub fn get(&self, packet: PacketRef) -> &PacketState {
        let at = packet.0 as usize;
        &self.chunks[at / CHUNK][at % CHUNK]
    }

    /// The packet's state, to change.
    pub fn get_mut(&mut self, packet: PacketRef) -> &mut PacketState {
        let at = packet.0 as usize;
        &mut self.chunks[at / CHUNK][at % CHUNK]
    }

    /// How many packets are inside: those that have no verdict yet, whether the others were polled or not.
    pub const fn len(&self) -> u64 {
        self.inside
    }

    /// Whether no packet is inside.
    pub const fn is_empty(&self) -> bool {
        self.inside == 0
    }

    /// The bytes of the packets inside, link headers included. A body that several copies share counts once for each.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the packets inside take more memory than they may.
    pub(crate) const fn over_memory_cap(&self) -> bool {
        self.bytes + RECORD * self.inside > self.memory
    }

    /// Bit flips of a packet: offsets in bits from the network header.
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
            let Carried { headers, place, tags, hops } = &mut all[at];
            (*headers, *place, *tags, *hops) = (packet.headers, Place::default(), Vec::new(), 0);
        });
        slot
    }

    /// Another packet with the same body, edits included; nothing when the packet has had 65,534 copies already. Where,
    /// at which visit and as which copy it is made tells it apart from others in the keys of its draws.
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
        self.inside += 1;
        self.bytes += self.get(slot).frame_length();
        Some(slot)
    }

    /// Makes the packet a piece of itself: its header and `length` bytes of its payload from `offset` on.
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
                // Up to 65,535 bytes shorter, as no packet that is longer is cut.
                false => headers.tcp_data_length.saturating_sub((before - after) as u16),
            };
        }
        self.bytes = self.bytes - before + after;
        if flips != NONE {
            // What was flipped in the header is so in every piece; in the payload, in the piece that has the place.
            let (payload, from, to) = (8 * header, 8 * (header + offset), 8 * (header + offset + length));
            let flips = &mut self.flips[flips as usize];
            flips.retain(|&bit| bit < payload || (from..to).contains(&bit));
            flips.iter_mut().filter(|bit| **bit >= payload).for_each(|bit| *bit -= from - payload);
        }
    }

    /// Counts a visit of the packet to an element to which it may come again.
    #[inline]
    pub(crate) fn count_visit(&mut self, packet: PacketRef, element: u32) {
        self.visits.count(packet, element);
    }

    /// How many visits of the packet to such an element came before the latest.
    #[inline]
    pub(crate) fn earlier_visits(&self, packet: PacketRef, element: u32) -> u8 {
        self.visits.earlier(packet, element)
    }

    pub(crate) const fn slot(packet: PacketRef) -> usize {
        packet.0 as usize
    }

    /// The random draws of `stream` for this packet. `visit` tells apart its visits to one element.
    pub(crate) fn draw(&self, stream: &Stream, packet: PacketRef, visit: u8) -> Draw {
        let state = self.get(packet);
        let origin = self.origins[usize::from(state.id.port().index())];
        stream.draw(origin, state.id.number(), visit, state.lineage())
    }

    /// The packet has its verdict: it is inside no more, though it stays here until it is removed. Returns its length.
    #[inline]
    pub(crate) fn leave(&mut self, packet: PacketRef) -> u32 {
        let state = self.get(packet);
        let (length, frame_length) = (state.length, state.frame_length());
        self.inside -= 1;
        self.bytes -= frame_length;
        self.visits.forget(packet);
        length
    }

    /// Gives up the slot of a packet that has left. Of one that keeps a body it stays until the last copy is removed.
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
        Removed { state, flips, body_slot: origin as usize, last }
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

    /// Slots that exist, in use or not.
    pub(crate) fn slots(&self) -> usize {
        self.chunks.len() * CHUNK
    }
}

#[cfg(test)]
mod tests;
