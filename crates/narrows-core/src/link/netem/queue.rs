//! Enqueue and dequeue of sch_netem.

#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::mem;

use super::arithmetic::{Crandom, packet_nanos, table_delay};
use super::config::{Generation, Netem, SlotGap};
use super::loss::Losses;
use crate::counters::DropReason;
use crate::pool::{PacketList, PacketRef, Pool};
use crate::queue::context::Noted;
use crate::queue::{Backlog, Bound, Context, Dequeue, Queue};
use crate::random::{Draw, Seed, Stream};
use crate::time::{Duration, Time};

/// The queue that replaces all of a link, stored as the link's queue.
#[derive(Debug)]
pub(in crate::link) struct SingleQueue {
    netem: Box<Netem>,
    streams: Streams,
    losses: Losses,
    duplication: Crandom,
    corruption: Crandom,
    reorder: Crandom,
    delay: Crandom,
    /// Packets since the last reordered one.
    counter: u32,
    /// Reordered packets: the last leaves first, at once.
    ahead: Vec<PacketRef>,
    /// The other packets, the first to leave on top.
    row: BinaryHeap<Reverse<Held>>,
    entered: u64,
    /// When the packet that leaves last is due; meaningless while the row is empty.
    latest: i64,
    slot: Option<Slot>,
    slots: u64,
    bytes: u64,
    /// Packets in the child queue.
    pub(super) within: u64,
}

/// A packet, ordered by its due time (in nanoseconds, possibly before the run began), then by its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Held {
    due: i64,
    entry: u64,
    packet: u32,
}

/// The newest slot.
#[derive(Clone, Copy, Debug)]
struct Slot {
    opens: i64,
    packets_left: i64,
    bytes_left: i64,
}

#[derive(Debug)]
struct Streams {
    duplication: Stream,
    loss: Stream,
    corruption: Stream,
    reorder: Stream,
    delay: Stream,
    slots: Stream,
}

impl SingleQueue {
    /// Begins at `now` for the link with this name; `slots` slots were scheduled before.
    pub(in crate::link) fn new(netem: Box<Netem>, now: Time, seed: Seed, link: &str, slots: u64) -> Self {
        let stream = |purpose| Stream::new(seed, link, purpose);
        // The initial values for correlations, which the kernel draws, too.
        let lasts = stream("netem correlations");
        let last = |index| upper(&mut lasts.nth(index));
        Self {
            streams: Streams {
                duplication: stream("netem duplication"),
                loss: stream("netem loss"),
                corruption: stream("netem corruption"),
                reorder: stream("netem reorder"),
                delay: stream("netem delay"),
                slots: stream("netem slots"),
            },
            delay: Crandom::new(netem.delay_correlation, last(0)),
            losses: Losses::new(netem.loss, last(1), netem.generation),
            duplication: Crandom::new(netem.duplication.correlation, last(2)),
            reorder: Crandom::new(netem.reorder.correlation, last(3)),
            corruption: Crandom::new(netem.corruption.correlation, last(4)),
            counter: 0,
            ahead: Vec::new(),
            row: BinaryHeap::new(),
            entered: 0,
            latest: i64::MIN,
            slot: first_slot(&netem, now),
            slots,
            bytes: 0,
            within: 0,
            netem,
        }
    }

    /// Sets the start time to `now` instead of the time of creation.
    pub(super) fn begin(&mut self, now: Time) {
        self.slot = first_slot(&self.netem, now);
    }

    /// How many slots have been scheduled, including those before this queue.
    pub(in crate::link) const fn slots(&self) -> u64 {
        self.slots
    }

    /// Takes over all packets of the previous single queue. They keep their due times and continue to wait.
    pub(in crate::link) fn succeed(&mut self, before: &mut Self) {
        self.ahead = mem::take(&mut before.ahead);
        self.row = mem::take(&mut before.row);
        (self.entered, self.latest, self.bytes) = (before.entered, before.latest, before.bytes);
        self.slots = before.slots;
    }

    /// The packet that leaves next, ignoring slots, and its due time; no due time for a reordered packet,
    /// which leaves at once.
    pub(in crate::link) fn pop(&mut self, pool: &Pool) -> Option<(PacketRef, Option<Time>)> {
        let next = self.ahead.pop().map(|packet| (packet, None)).or_else(|| {
            let Reverse(Held { due, packet, .. }) = self.row.pop()?;
            Some((PacketRef::from_number(packet), Some(Time::from_nanos(due.max(0) as u64))))
        })?;
        self.bytes -= u64::from(pool.get(next.0).length);
        Some(next)
    }

