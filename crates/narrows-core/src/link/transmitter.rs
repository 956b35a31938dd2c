//! The transmitter: what goes on the wire, when its transmission ends, and what happens to it there.

use super::{Link, Service, Transmission, visit};
use crate::counters::DropReason;
use crate::pool::{PacketRef, Pool};
use crate::queue::{Context, Dequeue, Drops};
use crate::service::{ServiceCurve, Work};
use crate::time::{Duration, Time};

impl Link {
    /// Ends the transmission that is due, and puts the next packet on the wire if the wire is free and a
    /// packet may go. A transmission that takes no time ends at once: at an unlimited rate no packet ever
    /// waits for another.
    // Inlined, as most below: with every packet there is then one call less, and the packet's state stays at hand.
    #[inline(always)]
    pub(super) fn serve(&mut self, now: Time, pool: &mut Pool, drops: &mut Drops) {
        if let Some(transmission) = &self.transmission {
            if transmission.end != now {
                return;
            }
            let (packet, began, bits) = (transmission.packet, transmission.began, transmission.bits);
            self.freed = (now, transmission.surplus);
            self.transmission = None;
            self.sent(now, packet, began, bits, pool, drops);
        }
        if self.queue.is_empty_fifo() && self.varies > now {
            self.not_before = Time::NEVER;
            return;
        }
        self.serve_next(now, pool, drops);
    }

    /// As [`Link::serve`], where that is rare.
    #[cold]
    #[inline(never)]
    pub(super) fn serve_late(&mut self, now: Time, pool: &mut Pool, drops: &mut Drops) {
        self.serve(now, pool, drops);
    }

    /// As [`Link::serve`], while the wire is free.
    #[inline(never)]
    pub(super) fn serve_next(&mut self, now: Time, pool: &mut Pool, drops: &mut Drops) {
        loop {
            self.not_before = Time::NEVER;
            if self.varies <= now {
                self.vary(now);
            }
            let next = self.queue.dequeue(now, &mut Context::new(pool, drops, &self.draws));
            if !self.follow(now, next, pool, drops) {
                return;
            }
        }
    }

    /// Handles the queue's answer at `now`. Returns whether to ask again: one packet has gone, and the wire
    /// is free.
    #[inline(always)]
    pub(super) fn follow(&mut self, now: Time, next: Dequeue, pool: &mut Pool, drops: &mut Drops) -> bool {
        match next {
            Dequeue::Packet(packet) => self.put_on_wire(now, packet, pool, drops),
            Dequeue::Ended(packet, began) => self.end_elsewhere(now, packet, began, pool, drops),
            Dequeue::NotBefore(at) => {
                // The queue may be waiting for a rate change, so it is told the new rate before it is asked
                // again. A queue that answered "not before now" would be asked forever, hence at least 1 ns.
                let at = at.min(self.service.next_change(now));
                self.not_before = at.max(now + Duration::from_nanos(1));
                false
            }
            Dequeue::Empty => false,
        }
    }

    /// Puts a packet on the free wire at `now`. Returns whether the wire is free again: a transmission that
    /// takes no time never occupies it.
    #[inline(always)]
    fn put_on_wire(&mut self, now: Time, packet: PacketRef, pool: &mut Pool, drops: &mut Drops) -> bool {
        let transmission = self.transmit(now, packet, pool);
        if transmission.end != now {
            self.transmission = Some(transmission);
            return false;
        }
        self.freed = (now, transmission.surplus);
        self.sent_at_once(now, packet, transmission.bits, pool, drops);
        true
    }

    #[inline(never)]
    fn sent_at_once(&mut self, now: Time, packet: PacketRef, bits: u64, pool: &mut Pool, drops: &mut Drops) {
        self.sent(now, packet, now, bits, pool, drops);
    }

    /// The transmission of a packet that goes on the wire at `now`.
    #[inline(always)]
    fn transmit(&mut self, now: Time, packet: PacketRef, pool: &mut Pool) -> Transmission {
        let (waited, bits) = self.leave_queue(now, packet, pool);
        let (mut since, mut work, mut left_over) = (now, Work::bits(bits), Work::default());
        let mut paid = Work::default();
        if self.air.is_some() {
            (since, paid) = self.take_air(now, packet, work, pool);
            work.0 -= paid.0;
        }
        // An opportunity does not last until the air time is over.
        let waits = waited > Duration::ZERO && since == now;
        if self.freed.0 == now && (waits || self.service.keeps_surplus()) {
            let carried = self.freed.1;
            left_over = Work(carried.0.saturating_sub(work.0));
            work = Work(work.0.saturating_sub(carried.0));
        }
        let (end, surplus) = match work.0 {
            // Covered by the surplus of the previous transmission, whatever the curve does from now on.
            0 if paid == Work::default() && (bits > 0 || left_over > Work::default()) => (since, left_over),
            _ => self.predict(since, work, left_over),
        };
        Transmission { packet, since, work, began: now, bits, end, surplus }
    }

