//! RED, "random early detection" (Floyd and Jacobson 1993), and its gentle variant, which Dummynet calls GRED (Floyd
//! 2000).
//!
//! RED averages the queue length over arrivals. q is the backlog found by an arriving packet. While the queue is
//! empty, the average decays as if m small packets had passed during the idle time; s is the transmission time of one
//! such packet:
//!
//! ```text
//! avg ← avg + w·(q − avg)                     the queue is not empty
//! avg ← avg·(1 − w)^m,   m = idle / s         it is
//! ```
//!
//! Below `min` no packet is dropped. Above `max` every packet is dropped (or marked). In between, the drop
//! probability rises from 0 to `probability`. It is corrected so that the number of packets from one drop to the next
//! is uniformly distributed over 1 … 1/p_b:
//!
//! ```text
//! p_b = probability·(avg − min)/(max − min)   p_a = p_b / (1 − count·p_b)
//! ```
//!
//! `count` is the number of packets accepted since the last drop. With `gentle`, p_b continues from `probability` at
//! `max` to 1 at twice `max`. With thresholds in bytes, p_b is multiplied by the packet's length divided by the
//! longest packet's length, unless `by_length` is off, as in Linux.
//!
//! Differences from the sources:
//! - The paper's listing (figure 2) sets `count` to 0 at a drop and adds 1 before it computes p_a. So the packet
//!   after a drop sees p_b/(1 − p_b), and the distances are uniform over 1 … 1/p_b − 1 only. The paper's own
//!   derivation (section 7) counts the packets accepted since the drop, which is 0 for that packet. This
//!   implementation follows the derivation; a test shows both.
//! - The paper leaves the function of idle time open. Here m is not rounded to whole packets.
//! - `harddrop`, `nodrop` and `adaptive` are Linux's (sch_red.c, red.h, 6.12). Adaptive RED (Floyd, Gummadi and
//!   Shenker 2001) checks the average every half second and adjusts `probability`. If the average is in the upper two
//!   fifths between the thresholds or above, `probability` rises by a quarter of its value, by at most 0.01. If the
//!   average is in the lower two fifths or below, it falls by a tenth. It stays within 1 % and 50 %. Here the half
//!   seconds count from time zero. The check takes place at the next arrival, with the average as it was at the
//!   scheduled instant.
//! - The average counts waiting packets, without the packet on the wire, because the queue here holds no others.
//! - Idle time is weighted by the rates that the wire had during that time, not only by its present rate.
//! - Idle time begins when the last packet is sent, or when RED itself drops a packet that finds the queue empty. If
//!   an overload of the whole queue empties the class, or a bound refuses a packet of an empty queue, the average
//!   does not decay for that time. The next arrival then counts as one that finds a queue of length zero.
//!
//! Floating point is used for + − × ÷ only, so all machines agree, and so does a program that does these in software. The
//! exception is a logarithm, taken once (`libm::log2`).
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

use crate::aqm::{Aqm, AqmSettings, Judgement, Waiting};
use crate::pool::{PacketRef, PacketState};
use crate::queue::{Context, Wire};
use crate::service::Overhead;
use crate::time::{Duration, Time};
use crate::units::{Bytes, Probability, Rate};

/// The parameters of RED.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedConfig {
    /// The thresholds of the average between which packets are dropped at random. Default: 5 and 15 packets.
    pub thresholds: Thresholds,
    /// Drop probability when the average reaches the upper threshold. Default: 0.1. The paper uses 0.02; its author
    /// later recommended 0.1.
    pub probability: Probability,
    /// Weight of an arrival in the average, w: above 0, at most 1. Default: 0.002.
    pub weight: f64,
    /// Let the probability rise gradually above the upper threshold as well. Default: false.
    pub gentle: bool,
    /// Mark ECN-capable packets instead of dropping them. Default: true.
    pub ecn: bool,
    /// Drop instead of mark when the average is above all thresholds. Default: false.
    pub harddrop: bool,
    /// Accept packets that are not ECN-capable where RED would drop them early. Default: false.
    pub nodrop: bool,
    /// Start anew, with an average of zero, when a packet finds the queue empty (as in Linux's SFQ). Default: false.
    pub restart: bool,
    /// Adapt the probability to the average. Default: false.
    pub adaptive: bool,
    /// Length of the packet whose transmission time is the unit of idle time. At least 1 byte. Default: 512 bytes, as
    /// in Dummynet.
    pub typical_packet: Bytes,
    /// With thresholds in bytes: shorter packets are dropped less often, in proportion to their length (not in Linux).
    /// Default: true.
    pub by_length: bool,
    /// With `by_length`: length of the packet that is dropped with the full probability. At least 1 byte. Default: 1500
    /// bytes.
    pub longest_packet: Bytes,
}