    /// `netem_enqueue`. A duplicate is enqueued during the enqueue of its original, and is not duplicated
    /// again.
    fn enter(&mut self, now: Time, packet: PacketRef, is_twin: bool, context: &mut Context<'_>) {
        let netem = &self.netem;
        let twice = !is_twin && netem.duplication.share.raw() > 0 && {
            let value = upper(&mut context.draw(&self.streams.duplication, packet));
            netem.duplication.share.raw() >= self.duplication.next(value)
        };
        let mut draw = context.draw(&self.streams.loss, packet);
        let lost = self.losses.loses(|| upper(&mut draw)) && !(netem.ecn && context.mark(packet));
        if lost && !twice {
            return context.drop(packet, DropReason::IngressLoss);
        }
        let twin_first = netem.generation < Generation::Linux6_11;
        if twin_first && twice && !lost {
            let twin = context.duplicate(&self.streams.duplication, packet);
            if let Some(twin) = twin {
                self.enter_twin(now, twin, context);
            }
        }
        let netem = &self.netem;
        let corruption = (netem.corruption.share.raw() > 0).then(|| {
            let mut draw = context.draw(&self.streams.corruption, packet);
            let corrupts = netem.corruption.share.raw() >= self.corruption.next(upper(&mut draw));
            corrupts.then_some(draw)
        });
        if self.counted() >= netem.limit.into() {
            return context.drop(packet, DropReason::QueueFull);
        }
        let twin = (twice && !lost && !twin_first)
            .then(|| context.duplicate(&self.streams.duplication, packet))
            .flatten();
        if let Some(Some(mut draw)) = corruption {
            let bytes = context.pool.get(packet).length;
            let (byte, bit) = (draw.below(bytes.into()) as u32, draw.below(8) as u32);
            if bytes > 0 {
                context.pool.flip(packet, byte * 8 + bit);
                context.note(packet, Noted::Corrupted);
            }
        }
        if let Some(twin) = twin {
            self.enter_twin(now, twin, context);
        }
        self.stand(now, packet, context);
    }

    fn enter_twin(&mut self, now: Time, twin: PacketRef, context: &mut Context<'_>) {
        if context.pool.over_memory_cap() {
            return context.drop(twin, DropReason::Memory);
        }
        self.enter(now, twin, true, context);
    }

    /// Queues a packet: ahead of all, or by its due time.
    fn stand(&mut self, now: Time, packet: PacketRef, context: &mut Context<'_>) {
        let netem = &self.netem;
        let skips = netem.gap > 0 && self.counter >= netem.gap - 1 && {
            let value = upper(&mut context.draw(&self.streams.reorder, packet));
            netem.reorder.share.raw() >= self.reorder.next(value)
        };
        if skips {
            self.counter = 0;
            self.ahead.push(packet);
            self.bytes += u64::from(context.pool.get(packet).length);
            return context.note(packet, Noted::Reordered);
        }
        let sigma = i32::try_from(netem.jitter.nanos()).unwrap_or(i32::MAX);
        let mu = i64::try_from(netem.delay.nanos()).unwrap_or(i64::MAX);
        let mut delay = mu;
        if sigma > 0 {
            let value = upper(&mut context.draw(&self.streams.delay, packet));
            delay = table_delay(mu, sigma, self.delay.next(value), netem.table.as_ref());
        }
        let mut from = signed(now);
        if let Some(rate) = netem.rate.filter(|rate| rate.bytes_per_second > 0) {
            let ahead = (!self.ahead.is_empty()).then_some(from);
            let last = (!self.row.is_empty()).then_some(self.latest).max(ahead);
            if let Some(last) = last {
                delay = delay.wrapping_sub(last.wrapping_sub(from)).max(0);
                from = last;
            }
            let length = context.pool.get(packet).frame_length();
            delay = delay.wrapping_add_unsigned(packet_nanos(length, rate));
        }
        self.counter = self.counter.wrapping_add(1);
        self.hold(from.wrapping_add(delay), packet, context.pool);
    }

    fn hold(&mut self, due: i64, packet: PacketRef, pool: &Pool) {
        self.latest = if self.row.is_empty() { due } else { self.latest.max(due) };
        self.row.push(Reverse(Held { due, entry: self.entered, packet: packet.number() }));
        self.entered += 1;
        self.bytes += u64::from(pool.get(packet).length);
    }

    /// The packet reordered last.
    pub(super) fn pop_ahead(&mut self, pool: &Pool) -> Option<PacketRef> {
        let packet = self.ahead.pop()?;
        self.bytes -= u64::from(pool.get(packet).length);
        Some(packet)
    }

    fn inside(&self) -> usize {
        self.ahead.len() + self.row.len()
    }

    /// The packets that count against the limit.
    fn counted(&self) -> u64 {
        match self.netem.generation {
            Generation::Linux5_10 | Generation::Linux6_11 => self.inside() as u64,
            Generation::Linux6_13 => self.row.len() as u64,
            Generation::Linux7_1 => self.inside() as u64 + self.within,
        }
    }

