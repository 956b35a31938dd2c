//! A queue on its own, without a link or network, for benchmarks, labs and tests.

use crate::counters::DropReason;
use crate::id::PortId;
use crate::packet::{FlowKey, Packet, PacketId};
use crate::pool::{PacketRef, Pool};
use crate::queue::Context;
use crate::queue::context::{Draws, Drops};
use crate::random::{Seed, Stream};
use crate::time::Time;
use crate::units::Bytes;

/// Everything that a queue needs from its network: a packet pool, random draws and a list of drops. A network has one
/// of each for all its links. Use a `Stand` to drive a queue directly.
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
    /// A stand without packets.
    pub fn new(seed: Seed) -> Self {
        let mut pool = Pool::new(Bytes::new(u64::MAX));
        pool.origins.push(0);
        let draws = Draws { arrival: Stream::new(seed, "stand", "queue arrival"), cyclic: None };
        Self { pool, drops: Drops::default(), draws, inserted: 0 }
    }

    /// Creates a packet that begins to wait at `now`. As long as none is removed, packets are numbered from 0.
    pub fn insert(&mut self, now: Time, key: FlowKey, length: u32) -> PacketRef {
        let id = PacketId::new(PortId::new(0), self.inserted);
        self.inserted += 1;
        self.pool.insert(
            id,
            now,
            &Packet { length, link_header: 0, network_header: 0, headers: Default::default(), key, body: () },
        )
    }

    /// Replaces a packet that is in no queue with a new one, in the same slot.
    #[inline]
    pub fn renew(&mut self, packet: PacketRef, now: Time, key: FlowKey, length: u32) {
        let state = self.pool.get_mut(packet);
        state.id = PacketId::new(PortId::new(0), self.inserted);
        (state.key, state.length, state.arrival, state.entered) = (key, length, now, now);
        self.inserted += 1;
    }

    /// Removes a packet that is in no queue.
    pub fn remove(&mut self, packet: PacketRef) {
        self.pool.leave(packet);
        self.pool.remove(packet);
    }

    /// The context to pass to the queue.
    #[inline]
    pub const fn context(&mut self) -> Context<'_> {
        Context::new(&mut self.pool, &mut self.drops, &self.draws)
    }

    /// Read access to the packets.
    pub const fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The oldest drop not yet returned. The packet stays in the pool until it is removed.
    #[inline]
    pub fn dropped(&mut self) -> Option<(PacketRef, DropReason)> {
        self.drops.packets.pop_front()
    }

    /// The number of packets marked since the last call.
    pub fn marked(&mut self) -> u64 {
        let marked = self.drops.noted.len() as u64;
        self.drops.noted.clear();
        marked
    }
}
