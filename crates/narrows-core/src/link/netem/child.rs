//! The single queue of sch_netem as a queue in a class of a scheduler, where tc would attach it as a child.

use alloc::boxed::Box;

use super::config::Netem;
use super::queue::SingleQueue;
use crate::pool::{PacketList, PacketRef, Pool};
use crate::queue::{Backlog, Bound, Context, Dequeue, Queue, Wire};
use crate::random::Seed;
use crate::time::Time;

/// The single queue of sch_netem, for use in a class ([`Store::Queue`](crate::sched::Store::Queue)).
///
/// It decides on arriving packets as [the link's](super) does, and keeps each until it is due; then the
/// scheduler may take it at any time, as in the kernel. Duplicates count as arrived in the class and as
/// created by the link. Packets that it adopts from another queue leave at once. Packets that another queue
/// adopts from it lose their due times and simply wait there.
#[derive(Debug)]
pub struct NetemQueue {
    queue: SingleQueue,
    /// Whether the start time is set.
    begun: bool,
}

impl NetemQueue {
    /// Draws are keyed by the seed and the name, which must be unique.
    pub fn new(netem: Netem, seed: Seed, name: &str) -> Self {
        Self { queue: SingleQueue::new(Box::new(netem), Time::ZERO, seed, name, 0), begun: false }
    }
}

impl Queue for NetemQueue {
    fn enqueue(&mut self, now: Time, packet: PacketRef, context: &mut Context<'_>) {
        self.queue.enqueue(now, packet, context);
    }

    fn dequeue(&mut self, now: Time, context: &mut Context<'_>) -> Dequeue {
        self.queue.dequeue(now, context)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn set_bound(&mut self, bound: Bound) {
        self.queue.set_bound(bound);
    }

    fn bound(&self) -> Bound {
        self.queue.bound()
    }

    fn take_all(&mut self, pool: &mut Pool) -> PacketList {
        self.queue.take_all(pool)
    }

    fn adopt(&mut self, now: Time, packets: PacketList, context: &mut Context<'_>) {
        self.queue.adopt(now, packets, context);
    }

    /// The first slot opens when the queue begins, at the first call of this method.
    fn set_wire(&mut self, now: Time, _wire: Wire) {
        if !self.begun {
            self.begun = true;
            self.queue.begin(now);
        }
    }
}
