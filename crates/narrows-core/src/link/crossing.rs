//! A link whose delay line is in another engine: see [`Crossing`](crate::Crossing).

use super::constant::Delay;
use super::waiting::Waiting;
use super::{Link, MtuPolicy};
use crate::counters::Counters;
use crate::pool::{PacketRef, Pool};
use crate::time::{Duration, Time};

impl Link {
    /// The constant delay of a link that only puts packets into its delay line and takes them out when they are due.
    pub(crate) fn crossing_delay(&self) -> Option<Duration> {
        let Delay::Constant(delay) = &self.delay else { return None };
        let skips = self.impairments.as_ref().is_some_and(|impairments| impairments.reorder.is_some());
        let counts = self.settings.line_limit.is_some() || self.gate.is_some() || self.asked.is_some();
        let is_one_queue = matches!(self.queue, Waiting::Single(_));
        (delay.0 > Duration::ZERO && !skips && !counts && !is_one_queue && self.counters.len() == 1)
            .then_some(delay.0)
    }

    /// How long every packet that leaves has been here at least, if senders are told of no other's end.
    pub(crate) fn least_transit(&self) -> Duration {
        let Delay::Constant(delay) = &self.delay else { return Duration::ZERO };
        let skips = self.impairments.as_ref().is_some_and(|impairments| impairments.reorder.is_some());
        let is_one_queue = matches!(self.queue, Waiting::Single(_));
        if skips || is_one_queue || self.settings.mtu.is_some() { Duration::ZERO } else { delay.0 }
    }

    /// Whether it may make copies of packets, or cut them to fragments.
    pub(crate) fn makes_copies(&self) -> bool {
        self.impairments.as_ref().is_some_and(|impairments| impairments.duplication.is_some())
            || self.settings.mtu.is_some_and(|mtu| mtu.policy == MtuPolicy::Fragment)
    }

    /// Takes the first packet out of the delay line, whenever it is due.
    pub(crate) fn take_from_line(&mut self, pool: &mut Pool) -> Option<PacketRef> {
        if self.line.next_due() == Time::NEVER { None } else { self.line.pop(pool) }
    }

    /// Puts a packet that was in the delay line of this link in another engine into this one.
    pub(crate) fn put_in_line_again(&mut self, packet: PacketRef, pool: &mut Pool) {
        let due = pool.get(packet).entered;
        self.line.push(due, packet, pool);
    }

    /// Adds the counters of the same link in another engine, and leaves none there.
    pub(crate) fn take_counters(&mut self, other: &mut Self) {
        for (own, other) in self.counters.iter_mut().zip(&mut other.counters) {
            own.absorb(&core::mem::take::<Counters>(other));
        }
    }
}
