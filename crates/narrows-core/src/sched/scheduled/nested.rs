//! Classes with a nested queue.
//!
//! The nested queue decides which packet is sent and which is dropped. The scheduler sees a flow with as many packets
//! and bytes as wait in it, is told about drops as head drops, and is charged for what is sent. While the nested
//! queue has nothing to send, the class is parked (`parked.rs`).

use crate::counters::DropReason;
use crate::pool::{PacketList, PacketRef};
use crate::queue::context::Noted;
use crate::queue::{Backlog, Context, Dequeue, Queue};
use crate::sched::{FlowId, Scheduled, Scheduler, Store, Waits};
use crate::time::Time;

/// Side effects of one call to the queue inside a class.
struct Done {
    dropped: Backlog,
    /// The number of drops before the call.
    drops: usize,
    /// The number of notes before the call.
    notes: usize,
}

impl<S: Scheduler> Scheduled<S> {
    /// Calls the queue inside a class, and counts what it marks, creates and drops. The flow has one entry for each
    /// packet inside; the caller must adjust the entries.
    fn nested<T>(
        &mut self,
        flow: FlowId,
        context: &mut Context<'_>,
        work: impl FnOnce(&mut dyn Queue, &mut Context<'_>) -> T,
    ) -> (T, Done) {
        let Store::Queue(queue) = &mut self.stores[flow.number() as usize] else {
            unreachable!("only a class with a queue of its own comes here");
        };
        let (drops, notes) = (context.drops(), context.notes());
        let result = work(&mut **queue, context);
        let mut dropped = Backlog::default();
        for packet in context.dropped_since(drops) {
            dropped.add(context.pool.get(packet).length);
        }
        if let Some(counters) = self.count(flow) {
            for note in context.noted_since(notes) {
                match note {
                    Noted::Marked => counters.marked += 1,
                    // A packet created here counts as arrived here.
                    Noted::Duplicated(length) => counters.arrived.add(length),
                    Noted::Corrupted | Noted::Reordered => {}
                }
            }
            counters.dropped.packets += dropped.packets;
            counters.dropped.bytes += dropped.bytes;
        }
        (result, Done { dropped, drops, notes })
    }

    /// Removes the entries of packets that left the queue inside a class.
    fn discard(&mut self, flow: FlowId, gone: Backlog) {
        self.backlog.packets -= gone.packets;
        self.backlog.bytes -= gone.bytes;
        self.server.parts().1.discard(flow, gone);
    }

    /// Like [`Self::discard`], and tells the scheduler. These packets received no service.
    fn discard_dropped(&mut self, now: Time, flow: FlowId, gone: Backlog) {
        if gone.packets > 0 {
            self.discard(flow, gone);
            let (scheduler, flows) = self.server.parts();
            scheduler.head_dropped(now, flow, flows);
        }
    }

    /// Enqueues a packet into a class with a nested queue.
    pub(super) fn enqueue_nested(
        &mut self,
        now: Time,
        flow: FlowId,
        arriving: Waits,
        context: &mut Context<'_>,
    ) {
        self.unpark(now, flow);
        let ((), mut done) =
            self.nested(flow, context, |queue, context| queue.enqueue(now, arriving.packet, context));
        if context.dropped_since(done.drops).any(|packet| packet == arriving.packet) {
            done.dropped.remove(arriving.length);
        } else {
            self.join(now, flow, arriving);
        }
        for note in done.notes..context.notes() {
            if let Noted::Duplicated(length) = context.noted(note) {
                self.join(now, flow, Waits { length, ..arriving });
            }
        }
        self.discard_dropped(now, flow, done.dropped);
    }

    /// Passes packets to the queue inside a class. The flow already has entries for them.
    pub(super) fn adopt_nested(
        &mut self,
        now: Time,
        flow: FlowId,
        packets: PacketList,
        context: &mut Context<'_>,
    ) {
        let ((), done) = self.nested(flow, context, |queue, context| queue.adopt(now, packets, context));
        self.discard_dropped(now, flow, done.dropped);
    }

    /// Dequeues from the queue inside a class. `None` if it dropped all its packets, or if it sends nothing before
    /// some instant; then the class is parked until that instant.
    pub(super) fn take_nested(
        &mut self,
        now: Time,
        flow: FlowId,
        began: Time,
        context: &mut Context<'_>,
    ) -> Option<PacketRef> {
        let (answer, done) = self.nested(flow, context, |queue, context| queue.dequeue(now, context));
        match answer {
            Dequeue::Packet(packet) | Dequeue::Ended(packet, _) => {
                let waits = Waits { packet, length: context.pool.get(packet).length };
                let mut gone = done.dropped;
                gone.add(waits.length);
                self.discard(flow, gone);
                self.send(now, flow, waits, began, context.pool);
                return Some(packet);
            }
            Dequeue::NotBefore(at) => {
                self.discard_dropped(now, flow, done.dropped);
                if self.server.flows().packets(flow) > 0 {
                    self.park(now, flow, at);
                }
            }
            Dequeue::Empty => {
                debug_assert_eq!(done.dropped.packets, self.class_backlog(flow).packets, "it is empty now");
                self.discard_dropped(now, flow, done.dropped);
            }
        }
        None
    }

    /// Drops what the queue inside a class would send next, or lets the queue drop packets itself.
    pub(super) fn drop_nested(
        &mut self,
        now: Time,
        flow: FlowId,
        reason: DropReason,
        context: &mut Context<'_>,
    ) -> Option<Time> {
        let (answer, done) = self.nested(flow, context, |queue, context| queue.dequeue(now, context));
        let mut gone = done.dropped;
        if let Dequeue::Packet(packet) | Dequeue::Ended(packet, _) = answer {
            let length = context.pool.get(packet).length;
            gone.add(length);
            if let Some(counters) = self.count(flow) {
                counters.dropped.add(length);
            }
            context.drop(packet, reason);
        }
        self.discard_dropped(now, flow, gone);
        match answer {
            Dequeue::NotBefore(at) if gone.packets == 0 => Some(at),
            _ => None,
        }
    }
}