    /// `get_slot_next`: another slot, scheduled at `now`.
    fn next_slot(&mut self, now: Time) -> Option<Slot> {
        let slots = self.netem.slots.as_ref()?;
        let random = upper(&mut self.streams.slots.nth(self.slots));
        self.slots += 1;
        let gap = match &slots.gap {
            SlotGap::Between(least, most) => {
                let width = most.saturating_sub(*least).nanos();
                if self.netem.generation < Generation::Linux7_1 {
                    // Overflows from 2³¹ ns on.
                    let part = (width as i64).wrapping_mul(random.into()) >> 32;
                    (least.nanos() as i64).wrapping_add(part)
                } else {
                    let part = (u128::from(width) * u128::from(random)) >> 32; // at most `width`
                    least.nanos().saturating_add(part as u64) as i64
                }
            }
            SlotGap::Table { table, delay, jitter } => {
                let sigma = i32::try_from(jitter.nanos()).unwrap_or(i32::MAX);
                table_delay(delay.nanos() as i64, sigma, random, Some(table))
            }
        };
        Some(Slot::new(signed(now).wrapping_add(gap), slots))
    }
}

impl Queue for SingleQueue {
    fn enqueue(&mut self, now: Time, packet: PacketRef, context: &mut Context<'_>) {
        self.enter(now, packet, false, context);
    }

    /// `netem_dequeue`.
    fn dequeue(&mut self, now: Time, context: &mut Context<'_>) -> Dequeue {
        if let Some(packet) = self.pop_ahead(context.pool) {
            return Dequeue::Packet(packet);
        }
        let Some(&Reverse(Held { due, packet, .. })) = self.row.peek() else { return Dequeue::Empty };
        if self.slot.is_some_and(|slot| slot.opens < due) {
            self.slot = self.next_slot(now);
        }
        let opens = self.slot.map_or(i64::MIN, |slot| slot.opens);
        if due.max(opens) > signed(now) {
            return Dequeue::NotBefore(Time::from_nanos(due.max(opens) as u64));
        }
        self.row.pop();
        let packet = PacketRef::from_number(packet);
        let state = context.pool.get(packet);
        self.bytes -= u64::from(state.length);
        if let Some(slot) = &mut self.slot {
            slot.packets_left -= 1;
            slot.bytes_left -= state.frame_length() as i64;
            if slot.packets_left <= 0 || slot.bytes_left <= 0 {
                self.slot = self.next_slot(now);
            }
        }
        Dequeue::Packet(packet)
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.inside() as u64, bytes: self.bytes }
    }

    fn set_bound(&mut self, bound: Bound) {
        if let Bound::Packets(limit) = bound {
            self.netem.limit = u32::try_from(limit).unwrap_or(u32::MAX);
        }
    }

    fn bound(&self) -> Bound {
        Bound::Packets(self.netem.limit.into())
    }

    /// In the order in which they would leave. A list has no due times, so the link asks the single queue for
    /// them itself.
    fn take_all(&mut self, pool: &mut Pool) -> PacketList {
        let mut all = PacketList::default();
        while let Some((packet, _)) = self.pop(pool) {
            all.push_back(packet, pool);
        }
        all
    }

    /// Packets that waited for a transmitter have not had their delay, but no delay is known for them: they
    /// leave at once.
    fn adopt(&mut self, now: Time, mut packets: PacketList, context: &mut Context<'_>) {
        while let Some(packet) = packets.pop_front(context.pool) {
            self.hold(signed(now), packet, context.pool);
        }
    }
}

impl Slot {
    fn new(opens: i64, slots: &super::config::Slots) -> Self {
        let most = |limit: u32| if limit == 0 { i64::from(i32::MAX) } else { limit.into() };
        Self { opens, packets_left: most(slots.packets), bytes_left: most(slots.bytes) }
    }
}

/// `get_slot`: a slot is open from the start; if the gap is always zero, there are no slots.
fn first_slot(netem: &Netem, now: Time) -> Option<Slot> {
    let slots = netem.slots.as_ref()?;
    match slots.gap {
        SlotGap::Between(Duration::ZERO, Duration::ZERO) => None,
        SlotGap::Table { jitter: Duration::ZERO, .. } => None,
        _ => Some(Slot::new(signed(now), slots)),
    }
}

/// 32 random bits.
fn upper(draw: &mut Draw) -> u32 {
    (draw.bits() >> 32) as u32
}

/// Times beyond 292 years saturate.
fn signed(at: Time) -> i64 {
    i64::try_from(at.nanos()).unwrap_or(i64::MAX)
}
