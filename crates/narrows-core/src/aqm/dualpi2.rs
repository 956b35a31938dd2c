//! DualPI2: two queues that share a link, one for L4S traffic, with coupled marking (De Schepper, Briscoe, White: RFC
//! 9332, appendix A).
//!
//! Packets with ECT(1) or CE go to the low-latency queue L, all others to the classic queue C. A proportional
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
//! The native probability of L rises with the packet's sojourn time, in a step or a ramp. Packets are dropped and
//! marked on dequeue. When p_CL reaches 1, marks can no longer control the load. Then both queues drop packets with
//! probability p_C, including ECN-capable packets of C, and every packet that L sends is marked (appendix A.2). With
//! k below 1, p_CL never reaches 1: then L is never overloaded, and C is overloaded when p_C reaches 1 (`p_Cmax =
//! min(1/k², 1)`).
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

use core::ops::RangeInclusive;

use crate::aqm::periodic::Periodic;
use crate::aqm::sojourn;
use crate::counters::DropReason;
use crate::packet::FlowKey;
use crate::pool::{PacketList, PacketRef, PacketState, Pool};
use crate::queue::{Backlog, Bound, Context, Dequeue, Queue, Wire};
use crate::time::{Duration, Time};

/// The parameters of DualPI2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualPi2Config {
    /// The target delay of C. 100 µs to 10 s. Default: 15 ms.
    pub target: Duration,
    /// Interval between updates of p′. 1 ms to 10 s; less is treated as 1 ms. Default: 16 ms.
    pub update: Duration,
    /// Gain of the deviation from the target, α, in hertz. Range: [`DualPi2Config::ALPHA`]. Default: 0.16, as in
    /// Linux. RFC 9332 (A.1) uses `0.1·update/RTT_max²`, which is 0.16 for 16 ms and 100 ms, and 0.15 for its own 15
    /// ms.
    pub alpha: f64,
    /// Gain of the change of the delay, β, in hertz. Range: [`DualPi2Config::BETA`]. Default: 3.2, as in Linux. RFC
    /// 9332 uses `0.3/RTT_max`, which is 3 for 100 ms.
    pub beta: f64,
    /// Coupling factor k: the marking probability of L divided by √p_C. Range: [`DualPi2Config::COUPLING`]. Default:
    /// 2, which gives flows with equal round-trip times equal rates.
    pub coupling: f64,
    /// Native marking of L by sojourn time. Default: a ramp from 800 µs to 1.2 ms.
    pub low_latency: LowLatency,
    /// Native marking applies only if at least this many packets still wait in L. Default: 1.
    pub least: u64,
    /// How the queues share the link. Default: weighted, 15 for L and 1 for C.
    pub sharing: Sharing,
}

/// The native marking of L.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LowLatency {
    /// Mark every packet whose sojourn time is this or more.
    Step(Duration),
    /// Mark with a probability that rises linearly with the sojourn time.
    Ramp {
        /// No marks up to this sojourn time.
        from: Duration,
        /// Mark every packet from this sojourn time on. Not less than `from`.
        to: Duration,
    },
}

/// How the two queues share the link while both are backlogged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// In proportion, by bytes.
    Weighted {
        /// The share of L, at least 1.
        low: u16,
        /// The share of C, at least 1.
        classic: u16,
    },
    /// Serve the queue whose first packet has waited longer, after adding this to L's waiting time. The authors'
    /// first code for Linux used twice the target.
    TimeShifted(Duration),
}

impl DualPi2Config {
    /// Range of α. The minimum ensures that p′ changes in all states, so that updates can be caught up in bounded
    /// time.
    pub const ALPHA: RangeInclusive<f64> = 0.01..=100.0;
    /// Range of β.
    pub const BETA: RangeInclusive<f64> = 0.0..=1000.0;
    /// Range of k.
    pub const COUPLING: RangeInclusive<f64> = 0.01..=100.0;
}

impl Default for DualPi2Config {
    fn default() -> Self {
        Self {
            target: Duration::from_millis(15),
            update: Duration::from_millis(16),
            alpha: 0.16,
            beta: 3.2,
            coupling: 2.0,
            low_latency: LowLatency::Ramp {
                from: Duration::from_micros(800),
                to: Duration::from_micros(1_200),
            },
            least: 1,
            sharing: Sharing::Weighted { low: 15, classic: 1 },
        }
    }
}

