//! The flows of a scheduler, and the packets that wait in each.
//!
//! The layout makes a scheduler fast with many flows. A flow takes one cache line: the location of its packets, and
//! the scheduler's state for it. Packets are stored with their lengths in chunks of seven, one cache line each. So
//! neither enqueue nor dequeue touches a packet's own state or another packet's, and the packets of a flow stay
//! together however long the run.

use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

use crate::pool::PacketRef;
use crate::queue::Backlog;

/// A flow of a scheduler. Valid until the flow leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(u32);

impl FlowId {
    /// The flow with this number. Numbers count from 0 in the order in which flows join. The numbers of flows that
    /// left are reused.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The flow's number.
    pub const fn number(self) -> u32 {
        self.0
    }

    const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A packet that waits in a flow.
///
/// For a class with a queue of its own ([`Store::Queue`](crate::sched::Store::Queue)), the flow has as many entries
/// and bytes as wait in that queue, but an entry need not match the packet at that position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waits {
    /// The packet.
    pub packet: PacketRef,
    /// Length in bytes from the network header on.
    pub length: u32,
}

/// All flows of a scheduler. `F` is the scheduler's state for each flow.
#[derive(Debug)]
pub struct Flows<F> {
    entries: Vec<Entry<F>>,
    /// Entries of flows that have left.
    free_entries: Vec<u32>,
    chunks: Vec<Chunk>,
    free_chunk: u32,
    packets: u64,
}

/// A flow: 24 bytes of queue, then the scheduler's state.
#[derive(Debug)]
#[repr(C, align(64))]
struct Entry<F> {
    bytes: u64,
    packets: u32,
    /// The chunks with the first and the last packet.
    head: u32,
    tail: u32,
    /// Index of the first packet in its chunk, and the index after the last packet in its chunk.
    first: u8,
    end: u8,
    here: bool,
    state: F,
}

const NONE: u32 = u32::MAX;
const PLACES: usize = 7;

/// Seven packets. The eighth place holds the number of the next chunk in its packet field. Indices are always below
/// eight; masking them lets the compiler omit the bounds check.
#[derive(Debug)]
#[repr(align(64))]
struct Chunk([Waits; PLACES + 1]);

impl Chunk {
    const BLANK: Self = Self([Waits { packet: PacketRef::from_number(NONE), length: 0 }; PLACES + 1]);

    #[inline]
    const fn place(&self, place: u8) -> Waits {
        self.0[place as usize & PLACES]
    }

    #[inline]
    const fn place_mut(&mut self, place: u8) -> &mut Waits {
        &mut self.0[place as usize & PLACES]
    }

    #[inline]
    const fn next(&self) -> u32 {
        self.0[PLACES].packet.number()
    }

    #[inline]
    const fn set_next(&mut self, next: u32) {
        self.0[PLACES].packet = PacketRef::from_number(next);
    }
}

impl<F> Default for Flows<F> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            free_entries: Vec::new(),
            chunks: Vec::new(),
            free_chunk: NONE,
            packets: 0,
        }
    }
}

impl<F> Flows<F> {
    /// The number of flows.
    pub fn len(&self) -> usize {
        self.entries.len() - self.free_entries.len()
    }

