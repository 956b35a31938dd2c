//! The flows of a scheduler, and the packets that wait in each.
//!
//! The layout is what makes a scheduler fast when flows are many. A flow is one cache line: where its packets are, and
//! what the scheduler remembers of it. Its packets stand by sevens in chunks of one cache line, with their lengths, so
//! that neither joining a flow nor leaving it touches a packet's own state or another packet's, and packets of one flow
//! stay together however long the run.

use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

use crate::pool::PacketRef;
use crate::queue::Backlog;

/// A flow of a scheduler. Valid until the flow leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(u32);

impl FlowId {
    /// The flow of that number. Numbers count from 0 in the order in which flows join, those given up being used again.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Its number.
    pub const fn number(self) -> u32 {
        self.0
    }

    const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A packet that waits in a flow. Of a class with a queue of its own ([`Store::Queue`](crate::sched::Store::Queue)) the
/// flow has as many entries and bytes as wait there, but which packet is where is only a guess.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waits {
    /// Which one.
    pub packet: PacketRef,
    /// Bytes from the network header on.
    pub length: u32,
}

/// All flows of a scheduler. `F` is what the scheduler keeps of each.
#[derive(Debug)]
pub struct Flows<F> {
    entries: Vec<Entry<F>>,
    /// Entries of flows that have left.
    free_entries: Vec<u32>,
    chunks: Vec<Chunk>,
    free_chunk: u32,
    packets: u64,
}

/// A flow: 24 bytes of queue, then what the scheduler keeps.
#[derive(Debug)]
#[repr(C, align(64))]
struct Entry<F> {
    bytes: u64,
    packets: u32,
    /// The chunks with the first packet and with the last.
    head: u32,
    tail: u32,
    /// The place of the first packet in its chunk, and the place after the last in its own.
    first: u8,
    end: u8,
    here: bool,
    state: F,
}

const NONE: u32 = u32::MAX;
const PLACES: usize = 7;

/// Seven packets. The eighth place has, for a packet, the number of the next chunk. A place is masked to be below eight,
/// which it is anyway, so that no check of bounds is needed.
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
    /// How many flows there are.
    pub fn len(&self) -> usize {
        self.entries.len() - self.free_entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The flows that there are, in the order of their numbers.
    pub fn ids(&self) -> impl Iterator<Item = FlowId> + '_ {
        let here = self.entries.iter().zip(0..).filter(|(entry, _)| entry.here);
        here.map(|(_, number)| FlowId(number))
    }

    /// Whether there is a flow of that number.
    pub fn contains(&self, flow: FlowId) -> bool {
        self.entries.get(flow.index()).is_some_and(|entry| entry.here)
    }

    /// How many packets wait in a flow. Here and below, the flow must be one that there is.
    #[inline]
    pub fn packets(&self, flow: FlowId) -> u32 {
        self.entries[flow.index()].packets
    }

    /// How many bytes wait in a flow, from the network header on.
    #[inline]
    pub fn bytes(&self, flow: FlowId) -> u64 {
        self.entries[flow.index()].bytes
    }

    /// The packet that has waited longest in a flow.
    #[inline]
    pub fn first(&self, flow: FlowId) -> Option<Waits> {
        self.entries[flow.index()].oldest(&self.chunks)
    }

    /// How many packets wait in all flows.
    pub const fn waiting(&self) -> u64 {
        self.packets
    }

    /// What the scheduler keeps of each flow, in the order of their numbers, to change.
    pub fn states_mut(&mut self) -> impl Iterator<Item = (FlowId, &mut F)> + '_ {
        let here = self.entries.iter_mut().zip(0..).filter(|(entry, _)| entry.here);
        here.map(|(entry, number)| (FlowId(number), &mut entry.state))
    }

    /// The bytes that the flows and what waits in them take.
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

    /// Takes away a flow in which nothing waits.
    pub fn remove(&mut self, flow: FlowId) {
        let entry = &mut self.entries[flow.index()];
        assert!(entry.here && entry.packets == 0, "only an empty flow leaves, and only once");
        entry.here = false;
        self.free_entries.push(flow.0);
    }

    /// What the scheduler keeps of a flow, and how many packets wait there: one look where two would cost twice.
    #[inline]
    pub fn state_and_packets(&mut self, flow: FlowId) -> (&mut F, u32) {
        let entry = &mut self.entries[flow.index()];
        (&mut entry.state, entry.packets)
    }

    /// What the scheduler keeps of a flow, and the packet that has waited longest there.
    #[inline]
    pub fn state_and_first(&mut self, flow: FlowId) -> (&mut F, Option<Waits>) {
        let entry = &mut self.entries[flow.index()];
        let first = entry.oldest(&self.chunks);
        (&mut entry.state, first)
    }

    /// What the scheduler keeps of a flow, and the packet that has joined it last.
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

    /// Takes the first packet out of a flow.
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

    /// Takes the last packet out of a flow. Once in seven times this looks at all of the flow's chunks.
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

    /// Takes packets out of a flow that stands for a queue of its own, where `gone` has gone by that queue's own choice.
    pub(crate) fn discard(&mut self, flow: FlowId, gone: Backlog) {
        let entry = &mut self.entries[flow.index()];
        for _ in 0..gone.packets {
            entry.take(&mut self.chunks, &mut self.free_chunk);
        }
        entry.bytes -= gone.bytes;
        self.packets -= gone.packets;
    }
}

/// The packets of a flow, taken out of it. They take their room in [`Flows`] still.
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
    /// Takes all packets out of a flow, to be put back by [`Flows::attach`].
    pub(crate) fn detach(&mut self, flow: FlowId) -> Row {
        let entry = &mut self.entries[flow.index()];
        let &mut Entry { bytes, packets, head, tail, first, end, .. } = entry;
        (entry.packets, entry.bytes) = (0, 0);
        self.packets -= u64::from(packets);
        Row { bytes, packets, head, tail, first, end }
    }

    /// Puts them back into the flow, in which none has come meanwhile. `joined` is called when the first is there, and, if
    /// `each` is so, after each of the others.
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

    /// Takes out the first packet, which there is. Leaves the bytes to the caller.
    #[inline]
    fn take(&mut self, chunks: &mut [Chunk], free: &mut u32) -> Waits {
        let chunk = &mut chunks[self.head as usize];
        let waits = chunk.place(self.first);
        self.first += 1;
        self.packets -= 1;
        if self.packets == 0 || usize::from(self.first) == PLACES {
            // Of the last chunk the next one means nothing; a packet that comes sets it.
            let next = chunk.next();
            chunk.set_next(*free);
            *free = self.head;
            (self.head, self.first) = (next, 0);
        }
        waits
    }

    /// Takes out the last packet, before which there is another one. Leaves the bytes to the caller.
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

/// A chunk that is free, or a new one.
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

/// Makes room for one more, by an eighth rather than by doubling, to keep to the memory that a flow may take.
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
