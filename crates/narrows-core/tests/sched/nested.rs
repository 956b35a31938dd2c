//! A queue for the inside of a class, made to be awkward: it has two lanes as DualPI2 has, and so sends packets out of the
//! order of their arrival; drops others than those that arrive or are first; marks; and declines.

use std::collections::VecDeque;

use narrows_core::queue::{Backlog, Bound, Context, Dequeue, Queue};
use narrows_core::{DropReason, Duration, FlowKey, PacketList, PacketRef, Pool, Time};

#[derive(Debug)]
pub(crate) struct TwoLanes {
    /// Packets with their lengths and numbers in order of arrival: ECT(1) and others.
    lanes: [VecDeque<(PacketRef, u32, u64)>; 2],
    bound: Bound,
    arrived: u64,
    /// What has waited longer is dropped, but for the last packet of its lane.
    patience: Duration,
    /// It opens at multiples of this only.
    period: Duration,
}

impl TwoLanes {
    pub(crate) fn new(bound: Bound, patience: Duration, period: Duration) -> Self {
        Self { lanes: Default::default(), bound, arrived: 0, patience, period }
    }

    fn join(&mut self, packet: PacketRef, context: &Context<'_>) {
        let state = context.pool.get(packet);
        let lane = usize::from(state.key.ecn() != FlowKey::ECT_1);
        self.lanes[lane].push_back((packet, state.length, self.arrived));
        self.arrived += 1;
    }
}

impl Queue for TwoLanes {
    /// When there is no room, by turns the packet that arrives goes, or the youngest of the longer lane.
    fn enqueue(&mut self, _now: Time, packet: PacketRef, context: &mut Context<'_>) {
        while !self.bound.admits(self.backlog(), context.pool.get(packet).length) {
            let lane = usize::from(self.lanes[1].len() > self.lanes[0].len());
            self.arrived += 1;
            if self.arrived.is_multiple_of(2) || self.lanes[lane].is_empty() {
                return context.drop(packet, DropReason::QueueFull);
            }
            self.lanes[lane]
                .pop_back()
                .into_iter()
                .for_each(|(other, ..)| context.drop(other, DropReason::QueueFull));
        }
        self.join(packet, context);
    }

    fn dequeue(&mut self, now: Time, context: &mut Context<'_>) -> Dequeue {
        for lane in &mut self.lanes {
            while lane.len() > 1
                && let Some(&(first, ..)) = lane.front()
                && now.since(context.pool.get(first).entered) > self.patience
            {
                lane.pop_front();
                context.drop(first, DropReason::QueueManagement);
            }
        }
        let late = now.nanos() % self.period.nanos();
        let Some(lane) = self.lanes.iter_mut().find(|lane| !lane.is_empty()) else { return Dequeue::Empty };
        if late > 0 {
            return Dequeue::NotBefore(Time::from_nanos(now.nanos() - late) + self.period);
        }
        let (packet, ..) = lane.pop_front().expect("it is not empty");
        context.mark(packet);
        Dequeue::Packet(packet)
    }

    fn backlog(&self) -> Backlog {
        let mut backlog = Backlog::default();
        for &(_, length, _) in self.lanes.iter().flatten() {
            backlog.packets += 1;
            backlog.bytes += u64::from(length);
        }
        backlog
    }

    fn set_bound(&mut self, bound: Bound) {
        self.bound = bound;
    }

    fn bound(&self) -> Bound {
        self.bound
    }

    fn take_all(&mut self, pool: &mut Pool) -> PacketList {
        let mut all: Vec<_> = self.lanes.iter_mut().flat_map(|lane| lane.drain(..)).collect();
        all.sort_by_key(|&(_, _, number)| number);
        let mut list = PacketList::default();
        all.into_iter().for_each(|(packet, ..)| list.push_back(packet, pool));
        list
    }

    fn adopt(&mut self, _now: Time, mut packets: PacketList, context: &mut Context<'_>) {
        while let Some(packet) = packets.pop_front(context.pool) {
            self.join(packet, context);
        }
    }
}
