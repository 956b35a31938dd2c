//! Where the packets inside the network are kept.
//!
//! Queues and delay lines pass [`PacketRef`]s; the state behind them stays where it is. It is laid out to be small:
//! 104 bytes, so that with its entry in a delay line a packet takes less than 128 bytes beyond its body.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::packet::{FlowKey, Fragment, Packet, PacketId};
use crate::random::{Draw, Stream};
use crate::time::{Duration, Time};

/// A packet inside the network. Valid until the packet leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PacketRef(u32);

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
    /// When it joined the queue where it waits now, or waited last.
    pub entered: Time,
    /// How long it has waited in queues so far.
    pub queued: Duration,
    next: u32,
    /// The slot that keeps the body: this one, or that of the packet that this is a copy of.
    origin: u32,
    /// Index of its bit flips, or `NONE`.
    flips: u32,
    /// 0 for the packet that came in; duplicates and fragments count on.
    pub copy: u16,
    /// At an origin: how many packets inside use its body.
    uses: u16,
    /// At an origin: the copy number given out last.
    copies: u16,
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
        if self.fragment & 1 == 0 {
            return None;
        }
        Some(Fragment { offset: self.fragment & !7, more: self.fragment & 2 != 0 })
    }

    pub(crate) const fn set_fragment(&mut self, piece: Fragment) {
        // An offset is a multiple of 8, so its three lowest bits are free.
        self.fragment = piece.offset | (piece.more as u16) << 1 | 1;
    }
}

const CHUNK: usize = 256;

/// The packets inside the network. Grows in steps of a few kilobytes and reuses what is free.
#[derive(Debug, Default)]
pub struct Pool {
    chunks: Vec<Box<[PacketState]>>,
    free: u32,
    inside: u64,
    bytes: u64,
    flips: Vec<Vec<u32>>,
    free_flips: Vec<u32>,
    /// What stands for each port in the key of a draw.
    pub(crate) origins: Vec<u32>,
}

impl Pool {
    pub(crate) fn new() -> Self {
        Self { free: NONE, ..Self::default() }
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

    /// How many packets are inside.
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

    pub(crate) fn insert(&mut self, id: PacketId, at: Time, packet: &Packet<()>) -> PacketRef {
        let slot = self.allocate();
        *self.get_mut(slot) = PacketState {
            key: packet.key,
            length: packet.length,
            id,
            arrival: at,
            entered: at,
            queued: Duration::ZERO,
            next: NONE,
            origin: slot.0,
            flips: NONE,
            copy: 0,
            uses: 1,
            copies: 0,
            fragment: 0,
            visits: 0,
            lane: 0,
            link_header: packet.link_header,
            network_header: packet.network_header,
        };
        self.inside += 1;
        self.bytes += self.get(slot).frame_length();
        slot
    }

    /// Another packet with the same body, edits included; nothing when the packet has 65,535 copies already.
    pub(crate) fn duplicate(&mut self, packet: PacketRef) -> Option<PacketRef> {
        let origin = PacketRef(self.get(packet).origin);
        let source = self.get_mut(origin);
        let copy = source.copies.checked_add(1)?;
        source.copies = copy;
        source.uses += 1; // uses ≤ copies + 1, and copies + 1 fits: copies < 65,535 before this call
        let slot = self.allocate();
        let flips = match self.get(packet).flips {
            NONE => NONE,
            from => {
                let to = self.take_flips();
                self.flips[to as usize] = self.flips[from as usize].clone();
                to
            }
        };
        let twin = PacketState { copy, uses: 0, copies: 0, flips, next: NONE, ..self.get(packet).clone() };
        *self.get_mut(slot) = twin;
        self.inside += 1;
        self.bytes += self.get(slot).frame_length();
        Some(slot)
    }

    /// Makes the packet a piece of itself: `length` bytes from the network header on, from `piece.offset` of its
    /// payload on.
    pub(crate) fn cut(&mut self, packet: PacketRef, length: u32, piece: Fragment) {
        let state = self.get_mut(packet);
        let before = state.frame_length();
        state.length = length;
        state.set_fragment(piece);
        self.bytes = self.bytes - before + self.get(packet).frame_length();
    }

    /// Where the body of the packet is kept.
    pub(crate) fn body_slot(&self, packet: PacketRef) -> usize {
        self.get(packet).origin as usize
    }

    pub(crate) const fn slot(packet: PacketRef) -> usize {
        packet.0 as usize
    }

    /// The random draws of `stream` for this packet. `visit` tells apart its visits to one element.
    pub(crate) fn draw(&self, stream: &Stream, packet: PacketRef, visit: u8) -> Draw {
        let state = self.get(packet);
        let origin = self.origins[usize::from(state.id.port().index())];
        stream.draw(origin, state.id.number(), visit, state.copy)
    }

    /// Takes the bit flips out, for whoever applies them.
    pub(crate) fn take_flips_of(&mut self, packet: PacketRef) -> Vec<u32> {
        match self.get(packet).flips {
            NONE => Vec::new(),
            at => core::mem::take(&mut self.flips[at as usize]),
        }
    }

    /// Whether no other packet inside uses the same body.
    pub(crate) fn is_last_use(&self, packet: PacketRef) -> bool {
        self.get(PacketRef(self.get(packet).origin)).uses == 1
    }

    /// Takes the packet out. The slot that keeps a body stays until its last copy has left.
    pub(crate) fn remove(&mut self, packet: PacketRef) {
        let state = self.get_mut(packet);
        let (origin, flips, length) = (state.origin, state.flips, state.frame_length());
        state.flips = NONE;
        self.inside -= 1;
        self.bytes -= length;
        if flips != NONE {
            self.flips[flips as usize].clear();
            self.free_flips.push(flips);
        }
        let keeper = PacketRef(origin);
        self.get_mut(keeper).uses -= 1;
        if packet != keeper {
            self.release(packet);
        }
        if self.get(keeper).uses == 0 {
            self.release(keeper);
        }
    }

    fn release(&mut self, packet: PacketRef) {
        self.get_mut(packet).next = self.free;
        self.free = packet.0;
    }

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
            id: PacketId::new(crate::network::PortId::new(0), 0),
            arrival: Time::ZERO,
            entered: Time::ZERO,
            queued: Duration::ZERO,
            next: if at + 1 < first + CHUNK { at as u32 + 1 } else { NONE },
            origin: at as u32,
            flips: NONE,
            copy: 0,
            uses: 0,
            copies: 0,
            fragment: 0,
            visits: 0,
            lane: 0,
            link_header: 0,
            network_header: 0,
        };
        self.chunks.push((first..first + CHUNK).map(blank).collect());
        self.free = first as u32;
    }

    /// Slots that exist, in use or not.
    pub(crate) fn slots(&self) -> usize {
        self.chunks.len() * CHUNK
    }
}