    /// A packet that the queue itself has transmitted since `began` leaves the transmitter.
    #[cold]
    #[inline(never)]
    fn end_elsewhere(
        &mut self,
        now: Time,
        packet: PacketRef,
        began: Time,
        pool: &mut Pool,
        drops: &mut Drops,
    ) -> bool {
        let (_, bits) = self.leave_queue(began, packet, pool);
        self.sent(now, packet, began, bits, pool, drops);
        true
    }

    /// A packet's transmission begins. Returns how long it has waited, and the bits that it takes on the wire.
    #[inline(always)]
    fn leave_queue(&mut self, began: Time, packet: PacketRef, pool: &mut Pool) -> (Duration, u64) {
        let state = pool.get_mut(packet);
        let waited = began.since(state.entered);
        state.queued += waited;
        self.counters[usize::from(state.lane)].waited += waited;
        (waited, self.overhead.bits(state.length, state.link_header))
    }

    /// When work that begins at `since` ends at the current service curve, and the surplus then.
    pub(super) fn predict(&self, since: Time, work: Work, left_over: Work) -> (Time, Work) {
        let finish = match &self.service {
            Service::Constant(rate) => rate.finish(since, work),
            Service::Any(curve) => curve.finish(since, work),
        };
        match finish {
            Some(finish) => {
                let surplus = Work(finish.surplus.0.saturating_add(left_over.0));
                // Never in the past, whatever a third-party curve returns: time must not go back.
                (finish.at.max(since), surplus)
            }
            None => (Time::NEVER, left_over),
        }
    }

    /// A packet has been sent, starting at `began`: applies the impairments of the wire, then the delay line.
    #[inline(always)]
    pub(super) fn sent(
        &mut self,
        now: Time,
        packet: PacketRef,
        began: Time,
        bits: u64,
        pool: &mut Pool,
        drops: &mut Drops,
    ) {
        let (lane, length) = (usize::from(pool.get(packet).lane), pool.get(packet).length);
        self.counters[lane].finish(began, now, bits);
        let visit = visit(self.draws.cyclic, pool, packet);
        self.counters[lane].sent.add(length);
        if self.air.as_ref().is_some_and(|air| air.loses) {
            return drops.push(packet, DropReason::WireLoss);
        }
        let mut twin = None;
        if let Some(impairments) = &mut self.impairments {
            let streams = &impairments.streams;
            if let Some(loss) = &mut impairments.wire_loss {
                let mut draw = pool.draw(&streams.wire_loss, packet, visit);
                if loss.selector.selects(now, pool.get(packet), &mut draw)
                    && !(loss.mark && Context::new(pool, drops, &self.draws).mark(packet))
                {
                    return drops.push(packet, DropReason::WireLoss);
                }
            }
            if let Some(corruption) = &mut impairments.corruption {
                let mut draw = pool.draw(&streams.corruption, packet, visit);
                let flips = &mut impairments.flips;
                corruption.corrupt(now, pool.get(packet), &mut draw, |bit| flips.push(bit));
                self.counters[lane].corrupted += u64::from(!flips.is_empty());
                self.counters[lane].flipped += flips.len() as u64;
                flips.drain(..).for_each(|bit| pool.flip(packet, bit));
            }
            if let Some(duplication) = &mut impairments.duplication {
                let mut draw = pool.draw(&streams.duplication, packet, visit);
                if duplication.selects(now, pool.get(packet), &mut draw) {
                    twin = pool.duplicate(packet, &streams.duplication, visit, 0);
                }
            }
        }
        self.propagate(now, packet, visit, pool, drops);
        if let Some(twin) = twin {
            self.counters[lane].duplicated.add(length);
            if pool.over_memory_cap() {
                return drops.push(twin, DropReason::Memory);
            }
            self.propagate_twin(now, twin, visit, pool, drops);
        }
    }
}
