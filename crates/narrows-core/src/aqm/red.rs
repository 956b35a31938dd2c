//! RED, "random early detection" (Floyd and Jacobson 1993), and its gentle variant, which Dummynet calls GRED (Floyd 2000).
//!
//! The queue is averaged over arrivals, q being what waits when a packet comes; while it is empty the average falls as if
//! m small packets had passed in the idle time, s being the time to send one of them:
//!
//! ```text
//! avg ← avg + w·(q − avg)                     the queue is not empty
//! avg ← avg·(1 − w)^m,   m = idle / s         it is
//! ```
//!
//! Below `min` nothing happens; above `max` every packet is dropped (or marked); between, with a probability that rises
//! from 0 to `probability`, made up so that the packets from one drop to the next are distributed evenly over 1 … 1/p_b:
//!
//! ```text
//! p_b = probability·(avg − min)/(max − min)   p_a = p_b / (1 − count·p_b)
//! ```
//!
//! `count` being the packets let in since the last drop. With `gentle`, p_b goes on from `probability` at `max` to 1 at
//! twice `max`. With thresholds in bytes, p_b is multiplied by the packet's length over the longest one's.
//!
//! Where this departs from the sources:
//! - The paper's listing (figure 2) sets `count` to 0 at a drop and adds 1 before it works out p_a, so the packet after a
//!   drop sees p_b/(1 − p_b), and the distances are even over 1 … 1/p_b − 1 only. Its own derivation (section 7) counts
//!   the packets let in since, 0 for that packet. The derivation is followed; a test shows both.
//! - The paper leaves the function of idle time open; m is not rounded to whole packets.
//! - `harddrop`, `nodrop` and `adaptive` are Linux's (sch_red.c, red.h, 6.12). Adaptive RED (Floyd, Gummadi and Shenker
//!   2001) looks at the average every half second and moves `probability`: up by a quarter of it, a hundredth at most, where
//!   the average is in the upper two fifths between the thresholds or above, down by a tenth where it is in the lower two
//!   fifths or below, within 1 % and 50 %. Here the half seconds count from time zero, and the look takes place at the next
//!   arrival, with the average as it was at that instant.
//! - The average counts what waits, without the packet on the wire: the queue here is that.
//! - Idle time counts by the rates that the wire had, not only by the present one.
//! - Idle time begins when the last packet is sent, or when a packet that finds the queue empty is dropped by RED itself. Where
//!   an overload of the whole empties the class, or a bound refuses a packet of an empty queue, the average does not fall for
//!   that time: the next arrival counts as one that finds a queue of no length.
//!
//! Floating point is used for + − × ÷ and `libm::pow` only, so all machines agree.
//!
//! ```
//! use narrows_core::aqm::{Red, RedConfig, Thresholds};
//! use narrows_core::queue::{Bound, DropAt, Fifo};
//!
//! let thresholds = Thresholds::Packets { min: 5, max: 15 };
//! let policy = Red::new(RedConfig { thresholds, gentle: true, ..RedConfig::default() });
//! let queue = Fifo::managed(Bound::Packets(60), DropAt::Tail, Box::new(policy));
//! ```

use alloc::sync::Arc;

use crate::aqm::{Aqm, Judgement, Waiting};
use crate::pool::PacketRef;
use crate::queue::{Context, Wire};
use crate::time::{Duration, Time};
use crate::units::{Bytes, Probability, Rate};

/// The parameters of RED.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedConfig {
    /// Where dropping begins and ends. 5 and 15 packets.
    pub thresholds: Thresholds,
    /// That of a drop when the average is at the upper threshold. 0.1; the paper has 0.02, its author later advised 0.1.
    pub probability: Probability,
    /// How much an arrival counts in the average, w: above 0, at most 1. 0.002.
    pub weight: f64,
    /// Whether the probability rises gradually above the upper threshold too. No.
    pub gentle: bool,
    /// Whether packets that can be marked are marked instead of dropped. Yes.
    pub ecn: bool,
    /// Whether a packet is dropped and not marked where the average is above all thresholds. No.
    pub harddrop: bool,
    /// Whether a packet that cannot be marked is let in where it would be dropped early. No.
    pub nodrop: bool,
    /// Whether the probability follows the average. No.
    pub adaptive: bool,
    /// The packet whose sending is the unit of idle time. At least 1 byte. 512 bytes, as in Dummynet.
    pub typical_packet: Bytes,
    /// With thresholds in bytes: the packet that is dropped with the full probability. At least 1 byte. 1500 bytes.
    pub longest_packet: Bytes,
}

