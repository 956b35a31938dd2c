//! The credit-based shaper (CBS), which gives a class of time-sensitive traffic a share of a port without bursts.
//!
//! Sources: IEEE Std 802.1Q-2018, 8.6.8.2 and Annex L (first IEEE 802.1Qav); Linux's sch_cbs (6.12) without offload.
//!
//! A packet may be sent while the credit is not below zero. Its transmission costs credit at the send slope. After it, credit
//! below zero is earned back at the idle slope. For L bits on a port of rate P, with idle slope I and send slope S (in
//! 802.1Q, S = P − I):
//!
//! ```text
//! at the end of the transmission:  credit = max(credit − L·S/P, −low)
//! d later, if that is below zero:  credit = min(credit + I·d, high)   at most 0 while no packet waits
//! ```
//!
//! So packets that wait are L/I apart, and a packet after idle time is sent at once. P is the rate of the transmitter; if
//! that is not limited it is I + S if the send slope is given, and otherwise a packet costs its L bits.
//!
//! So credit above zero comes from waiting for the transmitter, behind packets of others, and is lost when no packet waits.
//! Credit is counted in billionths of a bit, so rounding errors do not accumulate. Linux counts whole bytes, and loses the
//! fraction of one at each look at the queue, also when a packet arrives: it sends up to a byte less for each arrival.
//!
//! ```
//! # use narrows_core::{Bytes, PacketRef, Rate, Time};
//! # use narrows_core::sched::{Cbs, CbsConfig, FlowConfig, Served, Server};
//! let config = CbsConfig { idle_slope: Rate::from_bits_per_second(8_000_000), ..CbsConfig::default() };
//! let mut server = Server::new(Cbs::new(config).expect("it sends"));
//! let flow = server.join(FlowConfig::default()).expect("it has one flow");
//! for number in 0..2 {
//!     server.enqueue(Time::ZERO, flow, PacketRef::from_number(number), 1000);
//! }
//! assert!(matches!(server.dequeue(Time::ZERO), Served::Packet(..)));
//! // 1000 bytes take a millisecond to earn.
//! assert_eq!(server.dequeue(Time::ZERO), Served::NotBefore(Time::from_nanos(1_000_000)));
//! ```

use alloc::vec;
use alloc::vec::Vec;

use crate::queue::Wire;
use crate::sched::bucket::{self, Bucket};
use crate::sched::shaping::{OnlyFlow, ShapingError, ShapingFault};
use crate::sched::{ClassState, FlowConfig, FlowId, Flows, Mode, Refused, Scheduler, Selection, ShapedState};
use crate::service::{Overhead, Work};
use crate::time::{Duration, Time};
use crate::units::{Bytes, Rate};

/// The parameters of a credit-based shaper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CbsConfig {
    /// The rate at which credit is earned; neither zero nor unlimited.
    pub idle_slope: Rate,
    /// The rate at which a transmission costs credit. `None`: the transmitter's rate less the idle slope.
    pub send_slope: Option<Rate>,
    /// The maximum of credit.
    pub high: Bytes,
    /// The maximum of credit below zero. `None`: no maximum.
    pub low: Option<Bytes>,
}

/// A credit-based shaper with one flow.
#[derive(Debug)]
pub struct Cbs {
    config: CbsConfig,
    wire: Wire,
    flow: OnlyFlow,
    /// At `since`, as if it were earned from then on. From zero on it does not grow.
    credit: i128,
    since: Time,
    /// The end of the transmission before, as far as it is known here.
    busy_until: Time,
    state: ShapedState,
    /// The instant until which the first packet was last found to wait, so that each wait is counted once.
    waited: Option<Time>,
}

impl Cbs {
    /// A shaper without credit.
    ///
    /// # Errors
    /// If the idle slope is zero or unlimited, or a credit is too large for the arithmetic.
    pub fn new(config: CbsConfig) -> Result<Self, ShapingError> {
        if config.idle_slope == Rate::DOWN || config.idle_slope == Rate::UNLIMITED {
            return Err(ShapingFault::NoRate.of_all());
        }
        if let Some(found) =
            [Some(config.high), config.low].into_iter().flatten().find(|bytes| *bytes > Bucket::MOST)
        {
            return Err(ShapingFault::BurstTooLong { found, most: Bucket::MOST }.of_all());
        }
        Ok(Self {
            config,
            wire: Wire { rate: Rate::UNLIMITED, overhead: Overhead::IP },
            flow: OnlyFlow::default(),
            credit: 0,
            since: Time::ZERO,
            busy_until: Time::ZERO,
            state: ShapedState::default(),
            waited: None,
        })
    }

    /// The rate at which the port sends a packet, if that is known.
    fn port(&self) -> Option<u64> {
        let CbsConfig { idle_slope, send_slope, .. } = self.config;
        match (self.wire.rate, send_slope) {
            (Rate::DOWN, _) => None,
            (Rate::UNLIMITED, None) => None,
            (Rate::UNLIMITED, Some(send)) => {
                Some(idle_slope.bits_per_second().saturating_add(send.bits_per_second()))
            }
            (rate, _) => Some(rate.bits_per_second()),
        }
    }

