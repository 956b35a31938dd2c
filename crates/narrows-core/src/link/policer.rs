//! What a link takes in, by a token bucket, before anything waits.
//!
//! Source: Linux's act_police, RFC 2697's idea with one rate. A packet conforms if what it costs is in the bucket, and takes it
//! out; what exceeds takes nothing, so that a flood does not use up what others could have. A second bucket, of a peak rate,
//! is as that of the [token bucket filter](crate::sched::Tbf): a packet needs both. Buckets are full at first and exact.
//!
//! ```text
//! conforming in any span d ≤ min(burst + rate·d, mtu + peak·d)
//! ```
//!
//! It comes after the loss at ingress, which is that of the wire before, and ahead of the MTU and the queue. Costs are by its
//! own overhead or else the link's, with the packet's own link header where that counts.

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

/// What a policer is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicerConfig {
    /// The rate; not zero.
    pub rate: Rate,
    /// The most bytes that conform at once after idle time; not zero. A longer packet never does.
    pub burst: Bytes,
    /// How fast a burst may come.
    pub peak: Option<Peak>,
    /// What a packet costs at least.
    pub mpu: Bytes,
    /// What a packet costs; nothing for the link's overhead. In Linux it is the IP packet for what arrives at a device.
    pub overhead: Option<Overhead>,
    /// What becomes of packets that exceed.
    pub exceed: Exceed,
}

/// What becomes of packets that exceed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Exceed {
    /// They are dropped, as [`DropReason::Policed`].
    #[default]
    Drop,
    /// They are marked with "congestion experienced" and go on; those that cannot be marked are dropped.
    Mark,
    /// They go on, and are counted.
    Pass,
}

/// A policer with its buckets.
#[derive(Clone, Debug)]
pub struct Policer {
    buckets: Buckets,
    mpu: Bytes,
    overhead: Option<Overhead>,
    exceed: Exceed,
    counts: PolicerCounts,
}

/// What a policer has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PolicerCounts {
    /// Packets that conformed.
    pub conforming: Tally,
    /// Packets that exceeded, whatever became of them.
    pub exceeding: Tally,
}

impl Policer {
    /// With full buckets.
    ///
    /// # Errors
    /// When the rate or a bucket is zero, the peak rate is not above the rate, or a burst is beyond what can be counted.
    pub fn new(config: PolicerConfig) -> Result<Self, ShapingError> {
        let PolicerConfig { rate, burst, peak, mpu, overhead, exceed } = config;
        let buckets = Buckets::new(rate, burst, peak).map_err(ShapingFault::of_all)?;
        Ok(Self { buckets, mpu, overhead, exceed, counts: PolicerCounts::default() })
    }

    /// What it has counted.
    pub const fn counts(&self) -> PolicerCounts {
        self.counts
    }

    /// Whether a packet conforms at `now`.
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

    /// Lets a packet in that arrives at `now`, or drops it; whether it goes on.
    pub(super) fn admit(
        &mut self,
        now: Time,
        packet: PacketRef,
        overhead: &Overhead,
        context: &mut Context<'_>,
    ) -> bool {
        if self.conforms(now, context.pool.get(packet), overhead) {
            return true;
        }
        let goes_on = match self.exceed {
            Exceed::Drop => false,
            Exceed::Mark => context.mark(packet),
            Exceed::Pass => true,
        };
        if !goes_on {
            context.drop(packet, DropReason::Policed);
        }
        goes_on
    }
}

impl PolicerCounts {
    /// Adds what another one has counted.
    pub(super) const fn absorb(&mut self, other: Self) {
        self.conforming.packets += other.conforming.packets;
        self.conforming.bytes += other.conforming.bytes;
        self.exceeding.packets += other.exceeding.packets;
        self.exceeding.bytes += other.exceeding.bytes;
    }
}
