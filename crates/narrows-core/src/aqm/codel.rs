//! CoDel, "controlled delay" (Nichols, Jacobson, McGregor, Iyengar: RFC 8289).
//!
//! A packet's sojourn time is the time from its enqueue to its dequeue. If all sojourn times during an `interval` are
//! at least `target`, there is a standing queue, and CoDel starts to drop (or mark) packets as they depart. The next
//! drop after each one is due at
//!
//! ```text
//! control law:  next = last due + interval / √count
//! ```
//!
//! `count` is the number of drops since dropping began. Dropping ends when a sojourn time is below the target, or
//! when no more than one packet's worth of bytes is left in the queue. If dropping begins again soon, it resumes at
//! about the same rate.
//!
//! This is the pseudocode of RFC 8289, section 5, split at the drops: the RFC dequeues and drops in one loop, while
//! here each packet at the head is judged in a separate call, and [`Codel`] remembers why it dropped the previous
//! one. A test runs both side by side. Points that the RFC leaves open, and differences:
//! - Marks. A marked packet passes and ends the loop, as in Linux: `count` and the next due instant advance as for a
//!   drop.
//! - `interval / √count` is in whole nanoseconds, rounded down, and exact: the longest `gap` with
//!   `gap²·count ≤ interval²`. So there is no drift, unlike with Linux's 16-bit Newton step, and a program without
//!   floating point finds the same.
//! - The RFC notices an empty queue when it tries to dequeue. Here the next arrival notices it. The result is the
//!   same after a departure, and also correct if something else emptied the queue.
//! - Instants are scheduled ones. The RFC reads a clock.
//! - [`CodelConfig::ce_threshold`] is Linux's: a packet that passes is marked if its sojourn time is above the
//!   threshold, whatever the control law says.
//!
//! CoDel does not hold its target against load that does not respond to drops. This is by design: see the test
//! `unresponsive_overload_is_not_held_at_the_target`.
//!
//! ```
//! use narrows_core::aqm::{Codel, CodelConfig};
//! use narrows_core::queue::{Bound, DropAt, Fifo};
//!
//! let policy = Codel::new(CodelConfig::default()); // 5 ms, 100 ms
//! let queue = Fifo::managed(Bound::Packets(1000), DropAt::Tail, Box::new(policy));
//! ```

use alloc::sync::Arc;

use crate::aqm::{Aqm, AqmSettings, Judgement, Waiting, sojourn};
use crate::packet::FlowKey;
use crate::pool::{PacketRef, PacketState};
use crate::queue::Context;
use crate::time::{Duration, Time};
use crate::units::Bytes;

/// The parameters of CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelConfig {
    /// The acceptable sojourn time of a standing queue. At least 1 µs; usually below `interval`. Default: 5 ms.
    pub target: Duration,
    /// How long sojourn times must stay at or above the target before CoDel drops: about a worst-case round-trip
    /// time. 1 ms to 100 s. Default: 100 ms.
    pub interval: Duration,
    /// The longest packet. If no more than this many bytes are left in the queue, there is no standing queue.
    /// Default: 1500 bytes.
    pub longest: Bytes,
    /// Mark ECN-capable packets instead of dropping them. Default: true.
    pub ecn: bool,
    /// Mark every ECN-capable packet that has waited for longer than this. Default: none.
    pub ce_threshold: Option<Duration>,
    /// Only mark by `ce_threshold` if the traffic class (DSCP and ECN), masked by the second number, is the first.
    /// Default: none, so all are marked.
    pub ce_match: Option<(u8, u8)>,
}

impl CodelConfig {
    /// Whether a packet is marked because it has waited for too long.
    fn is_late(&self, now: Time, packet: &PacketState) -> bool {
        let selected = self.ce_match.is_none_or(|(value, mask)| packet.key.traffic_class & mask == value);
        packet.key.ecn() != FlowKey::NOT_ECN_CAPABLE
            && selected
            && self.ce_threshold.is_some_and(|threshold| sojourn(now, packet) > threshold)
    }
}

impl Default for CodelConfig {
    fn default() -> Self {
        Self {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            longest: Bytes::new(1500),
            ecn: true,
            ce_threshold: None,
            ce_match: None,
        }
    }
}

/// CoDel for one FIFO. Queues may share parameters; each queue's own state is 40 bytes.
#[derive(Clone, Debug)]
pub struct Codel {
    config: Arc<CodelConfig>,
    /// When there will be a standing queue, if every sojourn time until then is at or above the target. Zero while
    /// sojourn times are below it.
    first_above: Time,
    /// When the next packet is to be dropped, while `dropping`.
    drop_next: Time,
    /// Packets dropped since dropping began, or the value at which it resumed.
    count: u32,
    /// The value of `count` when dropping last began.
    last_count: u32,
    dropping: bool,
    /// What was done to the packet before this one, at the same instant.
    after: After,
}

