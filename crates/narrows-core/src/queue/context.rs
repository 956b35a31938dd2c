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

    /// Drops a packet, which must be in no list any more.
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
            self.drops.marked.push_back(state.lane);
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
        self.drops.marked.len() as u64
    }

    /// The random draws for a packet on its arrival at the queue.
    pub fn draw_at_arrival(&self, packet: PacketRef) -> Draw {
        let visit = self.draws.cyclic.map_or(0, |link| self.pool.earlier_visits(packet, link));
        self.pool.draw(&self.draws.arrival, packet, visit)
    }
}

/// What a link and its queue drop and mark in one call; the network takes it from there.
#[derive(Debug, Default)]
pub struct Drops {
    pub(crate) packets: VecDeque<(PacketRef, DropReason)>,
    /// The lane of each packet that was marked.
    pub(crate) marked: VecDeque<u8>,
}

impl Drops {
    pub(crate) fn push(&mut self, packet: PacketRef, reason: DropReason) {
        self.packets.push_back((packet, reason));
    }
}