    /// Whether there are no flows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All flows, in order of their numbers.
    pub fn ids(&self) -> impl Iterator<Item = FlowId> + '_ {
        let here = self.entries.iter().zip(0..).filter(|(entry, _)| entry.here);
        here.map(|(_, number)| FlowId(number))
    }

    /// Whether a flow with this number exists.
    pub fn contains(&self, flow: FlowId) -> bool {
        self.entries.get(flow.index()).is_some_and(|entry| entry.here)
    }

    /// The number of packets waiting in a flow. Here and below, the flow must exist.
    #[inline]
    pub fn packets(&self, flow: FlowId) -> u32 {
        self.entries[flow.index()].packets
    }

    /// The number of bytes waiting in a flow, counted from the network header on.
    #[inline]
    pub fn bytes(&self, flow: FlowId) -> u64 {
        self.entries[flow.index()].bytes
    }

    /// The packet at the head of a flow.
    #[inline]
    pub fn first(&self, flow: FlowId) -> Option<Waits> {
        self.entries[flow.index()].oldest(&self.chunks)
    }

    /// The number of packets waiting in all flows.
    pub const fn waiting(&self) -> u64 {
        self.packets
    }

    /// Mutable access to the scheduler's state of every flow, in order of their numbers.
    pub fn states_mut(&mut self) -> impl Iterator<Item = (FlowId, &mut F)> + '_ {
        let here = self.entries.iter_mut().zip(0..).filter(|(entry, _)| entry.here);
        here.map(|(entry, number)| (FlowId(number), &mut entry.state))
    }

    /// Memory in bytes used by the flows and their waiting packets.
    pub fn memory(&self) -> usize {
        self.entries.capacity() * size_of::<Entry<F>>() + self.chunks.capacity() * size_of::<Chunk>()
    }

    /// Adds a flow.
    pub fn add(&mut self, state: F) -> FlowId {
        let entry =
            Entry { bytes: 0, packets: 0, head: NONE, tail: NONE, first: 0, end: 0, here: true, state };
        match self.free_entries.pop() {
            Some(number) => {
                self.entries[number as usize] = entry;
                FlowId(number)
            }
            None => {
                assert!(self.entries.len() < NONE as usize, "four thousand million flows");
                grow(&mut self.entries);
                self.entries.push(entry);
                FlowId(self.entries.len() as u32 - 1)
            }
        }
    }

    /// Removes a flow. Its queue must be empty.
    pub fn remove(&mut self, flow: FlowId) {
        let entry = &mut self.entries[flow.index()];
        assert!(entry.here && entry.packets == 0, "only an empty flow leaves, and only once");
        entry.here = false;
        self.free_entries.push(flow.0);
    }

    /// The scheduler's state of a flow and the number of packets waiting there, with one lookup instead of two.
    #[inline]
    pub fn state_and_packets(&mut self, flow: FlowId) -> (&mut F, u32) {
        let entry = &mut self.entries[flow.index()];
        (&mut entry.state, entry.packets)
    }

    /// The scheduler's state of a flow and the packet at its head.
    #[inline]
    pub fn state_and_first(&mut self, flow: FlowId) -> (&mut F, Option<Waits>) {
        let entry = &mut self.entries[flow.index()];
        let first = entry.oldest(&self.chunks);
        (&mut entry.state, first)
    }

    /// The scheduler's state of a flow and the packet at its tail.
    #[inline]
    pub fn state_and_last(&mut self, flow: FlowId) -> (&mut F, Option<Waits>) {
        let entry = &mut self.entries[flow.index()];
        let last = (entry.packets > 0).then(|| self.chunks[entry.tail as usize].place(entry.end - 1));
        (&mut entry.state, last)
    }

    /// Appends a packet to a flow.
    #[inline]
    pub fn push(&mut self, flow: FlowId, waits: Waits) {
        let entry = &mut self.entries[flow.index()];
        if entry.packets == 0 || usize::from(entry.end) == PLACES {
            entry.append(take_chunk(&mut self.chunks, &mut self.free_chunk), &mut self.chunks);
        }
        *self.chunks[entry.tail as usize].place_mut(entry.end) = waits;
        entry.end += 1;
        entry.packets += 1;
        entry.bytes += u64::from(waits.length);
        self.packets += 1;
    }

    /// Removes the first packet of a flow.
    #[inline]
    pub fn pop(&mut self, flow: FlowId) -> Option<Waits> {
        let entry = &mut self.entries[flow.index()];
        if entry.packets == 0 {
            return None;
        }
        let waits = entry.take(&mut self.chunks, &mut self.free_chunk);
        entry.bytes -= u64::from(waits.length);
        self.packets -= 1;
        Some(waits)
    }

    /// Removes the last packet of a flow. Every seventh call, on average, walks all chunks of the flow.
    pub fn pop_last(&mut self, flow: FlowId) -> Option<Waits> {
        let entry = &mut self.entries[flow.index()];
        if entry.packets <= 1 {
            return self.pop(flow);
        }
        let waits = entry.take_last(&mut self.chunks, &mut self.free_chunk);
        entry.bytes -= u64::from(waits.length);
        self.packets -= 1;
        Some(waits)
    }

    /// The packets of a flow, from its head on.
    pub(crate) fn waiting_in(&self, flow: FlowId) -> impl Iterator<Item = Waits> + '_ {
        let entry = &self.entries[flow.index()];
        let (mut chunk, mut place) = (entry.head, entry.first);
        (0..entry.packets).map(move |_| {
            if usize::from(place) == PLACES {
                (chunk, place) = (self.chunks[chunk as usize].next(), 0);
            }
            place += 1;
            self.chunks[chunk as usize].place(place - 1)
        })
    }

    /// Removes the packet at this position of a flow, counted from its head; there must be one. Those before it move up.
    pub(crate) fn remove_at(&mut self, flow: FlowId, position: usize) -> Option<Waits> {
        let entry = &self.entries[flow.index()];
        let (mut chunk, mut place) = (entry.head, entry.first);
        let mut moved = entry.oldest(&self.chunks)?;
        for _ in 0..position {
            place += 1;
            if usize::from(place) == PLACES {
                (chunk, place) = (self.chunks[chunk as usize].next(), 0);
            }
            core::mem::swap(&mut moved, self.chunks[chunk as usize].place_mut(place));
        }
        // What is at the head has moved to the next place, or is what is removed.
        self.entries[flow.index()].take(&mut self.chunks, &mut self.free_chunk);
        self.entries[flow.index()].bytes -= u64::from(moved.length);
        self.packets -= 1;
        Some(moved)
    }

    /// Removes entries from a flow that represents a nested queue. `gone` is what left that queue.
    pub(crate) fn discard(&mut self, flow: FlowId, gone: Backlog) {
        let entry = &mut self.entries[flow.index()];
        for _ in 0..gone.packets {
            entry.take(&mut self.chunks, &mut self.free_chunk);
        }
        entry.bytes -= gone.bytes;
        self.packets -= gone.packets;
    }
}

