//! CoDel, "controlled delay" (Nichols, Jacobson, McGregor, Iyengar: RFC 8289).
//!
//! A packet's sojourn is the time from its arrival in the queue to its departure. When all sojourns of an `interval` were
//! at least `target`, there is a standing queue, and packets are dropped (or marked) as they depart: the next one is due
//!
//! ```text
//! control law:  next = last due + interval / √count
//! ```
//!
//! after the last, `count` being the drops since this began, until one sojourn is below the target or no more than one
//! packet's worth of bytes is left waiting. When dropping begins again soon, it goes on about where it had been.
//!
//! This is the pseudocode of RFC 8289, section 5, cut at the drops: the RFC dequeues and drops in one loop, here each
//! packet at the head is judged by a call of its own, and [`Codel`] remembers why the one before it was dropped. A test
//! runs both side by side. What the RFC leaves open, or where this differs:
//! - Marks. A packet that is marked goes on and ends the loop, as in Linux: `count` and the next due instant move as they
//!   do for a drop.
//! - `interval / √count` is in whole nanoseconds, rounded down; the root is the correctly rounded one of `libm`, computed
//!   afresh each time, so that nothing drifts as it does with Linux's Newton step on 16 bits.
//! - The RFC notices an empty queue when it tries to dequeue. Here the next arrival does: the same thing after a
//!   departure, which leaves nothing to notice, and right also when something else emptied the queue.
//! - Instants are scheduled ones. The RFC reads a clock.
//!
//! Against load that does not respond to drops CoDel does not keep its target, by design: see the test
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

use crate::aqm::{Aqm, Judgement, Waiting, sojourn};
use crate::pool::{PacketRef, PacketState};
use crate::queue::Context;
use crate::time::{Duration, Time};
use crate::units::Bytes;

/// The parameters of CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelConfig {
    /// The sojourn that is good enough as a standing queue. At least 1 µs, and below `interval`. 5 ms.
    pub target: Duration,
    /// How long sojourns must have been at the target or above: about a worst-case round-trip time. 1 ms to 100 s.
    /// 100 ms.
    pub interval: Duration,
    /// The longest packet: with no more than these bytes left waiting, there is no standing queue. 1500 bytes.
    pub longest: Bytes,
    /// Whether packets that can be marked are marked instead of dropped. Yes.
    pub ecn: bool,
}

impl Default for CodelConfig {
    fn default() -> Self {
        Self {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            longest: Bytes::new(1500),
            ecn: true,
        }
    }
}

/// CoDel for one FIFO. Queues may share their parameters; what each has of its own is 40 bytes.
#[derive(Clone, Debug)]
pub struct Codel {
    config: Arc<CodelConfig>,
    /// When there will be a standing queue if every sojourn is above the target until then; the start of time while
    /// they are below.
    first_above: Time,
    /// When the next packet is to be dropped, while `dropping`.
    drop_next: Time,
    /// Packets dropped since dropping began, or where it took up.
    count: u32,
    /// What `count` was when dropping began last.
    last_count: u32,
    dropping: bool,
    /// Why the packet before this one was dropped, at this very instant.
    after: After,
}

/// What was done to the packet before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// It went on.
    Departure,
    /// It was dropped because dropping began: this one goes on in any case.
    FirstDrop,
    /// It was dropped because its time had come: the next drop is to be scheduled, if this one is still late.
    DueDrop,
}

impl Codel {
    /// A policy for one queue. Hand in an `Arc` to share the parameters.
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

    /// Whether the sojourns have been above the target for an interval. `left` bytes wait behind the packet.
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

    /// Dropping begins.
    fn begin(&mut self, now: Time) {
        // Where it last went on for longer than one drop and not long ago, its rate then is a good one to start with.
        let recent = now.nanos()
            < self.drop_next.nanos().saturating_add(self.config.interval.nanos().saturating_mul(16));
        let drops = self.count.wrapping_sub(self.last_count);
        self.count = if drops > 1 && recent { drops } else { 1 };
        self.last_count = self.count;
        self.drop_next = self.control_law(now);
        self.dropping = true;
    }

    fn control_law(&self, last: Time) -> Time {
        // Exact up to 2⁵³ ns, 104 days. `count` is never 0 here.
        let gap = self.config.interval.nanos() as f64 / libm::sqrt(f64::from(self.count));
        last + Duration::from_nanos(gap as u64)
    }
}

impl Aqm for Codel {
    fn arrive(
        &mut self,
        _now: Time,
        _packet: PacketRef,
        waiting: Waiting,
        _context: &mut Context<'_>,
    ) -> Judgement {
        if waiting.backlog.packets == 0 {
            // Whatever emptied the queue, it was not above the target any more. The next departure ends dropping.
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
}

#[cfg(test)]
mod tests;
