//! DualPI2: two queues that share a link, one for L4S traffic, with coupled marking (De Schepper, Briscoe, White: RFC
//! 9332, appendix A).
//!
//! Packets marked ECT(1) or CE go to the low-latency queue L, the others to the classic one, C. A proportional integral
//! controller moves the base probability p′ every `update`, from the longer of the two queues' delays, in seconds:
//!
//! ```text
//! p′ ← p′ + α·(delay − target) + β·(delay − delay before)
//! p_C = p′²            drops (or marks) in C, to which classic congestion control responds as 1/√p
//! p_CL = k·p′          the same congestion for L, where scalable control responds as 1/p
//! p_L = max(p_CL, native)
//! ```
//!
//! The native probability of L rises with the sojourn of its packet, in a step or a ramp. Packets are dropped and marked
//! on departure. When p_CL reaches 1, the load is beyond what marks can hold: then both queues lose packets with p_C,
//! those of C that can be marked as well, and what L sends is all marked (appendix A.2). With k below 1 p_CL never gets
//! there: then L is never overloaded, and C is when p_C reaches 1 (`p_Cmax = min(1/k², 1)`).
//!
//! This is the pseudocode of appendix A.2. There is no draw: as in the RFC's `recur`, each queue adds the probability to a
//! sum, and acts whenever that exceeds 1. What it leaves open, or where this differs:
//! - Which queue goes first when both wait. [`Sharing::Weighted`] is round robin by bytes sent, L first, and begins anew
//!   when one of the two was empty, where Linux keeps the credit; [`Sharing::TimeShifted`] takes the packet that has waited
//!   longer, after an addition to the wait of L's.
//! - Range checks, left out in the RFC for clarity: p′, p_CL and p_L are kept within 0 … 1. Without that, p_CL above 1
//!   adds more to `recur`'s sum than it takes away, and L would go on marking long after the overload.
//! - A queue's delay is how long its first packet has waited, at the instant of an update; the native probability goes by
//!   the sojourn of the very packet, and only if as many packets as `least` still wait behind it: a slow link would mark
//!   single packets otherwise.
//! - Updates are made up for as in [`Pie`](crate::aqm::Pie).
//! - When packets are handed over to another queue, those of one instant come L first.
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
    /// The delay to hold in C. 100 µs to 10 s. 15 ms.
    pub target: Duration,
    /// How often p′ moves. 1 ms (which less is taken to be) to 10 s. 16 ms.
    pub update: Duration,
    /// The gain of the deviation from the target, α, in hertz, in [`DualPi2Config::ALPHA`]. 0.16, as in Linux. RFC 9332 (A.1)
    /// has `0.1·update/RTT_max²`, which is 0.16 for 16 ms and 100 ms, and 0.15 for its own 15 ms.
    pub alpha: f64,
    /// The gain of the change, β, in hertz, in [`DualPi2Config::BETA`]. 3.2, as in Linux. RFC 9332 has `0.3/RTT_max`,
    /// which is 3 for 100 ms.
    pub beta: f64,
    /// How much more often L's packets are marked than √p_C, k, in [`DualPi2Config::COUPLING`]. 2, which gives flows of
    /// equal round-trip times equal rates.
    pub coupling: f64,
    /// From which sojourn on L's packets are marked in any case. A ramp from 800 µs to 1.2 ms.
    pub low_latency: LowLatency,
    /// How many packets must still wait in L for that. 1.
    pub least: u64,
    /// Which queue goes first. Weighted, 15 for L and 1 for C.
    pub sharing: Sharing,
}

/// The native marking of L.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LowLatency {
    /// Every packet whose sojourn is that or more.
    Step(Duration),
    /// With a probability that rises evenly.
    Ramp {
        /// None up to here.
        from: Duration,
        /// Every one from here on; not before `from`.
        to: Duration,
    },
}

/// How the two queues share the link while both wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// By bytes, in proportion.
    Weighted {
        /// The share of L, at least 1.
        low: u16,
        /// The share of C, at least 1.
        classic: u16,
    },
    /// The one whose first packet has waited longer, counted this much longer for L. Its authors' first code for
    /// Linux had twice the target.
    TimeShifted(Duration),
}

impl DualPi2Config {
    /// What α may be. Not less, so that p′ moves in all states and updates can be made up for in bounded time.
    pub const ALPHA: RangeInclusive<f64> = 0.01..=100.0;
    /// What β may be.
    pub const BETA: RangeInclusive<f64> = 0.0..=1000.0;
    /// What k may be.
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
    /// The probability of a mark after a sojourn.
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
    /// What C may send out of turn, in bytes times a weight; C goes when it is above 0.
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
    /// When the first of them began to wait.
    oldest: Option<Time>,
    /// What the probabilities have added up to since it last came to more than 1.
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

    /// True as often as the probabilities say, at even distances; `recur` in the RFC.
    fn recurs(&mut self, probability: f64) -> bool {
        self.sum += probability;
        let recurs = self.sum > 1.0;
        if recurs {
            self.sum -= 1.0;
        }
        recurs
    }
}

/// What becomes of a packet on departure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Goes,
    Marked,
    Dropped,
}

impl DualPi2 {
    /// Empty queues. The bound is for both together.
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

    /// Brings p′ up to `now`.
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

    /// Takes out the packet whose turn it is, and says whether it is L's, and how it changes the credit if it is sent.
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
        // Below 2⁴⁸ in all, as only one packet goes beyond zero either way.
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
            // Overload: as in C, and all that goes is marked.
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