    /// The credit that a packet's transmission costs at the send slope, rounded up, and what is earned in that time at the
    /// idle slope, rounded down. Together they are all bits of the packet if the slopes are those of the port.
    fn transmission(&self, length: u32) -> (i128, i128) {
        let Work(bits) = bucket::cost(length, &self.wire.overhead, Bytes::new(0));
        let Some(port) = self.port() else { return (saturated(bits), 0) };
        let idle = self.config.idle_slope.bits_per_second();
        let send = self.config.send_slope.map_or(port.saturating_sub(idle), Rate::bits_per_second);
        // Below 2⁶⁶ · 2⁶⁴: what does not fit is more than the arithmetic holds, too.
        let spent = bits.saturating_mul(send.into()).div_ceil(port.into());
        (saturated(spent), saturated(bits.saturating_mul(idle.into()) / u128::from(port)))
    }

    /// The credit at `now`, which must not be before the last change.
    fn credit(&self, now: Time) -> i128 {
        if self.credit >= 0 {
            return self.credit;
        }
        let Work(earned) = Work::done(self.config.idle_slope, now.since(self.since));
        // Instants are whole nanoseconds: what is earned within one is not lost.
        let most = signed(self.config.high) + i128::from(self.config.idle_slope.bits_per_second());
        self.credit.saturating_add(saturated(earned)).min(most)
    }

    /// The first instant at which a packet may be sent.
    fn when(&self) -> Time {
        let missing = if self.credit < 0 { self.credit.unsigned_abs() } else { 0 };
        let nanos = missing.div_ceil(self.config.idle_slope.bits_per_second().into());
        let wait = u64::try_from(nanos).map_or(Duration::MAX, Duration::from_nanos);
        (self.since + wait).max(self.busy_until)
    }
}

fn saturated(credit: u128) -> i128 {
    i128::try_from(credit).unwrap_or(i128::MAX)
}

/// Credit, at most 2⁹⁶.
fn signed(bytes: Bytes) -> i128 {
    i128::from(bytes.get()) * 8_000_000_000
}

impl Scheduler for Cbs {
    type Flow = ();

    fn join(&mut self, _flow: FlowConfig) -> Result<(), Refused> {
        self.flow.join()
    }

    fn leave(&mut self, _flow: FlowId, _flows: &mut Flows<()>) {
        self.flow.leave();
    }

    fn enqueue(&mut self, now: Time, flow: FlowId, flows: &mut Flows<()>) {
        // In idle time it has not grown above zero.
        if flows.packets(flow) == 1 && self.credit(now) > 0 {
            self.credit = 0;
            self.since = now;
        }
    }

    fn select(&mut self, now: Time, flows: &mut Flows<()>) -> Selection {
        if flows.waiting() == 0 {
            return Selection::Empty;
        }
        let at = self.when();
        if at <= now {
            return Selection::Flow(FlowId::new(0));
        }
        if self.waited != Some(at) {
            self.waited = Some(at);
            self.state.over_limit += 1;
        }
        Selection::NotBefore(at)
    }

    fn sent(&mut self, now: Time, _flow: FlowId, length: u32, _flows: &mut Flows<()>) {
        let (spent, earned) = self.transmission(length);
        let least = self.config.low.map_or(i128::MIN / 2, |low| -signed(low));
        let at_its_end = self.credit(now).saturating_sub(spent).max(least);
        self.credit = if at_its_end < 0 { at_its_end.saturating_sub(earned) } else { at_its_end };
        self.since = now;
        if let Some(port) = self.port() {
            let Work(work) = bucket::cost(length, &self.wire.overhead, Bytes::new(0));
            let takes = u64::try_from(work / u128::from(port)).unwrap_or(u64::MAX);
            self.busy_until = now + Duration::from_nanos(takes);
        }
        self.state.sent.add(length);
        self.state.lent += 1;
    }

    fn head_dropped(&mut self, _now: Time, _flow: FlowId, _flows: &mut Flows<()>) {}

    fn set_wire(&mut self, _now: Time, wire: Wire) {
        self.wire = wire;
    }

    /// One class; its tokens are the credit, in nanoseconds at the idle slope.
    fn states(&self, now: Time, flows: &Flows<()>) -> Vec<ClassState> {
        let waits = flows.waiting() > 0 && self.when() > now;
        let mode = if waits { Mode::CannotSend } else { Mode::MaySend };
        let nanos = self.credit(now) / i128::from(self.config.idle_slope.bits_per_second());
        let tokens = nanos.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        vec![ClassState::Shaped(ShapedState { mode, tokens, ..self.state })]
    }
}

impl Default for CbsConfig {
    /// 1 Mbit/s, without credit above zero.
    fn default() -> Self {
        Self {
            idle_slope: Rate::from_bits_per_second(1_000_000),
            send_slope: None,
            high: Bytes::new(0),
            low: None,
        }
    }
}
