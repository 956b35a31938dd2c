//! The single queue of sch_netem with a child queue, as tc attaches one.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::config::Netem;
use super::queue::SingleQueue;
use crate::classify::Classifier;
use crate::model::Feed;
use crate::pool::{PacketList, PacketRef, Pool};
use crate::queue::{Backlog, Bound, ClassCounters, Context, Dequeue, Queue, Wire};
use crate::random::Seed;
use crate::sched::{ClassSettings, ClassState, FlowSetCounts, MaskedFlow, Refused, Weight};
use crate::time::Time;

/// The single queue of sch_netem with a child queue.
///
/// A packet enters the child queue when it is due, and leaves when the child dequeues it (`netem_dequeue`,
/// where `q->qdisc` is set). Which packets the limit counts depends on the [generation](super::Generation); since 7.1, those in both. A reordered packet bypasses the child.
#[derive(Debug)]
pub struct NetemAround {
    netem: SingleQueue,
    child: Box<dyn Queue>,
    /// Whether the start time is set.
    begun: bool,
}

impl NetemAround {
    /// Draws are keyed by the seed and the name, which must be unique.
    pub fn new(netem: Netem, seed: Seed, name: &str, child: Box<dyn Queue>) -> Self {
        Self { netem: SingleQueue::new(Box::new(netem), Time::ZERO, seed, name, 0), child, begun: false }
    }
}

impl Queue for NetemAround {
    fn enqueue(&mut self, now: Time, packet: PacketRef, context: &mut Context<'_>) {
        self.netem.within = self.child.backlog().packets;
        self.netem.enqueue(now, packet, context);
    }

    fn dequeue(&mut self, now: Time, context: &mut Context<'_>) -> Dequeue {
        if let Some(packet) = self.netem.pop_ahead(context.pool) {
            return Dequeue::Packet(packet);
        }
        let due = loop {
            match self.netem.dequeue(now, context) {
                Dequeue::Packet(packet) | Dequeue::Ended(packet, _) => {
                    self.child.enqueue(now, packet, context)
                }
                Dequeue::NotBefore(due) => break Some(due),
                Dequeue::Empty => break None,
            }
        };
        match (self.child.dequeue(now, context), due) {
            (Dequeue::NotBefore(then), Some(due)) => Dequeue::NotBefore(then.min(due)),
            (Dequeue::Empty, Some(due)) => Dequeue::NotBefore(due),
            (found, _) => found,
        }
    }

    fn backlog(&self) -> Backlog {
        let (own, inside) = (self.netem.backlog(), self.child.backlog());
        Backlog { packets: own.packets + inside.packets, bytes: own.bytes + inside.bytes }
    }

    /// The bound of the single queue; the child's does not change.
    fn set_bound(&mut self, bound: Bound) {
        self.netem.set_bound(bound);
    }

    fn bound(&self) -> Bound {
        self.netem.bound()
    }

    fn take_all(&mut self, pool: &mut Pool) -> PacketList {
        let mut all = self.child.take_all(pool);
        let mut waiting = self.netem.take_all(pool);
        while let Some(packet) = waiting.pop_front(pool) {
            all.push_back(packet, pool);
        }
        all
    }

    /// Packets that waited elsewhere have already had their delay.
    fn adopt(&mut self, now: Time, packets: PacketList, context: &mut Context<'_>) {
        self.child.adopt(now, packets, context);
    }

    fn looks_at_headers(&self) -> bool {
        self.child.looks_at_headers()
    }

    fn looks_at_tcp_options(&self) -> bool {
        self.child.looks_at_tcp_options()
    }

    fn each_feed(&mut self, visit: &mut dyn FnMut(&mut Feed)) {
        self.child.each_feed(visit);
    }

    fn view_feeds<'a>(&'a self, visit: &mut dyn FnMut(&'a Feed)) {
        self.child.view_feeds(visit);
    }

    /// The first slot opens when the queue begins, at the first call of this method.
    fn set_wire(&mut self, now: Time, wire: Wire) {
        if !self.begun {
            self.begun = true;
            self.netem.begin(now);
        }
        self.child.set_wire(now, wire);
    }

    fn classes(&self) -> &[ClassCounters] {
        self.child.classes()
    }

    fn class_states(&self, now: Time) -> Vec<ClassState> {
        self.child.class_states(now)
    }

    fn masked_flows(&self, now: Time) -> Vec<MaskedFlow> {
        self.child.masked_flows(now)
    }

    fn flow_sets(&self) -> Vec<FlowSetCounts> {
        self.child.flow_sets()
    }

    fn set_weight(&mut self, now: Time, class: usize, weight: Weight) -> Result<(), Refused> {
        self.child.set_weight(now, class, weight)
    }

    fn set_class(&mut self, now: Time, class: usize, settings: ClassSettings) -> Result<(), Refused> {
        self.child.set_class(now, class, settings)
    }

    fn set_classifier(&mut self, classifier: Classifier) -> Result<(), Refused> {
        self.child.set_classifier(classifier)
    }
}
