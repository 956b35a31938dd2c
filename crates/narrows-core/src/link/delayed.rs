//! A delay line as the queue of a class.

use alloc::boxed::Box;
use alloc::collections::BinaryHeap;
use core::cmp::Reverse;

use super::Order;
use crate::counters::DropReason;
use crate::model::{DelayModel, Feed, Propagation};
use crate::pool::{PacketList, PacketRef, Pool};
use crate::queue::{Backlog, Bound, Context, Dequeue, Queue};
use crate::random::{Seed, Stream};
use crate::time::{Duration, Time};

/// A delay line as the queue of a class ([`Store::Queue`](crate::sched::Store::Queue)): each packet is due its delay
/// after its arrival, and the scheduler may send it from then on.
///
/// Source: the queueing discipline `sch_delay` (L. Grohmann, "Emulation of network delays", 2023), which stands below
/// other disciplines, too. The bound counts packets that wait for their delay and packets that are due. A delay model
/// that loses a packet drops it on arrival. A feed that is asked for each packet
/// ([`FeedConfig::ask`](crate::model::FeedConfig::ask)) is not supported here: its packets have no delay.
///
/// Packets that this queue adopts from another queue are due at once, since their delays are unknown. Packets that
/// another queue adopts from it lose their due times.
#[derive(Debug)]
pub struct DelayQueue {
    delay: Box<dyn DelayModel>,
    order: Order,
    bound: Bound,
    stream: Stream,
    /// The packet that is due first on top.
    row: BinaryHeap<Reverse<Held>>,
    entered: u64,
    backlog: Backlog,
    /// With order kept, no packet is due before those that arrived earlier.
    latest: Time,
}

/// A packet, ordered by its due time, then by its arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Held {
    due: Time,
    entry: u64,
    packet: u32,
}

impl DelayQueue {
    /// Draws are keyed by the seed and the name, which must be unique.
    pub fn new(delay: Box<dyn DelayModel>, order: Order, bound: Bound, seed: Seed, name: &str) -> Self {
        Self {
            delay,
            order,
            bound,
            stream: Stream::new(seed, name, "delay"),
            row: BinaryHeap::new(),
            entered: 0,
            backlog: Backlog::default(),
            latest: Time::ZERO,
        }
    }

    fn hold(&mut self, due: Time, packet: PacketRef, pool: &Pool) {
        let due = match self.order {
            Order::Keep => due.max(self.latest),
            Order::Allow => due,
        };
        self.latest = self.latest.max(due);
        self.row.push(Reverse(Held { due, entry: self.entered, packet: packet.number() }));
        self.entered += 1;
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(pool.get(packet).length);
    }

    fn pop(&mut self, pool: &Pool) -> Option<PacketRef> {
        let Reverse(held) = self.row.pop()?;
        let packet = PacketRef::from_number(held.packet);
        self.backlog.packets -= 1;
        self.backlog.bytes -= u64::from(pool.get(packet).length);
        Some(packet)
    }
}

impl Queue for DelayQueue {
    fn enqueue(&mut self, now: Time, packet: PacketRef, context: &mut Context<'_>) {
        if !self.bound.admits(self.backlog, context.pool.get(packet).length) {
            return context.drop(packet, DropReason::QueueFull);
        }
        let mut draw = context.draw(&self.stream, packet);
        let delay = match self.delay.delay(now, context.pool.get(packet), &mut draw) {
            Propagation::After(delay) => delay,
            Propagation::Lost => return context.drop(packet, DropReason::DelayModel),
            Propagation::Asked(_) => Duration::ZERO,
        };
        self.hold(now + delay, packet, context.pool);
    }

    fn dequeue(&mut self, now: Time, context: &mut Context<'_>) -> Dequeue {
        match self.row.peek() {
            Some(Reverse(held)) if held.due > now => Dequeue::NotBefore(held.due),
            _ => self.pop(context.pool).map_or(Dequeue::Empty, Dequeue::Packet),
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn set_bound(&mut self, bound: Bound) {
        self.bound = bound;
    }

    fn bound(&self) -> Bound {
        self.bound
    }

    /// In the order in which they would leave.
    fn take_all(&mut self, pool: &mut Pool) -> PacketList {
        let mut all = PacketList::default();
        while let Some(packet) = self.pop(pool) {
            all.push_back(packet, pool);
        }
        all
    }

    fn adopt(&mut self, now: Time, mut packets: PacketList, context: &mut Context<'_>) {
        while let Some(packet) = packets.pop_front(context.pool) {
            self.hold(now, packet, context.pool);
        }
    }

    fn each_feed(&mut self, visit: &mut dyn FnMut(&mut Feed)) {
        self.delay.each_feed(visit);
    }

    fn view_feeds<'a>(&'a self, visit: &mut dyn FnMut(&'a Feed)) {
        self.delay.view_feeds(visit);
    }
}
