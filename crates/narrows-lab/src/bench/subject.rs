//! What is put under the load: nothing, a scheduler alone, or a scheduler with queue management.

use std::fmt;

use narrows_core::aqm::Aqm;
use narrows_core::classify::Classifier;
use narrows_core::queue::{Bound, Dequeue, DropAt, Queue, Stand, Wire};
use narrows_core::sched::{
    FlowConfig, FlowId, Overload, Refused, Scheduled, Scheduler, Served, Server, Store,
};
use narrows_core::service::Overhead;
use narrows_core::{FlowKey, PacketRef, Rate, Seed, Time};

use super::{Flowset, Records, Workload};

/// Something that can be put under the load. Packets are identified by the numbers of their records.
pub trait Subject {
    /// Enqueues a packet.
    fn enqueue(&mut self, now: Time, packet: u32, records: &mut Records);

    /// Dequeues a packet, if one waits.
    fn dequeue(&mut self, now: Time, records: &mut Records) -> Option<u32>;

    /// The oldest drop that has not been reported yet; called after each call.
    #[inline]
    fn dropped(&mut self) -> Option<u32> {
        None
    }
}

/// Nothing was served although packets waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it serves nothing while {waiting} packets wait")]
pub struct Unserved {
    /// How many waited.
    pub waiting: u64,
}

/// A scheduler rejects the flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotTaken {
    /// The flows.
    pub flowset: Flowset,
    /// The reason.
    pub cause: Refused,
}

impl fmt::Display for NotTaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Flowset { weight, length, flows } = self.flowset;
        write!(f, "does not take the flows {weight}:{length}:{flows}: {}", self.cause)
    }
}

impl std::error::Error for NotTaken {}

const NONE: u32 = u32::MAX;

/// NONE: no scheduler. Packets wait in one linked list through their records.
#[derive(Debug)]
pub struct Chain {
    first: u32,
    last: u32,
}

impl Default for Chain {
    fn default() -> Self {
        Self { first: NONE, last: NONE }
    }
}

impl Subject for Chain {
    #[inline]
    fn enqueue(&mut self, _: Time, packet: u32, records: &mut Records) {
        match self.first {
            NONE => self.first = packet,
            _ => records.get_mut(self.last).next = packet,
        }
        self.last = packet;
    }

    #[inline]
    fn dequeue(&mut self, _: Time, records: &mut Records) -> Option<u32> {
        let packet = self.first;
        if packet == NONE {
            return None;
        }
        self.first = records.get(packet).next;
        Some(packet)
    }
}

/// A scheduler alone, with one queue per flow.
#[derive(Debug)]
pub struct PerFlow<S: Scheduler> {
    server: Server<S>,
}

impl<S: Scheduler> PerFlow<S> {
    /// The scheduler, for inspection.
    pub const fn scheduler(&self) -> &S {
        self.server.scheduler()
    }

    /// Joins all flows of the load.
    ///
    /// # Errors
    /// If the scheduler rejects one.
    pub fn join(scheduler: S, workload: &Workload) -> Result<Self, NotTaken> {
        let mut server = Server::new(scheduler);
        for ((config, &flowset), number) in workload.configs().zip(0..) {
            let id = server.join(config).map_err(|cause| NotTaken { flowset, cause })?;
            assert_eq!(id.number(), number, "flows are numbered as they join");
        }
        Ok(Self { server })
    }

    /// Flows and scheduler, for inspection.
    pub const fn server(&self) -> &Server<S> {
        &self.server
    }
}

impl<S: Scheduler> Subject for PerFlow<S> {
    #[inline]
    fn enqueue(&mut self, now: Time, packet: u32, records: &mut Records) {
        let record = records.get(packet);
        let (flow, packet) = (FlowId::new(record.flow), PacketRef::from_number(packet));
        self.server.enqueue(now, flow, packet, record.length);
    }

    #[inline]
    fn dequeue(&mut self, now: Time, _: &mut Records) -> Option<u32> {
        served(self.server.dequeue(now))
    }
}

fn served(served: Served) -> Option<u32> {
    match served {
        Served::Packet(_, waits) => Some(waits.packet.number()),
        _ => None,
    }
}

/// A scheduler alone, with shared queues: one for all flows, or one per priority.
#[derive(Debug)]
pub struct Grouped<S: Scheduler> {
    server: Server<S>,
    /// The queue of each flow.
    queues: Vec<u32>,
}

