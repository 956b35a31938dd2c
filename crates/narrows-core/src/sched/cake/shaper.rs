//! The shaper: the instant at which the next packet may go.

use crate::time::{Duration, Time};
use crate::units::Rate;

/// A shaper without bursts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shaper {
    rate: Rate,
    /// When the next packet may go, and the rest of that nanosecond, in 1/rate.
    next: Time,
    rest: u64,
    /// The same, if only packets that were sent counted, 1.5 times each.
    failsafe: Time,
}

impl Shaper {
    pub(super) const fn new(rate: Rate) -> Self {
        Self { rate, next: Time::ZERO, rest: 0, failsafe: Time::ZERO }
    }

    pub(super) const fn set_rate(&mut self, rate: Rate) {
        (self.rate, self.rest) = (rate, 0);
    }

    /// When the next packet may go.
    pub(super) fn due(&self) -> Time {
        let next = self.next + Duration::from_nanos((self.rest > 0).into());
        next.min(self.failsafe)
    }

    /// A packet arrives at an empty queue. Time that has passed unused is no credit.
    pub(super) fn restart(&mut self, now: Time) {
        if self.next < now {
            (self.next, self.rest, self.failsafe) = (now, 0, now);
        }
    }

    /// Counts a packet of this length. The rate must not be unlimited.
    pub(super) fn charge(&mut self, length: u64, dropped: bool) {
        let rate = rate(self.rate);
        let work = bits(length) + u128::from(self.rest);
        // Below 2⁵⁴: a packet is below 2¹⁷ bytes.
        let took = (work / u128::from(rate)) as u64;
        self.rest = (work % u128::from(rate)) as u64;
        self.next = self.next + Duration::from_nanos(took);
        if !dropped {
            self.failsafe = self.failsafe + Duration::from_nanos(took + took / 2);
        }
    }
}

/// The time of this many bytes.
pub(super) fn time_of(length: u64, at: Rate) -> Duration {
    Duration::from_nanos((bits(length) / u128::from(rate(at))) as u64)
}

/// Bits times 10⁹.
fn bits(length: u64) -> u128 {
    u128::from(length) * 8_000_000_000
}

/// 64 bytes per second at least, as in Linux: also a small part of a low bandwidth passes packets.
fn rate(rate: Rate) -> u64 {
    rate.bits_per_second().max(512)
}
