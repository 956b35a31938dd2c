//! Classes with a queue of their own.
//!
//! Which packet goes and which is dropped is that queue's choice. The scheduler sees a flow with as many packets and bytes
//! as wait in it, hears of drops as of dropped heads, and is charged with what is sent.

use crate::counters::DropReason;
use crate::pool::PacketList;
use crate::queue::{Backlog, Context, Dequeue, Queue};
use crate::sched::{FlowId, Scheduled, Scheduler, Store, Waits};
use crate::time::Time;

/// What the queue inside a class dropped in one call.
struct Gone {
    dropped: Backlog,
    /// How many drops there were before.
    from: usize,
}

impl<S: Scheduler> Scheduled<S> {
    /// Works on the queue inside a class, and counts what it marks and drops. The flow has one entry for each packet
    /// inside; to bring these in line is the caller's part.
    fn nested<T>(
        &mut self,
        flow: FlowId,
        context: &mut Context<'_>,
        work: impl FnOnce(&mut dyn Queue, &mut Context<'_>) -> T,
    ) -> (T, Gone) {
        let Store::Queue(queue) = &mut self.stores[flow.number() as usize] else {
            unreachable!("only a class with a queue of its own comes here");
        };
        let (drops, marks) = (context.drops(), context.marks());
        let result = work(&mut **queue, context);
        let mut dropped = Backlog::default();
        for packet in context.dropped_since(drops) {
            dropped.add(context.pool.get(packet).length);
        }
        let marked = context.marks() - marks;
        if let Some(counters) = self.count(flow) {
            counters.marked += marked;
            counters.dropped.packets += dropped.packets;
            counters.dropped.bytes += dropped.bytes;
        }
        (result, Gone { dropped, from: drops })
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
        let ((), mut gone) =
            self.nested(flow, context, |queue, context| queue.enqueue(now, arriving.packet, context));
        if context.dropped_since(gone.from).any(|packet| packet == arriving.packet) {
            gone.dropped.remove(arriving.length);
        } else {
            self.join(now, flow, arriving);
        }
        self.discard_dropped(now, flow, gone.dropped);
    }

    /// The queue inside a class takes over packets that the flow has entries for already.
    pub(super) fn adopt_nested(
        &mut self,
        now: Time,
        flow: FlowId,
        packets: PacketList,
        context: &mut Context<'_>,
    ) {
        let ((), gone) = self.nested(flow, context, |queue, context| queue.adopt(now, packets, context));
        self.discard_dropped(now, flow, gone.dropped);
    }

    /// Takes out what the queue inside a class sends; nothing when it dropped all that it had.
    pub(super) fn take_nested(
        &mut self,
        now: Time,
        flow: FlowId,
        context: &mut Context<'_>,
    ) -> Option<Dequeue> {
        let (answer, gone) = self.nested(flow, context, |queue, context| queue.dequeue(now, context));
        match answer {
            Dequeue::Packet(packet) => {
                let waits = Waits { packet, length: context.pool.get(packet).length };
                let mut gone = gone.dropped;
                gone.add(waits.length);
                self.discard(flow, gone);
                self.send(now, flow, waits, context.pool);
                Some(answer)
            }
            Dequeue::NotBefore(_) => {
                self.discard_dropped(now, flow, gone.dropped);
                Some(answer)
            }
            Dequeue::Empty => {
                debug_assert_eq!(gone.dropped.packets, self.class_backlog(flow).packets, "it is empty now");
                self.discard_dropped(now, flow, gone.dropped);
                None
            }
        }
    }

    /// Drops what the queue inside a class would send next, or what it drops itself on being asked.
    pub(super) fn drop_nested(
        &mut self,
        now: Time,
        flow: FlowId,
        reason: DropReason,
        context: &mut Context<'_>,
    ) -> Option<Time> {
        let (answer, gone) = self.nested(flow, context, |queue, context| queue.dequeue(now, context));
        let mut gone = gone.dropped;
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
