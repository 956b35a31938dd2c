//! CHOKe: RED that also compares each arriving packet with waiting ones (Pan, Prabhakar and Psounis, "CHOKe, a stateless
//! active queue management scheme for approximating fair bandwidth allocation", INFOCOM 2000).
//!
//! While RED's average is above `min`, a waiting packet is drawn at random for each arrival. If both belong to the same
//! flow, both are dropped. Otherwise [RED](crate::aqm::Red) judges the arriving packet as usual. A flow that takes a
//! share h of the queue is hit with probability h, and then loses two packets, so a flow that does not respond to losses
//! loses a part of its rate x that grows with x. No state is kept for any flow.
//!
//! In a full queue, between one flow that sends x packets a second and many others that fill the rest, the others get
//! μ of the link's c packets a second, and the flow sends (Tang, Wang and Low 2004)
//!
//! ```text
//! x·(1 − 2h),    where μ = c − x·(1 − 2h)   and   μ·ln((1 − h)/(1 − 2h)) = x·(1 − h)
//! ```
//!
//! This is at most c/(e + 1), 26.9 % of the link, and goes to zero as x grows. A test compares both.
//!
//! [`ChokeConfig::candidates`] is the paper's m: so many packets are drawn one after the other, and those of the flow are
//! dropped with the arriving one.
//!
//! Two packets belong to the same flow if addresses, ports and protocol are equal; only the first fragment of a packet
//! has ports. Differences from Linux (sch_choke.c, 6.12), which draws one candidate:
//! - Linux draws a place in its table, where dropped packets leave holes. After three holes it takes the oldest packet.
//!   Here every waiting packet is equally likely.
//! - Linux goes on with the whole part of its average of packets, so that it is above what waits by its mean fraction.
//! - Of IPv6 addresses Linux compares only the first 64 bits of the source.
//! - The average, its decay and the distances between drops are those of [`Red`].
//!
//! ```
//! use narrows_core::aqm::{Choke, ChokeConfig};
//! use narrows_core::queue::Bound;
//! use narrows_core::{LinkConfig, Target};
//!
//! let mut link = LinkConfig::new("wire", Target::Port("b".into()));
//! link.queue = Box::new(Choke::new(ChokeConfig::default(), Bound::Packets(100)));
//! ```

use alloc::collections::VecDeque;

use crate::aqm::{Aqm, Red, RedConfig};
use crate::counters::DropReason;
use crate::packet::FlowKey;
use crate::pool::{PacketList, PacketRef, PacketState, Pool};
use crate::queue::{Backlog, Bound, Context, Dequeue, Queue, Waiting, Wire};
use crate::random::Draw;
use crate::time::Time;

/// The parameters of CHOKe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChokeConfig {
    /// RED. Packets are compared while its average is above the lower threshold.
    pub red: RedConfig,
    /// How many waiting packets are compared with an arriving one. At least 1, at most 64. Default: 1.
    pub candidates: u32,
}

impl ChokeConfig {
    /// The most candidates.
    pub const MOST_CANDIDATES: u32 = 64;
}

impl Default for ChokeConfig {
    fn default() -> Self {
        Self { red: RedConfig::default(), candidates: 1 }
    }
}

/// A FIFO managed by CHOKe. A packet that does not fit is dropped on arrival.
#[derive(Debug)]
pub struct Choke {
    red: Red,
    candidates: u32,
    packets: VecDeque<PacketRef>,
    bytes: u64,
    bound: Bound,
}

impl Choke {
    /// An empty queue.
    pub fn new(config: ChokeConfig, bound: Bound) -> Self {
        let candidates = config.candidates.clamp(1, ChokeConfig::MOST_CANDIDATES);
        Self { red: Red::new(config.red), candidates, packets: VecDeque::new(), bytes: 0, bound }
    }

    /// RED's average of the backlog, in the thresholds' unit.
    pub const fn average(&self) -> f64 {
        self.red.average()
    }

    fn waiting(&self, pool: &Pool) -> Waiting {
        let oldest = self.packets.front().map(|&packet| pool.get(packet).entered);
        Waiting { backlog: self.backlog(), oldest }
    }

    /// Draws candidates and drops those of the arriving packet's flow. Returns whether there was one.
    fn drop_alike(
        &mut self,
        now: Time,
        arriving: PacketRef,
        draw: &mut Draw,
        context: &mut Context<'_>,
    ) -> bool {
        let flow = flow(context.pool.get(arriving));
        let mut found = false;
        for _ in 0..self.candidates {
            let place = draw.below(self.packets.len() as u64) as usize;
            let Some(&candidate) = self.packets.get(place) else { break };
            if self::flow(context.pool.get(candidate)) == flow {
                found = true;
                self.packets.remove(place);
                self.bytes -= u64::from(context.pool.get(candidate).length);
                context.drop(candidate, DropReason::QueueManagement);
            }
        }
        if found && self.packets.is_empty() {
            self.red.emptied(now);
        }
        found
    }
}

/// What packets of one flow have in common.
fn flow(packet: &PacketState) -> FlowKey {
    let FlowKey { source, destination, source_port, destination_port, transport, .. } = packet.seen_key();
    FlowKey { source, destination, source_port, destination_port, transport, ..FlowKey::default() }
}

impl Queue for Choke {
    fn enqueue(&mut self, now: Time, packet: PacketRef, context: &mut Context<'_>) {
        let waiting = self.waiting(context.pool);
        self.red.observe(now, waiting);
        let mut draw = context.draw_at_arrival(packet);
        let uniform = draw.uniform();
        if self.red.is_above_min() && self.drop_alike(now, packet, &mut draw, context) {
            return context.drop(packet, DropReason::QueueManagement);
        }
        let judgement = self.red.judge(now, context.pool.get(packet), waiting, uniform);
        if !judgement.carry_out(packet, context) {
            return;
        }
        let length = context.pool.get(packet).length;
        if !self.bound.admits(self.backlog(), length) {
            return context.drop(packet, DropReason::QueueFull);
        }
        self.packets.push_back(packet);
        self.bytes += u64::from(length);
    }

    fn dequeue(&mut self, now: Time, context: &mut Context<'_>) -> Dequeue {
        let waiting = self.waiting(context.pool);
        let Some(packet) = self.packets.pop_front() else { return Dequeue::Empty };
        self.bytes -= u64::from(context.pool.get(packet).length);
        self.red.depart(now, packet, waiting, context);
        Dequeue::Packet(packet)
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.packets.len() as u64, bytes: self.bytes }
    }

    fn set_bound(&mut self, bound: Bound) {
        self.bound = bound;
    }

    fn bound(&self) -> Bound {
        self.bound
    }

    fn take_all(&mut self, pool: &mut Pool) -> PacketList {
        self.bytes = 0;
        let mut all = PacketList::default();
        self.packets.drain(..).for_each(|packet| all.push_back(packet, pool));
        all
    }

    fn adopt(&mut self, _now: Time, mut packets: PacketList, context: &mut Context<'_>) {
        while let Some(packet) = packets.pop_front(context.pool) {
            self.bytes += u64::from(context.pool.get(packet).length);
            self.packets.push_back(packet);
        }
    }

    fn set_wire(&mut self, now: Time, wire: Wire) {
        self.red.set_wire(now, wire);
    }
}

#[cfg(test)]
mod tests;
