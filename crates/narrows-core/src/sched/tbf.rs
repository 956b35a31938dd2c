//! The token bucket filter.
//!
//! Source: Linux's sch_tbf (A. Kuznetsov), as explained by A. G. Moe, "Implementing Rate Control in NetEm", 2013,
//! section 2.3.4. A bucket fills at `rate` and holds `burst`. The first packet is sent as soon as the bucket holds
//! its cost, which is then removed. A second bucket of `peak.mtu` that fills at `peak.rate` limits how fast the first
//! is emptied: a packet needs tokens from both. The cost of a packet of L bytes is its length on the wire, and at
//! least `mpu`:
//!
//! ```text
//! cost = max(bytes on the wire(L), mpu)        sent in any span d ≤ min(burst + rate·d, mtu + peak·d)
//! ```
//!
//! The bounds are hard: as in the kernel, no packet is sent on credit, and the buckets are full at first. Tokens are
//! counted in billionths of a bit, where the kernel uses nanoseconds of the rate. So rounding errors do not
//! accumulate.
//!
//! A packet whose cost exceeds a full bucket can never be sent. As in the kernel it is dropped on arrival, as
//! [`DropReason::BlackHole`]: it is too long, and the sender is not told. If a packet becomes too long while it
//! waits, because the link's overhead has changed, it is dropped when it reaches the head.
//!
//! The link needs no rate of its own. If it has one, the filter sends no faster than the link takes packets.
//!
//! ```
//! # use narrows_core::{Bytes, PacketRef, Rate, Time};
//! # use narrows_core::sched::{FlowConfig, Served, Server, Tbf, TbfConfig};
//! let config = TbfConfig {
//!     rate: Rate::from_bits_per_second(8_000_000),
//!     burst: Bytes::new(2_000),
//!     peak: None,
//!     mpu: Bytes::new(0),
//! };
//! let mut server = Server::new(Tbf::new(config).expect("a packet can pass"));
//! let flow = server.join(FlowConfig::default()).expect("it has one flow");
//! for number in 0..3 {
//!     server.enqueue(Time::ZERO, flow, PacketRef::from_number(number), 1000);
//! }
//! assert!(matches!(server.dequeue(Time::ZERO), Served::Packet(..)));
//! assert!(matches!(server.dequeue(Time::ZERO), Served::Packet(..)));
//! // 1000 bytes take a millisecond to earn.
//! assert_eq!(server.dequeue(Time::ZERO), Served::NotBefore(Time::from_nanos(1_000_000)));
//! ```

use alloc::vec;
use alloc::vec::Vec;

use crate::counters::DropReason;
use crate::queue::Wire;
use crate::sched::bucket::{self, Bucket};
use crate::sched::shaping::{OnlyFlow, ShapingError, ShapingFault};
use crate::sched::{ClassState, FlowConfig, FlowId, Flows, Mode, Refused, Scheduler, Selection, ShapedState};
use crate::service::{Overhead, Work};
use crate::time::Time;
use crate::units::{Bytes, Rate};

/// The parameters of a token bucket filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TbfConfig {
    /// The rate; not zero.
    pub rate: Rate,
    /// Bucket size: the maximum number of bytes sent at once after idle time. A packet that costs more is never sent.
    pub burst: Bytes,
    /// Limit on how fast a burst is sent. `None`: as fast as the link takes it.
    pub peak: Option<Peak>,
    /// The minimum cost of a packet.
    pub mpu: Bytes,
}

/// Limit on how fast a burst is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peak {
    /// The peak rate, greater than the rate.
    pub rate: Rate,
    /// Size of the peak bucket: the maximum number of bytes sent at once. At least one packet.
    pub mtu: Bytes,
}

/// The two buckets of a token bucket filter or policer.
#[derive(Clone, Debug)]
pub(crate) struct Buckets {
    rate: Bucket,
    peak: Option<Bucket>,
}

/// A token bucket filter with one flow.
#[derive(Debug)]
pub struct Tbf {
    buckets: Buckets,
    mpu: Bytes,
    overhead: Overhead,
    flow: OnlyFlow,
    state: ShapedState,
    /// The instant until which the first packet was last found to wait, so that each wait is counted once.
    waited: Option<Time>,
}

impl Buckets {
    pub(crate) fn new(rate: Rate, burst: Bytes, peak: Option<Peak>) -> Result<Self, ShapingFault> {
        if burst == Bytes::new(0) {
            return Err(ShapingFault::NoBurst);
        }
        let peak = match peak {
            None => None,
            Some(peak) if peak.rate <= rate => {
                return Err(ShapingFault::PeakNotAboveRate { rate, peak: peak.rate });
            }
            Some(peak) if peak.mtu == Bytes::new(0) => return Err(ShapingFault::NoMtu),
            Some(peak) => Some(Bucket::new(peak.rate, peak.mtu)?),
        };
        Ok(Self { rate: Bucket::new(rate, burst)?, peak })
    }

