//! A queue by itself, without a link and a network around it, for benches, labs and tests of queues.

use crate::counters::DropReason;
use crate::id::PortId;
use crate::packet::{FlowKey, Packet, PacketId};
use crate::pool::{PacketRef, Pool};
use crate::queue::Context;
use crate::queue::context::{Draws, Drops};
use crate::random::{Seed, Stream};
use crate::time::Time;
use crate::units::Bytes;

/// What a queue works with: packets, draws, and where its drops go. A network has one of each for all its links; who
/// drives a queue alone has this.
///
/// ```
/// # use narrows_core::queue::{Bound, Dequeue, DropAt, Fifo, Queue, Stand};
/// # use narrows_core::{FlowKey, Seed, Time};
/// let mut stand = Stand::new(Seed(1));
/// let mut queue = Fifo::new(Bound::Packets(1), DropAt::Tail);
/// let first = stand.insert(Time::ZERO, FlowKey::default(), 1000);
/// let second = stand.insert(Time::ZERO, FlowKey::default(), 1000);
/// queue.enqueue(Time::ZERO, first, &mut stand.context());
/// queue.enqueue(Time::ZERO, second, &mut stand.context());
/// assert_eq!(stand.dropped().map(|(packet, _)| packet), Some(second));
/// assert_eq!(queue.dequeue(Time::ZERO, &mut stand.context()), Dequeue::Packet(first));
/// ```
#[derive(Debug)]
pub struct Stand {
    pool: Pool,
    drops: Drops,
    draws: Draws,
    inserted: u64,
}

impl Stand {
    /// Without packets.
    pub fn new(seed: Seed) -> Self {
        let mut pool = Pool::new(Bytes::new(u64::MAX));
        pool.origins.push(0);
        let draws = Draws { arrival: Stream::new(seed, "stand", "queue arrival"), cyclic: None };
        Self { pool, drops: Drops::default(), draws, inserted: 0 }
    }

    /// Makes a packet that begins to wait at `now`. As long as none is removed, they are numbered from 0 on.
    pub fn insert(&mut self, now: Time, key: FlowKey, length: u32) -> PacketRef {
        let id = PacketId::new(PortId::new(0), self.inserted);
        self.inserted += 1;
        self.pool.insert(
            id,
            now,
            &Packet { length, link_header: 0, network_header: 0, headers: Default::default(), key, body: () },
        )
    }

    /// Makes another packet in the place of one that is in no queue.
    #[inline]
    pub fn renew(&mut self, packet: PacketRef, now: Time, key: FlowKey, length: u32) {
        let state = self.pool.get_mut(packet);
        state.id = PacketId::new(PortId::new(0), self.inserted);
        (state.key, state.length, state.arrival, state.entered) = (key, length, now, now);
        self.inserted += 1;
    }

    /// Takes away a packet that is in no queue.
    pub fn remove(&mut self, packet: PacketRef) {
        self.pool.leave(packet);
        self.pool.remove(packet);
    }

    /// What the queue is called with.
    #[inline]
    pub const fn context(&mut self) -> Context<'_> {
        Context::new(&mut self.pool, &mut self.drops, &self.draws)
    }

    /// The packets, to look at.
    pub const fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The oldest drop that has not been told yet. The packet stays until it is removed.
    #[inline]
    pub fn dropped(&mut self) -> Option<(PacketRef, DropReason)> {
        self.drops.packets.pop_front()
    }

    /// How many packets were marked since this was asked last.
    pub fn marked(&mut self) -> u64 {
        let marked = self.drops.noted.len() as u64;
        self.drops.noted.clear();
        marked
    }
}
