//! PIE, "proportional integral controller enhanced" (Pan, Natarajan, Baker, White: RFC 8033).
//!
//! PIE drops (or marks) arriving packets with a probability p. A controller adjusts p every `update`, from the
//! deviation of the queueing delay from the target and from the change of the delay, in seconds:
//!
//! ```text
//! p ← p + (α·(delay − target) + β·(delay − delay before)) / s        s = 2048 … 1, less the greater p is
//! p ← 0.98·p                                                          if both delays are zero
//! ```
//!
//! No packet is dropped in any of these cases: the delay was below half the target and p is small (`p < 0.2`); no
//! more than two packets' worth of bytes wait; the burst allowance is not used up. The burst allowance is renewed
//! whenever there is no congestion, and expires with time.
//!
//! This is the RFC's basic pseudocode (appendix A) with ECN (section 5.1). Three refinements are optional:
//! - **Evenly spaced drops** ([`PieConfig::derandomize`]; section 5.4): sum the probabilities of the packets accepted
//!   since the last drop or mark. While the sum, including the arriving packet's, is below 0.85, the packet is
//!   accepted. From 8.5 on it is dropped (or marked). In between it is dropped with probability p.
//! - **No sudden jumps** ([`PieConfig::cap_drop`]; section 5.5): from p = 0.1 on, p rises by at most 0.02 per update.
//! - **Boost at high delay** ([`PieConfig::high_delay_boost`]): above this delay, p rises by an additional 0.02 per
//!   update. Linux has this, at 250 ms.
//!
//! - **Byte mode** ([`PieConfig::byte_mode`]): a packet shorter than the mean packet is dropped less often, in
//!   proportion to its length. Linux has this (`bytemode`).
//! - **Departure rate** ([`MeasuredPie`]; section 4.3): the delay is the backlog divided by an estimate of the rate at
//!   which the queue drains, by Little's law. Linux has this (`dq_rate_estimator`).
//!
//! Linux and Dummynet enable the first two by default. Turning PIE on and off (section 5.3) is not implemented.
//! Points that the RFC leaves open, and differences:
//! - The queueing delay is how long the packet at the head has waited at the instant of an update (the timestamp
//!   option). Appendix A keeps the delay of the last departure, which goes stale: with nothing more to send it keeps
//!   its value, and p rises in an empty queue. (Linux sets it to zero there.) The other option, Little's law, is that of
//!   [`MeasuredPie`].
//! - Updates happen at whole multiples of `update` since the start of the run, before anything else at that instant.
//!   They are caught up at the next call, with exactly the results that they would have had on time, because the
//!   queue has not changed since. (One exception: if a full scheduler drops packets of its longest flow, PIE sees
//!   that only at the next call, as if they had been gone since the previous one.) Once p can no longer change, the
//!   remaining updates are skipped.
//! - The RFC does not give the mean packet of "two packets' worth"; 1024 bytes is from RFC 8034.
//!
//! Floating point is used for + − × ÷ only, so all machines agree.
//!
//! ```
//! use narrows_core::aqm::{Pie, PieConfig};
//! use narrows_core::queue::{Bound, DropAt, Fifo};
//!
//! let policy = Pie::new(PieConfig::default()); // 15 ms
//! let queue = Fifo::managed(Bound::Packets(1000), DropAt::Tail, Box::new(policy));
//! ```

mod measured;

pub use measured::MeasuredPie;

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::ops::{Range, RangeInclusive};

use crate::aqm::periodic::Periodic;
use crate::aqm::{Aqm, AqmSettings, Judgement, Waiting};
use crate::pool::PacketRef;
use crate::queue::{Context, Wire};
use crate::time::{Duration, Time};
use crate::units::{Bytes, Probability};

