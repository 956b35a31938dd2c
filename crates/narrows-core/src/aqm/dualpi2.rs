//! DualPI2: two queues that share a link, one for L4S traffic, with coupled marking (De Schepper, Briscoe, White: RFC
//! 9332, appendix A).
//!
//! Packets with ECT(1) or CE (or with any ECN-capable code point, [`DualPi2Config::any_ect`]) go to the low-latency
//! queue L, all others to the classic queue C. A proportional
//! integral controller adjusts the base probability p′ every `update`, from the longer of the two queueing delays, in
//! seconds:
//!
//! ```text
//! p′ ← p′ + α·(delay − target) + β·(delay − delay before)
//! p_C = p′²            drops (or marks) in C, to which classic congestion control responds as 1/√p
//! p_CL = k·p′          the same congestion for L, where scalable control responds as 1/p
//! p_L = max(p_CL, native)
//! ```
//!
//! The native probability of L rises with the packet's sojourn time, in a step or a ramp, or is 1 while more than some
//! packets wait behind it. Packets are dropped and marked on dequeue. When p_CL reaches 1, marks can no longer control
//! the load. Then both queues drop packets with probability p_C, including ECN-capable packets of C, and every packet
//! that L sends is marked (appendix A.2). With k below 1, p_CL never reaches 1: then L is never overloaded, and C is
//! overloaded when p_C reaches 1 (`p_Cmax = min(1/k², 1)`).
//!
//! Two variants are Linux's (sch_dualpi2.c, 6.17). With [`DualPi2Config::overflow`], p′ stops at 1/k, so that neither
//! queue drops an ECN-capable packet before the bound is reached. With [`DualPi2Config::on_arrival`], p_C and p_CL act
//! on packets as they arrive; the native marking of L still acts on dequeue.
//!
//! This is the pseudocode of appendix A.2. It makes no random draws: as in the RFC's `recur`, each queue adds the
//! probability to a sum, and acts whenever the sum exceeds 1. Points that the RFC leaves open, and differences:
//! - Which queue is served when both are backlogged. [`Sharing::Weighted`] is round robin by bytes sent, L first. It
//!   starts again whenever one of the two was empty, while Linux keeps the credit. [`Sharing::TimeShifted`] serves
//!   the packet that has waited longer, after adding a constant to L's waiting time.
//! - Range checks, omitted in the RFC for clarity: p′, p_CL and p_L are kept within 0 … 1. Otherwise, with p_CL above
//!   1, `recur` adds more to its sum than it subtracts, and L would continue to mark long after the overload.
//! - A queue's delay is how long its first packet has waited at the instant of an update. The native probability
//!   depends on the sojourn time of the packet itself, and applies only if at least `least` packets still wait behind
//!   it. Otherwise a slow link would mark single packets.
//! - Updates are caught up as in [`Pie`](crate::aqm::Pie).
//! - When packets are handed over to another queue, those with the same instant are ordered L first.
//!
//! Floating point is used for + − × ÷ only, so all machines agree.
//!
//! ```
//! use narrows_core::aqm::{DualPi2, DualPi2Config};
//! use narrows_core::queue::Bound;
//! use narrows_core::{LinkConfig, Target};
//!
//! let mut link = LinkConfig::new("wire", Target::Port("b".into()));
//! link.queue = Box::new(DualPi2::new(DualPi2Config::default(), Bound::Packets(10_000)));
//! ```

mod config;

pub use config::{DualPi2Config, LowLatency, Sharing};

use alloc::collections::VecDeque;

use crate::aqm::periodic::Periodic;
use crate::aqm::sojourn;
use crate::counters::DropReason;
use crate::packet::FlowKey;
use crate::pool::{PacketList, PacketRef, PacketState, Pool};
use crate::queue::{Backlog, Bound, Context, Dequeue, Queue, Wire};
use crate::time::{Duration, Time};

/// The two queues and their controller.
#[derive(Debug)]
pub struct DualPi2 {
    config: DualPi2Config,
    bound: Bound,
    low: Half,
    classic: Half,
    /// Whether each packet of L found enough others there when it arrived. Empty unless that matters.
    found: VecDeque<bool>,
    /// The sum of L's native probabilities, where they are apart from the coupled ones.
    native: Sum,
    /// What C may send out of turn, in bytes times a weight. C is served when it is above 0.
    credit: i64,
    /// p′.
    base: f64,
    /// The delay at the last update.
    old_delay: Duration,
    /// The number of the last update, or `NOT_BEGUN`.
    updates: u64,
}

const NOT_BEGUN: u64 = u64::MAX;

/// One of the queues.
#[derive(Debug, Default)]
struct Half {
    packets: PacketList,
    /// When its first packet began to wait.
    oldest: Option<Time>,
    sum: Sum,
}

/// A sum of probabilities, less 1 for each time that it exceeded 1.
#[derive(Debug, Default)]
struct Sum(f64);

