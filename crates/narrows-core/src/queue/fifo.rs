//! A bounded FIFO queue that drops at the tail or at the head. A queue management policy may drop or mark packets
//! earlier.
//!
//! Without a policy, these are Linux's `pfifo`, `bfifo` and `pfifo_head_drop`. With a bound of 10 packets, ten wait
//! while one more is on the wire.

use alloc::boxed::Box;

use crate::counters::DropReason;
use crate::pool::{PacketList, PacketRef, Pool};
use crate::queue::{Aqm, Backlog, Bound, Context, Dequeue, FifoPlan, Judgement, Queue, Waiting, Wire};
use crate::time::Time;

/// Which packet to drop when the queue is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DropAt {
    /// The arriving packet (drop tail).
    #[default]
    Tail,
    /// The packets that have waited longest, until the arriving one fits (head drop).
    Head,
}

/// A bounded FIFO.
#[derive(Debug)]
pub struct Fifo {
    packets: PacketList,
    bound: Bound,
    drop_at: DropAt,
    policy: Option<Box<dyn Aqm>>,
}

impl Fifo {
    /// An empty queue.
    pub fn new(bound: Bound, drop_at: DropAt) -> Self {
        Self { packets: PacketList::default(), bound, drop_at, policy: None }
    }

    /// An empty queue managed by `policy`. The policy judges an arriving packet before the bound does, and the bound
    /// may then refuse a packet that the policy accepted. RED has then counted the packet as accepted, and PIE has
    /// used up its draw.
    pub fn managed(bound: Bound, drop_at: DropAt, policy: Box<dyn Aqm>) -> Self {
        Self { policy: Some(policy), ..Self::new(bound, drop_at) }
    }

    /// Its bound and policy, for those who decide the same elsewhere. `None` if nobody can: it drops at the head, or has a
    /// policy without settings.
    pub fn plan(&self) -> Option<FifoPlan> {
        FifoPlan::new(self.bound, self.drop_at, self.policy.as_deref())
    }

    /// Whether nothing waits.
    pub(crate) const fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Whether the policy accepts a packet.
    fn lets_in(&mut self, now: Time, packet: PacketRef, context: &mut Context<'_>) -> bool {
        let waiting = self.waiting(context.pool);
        let Some(policy) = &mut self.policy else { return true };
        policy.arrive(now, packet, waiting, context).carry_out(packet, context)
    }

    /// Drops packets until the bound admits the arriving one. Returns whether that one may stay.
    #[inline(never)]
    fn make_room(&mut self, packet: PacketRef, context: &mut Context<'_>) -> bool {
        let length = context.pool.get(packet).length;
        while !self.bound.admits(self.backlog(), length) {
            let fits_alone = self.bound.admits(Backlog::default(), length);
            let oldest = match self.drop_at {
                DropAt::Head if fits_alone => self.packets.pop_front(context.pool),
                _ => None,
            };
            let Some(oldest) = oldest else {
                context.drop(packet, DropReason::QueueFull);
                return false;
            };
            context.drop(oldest, DropReason::QueueFull);
        }
        true
    }

    #[inline(never)]
    fn pass_slow(&mut self, now: Time, packet: PacketRef, context: &mut Context<'_>) -> Dequeue {
        self.enqueue(now, packet, context);
        self.dequeue(now, context)
    }

    /// The next packet that the policy passes.
    #[inline(never)]
    fn dequeue_managed(&mut self, now: Time, context: &mut Context<'_>) -> Dequeue {
        loop {
            let waiting = self.policy.is_some().then(|| self.waiting(context.pool));
            let Some(packet) = self.packets.pop_front(context.pool) else { return Dequeue::Empty };
            let judgement = match (&mut self.policy, waiting) {
                (Some(policy), Some(waiting)) => policy.depart(now, packet, waiting, context),
                _ => Judgement::Pass,
            };
            if judgement.carry_out(packet, context) {
                return Dequeue::Packet(packet);
            }
        }
    }

    fn waiting(&self, pool: &Pool) -> Waiting {
        Waiting {
            backlog: self.backlog(),
            oldest: self.packets.front().map(|oldest| pool.get(oldest).entered),
        }
    }
}

impl FifoPlan {
    /// `None` for a FIFO that drops at the head, or has a policy without settings.
    pub(crate) fn new(bound: Bound, drop_at: DropAt, policy: Option<&dyn Aqm>) -> Option<Self> {
        let policy = match policy {
            Some(policy) => Some(policy.settings()?),
            None => None,
        };
        (drop_at == DropAt::Tail).then_some(Self { bound, policy })
    }
}