/// Between which averages packets are dropped at random, and in what the queue is measured. 0 < min < max.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thresholds {
    /// In packets.
    Packets {
        /// The lower one.
        min: u64,
        /// The upper one, above that.
        max: u64,
    },
    /// In bytes.
    Bytes {
        /// The lower one.
        min: Bytes,
        /// The upper one, above that.
        max: Bytes,
    },
}

impl Default for RedConfig {
    fn default() -> Self {
        Self {
            thresholds: Thresholds::Packets { min: 5, max: 15 },
            probability: Probability::from_ratio(1, 10).expect("a tenth is a probability"),
            weight: 0.002,
            gentle: false,
            ecn: true,
            harddrop: false,
            nodrop: false,
            adaptive: false,
            typical_packet: Bytes::new(512),
            longest_packet: Bytes::new(1500),
        }
    }
}

impl Thresholds {
    const fn range(self) -> (f64, f64) {
        match self {
            Self::Packets { min, max } => (min as f64, max as f64),
            Self::Bytes { min, max } => (min.get() as f64, max.get() as f64),
        }
    }
}

impl RedConfig {
    /// The probability p_b of a drop at an average, in the thresholds' unit, before it is evened out and for the longest
    /// packet.
    pub fn probability_at(&self, average: f64) -> f64 {
        self.probability_of(average, self.probability.as_f64())
    }

    /// The same with another `probability`.
    fn probability_of(&self, average: f64, most: f64) -> f64 {
        let (min, max) = self.thresholds.range();
        if average < min {
            0.0
        } else if average < max {
            most * (average - min) / (max - min)
        } else if self.gentle && average < 2.0 * max {
            most + (1.0 - most) * (average - max) / max
        } else {
            1.0
        }
    }
}

/// How often adaptive RED looks at the average, and between which probabilities it moves.
const ADAPTS_EVERY: Duration = Duration::from_millis(500);
const LEAST: f64 = 0.01;
const MOST: f64 = 0.5;

/// RED for one FIFO.
#[derive(Clone, Debug)]
pub struct Red {
    config: Arc<RedConfig>,
    wire: Option<Wire>,
    average: f64,
    /// That of the configuration, or what it has been adapted to.
    probability: f64,
    /// When it is adapted next.
    adapts_at: Time,
    /// Packets let in while the average was between the thresholds, since the last drop.
    count: u64,
    /// Since when nothing waits, as far as the average does not know it yet; nothing while something does.
    idle_since: Option<Time>,
}

impl Red {
    /// A policy for one queue. Hand in an `Arc` to share the parameters.
    pub fn new(config: impl Into<Arc<RedConfig>>) -> Self {
        let config = config.into();
        let probability = config.probability.as_f64();
        let adapts_at = Time::ZERO + ADAPTS_EVERY;
        Self { config, wire: None, average: 0.0, probability, adapts_at, count: 0, idle_since: None }
    }

    /// The average length of the queue, in the thresholds' unit.
    pub const fn average(&self) -> f64 {
        self.average
    }

    /// Lets the average fall for the time that the queue has been empty.
    fn decay(&mut self, now: Time) {
        let (Some(since), Some(wire)) = (self.idle_since, self.wire) else { return };
        self.idle_since = Some(now);
        let packets = passed(now.since(since), wire, self.config.typical_packet);
        self.average *= libm::pow(1.0 - self.config.weight, packets);
    }

