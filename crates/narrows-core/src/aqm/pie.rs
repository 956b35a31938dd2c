//! PIE, "proportional integral controller enhanced" (Pan, Natarajan, Baker, White: RFC 8033).
//!
//! Arriving packets are dropped (or marked) with a probability p that a controller moves every `update`, from how far the
//! queue's delay is from the target and how much it has changed since, in seconds:
//!
//! ```text
//! p ← p + (α·(delay − target) + β·(delay − delay before)) / s        s = 2048 … 1, less the greater p is
//! p ← 0.98·p                                                          if both delays are zero
//! ```
//!
//! No packet is dropped while p is small and the delay was below half the target (`p < 0.2`), while no more than two
//! packets' worth of bytes wait, and during the burst allowance, which is granted anew whenever there is no congestion at
//! all and runs out with time.
//!
//! This is the RFC's basic pseudocode (appendix A) with ECN (section 5.1). Three refinements are there for who asks:
//! - **Drops at even distances** ([`PieConfig::derandomize`]; section 5.4): the probabilities of the packets let in since the
//!   last drop or mark are added up. While the sum, with that of the arriving one, is below 0.85, it is let in; from 8.5 on it is
//!   dropped (or marked); between, it is with probability p.
//! - **No sudden jumps** ([`PieConfig::cap_drop`]; section 5.5): from p = 0.1 on it rises by at most 0.02 at an update.
//! - **More at long delays** ([`PieConfig::high_delay_boost`]): above such a delay p rises by 0.02 more at each update. It is in
//!   Linux, at 250 ms.
//!
//! Linux and Dummynet have the first two unless told otherwise. Switching off (section 5.3) is not here. What the RFC leaves
//! open, or where this differs:
//! - The queue's delay is how long the packet at the head has waited, at the instant of an update: the time stamp option.
//!   Appendix A keeps the delay of the packet that departed last, which goes stale: with nothing more to send it stays
//!   what it was, and p goes up in an empty queue. (Linux sets it to zero there.) Little's law, the other option, would
//!   need the rate at which this very queue is served, which in a class of a scheduler is not the wire's.
//! - Updates are at the whole multiples of `update` since the start of the run, before whatever else is at that instant.
//!   They are made up for at the next call, exactly as they would have been made in time, as the queue was then what it is
//!   before that call. (One exception: what a full scheduler drops from the longest of its flows is seen only at the next
//!   call, as if it had been gone since the last one.) Once p cannot move any more, the rest of them is skipped.
//! - The mean packet of "two packets' worth" is not given in the RFC; 1024 bytes are from RFC 8034.
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

use alloc::sync::Arc;
use core::ops::{Range, RangeInclusive};

use crate::aqm::periodic::Periodic;
use crate::aqm::{Aqm, Judgement, Waiting};
use crate::pool::PacketRef;
use crate::queue::{Context, Wire};
use crate::time::{Duration, Time};
use crate::units::{Bytes, Probability};

/// The parameters of PIE.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PieConfig {
    /// The delay to hold. 1 µs to 10 s. 15 ms.
    pub target: Duration,
    /// How often the probability moves. 1 ms (which less is taken to be) to 10 s. 15 ms. The RFC wants α halved and β raised by α/4 where this is
    /// halved.
    pub update: Duration,
    /// The gain of the deviation from the target, α, in hertz, in [`PieConfig::ALPHA`]. 0.125.
    pub alpha: f64,
    /// The gain of the change, β, in hertz, in [`PieConfig::BETA`]. 1.25.
    pub beta: f64,
    /// For how long the beginning of a burst is let pass. 150 ms; zero for none.
    pub burst: Duration,
    /// The mean packet: while no more than two of these wait, none is dropped. 1024 bytes.
    pub mean_packet: Bytes,
    /// Whether packets that can be marked are marked instead of dropped. Yes.
    pub ecn: bool,
    /// At this probability and above they are dropped even so. 10 %.
    pub max_ecn_threshold: Probability,
    /// Whether drops come at even distances. No.
    pub derandomize: bool,
    /// Whether the probability, from 10 % on, rises by no more than 2 % at an update. No.
    pub cap_drop: bool,
    /// Above this delay it rises by 2 % more at each update. Up to 10 s; never.
    pub high_delay_boost: Option<Duration>,
}

impl PieConfig {
    /// What α may be. Not less, so that p moves in all states and updates can be made up for in bounded time.
    pub const ALPHA: RangeInclusive<f64> = 0.001..=100.0;
    /// What β may be.
    pub const BETA: RangeInclusive<f64> = 0.0..=1000.0;
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
        }
    }
}

/// PIE for one FIFO. Queues may share their parameters; what each has of its own is 40 bytes.
#[derive(Clone, Debug)]
pub struct Pie {
    config: Arc<PieConfig>,
    /// That of dropping an arriving packet.
    probability: f64,
    /// The delay at the last update.
    old_delay: Duration,
    /// The number of the last update, or `NOT_BEGUN`.
    updates: u64,
    /// How many there were since bursts were last allowed.
    since_grant: u32,
    /// The probabilities of the packets that were let in since the last drop or mark, added up, in 2⁻²⁸: `accu_prob_` in the
    /// RFC.
    accumulated: u32,
}

const NOT_BEGUN: u64 = u64::MAX;
/// Probabilities are added up in 2⁻²⁸: of 10⁻⁶ at least, they are so within 0.2 %.
const UNITS_OF_ONE: f64 = 268_435_456.0;
/// Below 0.85 no packet is dropped, and from 8.5 on the next one is.
const EVEN: Range<u32> = (0.85 * UNITS_OF_ONE) as u32..(8.5 * UNITS_OF_ONE) as u32;
/// By how much the probability rises where that is bounded, or more where the delay is long.
const STEP: f64 = 0.02;

impl Pie {
    /// A policy for one queue. Hand in an `Arc` to share the parameters.
    pub fn new(config: impl Into<Arc<PieConfig>>) -> Self {
        let config = config.into();
        let old_delay = Duration::ZERO;
        Self { config, probability: 0.0, old_delay, updates: NOT_BEGUN, since_grant: 0, accumulated: 0 }
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

    /// For how much longer bursts are let pass.
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

    /// What becomes of a packet that is not spared, with a number drawn from 0 to 1: the end of `drop_early` in the RFC.
    fn lets_in(&mut self, drawn: f64) -> bool {
        if !self.config.derandomize {
            return drawn >= self.probability;
        }
        // At most 9.5: far from the greatest number.
        let own = (self.probability * UNITS_OF_ONE + 0.5) as u32;
        let sum = if self.probability == 0.0 { 0 } else { self.accumulated + own };
        let lets_in = sum < EVEN.start || sum < EVEN.end && drawn >= self.probability;
        self.accumulated = if lets_in { sum } else { 0 };
        lets_in
    }
}

/// By how much smaller the controller's steps are while the probability is small.
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
        if self.probability == 0.0 && self.is_short(delay) && self.is_short(self.old_delay) {
            self.since_grant = 0;
        }
        if self.is_spared(waiting) || self.lets_in(context.draw_at_arrival(packet).uniform()) {
            return Judgement::Pass;
        }
        let marks = self.config.ecn && self.probability < self.config.max_ecn_threshold.as_f64();
        Judgement::congestion(marks, context.pool.get(packet))
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
