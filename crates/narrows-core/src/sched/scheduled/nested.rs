//! Classes with a queue of their own.
//!
//! Which packet goes and which is dropped is that queue's choice. The scheduler sees a flow with as many packets and bytes
//! as wait in it, hears of drops as of dropped heads, and is charged with what is sent. While that queue sends nothing, the
//! class is put aside (`parked.rs`).

use crate::counters::DropReason;
use crate::pool::PacketList;
use crate::queue::context::Noted;
use crate::queue::{Backlog, Context, Dequeue, Queue};
use crate::sched::{FlowId, Scheduled, Scheduler, Store, Waits};
use crate::time::Time;

/// What the queue inside a class did besides its answer in one call.
struct Done {
    dropped: Backlog,
    /// How many drops there were before.
    drops: usize,
    /// How many notes there were before.
    notes: usize,
}

impl<S: Scheduler> Scheduled<S> {
    /// Works on the queue inside a class, and counts what it marks, makes and drops. The flow has one entry for each packet
    /// inside; to bring these in line is the caller's part.
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
                    // A packet that was made here has come here.
                    Noted::Duplicated(length) => counters.arrived.add(length),
                    Noted::Corrupted | Noted::Reordered => {}
                }
            }
            counters.dropped.packets += dropped.packets;
            counters.dropped.bytes += dropped.bytes;
        }
        (result, Done { dropped, drops, notes })
    }

    /// Takes the entries of packets that went out of the queue inside a class.
    fn discard(&mut self, flow: FlowId, gone: Backlog) {
        self.backlog.packets -= gone.packets;
        self.backlog.bytes -= gone.bytes;
        self.server.parts().1.discard(flow, gone);
    }

    /// As [`Self::discard`], and tells the scheduler: they got no service.
    fn discard_dropped(&mut self, now: Time, flow: FlowId, gone: Backlog) {
        if gone.packets > 0 {
            self.discard(flow, gone);
            let (scheduler, flows) = self.server.parts();
            scheduler.head_dropped(now, flow, flows);
        }
    }

    /// A packet comes to a class with a queue of its own.
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

    /// The queue inside a class takes over packets that the flow has entries for already.
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

    /// Takes out what the queue inside a class sends; nothing when it dropped all that it had, or sends nothing before some
    /// instant, until which the class is put aside.
    pub(super) fn take_nested(
        &mut self,
        now: Time,
        flow: FlowId,
        context: &mut Context<'_>,
    ) -> Option<Dequeue> {
        let (answer, done) = self.nested(flow, context, |queue, context| queue.dequeue(now, context));
        match answer {
            Dequeue::Packet(packet) => {
                let waits = Waits { packet, length: context.pool.get(packet).length };
                let mut gone = done.dropped;
                gone.add(waits.length);
                self.discard(flow, gone);
                self.send(now, flow, waits, context.pool);
                return Some(answer);
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

    /// Drops what the queue inside a class would send next, or what it drops itself on being asked.
    pub(super) fn drop_nested(
        &mut self,
        now: Time,
        flow: FlowId,
        reason: DropReason,
        context: &mut Context<'_>,
    ) -> Option<Time> {
        let (answer, done) = self.nested(flow, context, |queue, context| queue.dequeue(now, context));
        let mut gone = done.dropped;
        if let Dequeue::Packet(packet) = answer {
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
