//! A queue of flow sets by itself, packets for it, and what must hold after each call.

use std::collections::BTreeMap;

use narrows_core::classify::FlowMask;
use narrows_core::queue::{Bound, Dequeue, Queue, Stand};
use narrows_core::sched::{FlowConfig, FlowSet, FlowSets, Scheduler, Weight};
use narrows_core::{DropReason, Duration, FlowKey, PacketRef, Protocol, Seed, Time};

/// A flow for each IPv4 source.
pub(crate) const SOURCES: FlowMask = FlowMask { source_v4: u32::MAX, ..FlowMask::NONE };

pub(crate) const IDLE: Duration = Duration::from_millis(100);

pub(crate) fn ms(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

pub(crate) fn weight(weight: u32) -> FlowConfig {
    FlowConfig { weight: Weight::new(weight).expect("not 0"), ..FlowConfig::default() }
}

/// A packet from the `source`th address to the set at a place.
pub(crate) fn key(set: u32, source: u32) -> FlowKey {
    let mut address = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 0];
    address[13..].copy_from_slice(&source.to_be_bytes()[1..]);
    FlowKey { source: address, mark: set, network: Protocol::Ipv4, ..FlowKey::default() }
}

/// The last part of a packet's source address.
pub(crate) fn source(key: &FlowKey) -> u32 {
    u32::from_be_bytes([0, key.source[13], key.source[14], key.source[15]])
}

/// Without a bound, expiring after [`IDLE`].
pub(crate) fn queue<S: Scheduler>(scheduler: S, sets: Vec<FlowSet>) -> FlowSets<S> {
    let mut queue = FlowSets::new(scheduler, IDLE, Seed(1), "link");
    sets.into_iter().for_each(|set| queue.add_set(set).expect("the scheduler takes them"));
    queue
}

pub(crate) fn set(mask: FlowMask, flow: FlowConfig) -> FlowSet {
    FlowSet { bound: Bound::Packets(u64::MAX), ..FlowSet::new(7, mask, flow) }
}

/// A queue, and what should be in it.
pub(crate) struct Run {
    pub(crate) stand: Stand,
    pub(crate) queue: Box<dyn Queue>,
    pub(crate) now: Time,
    /// Packets inside, with their sets and lengths.
    inside: BTreeMap<u32, (u32, u32)>,
    pub(crate) dropped: Vec<(PacketRef, DropReason)>,
    /// Whether everything adds up is looked at after every so many calls.
    pub(crate) look_every: u32,
    calls: u32,
}

impl Run {
    pub(crate) fn new(queue: impl Queue + 'static) -> Self {
        let (stand, now) = (Stand::new(Seed(1)), Time::ZERO);
        Self {
            stand,
            queue: Box::new(queue),
            now,
            inside: BTreeMap::new(),
            dropped: Vec::new(),
            look_every: 1,
            calls: 0,
        }
    }

    pub(crate) fn enqueue(&mut self, key: FlowKey, length: u32) -> PacketRef {
        let packet = self.stand.insert(self.now, key, length);
        self.inside.insert(packet.number(), (key.mark, length));
        self.queue.enqueue(self.now, packet, &mut self.stand.context());
        self.settle();
        packet
    }

    /// What goes next, with its key.
    pub(crate) fn send(&mut self) -> Option<(PacketRef, FlowKey)> {
        let answer = self.queue.dequeue(self.now, &mut self.stand.context());
        let sent = match answer {
            Dequeue::Packet(packet) => {
                assert!(self.inside.remove(&packet.number()).is_some(), "sent once");
                Some((packet, self.stand.pool().get(packet).key))
            }
            Dequeue::Empty => None,
            other => panic!("{other:?}: none of these declines"),
        };
        self.settle();
        assert!(sent.is_some() || self.inside.is_empty(), "work waits and is not done");
        sent
    }

    /// Notes what was dropped. Everything adds up, by set and by flow.
    fn settle(&mut self) {
        while let Some((packet, reason)) = self.stand.dropped() {
            assert!(self.inside.remove(&packet.number()).is_some(), "dropped once");
            self.dropped.push((packet, reason));
        }
        self.calls += 1;
        if self.calls.is_multiple_of(self.look_every) {
            self.look();
        }
    }

    fn look(&self) {
        let flows = self.queue.masked_flows(self.now);
        let (mut packets, mut bytes) = (0, 0);
        for (set, (counters, counts)) in (0..).zip(self.queue.classes().iter().zip(self.queue.flow_sets())) {
            let inside = self.inside.values().filter(|&&(of, _)| of == set);
            let (waiting, waiting_bytes) =
                inside.fold((0, 0), |(n, bytes), &(_, length)| (n + 1, bytes + u64::from(length)));
            assert_eq!(counters.arrived.packets, counters.sent.packets + counters.dropped.packets + waiting);
            assert_eq!(counters.arrived.bytes, counters.sent.bytes + counters.dropped.bytes + waiting_bytes);
            let of_set = || flows.iter().filter(|flow| flow.set == set);
            assert_eq!(of_set().map(|flow| flow.backlog.packets).sum::<u64>(), waiting);
            assert_eq!(of_set().map(|flow| flow.backlog.bytes).sum::<u64>(), waiting_bytes);
            // Those that are expired may not have been counted yet.
            assert!(counts.made - counts.expired >= of_set().count() as u64);
            (packets, bytes) = (packets + waiting, bytes + waiting_bytes);
        }
        for flow in &flows {
            assert!(flow.arrived.packets >= flow.dropped.packets + flow.backlog.packets);
            assert!(flow.backlog.packets == 0 || flow.idle_since.is_none());
        }
        let backlog = self.queue.backlog();
        assert_eq!((backlog.packets, backlog.bytes), (packets, bytes));
    }
}