/// The packets of a flow, detached from it. They still occupy their chunks in [`Flows`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    bytes: u64,
    packets: u32,
    head: u32,
    tail: u32,
    first: u8,
    end: u8,
}

impl Row {
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl<F> Flows<F> {
    /// Detaches all packets from a flow. [`Flows::attach`] puts them back.
    pub(crate) fn detach(&mut self, flow: FlowId) -> Row {
        let entry = &mut self.entries[flow.index()];
        let &mut Entry { bytes, packets, head, tail, first, end, .. } = entry;
        (entry.packets, entry.bytes) = (0, 0);
        self.packets -= u64::from(packets);
        Row { bytes, packets, head, tail, first, end }
    }

    /// Puts detached packets back into their flow, which must have stayed empty. Calls `joined` after the first
    /// packet, and after each of the others if `each` is true.
    pub(crate) fn attach(&mut self, flow: FlowId, row: Row, each: bool, mut joined: impl FnMut(&mut Self)) {
        let mut there = Row { bytes: 0, packets: 0, tail: row.head, end: row.first, ..row };
        let told = if each { row.packets } else { row.packets.min(1) };
        for _ in 0..told {
            if usize::from(there.end) == PLACES {
                (there.tail, there.end) = (self.chunks[there.tail as usize].next(), 0);
            }
            there.bytes += u64::from(self.chunks[there.tail as usize].place(there.end).length);
            (there.end, there.packets) = (there.end + 1, there.packets + 1);
            self.entries[flow.index()].set_row(there);
            self.packets += 1;
            joined(self);
        }
        self.packets += u64::from(row.packets - told);
        self.entries[flow.index()].set_row(row);
    }
}

impl<F> Entry<F> {
    const fn set_row(&mut self, row: Row) {
        (self.bytes, self.packets) = (row.bytes, row.packets);
        (self.head, self.tail, self.first, self.end) = (row.head, row.tail, row.first, row.end);
    }

    #[inline]
    fn oldest(&self, chunks: &[Chunk]) -> Option<Waits> {
        (self.packets > 0).then(|| chunks[self.head as usize].place(self.first))
    }

    /// Gives the flow a chunk for its next packets.
    #[inline]
    fn append(&mut self, chunk: u32, chunks: &mut [Chunk]) {
        if self.packets == 0 {
            (self.head, self.first) = (chunk, 0);
        } else {
            chunks[self.tail as usize].set_next(chunk);
        }
        (self.tail, self.end) = (chunk, 0);
    }

    /// Removes the first packet, which must exist. The caller adjusts the byte count.
    #[inline]
    fn take(&mut self, chunks: &mut [Chunk], free: &mut u32) -> Waits {
        let chunk = &mut chunks[self.head as usize];
        let waits = chunk.place(self.first);
        self.first += 1;
        self.packets -= 1;
        if self.packets == 0 || usize::from(self.first) == PLACES {
            // The next link of a last chunk is meaningless; the next arriving packet sets it.
            let next = chunk.next();
            chunk.set_next(*free);
            *free = self.head;
            (self.head, self.first) = (next, 0);
        }
        waits
    }

    /// Removes the last packet, which must not be the only one. The caller adjusts the byte count.
    fn take_last(&mut self, chunks: &mut [Chunk], free: &mut u32) -> Waits {
        self.end -= 1;
        self.packets -= 1;
        let waits = chunks[self.tail as usize].place(self.end);
        if self.end == 0 {
            let mut before = self.head;
            while chunks[before as usize].next() != self.tail {
                before = chunks[before as usize].next();
            }
            chunks[self.tail as usize].set_next(*free);
            *free = self.tail;
            (self.tail, self.end) = (before, PLACES as u8);
        }
        waits
    }
}

/// A free chunk, or a new one.
#[inline]
fn take_chunk(chunks: &mut Vec<Chunk>, free: &mut u32) -> u32 {
    match *free {
        NONE => new_chunk(chunks),
        chunk => {
            *free = chunks[chunk as usize].next();
            chunk
        }
    }
}

#[cold]
fn new_chunk(chunks: &mut Vec<Chunk>) -> u32 {
    grow(chunks);
    chunks.push(Chunk::BLANK);
    chunks.len() as u32 - 1
}

/// Makes room for one more element. Grows by an eighth instead of doubling, to limit the memory per flow.
fn grow<T>(list: &mut Vec<T>) {
    if list.len() == list.capacity() {
        list.reserve_exact((list.len() / 8).max(4));
    }
}

impl<F> Index<FlowId> for Flows<F> {
    type Output = F;

    #[inline]
    fn index(&self, flow: FlowId) -> &F {
        &self.entries[flow.index()].state
    }
}

impl<F> IndexMut<FlowId> for Flows<F> {
    #[inline]
    fn index_mut(&mut self, flow: FlowId) -> &mut F {
        &mut self.entries[flow.index()].state
    }
}