    fn each(&self) -> impl Iterator<Item = &Bucket> {
        core::iter::once(&self.rate).chain(&self.peak)
    }

    /// Whether all buckets hold this cost.
    #[inline]
    pub(crate) fn afford(&self, now: Time, cost: Work) -> bool {
        self.each().all(|bucket| bucket.affords(now, cost))
    }

    /// Removes this cost from all buckets.
    #[inline]
    pub(crate) fn pay(&mut self, now: Time, cost: Work) {
        self.rate.pay(now, cost);
        if let Some(peak) = &mut self.peak {
            peak.pay(now, cost);
        }
    }

    /// Whether all buckets could ever hold this cost.
    fn could_afford(&self, cost: Work) -> bool {
        self.each().all(|bucket| bucket.could_afford(cost))
    }

    /// The first instant at which all buckets hold this cost. `None` if one never does.
    fn when_affords(&self, cost: Work) -> Option<Time> {
        self.could_afford(cost).then(|| self.each().map(|bucket| bucket.when_affords(cost)).max()).flatten()
    }
}

impl Tbf {
    /// A filter with full buckets.
    ///
    /// # Errors
    /// If the rate or a bucket is zero, the peak rate is not above the rate, or a burst is too large for the
    /// arithmetic.
    pub fn new(config: TbfConfig) -> Result<Self, ShapingError> {
        let TbfConfig { rate, burst, peak, mpu } = config;
        let buckets = Buckets::new(rate, burst, peak).map_err(ShapingFault::of_all)?;
        let state = ShapedState::default();
        Ok(Self { buckets, mpu, overhead: Overhead::IP, flow: OnlyFlow::default(), state, waited: None })
    }

    fn cost(&self, length: u32) -> Work {
        bucket::cost(length, &self.overhead, self.mpu)
    }
}

impl Scheduler for Tbf {
    type Flow = ();
    const COUNTS_PACKETS: bool = false;

    fn join(&mut self, _flow: FlowConfig) -> Result<(), Refused> {
        self.flow.join()
    }

    fn leave(&mut self, _flow: FlowId, _flows: &mut Flows<()>) {
        self.flow.leave();
    }

    fn enqueue(&mut self, _now: Time, _flow: FlowId, _flows: &mut Flows<()>) {}

    fn never_sends(&self, length: u32) -> Option<DropReason> {
        (!self.buckets.could_afford(self.cost(length))).then_some(DropReason::BlackHole)
    }

    fn select(&mut self, now: Time, flows: &mut Flows<()>) -> Selection {
        if flows.waiting() == 0 {
            return Selection::Empty;
        }
        let flow = FlowId::new(0);
        let cost = self.cost(flows.first(flow).map_or(0, |first| first.length));
        match self.buckets.when_affords(cost) {
            None => Selection::GiveUp(flow, DropReason::BlackHole),
            Some(at) if at <= now => Selection::Flow(flow),
            Some(at) => {
                if self.waited != Some(at) {
                    self.waited = Some(at);
                    self.state.over_limit += 1;
                }
                Selection::NotBefore(at)
            }
        }
    }

    fn sent(&mut self, now: Time, _flow: FlowId, length: u32, _flows: &mut Flows<()>) {
        // A nested queue may have sent another packet than the one whose cost was checked. Then a bucket may be in
        // debt.
        let cost = self.cost(length);
        self.buckets.pay(now, cost);
        self.state.sent.add(length);
        self.state.lent += 1;
    }

    fn head_dropped(&mut self, _now: Time, _flow: FlowId, _flows: &mut Flows<()>) {}

    fn set_wire(&mut self, _now: Time, wire: Wire) {
        self.overhead = wire.overhead;
    }

    /// One class. It cannot send while its first packet waits for tokens.
    fn states(&self, now: Time, flows: &Flows<()>) -> Vec<ClassState> {
        let first = (flows.waiting() > 0).then(|| flows.first(FlowId::new(0))).flatten();
        let waits = first.is_some_and(|first| !self.buckets.afford(now, self.cost(first.length)));
        let mode = if waits { Mode::CannotSend } else { Mode::MaySend };
        let tokens = self.buckets.rate.span(now);
        let ceil_tokens = self.buckets.peak.as_ref().map_or(0, |peak| peak.span(now));
        vec![ClassState::Shaped(ShapedState { mode, tokens, ceil_tokens, ..self.state })]
    }
}

impl Default for TbfConfig {
    /// 1 Mbit/s and ten packets of 1500 bytes.
    fn default() -> Self {
        Self {
            rate: Rate::from_bits_per_second(1_000_000),
            burst: Bytes::new(15_000),
            peak: None,
            mpu: Bytes::new(0),
        }
    }
}