/// Packets in a row, linked through the pool: no memory of its own, whatever its length.
#[derive(Debug)]
pub struct PacketList {
    head: u32,
    tail: u32,
    packets: u64,
    bytes: u64,
}

impl Default for PacketList {
    fn default() -> Self {
        Self { head: NONE, tail: NONE, packets: 0, bytes: 0 }
    }
}

impl PacketList {
    /// How many packets are in it.
    pub const fn len(&self) -> u64 {
        self.packets
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// The sum of their lengths from the network header on.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The first packet.
    pub const fn front(&self) -> Option<PacketRef> {
        if self.head == NONE { None } else { Some(PacketRef(self.head)) }
    }

    /// Appends a packet, which must be in no other list.
    pub fn push_back(&mut self, packet: PacketRef, pool: &mut Pool) {
        let state = pool.get_mut(packet);
        state.next = NONE;
        self.bytes += u64::from(state.length);
        self.packets += 1;
        match self.tail {
            NONE => self.head = packet.0,
            tail => pool.get_mut(PacketRef(tail)).next = packet.0,
        }
        self.tail = packet.0;
    }

    /// Takes the first packet.
    pub fn pop_front(&mut self, pool: &mut Pool) -> Option<PacketRef> {
        let packet = self.front()?;
        let state = pool.get(packet);
        self.bytes -= u64::from(state.length);
        self.packets -= 1;
        self.head = state.next;
        if self.head == NONE {
            self.tail = NONE;
        }
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::PortId;

    fn packet(length: u32) -> Packet<()> {
        Packet { length, link_header: 14, network_header: 20, key: FlowKey::default(), body: () }
    }

    fn put(pool: &mut Pool, number: u64) -> PacketRef {
        let id = PacketId::new(PortId::new(1), number);
        pool.insert(id, Time::ZERO, &packet(100))
    }

    #[test]
    fn a_packet_takes_104_bytes() {
        assert_eq!(size_of::<PacketState>(), 104);
    }

    #[test]
    fn a_body_outlives_its_first_packet_until_the_last_copy_leaves() {
        let mut pool = Pool::new();
        let first = put(&mut pool, 0);
        let copy = pool.duplicate(first).unwrap();
        let again = pool.duplicate(copy).unwrap();
        assert_eq!((pool.get(copy).copy, pool.get(again).copy), (1, 2));
        pool.remove(first);
        assert!(!pool.is_last_use(copy));
        let other = put(&mut pool, 1);
        assert_ne!(pool.body_slot(other), pool.body_slot(copy), "the slot with the body is not given away");
        pool.remove(copy);
        assert!(pool.is_last_use(again));
        pool.remove(again);
        pool.remove(other);
        assert_eq!((pool.len(), pool.bytes()), (0, 0));
    }

    #[test]
    fn slots_and_flips_are_reused() {
        let mut pool = Pool::new();
        for round in 0..10_000 {
            let packet = put(&mut pool, round);
            pool.flip(packet, 7);
            assert_eq!(pool.flips(packet), [7]);
            pool.remove(packet);
        }
        assert_eq!((pool.slots(), pool.flips.len()), (CHUNK, 1));
    }

    #[test]
    fn lists_keep_order_and_count_bytes() {
        let mut pool = Pool::new();
        let mut list = PacketList::default();
        let packets: Vec<_> = (0..5).map(|n| put(&mut pool, n)).collect();
        for &p in &packets {
            list.push_back(p, &mut pool);
        }
        assert_eq!((list.len(), list.bytes()), (5, 500));
        for &p in &packets {
            assert_eq!(list.pop_front(&mut pool), Some(p));
        }
        assert_eq!((list.pop_front(&mut pool), list.bytes()), (None, 0));
    }
}
