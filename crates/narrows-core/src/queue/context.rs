//! What a queue works with while it handles a call.

use alloc::collections::VecDeque;

use crate::counters::DropReason;
use crate::packet::FlowKey;
use crate::pool::{PacketRef, Pool};
use crate::random::{Draw, Stream};

/// The packets, the draws for them, and the way by which drops and marks leave.
#[derive(Debug)]
pub struct Context<'a> {
    /// The packets inside the network.
    pub pool: &'a mut Pool,
    drops: &'a mut Drops,
    draws: &'a Draws,
}

/// The draws of a queue, and what tells a packet's visits to it apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draws {
    pub(crate) arrival: Stream,
    pub(crate) cyclic: Option<u32>,
}

impl<'a> Context<'a> {
    pub(crate) const fn new(pool: &'a mut Pool, drops: &'a mut Drops, draws: &'a Draws) -> Self {
        Self { pool, drops, draws }
    }

    /// Drops a packet, which must be in no list any more. The reason is one that links have: none from
    /// [`DropReason::Denied`] on.
    pub fn drop(&mut self, packet: PacketRef, reason: DropReason) {
        self.drops.push(packet, reason);
    }

    /// Marks a packet with "congestion experienced" (RFC 3168), if its transport can be told in that way, and says
    /// whether it could. A packet that has the mark already is not counted again.
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

    /// How many packets have been dropped and not been taken from here yet.
    pub(crate) fn drops(&self) -> usize {
        self.drops.packets.len()
    }

    /// Those that were dropped after the first `before` of them.
    pub(crate) fn dropped_since(&self, before: usize) -> impl Iterator<Item = PacketRef> + '_ {
        self.drops.packets.range(before..).map(|&(packet, _)| packet)
    }

    /// How many packets have been marked and not been counted yet.
    pub(crate) fn marks(&self) -> u64 {
        self.drops.noted.len() as u64
    }

    /// How many things have been done to packets and not been counted yet.
    pub(crate) fn notes(&self) -> usize {
        self.drops.noted.len()
    }

    /// Those after the first `before` of them.
    pub(crate) fn noted_since(&self, before: usize) -> impl Iterator<Item = Noted> + '_ {
        self.drops.noted.range(before..).map(|&(_, noted)| noted)
    }

    /// One of them.
    pub(crate) fn noted(&self, note: usize) -> Noted {
        self.drops.noted[note].1
    }

    /// Counts what was done to a packet.
    pub(crate) fn note(&mut self, packet: PacketRef, what: Noted) {
        self.drops.noted.push_back((self.pool.get(packet).lane, what));
    }

    /// A copy of a packet, which `maker` tells apart from others, if it may have another one.
    pub(crate) fn duplicate(&mut self, maker: &Stream, packet: PacketRef) -> Option<PacketRef> {
        let visit = self.visit(packet);
        let twin = self.pool.duplicate(packet, maker, visit, 0)?;
        self.note(twin, Noted::Duplicated(self.pool.get(twin).length));
        Some(twin)
    }

    fn visit(&self, packet: PacketRef) -> u8 {
        self.draws.cyclic.map_or(0, |link| self.pool.earlier_visits(packet, link))
    }

    /// The random draws of one of the queue's own streams for a packet.
    pub(crate) fn draw(&self, stream: &Stream, packet: PacketRef) -> Draw {
        self.pool.draw(stream, packet, self.visit(packet))
    }

    /// The random draws for a packet on its arrival at the queue.
    pub fn draw_at_arrival(&self, packet: PacketRef) -> Draw {
        self.draw(&self.draws.arrival, packet)
    }
}

/// What a link and its queue drop and mark in one call; the network takes it from there.
#[derive(Debug, Default)]
pub struct Drops {
    pub(crate) packets: VecDeque<(PacketRef, DropReason)>,
    /// What is to be counted, and in which lane.
    pub(crate) noted: VecDeque<(u8, Noted)>,
}

/// What a queue has done to a packet besides dropping it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noted {
    Marked,
    Corrupted,
    /// A packet of that length was made.
    Duplicated(u32),
    Reordered,
}

impl Drops {
    pub(crate) fn push(&mut self, packet: PacketRef, reason: DropReason) {
        self.packets.push_back((packet, reason));
    }
}