impl Sum {
    /// True as often as the probabilities demand, evenly spaced: `recur` in the RFC.
    fn recurs(&mut self, probability: f64) -> bool {
        self.0 += probability;
        let recurs = self.0 > 1.0;
        if recurs {
            self.0 -= 1.0;
        }
        recurs
    }
}

impl Half {
    fn push_back(&mut self, packet: PacketRef, pool: &mut Pool) {
        self.packets.push_back(packet, pool);
        self.note_first(pool);
    }

    fn pop_front(&mut self, pool: &mut Pool) -> Option<PacketRef> {
        let packet = self.packets.pop_front(pool);
        self.note_first(pool);
        packet
    }

    fn note_first(&mut self, pool: &Pool) {
        self.oldest = self.packets.front().map(|first| pool.get(first).entered);
    }
}

/// A packet that has been dequeued, and may be sent.
#[derive(Clone, Copy, Debug)]
struct Next {
    packet: PacketRef,
    /// Whether it is L's.
    low: bool,
    /// Whether it found enough packets in L for the native marking.
    found: bool,
    /// How the credit changes if it is sent.
    cost: i64,
}

/// What happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Goes,
    Marked,
    Dropped,
}

impl DualPi2 {
    /// Empty queues. The bound applies to both together.
    pub fn new(config: DualPi2Config, bound: Bound) -> Self {
        Self {
            config,
            bound,
            low: Half::default(),
            classic: Half::default(),
            found: VecDeque::new(),
            native: Sum::default(),
            credit: 0,
            base: 0.0,
            old_delay: Duration::ZERO,
            updates: NOT_BEGUN,
        }
    }

    /// Brings p′ up to date.
    fn advance(&mut self, now: Time) {
        if self.updates == NOT_BEGUN {
            self.updates = self.number(now);
        }
        let oldest = match (self.low.oldest, self.classic.oldest) {
            (Some(low), Some(classic)) => Some(low.min(classic)),
            (low, classic) => low.or(classic),
        };
        self.catch_up(now, oldest);
    }

    /// Whether a packet belongs in L.
    fn is_low(&self, packet: &PacketState) -> bool {
        match packet.key.ecn() {
            FlowKey::ECT_1 | FlowKey::CONGESTION_EXPERIENCED => true,
            FlowKey::NOT_ECN_CAPABLE => false,
            _ => self.config.any_ect,
        }
    }

    fn accept(&mut self, packet: PacketRef, low: bool, pool: &mut Pool) {
        let least = self.config.least_on_arrival;
        if low && least > 0 {
            self.found.push_back(self.low.packets.len() >= least);
        }
        if low { &mut self.low } else { &mut self.classic }.push_back(packet, pool);
    }

    /// Dequeues the packet whose turn it is.
    fn next(&mut self, now: Time, pool: &mut Pool) -> Option<Next> {
        let low = match (self.low.oldest, self.classic.oldest) {
            (None, None) => return None,
            (Some(low), Some(classic)) => match self.config.sharing {
                Sharing::Weighted { low: 0, .. } => false,
                Sharing::Weighted { .. } => self.credit <= 0,
                Sharing::TimeShifted(shift) => now.since(low) + shift >= now.since(classic),
            },
            (low, _) => {
                self.credit = 0;
                low.is_some()
            }
        };
        let contended = self.low.oldest.is_some() && self.classic.oldest.is_some();
        let packet = if low { &mut self.low } else { &mut self.classic }.pop_front(pool)?;
        let found = if low { self.found.pop_front().unwrap_or(true) } else { true };
        let length = i64::from(pool.get(packet).length);
        // The credit stays below 2⁴⁸, because only one packet crosses zero in either direction.
        let cost = match self.config.sharing {
            Sharing::Weighted { classic, .. } if contended && low => length * i64::from(classic),
            Sharing::Weighted { low, .. } if contended => -length * i64::from(low),
            _ => 0,
        };
        Some(Next { packet, low, found, cost })
    }

    /// The marking probability of L that follows from p′.
    fn coupled(&self) -> f64 {
        self.config.coupling * self.base
    }

    /// The greatest p′.
    fn most(&self) -> f64 {
        if self.config.overflow { f64::min(1.0 / self.config.coupling, 1.0) } else { 1.0 }
    }

    /// Whether marks no longer control the load, so that ECN-capable packets are dropped.
    fn is_overloaded(&self) -> bool {
        !self.config.overflow && self.coupled() >= 1.0
    }

    /// L's native marking probability.
    fn native(&self, now: Time, packet: &PacketState, found: bool) -> f64 {
        let behind = self.low.packets.len();
        match found && behind >= self.config.least {
            true => self.config.low_latency.probability(sojourn(now, packet), behind),
            false => 0.0,
        }
    }

    /// Judges a packet of L by the probability that follows from p′, or by `native` where that is greater.
    fn judge_low(&mut self, native: f64) -> Fate {
        let coupled = self.coupled();
        if self.is_overloaded() {
            // Drop as in C, and mark whatever is sent.
            return match self.low.sum.recurs(self.base * self.base) {
                true => Fate::Dropped,
                false if self.low.sum.recurs(1.0) => Fate::Marked,
                false => Fate::Goes,
            };
        }
        if self.low.sum.recurs(native.max(f64::min(coupled, 1.0))) { Fate::Marked } else { Fate::Goes }
    }

