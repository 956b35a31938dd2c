//! sch_netem's single queue as a queue among others: in a class of a scheduler, where tc would have it as a child.

use alloc::boxed::Box;

use super::config::Netem;
use super::queue::SingleQueue;
use crate::pool::{PacketList, PacketRef, Pool};
use crate::queue::{Backlog, Bound, Context, Dequeue, Queue, Wire};
use crate::random::Seed;
use crate::time::Time;

/// The single queue of sch_netem, to stand in a class ([`Store::Queue`](crate::sched::Store::Queue)).
///
/// It decides as [the link's](super) does, on packets as they arrive, and keeps each until it is due; then the scheduler
/// takes it when it likes, as the kernel's do. Duplicates count as arrived in the class, and as made by the link. Where it is
/// given what waited elsewhere, that leaves at once, and what it gives away has no due instant any more: to another queue it
/// is only what waits.
#[derive(Debug)]
pub struct NetemQueue {
    queue: SingleQueue,
    /// Whether it has been told when it begins.
    begun: bool,
}

impl NetemQueue {
    /// Its draws go by the seed and the name, which no other one may have.
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

    /// The first slot opens when the queue begins, which is when it is told of its wire first.
    fn set_wire(&mut self, now: Time, _wire: Wire) {
        if !self.begun {
            self.begun = true;
            self.queue.begin(now);
        }
    }
}