/// The parameters of PIE.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PieConfig {
    /// The target delay. 1 µs to 10 s. Default: 15 ms.
    pub target: Duration,
    /// Interval between updates of the probability. 1 ms to 10 s; less is treated as 1 ms. Default: 15 ms. If you
    /// halve it, the RFC recommends to halve α and to raise β by α/4.
    pub update: Duration,
    /// Gain of the deviation from the target, α, in hertz. Range: [`PieConfig::ALPHA`]. Default: 0.125.
    pub alpha: f64,
    /// Gain of the change of the delay, β, in hertz. Range: [`PieConfig::BETA`]. Default: 1.25.
    pub beta: f64,
    /// Burst allowance: no drops for this long. Default: 150 ms; zero for none.
    pub burst: Duration,
    /// The mean packet length: no drops while no more than two such packets wait. Default: 1024 bytes.
    pub mean_packet: Bytes,
    /// Mark ECN-capable packets instead of dropping them. Default: true.
    pub ecn: bool,
    /// At or above this drop probability, drop even ECN-capable packets. Default: 10 %.
    pub max_ecn_threshold: Probability,
    /// Space drops evenly. Default: false.
    pub derandomize: bool,
    /// Limit the rise of the probability to 2 % per update once it has reached 10 %. Default: false.
    pub cap_drop: bool,
    /// Above this delay, raise the probability by an additional 2 % per update. At most 10 s. Default: none.
    pub high_delay_boost: Option<Duration>,
    /// Multiply the probability by a packet's length divided by `mean_packet`, for shorter packets. Default: false.
    pub byte_mode: bool,
    /// Compute the delay from the backlog and the measured departure rate: [`PieConfig::policy`] makes a
    /// [`MeasuredPie`]. Default: false.
    pub departure_rate: bool,
}

impl PieConfig {
    /// Range of α. The minimum ensures that p changes in all states, so that updates can be caught up in bounded
    /// time.
    pub const ALPHA: RangeInclusive<f64> = 0.001..=100.0;
    /// Range of β.
    pub const BETA: RangeInclusive<f64> = 0.0..=1000.0;

    /// A policy with these parameters for one queue: [`Pie`], or [`MeasuredPie`].
    pub fn policy(self: &Arc<Self>) -> Box<dyn Aqm> {
        match self.departure_rate {
            true => Box::new(MeasuredPie::new(Arc::clone(self))),
            false => Box::new(Pie::new(Arc::clone(self))),
        }
    }
}

impl Default for PieConfig {
    fn default() -> Self {
        Self {
            target: Duration::from_millis(15),
            update: Duration::from_millis(15),
            alpha: 0.125,
            beta: 1.25,
            burst: Duration::from_millis(150),
            mean_packet: Bytes::new(1024),
            ecn: true,
            max_ecn_threshold: Probability::from_ratio(1, 10).expect("a tenth is a probability"),
            derandomize: false,
            cap_drop: false,
            high_delay_boost: None,
            byte_mode: false,
            departure_rate: false,
        }
    }
}

/// PIE for one FIFO. Queues may share parameters; each queue's own state is 40 bytes.
#[derive(Clone, Debug)]
pub struct Pie {
    config: Arc<PieConfig>,
    /// The probability of dropping an arriving packet.
    probability: f64,
    /// The delay at the last update.
    old_delay: Duration,
    /// The number of the last update, or `NOT_BEGUN`.
    updates: u64,
    /// Number of updates since the burst allowance was last renewed.
    since_grant: u32,
    /// Sum of the probabilities of the packets accepted since the last drop or mark, in 2⁻²⁸: `accu_prob_` in the
    /// RFC.
    accumulated: u32,
}

const NOT_BEGUN: u64 = u64::MAX;
/// Probabilities are summed in units of 2⁻²⁸: from 10⁻⁶ on, the error is within 0.2 %.
const UNITS_OF_ONE: f64 = 268_435_456.0;
/// No packet is dropped below 0.85, and the next one is dropped from 8.5 on.
const EVEN: Range<u32> = (0.85 * UNITS_OF_ONE) as u32..(8.5 * UNITS_OF_ONE) as u32;
/// Maximum rise of the probability per update with `cap_drop`, and additional rise at high delay.
const STEP: f64 = 0.02;

impl Pie {
    /// A policy for one queue. Pass an `Arc` to share the parameters.
    pub fn new(config: impl Into<Arc<PieConfig>>) -> Self {
        let config = config.into();
        let old_delay = Duration::ZERO;
        Self { config, probability: 0.0, old_delay, updates: NOT_BEGUN, since_grant: 0, accumulated: 0 }
    }

    /// Judges an arriving packet, after all updates, where the present queueing delay is `delay`.
    fn judge(
        &mut self,
        packet: PacketRef,
        delay: Duration,
        waiting: Waiting,
        context: &mut Context<'_>,
    ) -> Judgement {
        if self.probability == 0.0 && self.is_short(delay) && self.is_short(self.old_delay) {
            self.since_grant = 0;
        }
        let probability = self.probability_of(context.pool.get(packet).length);
        if self.is_spared(waiting) || self.lets_in(probability, context.draw_at_arrival(packet).uniform()) {
            return Judgement::Pass;
        }
        let marks = self.config.ecn && self.probability < self.config.max_ecn_threshold.as_f64();
        Judgement::congestion(marks, context.pool.get(packet))
    }