impl Queue for Fifo {
    fn enqueue(&mut self, now: Time, packet: PacketRef, context: &mut Context<'_>) {
        if self.policy.is_some() && !self.lets_in(now, packet, context) {
            return;
        }
        if !self.bound.admits(self.backlog(), context.pool.get(packet).length)
            && !self.make_room(packet, context)
        {
            return;
        }
        self.packets.push_back(packet, context.pool);
    }

    #[inline(always)]
    fn pass(&mut self, now: Time, packet: PacketRef, context: &mut Context<'_>) -> Dequeue {
        let length = context.pool.get(packet).length;
        if self.policy.is_none() && self.packets.is_empty() && self.bound.admits(Backlog::default(), length) {
            return Dequeue::Packet(packet);
        }
        self.pass_slow(now, packet, context)
    }

    #[inline]
    fn dequeue(&mut self, now: Time, context: &mut Context<'_>) -> Dequeue {
        if self.policy.is_some() {
            return self.dequeue_managed(now, context);
        }
        self.packets.pop_front(context.pool).map_or(Dequeue::Empty, Dequeue::Packet)
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.packets.len(), bytes: self.packets.bytes() }
    }

    fn set_bound(&mut self, bound: Bound) {
        self.bound = bound;
    }

    fn bound(&self) -> Bound {
        self.bound
    }

    fn take_all(&mut self, _pool: &mut Pool) -> PacketList {
        core::mem::take(&mut self.packets)
    }

    fn adopt(&mut self, _now: Time, packets: PacketList, _context: &mut Context<'_>) {
        debug_assert!(self.packets.is_empty());
        self.packets = packets;
    }

    fn set_wire(&mut self, now: Time, wire: Wire) {
        if let Some(policy) = &mut self.policy {
            policy.set_wire(now, wire);
        }
    }

    fn take_fifo(&mut self) -> Option<Fifo> {
        Some(core::mem::replace(self, Self::new(self.bound, self.drop_at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::PortId;
    use crate::packet::{FlowKey, Packet, PacketId};
    use crate::queue::Drops;
    use crate::queue::context::Draws;
    use crate::random::{Seed, Stream};
    use crate::units::Bytes;
    use alloc::vec::Vec;

    /// Enqueues packets of the given lengths; returns the numbers of those dropped and of those left.
    fn fill(bound: Bound, drop_at: DropAt, lengths: &[u32]) -> (Vec<u64>, Vec<u64>) {
        let mut pool = Pool::new(Bytes::new(1 << 20));
        let mut queue = Fifo::new(bound, drop_at);
        let mut drops = Drops::default();
        let draws = Draws { arrival: Stream::new(Seed(1), "l", "queue"), cyclic: None };
        for (number, &length) in lengths.iter().enumerate() {
            let id = PacketId::new(PortId::new(0), number as u64);
            let key = FlowKey::default();
            let arriving = Packet {
                length,
                link_header: 14,
                network_header: 20,
                headers: Default::default(),
                key,
                body: (),
            };
            let packet = pool.insert(id, Time::ZERO, &arriving);
            queue.enqueue(Time::ZERO, packet, &mut Context::new(&mut pool, &mut drops, &draws));
        }
        let dropped = drops.packets.iter().map(|&(p, _)| pool.get(p).id.number()).collect();
        let mut left = Vec::new();
        let mut context = Context::new(&mut pool, &mut drops, &draws);
        while let Dequeue::Packet(p) = queue.dequeue(Time::ZERO, &mut context) {
            left.push(context.pool.get(p).id.number());
        }
        (dropped, left)
    }

    #[test]
    fn the_tail_or_the_head_goes() {
        let lengths = [100; 5];
        assert_eq!(
            fill(Bound::Packets(3), DropAt::Tail, &lengths),
            (Vec::from([3, 4]), Vec::from([0, 1, 2]))
        );
        assert_eq!(
            fill(Bound::Packets(3), DropAt::Head, &lengths),
            (Vec::from([0, 1]), Vec::from([2, 3, 4]))
        );
    }

    #[test]
    fn bytes_bound_what_waits_and_a_packet_that_can_never_fit_goes() {
        let bound = Bound::Bytes(Bytes::new(250));
        assert_eq!(fill(bound, DropAt::Tail, &[100, 100, 100, 50]), (Vec::from([2]), Vec::from([0, 1, 3])));
        assert_eq!(fill(bound, DropAt::Head, &[100, 300, 100]), (Vec::from([1]), Vec::from([0, 2])));
    }
}