    /// Moves the probability at every instant up to now at which that is due.
    fn adapt(&mut self, now: Time) {
        if !self.config.adaptive {
            return;
        }
        let (min, max) = self.config.thresholds.range();
        let (low, high) = (min + 0.4 * (max - min), min + 0.6 * (max - min));
        while self.adapts_at <= now {
            let average = match (self.idle_since, self.wire) {
                (Some(since), Some(wire)) if since < self.adapts_at => {
                    let packets = passed(self.adapts_at.since(since), wire, self.config.typical_packet);
                    self.average * libm::pow(1.0 - self.config.weight, packets)
                }
                _ => self.average,
            };
            let before = self.probability;
            if average > high && before <= MOST {
                self.probability += f64::min(LEAST, before / 4.0);
            } else if average < low && before >= LEAST {
                self.probability *= 0.9;
            }
            self.adapts_at = self.adapts_at + ADAPTS_EVERY;
            // What has come to rest stays there: the average only falls until something comes.
            if self.probability == before && average < low {
                let steps = now.nanos() / ADAPTS_EVERY.nanos() + 1;
                self.adapts_at = Time::from_nanos(steps.saturating_mul(ADAPTS_EVERY.nanos()));
            }
        }
    }

    fn observe(&mut self, now: Time, waiting: Waiting) {
        self.adapt(now);
        if waiting.backlog.packets == 0 && self.idle_since.is_some() {
            self.decay(now);
        } else {
            let length = match self.config.thresholds {
                Thresholds::Packets { .. } => waiting.backlog.packets,
                Thresholds::Bytes { .. } => waiting.backlog.bytes,
            };
            self.average += self.config.weight * (length as f64 - self.average);
        }
        self.idle_since = None;
    }

    /// Whether to drop a packet of `length` bytes, by a draw between 0 and 1.
    fn decide(&mut self, length: u32, uniform: f64) -> bool {
        let mut base = self.config.probability_of(self.average, self.probability);
        if base <= 0.0 {
            self.count = 0;
            return false;
        }
        if let (Thresholds::Bytes { .. }, true) = (self.config.thresholds, base < 1.0) {
            base *= f64::from(length) / self.config.longest_packet.get().max(1) as f64;
        }
        // At 1 and above, or when its turn has passed because the probability rose, it is certain.
        let left = 1.0 - self.count as f64 * base;
        let drops = left <= base || uniform < base / left;
        self.count = if drops { 0 } else { self.count + 1 };
        drops
    }
}

/// How many packets of a length could have been sent in a time.
fn passed(span: Duration, wire: Wire, length: Bytes) -> f64 {
    let length = u32::try_from(length.get()).unwrap_or(u32::MAX);
    let bits = wire.overhead.bits(length, ETHERNET_HEADER);
    match (span, wire.rate) {
        (Duration::ZERO, _) | (_, Rate::DOWN) => 0.0,
        (_, Rate::UNLIMITED) => f64::INFINITY,
        (span, rate) => span.seconds() * rate.bits_per_second() as f64 / bits.max(1) as f64,
    }
}

/// Bytes of link header that a typical packet has, where the overhead counts them.
const ETHERNET_HEADER: u8 = 14;

impl Aqm for Red {
    fn arrive(
        &mut self,
        now: Time,
        packet: PacketRef,
        waiting: Waiting,
        context: &mut Context<'_>,
    ) -> Judgement {
        self.observe(now, waiting);
        let uniform = context.draw_at_arrival(packet).uniform();
        let packet = context.pool.get(packet);
        if !self.decide(packet.length, uniform) {
            return Judgement::Pass;
        }
        let RedConfig { ecn, harddrop, nodrop, .. } = *self.config;
        let is_full = self.config.probability_of(self.average, 0.0) >= 1.0;
        let judgement = match Judgement::congestion(ecn && !(harddrop && is_full), packet) {
            Judgement::Drop if nodrop && !(harddrop && is_full) => Judgement::Pass,
            judgement => judgement,
        };
        if judgement == Judgement::Drop && waiting.backlog.packets == 0 {
            self.idle_since = Some(now); // it stays empty
        }
        judgement
    }

    fn depart(
        &mut self,
        now: Time,
        _packet: PacketRef,
        waiting: Waiting,
        _context: &mut Context<'_>,
    ) -> Judgement {
        if waiting.backlog.packets == 1 {
            self.idle_since = Some(now);
        }
        Judgement::Pass
    }

    fn set_wire(&mut self, now: Time, wire: Wire) {
        self.decay(now);
        self.wire = Some(wire);
    }
}

#[cfg(test)]
mod tests;
