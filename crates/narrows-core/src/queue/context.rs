//! What a queue works with during a call.

use alloc::collections::VecDeque;

use crate::counters::DropReason;
use crate::packet::FlowKey;
use crate::pool::{PacketRef, Pool};
use crate::random::{Draw, Stream, mix};

/// Access to the packets, to their random draws, and to the lists of drops and marks.
#[derive(Debug)]
pub struct Context<'a> {
    /// The packets inside the network.
    pub pool: &'a mut Pool,
    drops: &'a mut Drops,
    draws: &'a Draws,
}

/// The random streams of a queue. `cyclic` is set if a packet can visit the queue more than once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draws {
    pub(crate) arrival: Stream,
    pub(crate) cyclic: Option<u32>,
}

impl<'a> Context<'a> {
    pub(crate) const fn new(pool: &'a mut Pool, drops: &'a mut Drops, draws: &'a Draws) -> Self {
        Self { pool, drops, draws }
    }

    /// Drops a packet. It must no longer be in any list. The reason must be one that links use: any before
    /// [`DropReason::Denied`].
    pub fn drop(&mut self, packet: PacketRef, reason: DropReason) {
        self.drops.push(packet, reason);
    }

    /// Marks a packet with "congestion experienced" (RFC 3168) if its transport is ECN-capable. Returns whether it
    /// is. A packet that already has the mark is not counted again.
    pub fn mark(&mut self, packet: PacketRef) -> bool {
        let state = self.pool.get_mut(packet);
        if state.key.ecn() == FlowKey::NOT_ECN_CAPABLE {
            return false;
        }
        if state.key.ecn() != FlowKey::CONGESTION_EXPERIENCED {
            state.key.traffic_class |= FlowKey::CONGESTION_EXPERIENCED;
            self.drops.noted.push_back((state.lane, Noted::Marked));
        }
        true
    }

    /// The number of drops not yet collected by the network.
    pub(crate) fn drops(&self) -> usize {
        self.drops.packets.len()
    }

    /// The packets dropped after the first `before` drops.
    pub(crate) fn dropped_since(&self, before: usize) -> impl Iterator<Item = PacketRef> + '_ {
        self.drops.packets.range(before..).map(|&(packet, _)| packet)
    }

    /// The number of notes not yet counted. Where the queue only drops and marks, these are marks.
    pub(crate) fn marks(&self) -> u64 {
        self.drops.noted.len() as u64
    }

    /// The number of notes (marks, duplicates and so on) not yet counted.
    pub(crate) fn notes(&self) -> usize {
        self.drops.noted.len()
    }

    /// The notes after the first `before`.
    pub(crate) fn noted_since(&self, before: usize) -> impl Iterator<Item = Noted> + '_ {
        self.drops.noted.range(before..).map(|&(_, noted)| noted)
    }

    /// One note, by its position.
    pub(crate) fn noted(&self, note: usize) -> Noted {
        self.drops.noted[note].1
    }

    /// Records what was done to a packet, to be counted.
    pub(crate) fn note(&mut self, packet: PacketRef, what: Noted) {
        self.drops.noted.push_back((self.pool.get(packet).lane, what));
    }

    /// Duplicates a packet, if it may have another copy. `maker` distinguishes the copy from others.
    pub(crate) fn duplicate(&mut self, maker: &Stream, packet: PacketRef) -> Option<PacketRef> {
        let visit = self.visit(packet);
        let twin = self.pool.duplicate(packet, maker, visit, 0)?;
        self.note(twin, Noted::Duplicated(self.pool.get(twin).length));
        Some(twin)
    }

    fn visit(&self, packet: PacketRef) -> u8 {
        self.draws.cyclic.map_or(0, |link| self.pool.earlier_visits(packet, link))
    }

    /// The random draws for a packet from one of the queue's own streams.
    pub(crate) fn draw(&self, stream: &Stream, packet: PacketRef) -> Draw {
        self.pool.draw(stream, packet, self.visit(packet))
    }

    /// The key of a hash function of the queue's own, one for each number. It depends on the seed and the link's name.
    pub(crate) fn hash_key(&self, number: u64) -> u64 {
        let [low, high] = self.draws.arrival.key();
        mix(mix(u64::from(low) | u64::from(high) << 32) ^ number)
    }

    /// The random draws for a packet on arrival at the queue.
    pub fn draw_at_arrival(&self, packet: PacketRef) -> Draw {
        self.draw(&self.draws.arrival, packet)
    }
}

/// The drops and marks of a link and its queue in one call. The network collects them.
#[derive(Debug, Default)]
pub struct Drops {
    pub(crate) packets: VecDeque<(PacketRef, DropReason)>,
    /// What to count, and in which lane.
    pub(crate) noted: VecDeque<(u8, Noted)>,
}

/// What a queue has done to a packet other than dropping it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noted {
    Marked,
    Corrupted,
    /// A packet of this length was created.
    Duplicated(u32),
    Reordered,
}

impl Drops {
    pub(crate) fn push(&mut self, packet: PacketRef, reason: DropReason) {
        self.packets.push_back((packet, reason));
    }
}