/// What was done to the previous packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// It passed.
    Departure,
    /// It was dropped because dropping began. This packet passes in any case.
    FirstDrop,
    /// It was dropped because a drop was due. The next drop is scheduled if this packet is still late.
    DueDrop,
}

impl Codel {
    /// A policy for one queue. Pass an `Arc` to share the parameters.
    pub fn new(config: impl Into<Arc<CodelConfig>>) -> Self {
        Self {
            config: config.into(),
            first_above: Time::ZERO,
            drop_next: Time::ZERO,
            count: 0,
            last_count: 0,
            dropping: false,
            after: After::Departure,
        }
    }

    /// Whether sojourn times have been above the target for an interval. `left` bytes wait behind the packet.
    fn may_drop(&mut self, now: Time, packet: &PacketState, left: u64) -> bool {
        if sojourn(now, packet) < self.config.target || left <= self.config.longest.get() {
            self.first_above = Time::ZERO;
            return false;
        }
        if self.first_above == Time::ZERO {
            self.first_above = now + self.config.interval;
            return false;
        }
        now >= self.first_above
    }

    /// Starts dropping.
    fn begin(&mut self, now: Time) {
        // If the last dropping phase had more than one drop and was recent, its rate is a good one to start with.
        let recent = now.nanos()
            < self.drop_next.nanos().saturating_add(self.config.interval.nanos().saturating_mul(16));
        let drops = self.count.wrapping_sub(self.last_count);
        self.count = if drops > 1 && recent { drops } else { 1 };
        self.last_count = self.count;
        self.drop_next = self.control_law(now);
        self.dropping = true;
    }

    /// Judges the packet at the head by the control law. `left` bytes wait behind it.
    fn judge(&mut self, now: Time, packet: &PacketState, left: u64) -> Judgement {
        let may_drop = self.may_drop(now, packet, left);
        let congestion = Judgement::congestion(self.config.ecn, packet);

        match core::mem::replace(&mut self.after, After::Departure) {
            After::FirstDrop => return Judgement::Pass,
            After::DueDrop if may_drop => self.drop_next = self.control_law(self.drop_next),
            After::Departure if !self.dropping && may_drop => {
                self.begin(now);
                if congestion == Judgement::Drop {
                    self.after = After::FirstDrop;
                }
                return congestion;
            }
            After::DueDrop | After::Departure => self.dropping &= may_drop,
        }
        if !self.dropping || now < self.drop_next {
            return Judgement::Pass;
        }
        self.count = self.count.saturating_add(1);
        match congestion {
            Judgement::Drop => self.after = After::DueDrop,
            _ => self.drop_next = self.control_law(self.drop_next),
        }
        congestion
    }

    fn control_law(&self, last: Time) -> Time {
        last + Duration::from_nanos(gap(self.config.interval.nanos(), self.count))
    }
}

/// `interval / √count` nanoseconds, rounded down. `count` is not 0.
fn gap(interval: u64, count: u32) -> u64 {
    // Floating point is at most one off.
    let near = (interval as f64 / libm::sqrt(f64::from(count))) as u64;
    let square = |number: u64| u128::from(number) * u128::from(number);
    let is_short =
        |gap: u64| square(gap).checked_mul(count.into()).is_some_and(|gap| gap <= square(interval));
    match is_short(near) {
        true if is_short(near + 1) => near + 1,
        true => near,
        false => near - 1,
    }
}

impl Aqm for Codel {
    fn settings(&self) -> Option<AqmSettings> {
        Some(self.config.clone())
    }

    fn arrive(
        &mut self,
        _now: Time,
        _packet: PacketRef,
        waiting: Waiting,
        _context: &mut Context<'_>,
    ) -> Judgement {
        if waiting.backlog.packets == 0 {
            // Whatever emptied the queue, its delay is no longer above the target. The next departure ends dropping.
            self.first_above = Time::ZERO;
        }
        Judgement::Pass
    }

    fn depart(
        &mut self,
        now: Time,
        packet: PacketRef,
        waiting: Waiting,
        context: &mut Context<'_>,
    ) -> Judgement {
        let packet = context.pool.get(packet);
        let left = waiting.backlog.bytes.saturating_sub(packet.length.into());
        match self.judge(now, packet, left) {
            Judgement::Pass if self.config.is_late(now, packet) => Judgement::Mark,
            judgement => judgement,
        }
    }
}

#[cfg(test)]
mod tests;
