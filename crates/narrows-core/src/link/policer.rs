//! A token-bucket policer at the ingress of a link, before the queue.
//!
//! Source: Linux's act_police, RFC 2697's idea with one rate. A packet conforms if the bucket has tokens for
//! its cost, which are then removed. An exceeding packet takes no tokens, so a flood does not use up the
//! tokens of others. A second bucket, for a peak rate, works as in the
//! [token bucket filter](crate::sched::Tbf): a packet needs both. Buckets are initially full, and exact.
//!
//! ```text
//! conforming in any span d ≤ min(burst + rate·d, mtu + peak·d)
//! ```
//!
//! It comes after the ingress loss, which models the wire before this link, and before the MTU and the queue.
//! With conditions, it polices the packets that have one of them; others pass, and are not counted.
//!
//! Costs use the policer's own overhead or else the link's, including the packet's own link header if that
//! counts.

use alloc::vec::Vec;

use crate::classify::Condition;
use crate::counters::{DropReason, Tally};
use crate::pool::{PacketRef, PacketState};
use crate::queue::Context;
use crate::sched::bucket;
use crate::sched::shaping::ShapingFault;
use crate::sched::tbf::Buckets;
use crate::sched::{Peak, ShapingError};
use crate::service::Overhead;
use crate::time::Time;
use crate::units::{Bytes, Rate};

/// The configuration of a policer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicerConfig {
    /// The rate; not zero.
    pub rate: Rate,
    /// The maximum number of bytes that conform at once after idle time; not zero. A longer packet never
    /// conforms.
    pub burst: Bytes,
    /// The peak rate within a burst.
    pub peak: Option<Peak>,
    /// The minimum cost of a packet.
    pub mpu: Bytes,
    /// The overhead in a packet's cost; `None` for the link's overhead. Linux counts the IP packet for
    /// packets that arrive at a device.
    pub overhead: Option<Overhead>,
    /// The action for exceeding packets.
    pub exceed: Exceed,
}

/// The action for exceeding packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Exceed {
    /// Drop them as [`DropReason::Policed`].
    #[default]
    Drop,
    /// Mark them CE and pass them on; drop those that are not ECN-capable.
    Mark,
    /// Pass them on, and count them.
    Pass,
    /// Count them, and let the next [filter](super::Ingress) decide. A policer alone passes them on.
    Next,
}

/// What a filter says about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    Dropped,
    Passed,
    /// The next filter decides; without one, the packet passes.
    Undecided,
}

/// A policer with its buckets.
#[derive(Clone, Debug)]
pub struct Policer {
    buckets: Buckets,
    mpu: Bytes,
    overhead: Option<Overhead>,
    exceed: Exceed,
    /// Conditions of which a packet must have one; empty for all packets.
    only: Vec<Condition>,
    /// Whether the next filter decides about packets that conform.
    goes_on: bool,
    counts: PolicerCounts,
}

/// Counters of a policer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PolicerCounts {
    /// Packets that conformed.
    pub conforming: Tally,
    /// Packets that exceeded, passed on or not.
    pub exceeding: Tally,
}

impl Policer {
    /// A policer with full buckets.
    ///
    /// # Errors
    /// If the rate or a bucket is zero, the peak rate is not above the rate, or a burst is too large to
    /// count.
    pub fn new(config: PolicerConfig) -> Result<Self, ShapingError> {
        let PolicerConfig { rate, burst, peak, mpu, overhead, exceed } = config;
        let buckets = Buckets::new(rate, burst, peak).map_err(ShapingFault::of_all)?;
        Ok(Self {
            buckets,
            mpu,
            overhead,
            exceed,
            only: Vec::new(),
            goes_on: false,
            counts: PolicerCounts::default(),
        })
    }

    /// The policer for packets that have one of these conditions; for all packets if there is none.
    #[must_use]
    pub fn only(mut self, conditions: Vec<Condition>) -> Self {
        self.only = conditions;
        self
    }

    /// The policer that leaves packets that conform to the next [filter](super::Ingress).
    #[must_use]
    pub const fn and_goes_on(mut self) -> Self {
        self.goes_on = true;
        self
    }

    /// The policer's counters.
    pub const fn counts(&self) -> PolicerCounts {
        self.counts
    }

    /// Whether a packet conforms at `now`. Takes the tokens and counts the packet.
    fn conforms(&mut self, now: Time, packet: &PacketState, links: &Overhead) -> bool {
        let overhead = self.overhead.as_ref().unwrap_or(links);
        let cost = bucket::cost_with_header(packet.length, packet.link_header, overhead, self.mpu);
        let conforms = self.buckets.afford(now, cost);
        if conforms {
            self.buckets.pay(now, cost);
            self.counts.conforming.add(packet.length);
        } else {
            self.counts.exceeding.add(packet.length);
        }
        conforms
    }

    pub(super) fn looks_at_headers(&self) -> bool {
        Condition::any_looks_at_headers(&self.only)
    }

    /// Passes a packet that arrives at `now`, or drops it. Returns whether it goes on.
    pub(super) fn admit(
        &mut self,
        now: Time,
        packet: PacketRef,
        overhead: &Overhead,
        context: &mut Context<'_>,
    ) -> bool {
        self.judge(now, packet, overhead, context) != Judgement::Dropped
    }

    /// Decides about a packet that arrives at `now`.
    pub(super) fn judge(
        &mut self,
        now: Time,
        packet: PacketRef,
        overhead: &Overhead,
        context: &mut Context<'_>,
    ) -> Judgement {
        if !Condition::any_holds(&self.only, packet, context.pool) {
            return Judgement::Undecided;
        }
        if self.conforms(now, context.pool.get(packet), overhead) {
            return if self.goes_on { Judgement::Undecided } else { Judgement::Passed };
        }
        let passes = match self.exceed {
            Exceed::Drop => false,
            Exceed::Mark => context.mark(packet),
            Exceed::Pass => true,
            Exceed::Next => return Judgement::Undecided,
        };
        if passes {
            return Judgement::Passed;
        }
        context.drop(packet, DropReason::Policed);
        Judgement::Dropped
    }
}

impl PolicerCounts {
    /// Adds the counters of another policer.
    pub(super) const fn absorb(&mut self, other: Self) {
        self.conforming.packets += other.conforming.packets;
        self.conforming.bytes += other.conforming.bytes;
        self.exceeding.packets += other.exceeding.packets;
        self.exceeding.bytes += other.exceeding.bytes;
    }
}