    fn judge_classic(&mut self, packet: &PacketState) -> Fate {
        if !self.classic.sum.recurs(self.base * self.base) {
            return Fate::Goes;
        }
        let overloaded = self.is_overloaded() || self.base >= 1.0 && !self.config.overflow;
        let capable = packet.key.ecn() != FlowKey::NOT_ECN_CAPABLE;
        if capable && !overloaded { Fate::Marked } else { Fate::Dropped }
    }

    /// Judges a packet by p′ as it arrives.
    fn judge_arrival(&mut self, packet: &PacketState, low: bool) -> Fate {
        match (self.config.on_arrival, low) {
            (false, _) => Fate::Goes,
            (true, true) => self.judge_low(0.0),
            (true, false) => self.judge_classic(packet),
        }
    }

    /// Judges a packet as it departs.
    fn judge_departure(&mut self, now: Time, next: &Next, packet: &PacketState) -> Fate {
        match (self.config.on_arrival, next.low) {
            (false, true) => self.judge_low(self.native(now, packet, next.found)),
            (false, false) => self.judge_classic(packet),
            (true, true) => {
                let native = self.native(now, packet, next.found);
                if self.native.recurs(native) { Fate::Marked } else { Fate::Goes }
            }
            (true, false) => Fate::Goes,
        }
    }
}

impl Periodic for DualPi2 {
    fn period(&self) -> Duration {
        self.config.update.max(Duration::from_millis(1))
    }

    fn updates(&mut self) -> &mut u64 {
        &mut self.updates
    }

    /// `dualpi2_update` in the RFC.
    fn update(&mut self, delay: Duration) -> bool {
        let before = (self.base, self.old_delay);
        let deviation = delay.seconds() - self.config.target.seconds();
        let change = delay.seconds() - self.old_delay.seconds();
        let base = self.base + (self.config.alpha * deviation + self.config.beta * change);
        self.base = base.clamp(0.0, self.most());
        self.old_delay = delay;
        match delay {
            Duration::ZERO => (self.base, self.old_delay) == before,
            delay => self.base >= self.most() && delay >= self.config.target,
        }
    }

    fn leave_out(&mut self, _updates: u64, delay: Duration) {
        self.old_delay = delay;
    }
}

impl Queue for DualPi2 {
    fn enqueue(&mut self, now: Time, packet: PacketRef, context: &mut Context<'_>) {
        self.advance(now);
        let state = context.pool.get(packet);
        if !self.bound.admits(self.backlog(), state.length) {
            return context.drop(packet, DropReason::QueueFull);
        }
        // Before a mark, which looks like a packet for L.
        let low = self.is_low(state);
        match self.judge_arrival(state, low) {
            Fate::Dropped => return context.drop(packet, DropReason::QueueManagement),
            Fate::Marked => _ = context.mark(packet),
            Fate::Goes => {}
        }
        self.accept(packet, low, context.pool);
    }

    fn dequeue(&mut self, now: Time, context: &mut Context<'_>) -> Dequeue {
        self.advance(now);
        while let Some(next) = self.next(now, context.pool) {
            match self.judge_departure(now, &next, context.pool.get(next.packet)) {
                Fate::Dropped => {
                    context.drop(next.packet, DropReason::QueueManagement);
                    continue;
                }
                Fate::Marked => _ = context.mark(next.packet),
                Fate::Goes => {}
            }
            self.credit += next.cost;
            return Dequeue::Packet(next.packet);
        }
        Dequeue::Empty
    }

    fn backlog(&self) -> Backlog {
        Backlog {
            packets: self.low.packets.len() + self.classic.packets.len(),
            bytes: self.low.packets.bytes() + self.classic.packets.bytes(),
        }
    }

    fn set_bound(&mut self, bound: Bound) {
        self.bound = bound;
    }

    fn bound(&self) -> Bound {
        self.bound
    }

    fn take_all(&mut self, pool: &mut Pool) -> PacketList {
        self.found.clear();
        let mut all = PacketList::default();
        loop {
            let low = match (self.low.oldest, self.classic.oldest) {
                (None, None) => return all,
                (Some(low), Some(classic)) => low <= classic,
                (low, _) => low.is_some(),
            };
            let half = if low { &mut self.low } else { &mut self.classic };
            if let Some(packet) = half.pop_front(pool) {
                all.push_back(packet, pool);
            }
        }
    }

    fn adopt(&mut self, now: Time, mut packets: PacketList, context: &mut Context<'_>) {
        self.advance(now);
        while let Some(packet) = packets.pop_front(context.pool) {
            let low = self.is_low(context.pool.get(packet));
            self.accept(packet, low, context.pool);
        }
    }

    fn set_wire(&mut self, now: Time, _wire: Wire) {
        self.advance(now);
    }
}

#[cfg(test)]
mod tests;