impl<S: Scheduler> Grouped<S> {
    /// One queue for each different value of `group` over the flows.
    ///
    /// # Errors
    /// If the scheduler rejects one.
    pub fn join<G: PartialEq>(
        scheduler: S,
        workload: &Workload,
        group: impl Fn(FlowConfig) -> G,
    ) -> Result<Self, NotTaken> {
        let mut server = Server::new(scheduler);
        let mut groups: Vec<(G, FlowId)> = Vec::new();
        let mut queues = Vec::with_capacity(workload.flows() as usize);
        for (config, &flowset) in workload.configs() {
            let of = group(config);
            let queue = match groups.iter().find(|(known, _)| *known == of) {
                Some(&(_, queue)) => queue,
                None => {
                    let queue = server.join(config).map_err(|cause| NotTaken { flowset, cause })?;
                    groups.push((of, queue));
                    queue
                }
            };
            queues.push(queue.number());
        }
        Ok(Self { server, queues })
    }
}

impl<S: Scheduler> Subject for Grouped<S> {
    #[inline]
    fn enqueue(&mut self, now: Time, packet: u32, records: &mut Records) {
        let record = records.get(packet);
        let queue = FlowId::new(self.queues[record.flow as usize]);
        self.server.enqueue(now, queue, PacketRef::from_number(packet), record.length);
    }

    #[inline]
    fn dequeue(&mut self, now: Time, _: &mut Records) -> Option<u32> {
        served(self.server.dequeue(now))
    }
}

/// A scheduler as the queue of a link, with classifier and queue management: each packet has a state as in the
/// engine.
#[derive(Debug)]
pub struct Behind<S: Scheduler> {
    queue: Scheduled<S>,
    /// The flow key of the packets of a flow.
    key: fn(u32) -> FlowKey,
    stand: Stand,
    /// The number of packet states.
    states: u32,
}

impl<S: Scheduler> Behind<S> {
    /// Joins all flows of the load, each with a queue and policy of its own. Packets carry their flow's number as a
    /// mark instead of being hashed, so that no two flows share a queue. No limit is reached.
    ///
    /// # Errors
    /// If the scheduler rejects one.
    pub fn managed<P: Aqm + 'static>(
        scheduler: S,
        workload: &Workload,
        policy: impl Fn() -> P,
    ) -> Result<Self, NotTaken> {
        let classifier = Classifier::Mark(workload.flows() as u32);
        let overload = Overload::Longest { batch: 64, drop_at: DropAt::Head };
        let mut queue = Scheduled::new(scheduler, classifier, Bound::Packets(u64::MAX), overload);
        for (config, &flowset) in workload.configs() {
            let store = Store::Managed(Box::new(policy()));
            queue.add_flow(config, store).map_err(|cause| NotTaken { flowset, cause })?;
        }
        Ok(Self::new(queue, |flow| FlowKey { mark: flow, ..FlowKey::default() }))
    }

    /// Any such queue. `key` gives the flow key of a flow's packets.
    pub fn new(mut queue: Scheduled<S>, key: fn(u32) -> FlowKey) -> Self {
        // A packet of 1000 bytes per iteration's nanosecond, so that nothing waits for long.
        let rate = Rate::from_bits_per_second(8_000_000_000_000);
        queue.set_wire(Time::ZERO, Wire { rate, overhead: Overhead::IP });
        Self { queue, key, stand: Stand::new(Seed(1)), states: 0 }
    }
}

impl<S: Scheduler> Subject for Behind<S> {
    #[inline]
    fn enqueue(&mut self, now: Time, packet: u32, records: &mut Records) {
        let record = records.get(packet);
        let key = (self.key)(record.flow);
        let arriving = PacketRef::from_number(packet);
        if packet == self.states {
            let inserted = self.stand.insert(now, key, record.length);
            assert_eq!(inserted, arriving, "states are numbered as records are");
            self.states += 1;
        } else {
            self.stand.renew(arriving, now, key, record.length);
        }
        self.queue.enqueue(now, arriving, &mut self.stand.context());
    }

    #[inline]
    fn dequeue(&mut self, now: Time, _: &mut Records) -> Option<u32> {
        match self.queue.dequeue(now, &mut self.stand.context()) {
            Dequeue::Packet(packet) | Dequeue::Ended(packet, _) => Some(packet.number()),
            _ => None,
        }
    }

    #[inline]
    fn dropped(&mut self) -> Option<u32> {
        self.stand.dropped().map(|(packet, _)| packet.number())
    }
}