/// The averages between which packets are dropped at random, and the unit of the queue length. 0 < min < max.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thresholds {
    /// In packets.
    Packets {
        /// The lower threshold.
        min: u64,
        /// The upper threshold, greater than `min`.
        max: u64,
    },
    /// In bytes.
    Bytes {
        /// The lower threshold.
        min: Bytes,
        /// The upper threshold, greater than `min`.
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
            restart: false,
            adaptive: false,
            typical_packet: Bytes::new(512),
            by_length: true,
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
    /// The drop probability p_b at an average, given in the thresholds' unit. This is the value for the longest
    /// packet, before the correction for uniform distances.
    pub fn probability_at(&self, average: f64) -> f64 {
        self.probability_of(average, self.probability.as_f64())
    }

    /// −log₂(1 − w): how often the average halves for each small packet that could have passed while the queue was empty.
    pub fn halvings(&self) -> f64 {
        -libm::log2(1.0 - self.weight)
    }

    /// The bits on the wire of the packet whose transmission time is the unit of idle time; at least 1.
    pub fn typical_bits(&self, overhead: Overhead) -> u64 {
        let length = u32::try_from(self.typical_packet.get()).unwrap_or(u32::MAX);
        overhead.bits(length, ETHERNET_HEADER).max(1)
    }

    /// Like [`Self::probability_at`], with another `probability`.
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

/// Adaptive RED: the interval between checks, and the limits of the probability.
const ADAPTS_EVERY: Duration = Duration::from_millis(500);
const LEAST: f64 = 0.01;
const MOST: f64 = 0.5;

/// RED for one FIFO.
#[derive(Clone, Debug)]
pub struct Red {
    config: Arc<RedConfig>,
    wire: Option<Wire>,
    average: f64,
    /// How often the average halves for each small packet that could have passed.
    halvings: f64,
    /// The configured probability, or the adapted one.
    probability: f64,
    /// The instant of the next adaptation.
    adapts_at: Time,
    /// Packets accepted since the last drop, while the average was between the thresholds.
    count: u64,
    /// Since when the queue has been empty, as far as the average does not include that time yet. `None` while
    /// packets wait.
    idle_since: Option<Time>,
}

impl Red {
    /// A policy for one queue. Pass an `Arc` to share the parameters.
    pub fn new(config: impl Into<Arc<RedConfig>>) -> Self {
        let config = config.into();
        let probability = config.probability.as_f64();
        let adapts_at = Time::ZERO + ADAPTS_EVERY;
        let halvings = config.halvings();
        Self {
            config,
            wire: None,
            average: 0.0,
            halvings,
            probability,
            adapts_at,
            count: 0,
            idle_since: None,
        }
    }

    /// The average queue length, in the thresholds' unit.
    pub const fn average(&self) -> f64 {
        self.average
    }

    /// Decays the average for the time that the queue has been empty.
    fn decay(&mut self, now: Time) {
        let (Some(since), Some(wire)) = (self.idle_since, self.wire) else { return };
        self.idle_since = Some(now);
        let packets = passed(now.since(since), wire, &self.config);
        self.average *= remains(self.halvings, packets);
    }

    /// Adjusts the probability at every due instant up to `now`.
    fn adapt(&mut self, now: Time) {
        if !self.config.adaptive {
            return;
        }
        let (min, max) = self.config.thresholds.range();
        let (low, high) = (min + 0.4 * (max - min), min + 0.6 * (max - min));
        while self.adapts_at <= now {
            let average = match (self.idle_since, self.wire) {
                (Some(since), Some(wire)) if since < self.adapts_at => {
                    let packets = passed(self.adapts_at.since(since), wire, &self.config);
                    self.average * remains(self.halvings, packets)
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
            // Once settled, it stays settled: the average only falls until a packet arrives.
            if self.probability == before && average < low {
                let steps = now.nanos() / ADAPTS_EVERY.nanos() + 1;
                self.adapts_at = Time::from_nanos(steps.saturating_mul(ADAPTS_EVERY.nanos()));
            }
        }
    }

    /// Whether the average is above the lower threshold.
    pub(super) fn is_above_min(&self) -> bool {
        self.average > self.config.thresholds.range().0
    }

    /// The queue has become empty without a departure.
    pub(super) const fn emptied(&mut self, now: Time) {
        self.idle_since = Some(now);
    }

    /// Counts an arrival in the average. Comes before [`Self::judge`].
    pub(super) fn observe(&mut self, now: Time, waiting: Waiting) {
        self.adapt(now);
        if waiting.backlog.packets == 0 && self.config.restart {
            (self.average, self.count) = (0.0, 0);
        } else if waiting.backlog.packets == 0 && self.idle_since.is_some() {
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

    /// Whether to drop a packet of `length` bytes, given a uniform draw between 0 and 1.
    fn decide(&mut self, length: u32, uniform: f64) -> bool {
        let mut base = self.config.probability_of(self.average, self.probability);
        if base <= 0.0 {
            self.count = 0;
            return false;
        }
        if let (Thresholds::Bytes { .. }, true, true) =
            (self.config.thresholds, self.config.by_length, base < 1.0)
        {
            base *= f64::from(length) / self.config.longest_packet.get().max(1) as f64;
        }
        // The drop is certain at 1 and above, and when the packet's turn has passed because the probability rose.
        let left = 1.0 - self.count as f64 * base;
        let drops = left <= base || uniform < base / left;
        self.count = if drops { 0 } else { self.count + 1 };
        drops
    }

    /// Judges a packet that has been observed, given a uniform draw between 0 and 1.
    pub(super) fn judge(
        &mut self,
        now: Time,
        packet: &PacketState,
        waiting: Waiting,
        uniform: f64,
    ) -> Judgement {
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
            self.emptied(now); // it stays empty
        }
        judgement
    }
}

/// How many typical packets could have been sent in this time.
fn passed(span: Duration, wire: Wire, config: &RedConfig) -> f64 {
    match (span, wire.rate) {
        (Duration::ZERO, _) | (_, Rate::DOWN) => 0.0,
        (_, Rate::UNLIMITED) => f64::INFINITY,
        (span, rate) => {
            span.seconds() * rate.bits_per_second() as f64 / config.typical_bits(wire.overhead) as f64
        }
    }
}

/// What remains of the average after it has halved `halvings` times for each of so many packets: 2^−(halvings·packets),
/// with a relative error below 10⁻¹³.
fn remains(halvings: f64, packets: f64) -> f64 {
    // The powers of −ln 2 over their factorials.
    const SERIES: [f64; 14] = [
        1.0,
        -core::f64::consts::LN_2,
        0.24022650695910072,
        -0.05550410866482158,
        0.009618129107628477,
        -0.0013333558146428443,
        0.0001540353039338161,
        -1.5252733804059841e-05,
        1.321548679014431e-06,
        -1.01780860092397e-07,
        7.054911620801123e-09,
        -4.4455382718708116e-10,
        2.5678435993488206e-11,
        -1.3691488853904128e-12,
    ];
    if packets == 0.0 {
        return 1.0;
    }
    let all = halvings * packets;
    if all >= 1000.0 {
        return 0.0;
    }
    let whole = (all + 0.5) as u64;
    let rest = all - whole as f64; // from −½ to ½
    let of_rest = SERIES.iter().rev().fold(0.0, |sum, term| sum * rest + term);
    of_rest * f64::from_bits((1023 - whole) << 52)
}

/// Link header bytes of a typical packet, if the overhead counts them.
const ETHERNET_HEADER: u8 = 14;

impl Aqm for Red {
    fn settings(&self) -> Option<AqmSettings> {
        Some(self.config.clone())
    }

    fn arrive(
        &mut self,
        now: Time,
        packet: PacketRef,
        waiting: Waiting,
        context: &mut Context<'_>,
    ) -> Judgement {
        self.observe(now, waiting);
        let uniform = context.draw_at_arrival(packet).uniform();
        self.judge(now, context.pool.get(packet), waiting, uniform)
    }

    fn depart(
        &mut self,
        now: Time,
        _packet: PacketRef,
        waiting: Waiting,
        _context: &mut Context<'_>,
    ) -> Judgement {
        if waiting.backlog.packets == 1 {
            self.emptied(now);
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