impl LowLatency {
    /// The marking probability after this sojourn time.
    pub fn probability(self, sojourn: Duration) -> f64 {
        match self {
            Self::Step(from) => f64::from(u8::from(sojourn >= from)),
            Self::Ramp { to, .. } if sojourn >= to => 1.0,
            Self::Ramp { from, .. } if sojourn <= from => 0.0,
            Self::Ramp { from, to } => (sojourn - from).seconds() / (to - from).seconds(),
        }
    }
}

/// The two queues and their controller.
#[derive(Debug)]
pub struct DualPi2 {
    config: DualPi2Config,
    bound: Bound,
    low: Half,
    classic: Half,
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
    /// The sum of the probabilities, less 1 for each time that it exceeded 1.
    sum: f64,
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

    /// True as often as the probabilities demand, evenly spaced: `recur` in the RFC.
    fn recurs(&mut self, probability: f64) -> bool {
        self.sum += probability;
        let recurs = self.sum > 1.0;
        if recurs {
            self.sum -= 1.0;
        }
        recurs
    }
}

/// What happens to a packet on dequeue.
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

    fn accept(&mut self, packet: PacketRef, pool: &mut Pool) {
        let low = matches!(pool.get(packet).key.ecn(), FlowKey::ECT_1 | FlowKey::CONGESTION_EXPERIENCED);
        if low { &mut self.low } else { &mut self.classic }.push_back(packet, pool);
    }

    /// Dequeues the packet whose turn it is. Returns whether it is L's, and how the credit changes if it is sent.
    fn next(&mut self, now: Time, pool: &mut Pool) -> Option<(PacketRef, bool, i64)> {
        let low = match (self.low.oldest, self.classic.oldest) {
            (None, None) => return None,
            (Some(low), Some(classic)) => match self.config.sharing {
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
        let length = i64::from(pool.get(packet).length);
        // The credit stays below 2⁴⁸, because only one packet crosses zero in either direction.
        let cost = match self.config.sharing {
            Sharing::Weighted { classic, .. } if contended && low => length * i64::from(classic),
            Sharing::Weighted { low, .. } if contended => -length * i64::from(low),
            _ => 0,
        };
        Some((packet, low, cost))
    }

    fn judge_low(&mut self, now: Time, packet: &PacketState) -> Fate {
        let coupled = self.config.coupling * self.base;
        if coupled >= 1.0 {
            // Overload: drop as in C, and mark whatever is sent.
            return match self.low.recurs(self.base * self.base) {
                true => Fate::Dropped,
                false if self.low.recurs(1.0) => Fate::Marked,
                false => Fate::Goes,
            };
        }
        let native = match self.low.packets.len() >= self.config.least {
            true => self.config.low_latency.probability(sojourn(now, packet)),
            false => 0.0,
        };
        if self.low.recurs(native.max(coupled)) { Fate::Marked } else { Fate::Goes }
    }

    fn judge_classic(&mut self, packet: &PacketState) -> Fate {
        if !self.classic.recurs(self.base * self.base) {
            return Fate::Goes;
        }
        let overloaded = self.config.coupling * self.base >= 1.0 || self.base >= 1.0;
        let capable = packet.key.ecn() != FlowKey::NOT_ECN_CAPABLE;
        if capable && !overloaded { Fate::Marked } else { Fate::Dropped }
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
        self.base = base.clamp(0.0, 1.0);
        self.old_delay = delay;
        match delay {
            Duration::ZERO => (self.base, self.old_delay) == before,
            delay => self.base >= 1.0 && delay >= self.config.target,
        }
    }

    fn leave_out(&mut self, _updates: u64, delay: Duration) {
        self.old_delay = delay;
    }
}

impl Queue for DualPi2 {
    fn enqueue(&mut self, now: Time, packet: PacketRef, context: &mut Context<'_>) {
        self.advance(now);
        if self.bound.admits(self.backlog(), context.pool.get(packet).length) {
            self.accept(packet, context.pool);
        } else {
            context.drop(packet, DropReason::QueueFull);
        }
    }

    fn dequeue(&mut self, now: Time, context: &mut Context<'_>) -> Dequeue {
        self.advance(now);
        while let Some((packet, low, cost)) = self.next(now, context.pool) {
            let state = context.pool.get(packet);
            match if low { self.judge_low(now, state) } else { self.judge_classic(state) } {
                Fate::Dropped => {
                    context.drop(packet, DropReason::QueueManagement);
                    continue;
                }
                Fate::Marked => _ = context.mark(packet),
                Fate::Goes => {}
            }
            self.credit += cost;
            return Dequeue::Packet(packet);
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
            self.accept(packet, context.pool);
        }
    }

    fn set_wire(&mut self, now: Time, _wire: Wire) {
        self.advance(now);
    }
}

#[cfg(test)]
mod tests;