    /// The probability of dropping a packet of this length.
    fn probability_of(&self, length: u32) -> f64 {
        let (length, mean) = (u64::from(length), self.config.mean_packet.get());
        match self.config.byte_mode && length < mean {
            true => self.probability * length as f64 / mean as f64,
            false => self.probability,
        }
    }

    fn begin(&mut self, now: Time) {
        if self.updates == NOT_BEGUN {
            self.updates = self.number(now);
        }
    }

    /// Whether the delay is below half the target.
    fn is_short(&self, delay: Duration) -> bool {
        delay + delay < self.config.target
    }

    /// The remaining burst allowance.
    fn burst_left(&self) -> Duration {
        let passed = self.period().nanos().saturating_mul(self.since_grant.into());
        self.config.burst.saturating_sub(Duration::from_nanos(passed))
    }

    /// Whether an arriving packet must not be dropped, whatever the probability.
    fn is_spared(&self, waiting: Waiting) -> bool {
        self.burst_left() > Duration::ZERO
            || self.is_short(self.old_delay) && self.probability < 0.2
            || waiting.backlog.bytes <= 2 * self.config.mean_packet.get()
    }

    /// Whether to accept a packet that may be dropped with this probability, given a uniform draw from 0 to 1: the end
    /// of `drop_early` in the RFC.
    fn lets_in(&mut self, probability: f64, drawn: f64) -> bool {
        if !self.config.derandomize {
            return drawn >= probability;
        }
        // At most 9.5, so there is no overflow.
        let own = (probability * UNITS_OF_ONE + 0.5) as u32;
        let sum = if probability == 0.0 { 0 } else { self.accumulated + own };
        let lets_in = sum < EVEN.start || sum < EVEN.end && drawn >= probability;
        self.accumulated = if lets_in { sum } else { 0 };
        lets_in
    }
}

/// The divisor of the controller's steps, larger for small probabilities.
const fn scale(probability: f64) -> f64 {
    match probability {
        p if p < 0.000_001 => 2048.0,
        p if p < 0.000_01 => 512.0,
        p if p < 0.000_1 => 128.0,
        p if p < 0.001 => 32.0,
        p if p < 0.01 => 8.0,
        p if p < 0.1 => 2.0,
        _ => 1.0,
    }
}

impl Periodic for Pie {
    fn period(&self) -> Duration {
        self.config.update.max(Duration::from_millis(1))
    }

    fn updates(&mut self) -> &mut u64 {
        &mut self.updates
    }

    /// `calculate_drop_prob` in the RFC.
    fn update(&mut self, delay: Duration) -> bool {
        let before = (self.probability, self.old_delay);
        let PieConfig { target, alpha, beta, cap_drop, high_delay_boost, .. } = *self.config;
        let deviation = delay.seconds() - target.seconds();
        let change = delay.seconds() - self.old_delay.seconds();
        let mut step = (alpha * deviation + beta * change) / scale(self.probability);
        if cap_drop && self.probability >= 0.1 {
            step = step.min(STEP);
        }
        if high_delay_boost.is_some_and(|steep| delay > steep) {
            step += STEP;
        }
        let mut probability = self.probability + step;
        if delay == Duration::ZERO && self.old_delay == Duration::ZERO {
            probability *= 0.98;
        }
        self.probability = probability.clamp(0.0, 1.0);
        self.leave_out(1, delay);
        match delay {
            Duration::ZERO => (self.probability, self.old_delay) == before,
            delay => self.probability >= 1.0 && delay >= target,
        }
    }

    fn leave_out(&mut self, updates: u64, delay: Duration) {
        self.since_grant = self.since_grant.saturating_add(u32::try_from(updates).unwrap_or(u32::MAX));
        self.old_delay = delay;
    }
}

impl Aqm for Pie {
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
        self.begin(now);
        self.catch_up(now, waiting.oldest);
        let delay = waiting.oldest.map_or(Duration::ZERO, |oldest| now.since(oldest));
        self.judge(packet, delay, waiting, context)
    }

    fn depart(
        &mut self,
        now: Time,
        _packet: PacketRef,
        waiting: Waiting,
        _context: &mut Context<'_>,
    ) -> Judgement {
        self.begin(now);
        self.catch_up(now, waiting.oldest);
        Judgement::Pass
    }

    fn set_wire(&mut self, now: Time, _wire: Wire) {
        self.begin(now);
    }
}

#[cfg(test)]
mod tests;
