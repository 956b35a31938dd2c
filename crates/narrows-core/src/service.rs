//! How fast the wire sends bits, and how many bits a packet occupies.
//!
//! The transmitter is a service curve C: a transmission that starts at s ends at C⁻¹(C(s) + bits), rounded up
//! to a whole nanosecond. The service lost to rounding is carried over to the next transmission if that
//! starts at once, so a backlogged wire sends at exactly its rate, without gaps. An idle wire saves up
//! nothing.

mod opportunities;
mod steps;

pub use opportunities::Opportunities;
pub use steps::RateSteps;

use core::fmt;

use crate::time::{Duration, Time};
use crate::units::Rate;

/// An amount of service, in billionths of a bit: a rate in bits per second times a time in nanoseconds.
///
/// A packet of 2³² bytes is 3.5·10¹⁹ units, and 584 years at 2⁶⁴ bit/s are 2¹²⁸: products fit in 128 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Work(pub u128);

impl Work {
    /// The work of sending `bits` bits.
    pub const fn bits(bits: u64) -> Self {
        Self(bits as u128 * 1_000_000_000)
    }

    /// The work that `rate` does in `span`.
    pub const fn done(rate: Rate, span: Duration) -> Self {
        Self(rate.bits_per_second() as u128 * span.nanos() as u128)
    }
}

/// The end of a transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finish {
    /// The first whole nanosecond at which all work is done.
    pub at: Time,
    /// The service available up to then beyond the work requested.
    pub surplus: Work,
}

/// A wire's service over time. An extension point: a constant rate, a rate that follows a trace
/// ([`RateSteps`]), instants at which packets may be sent ([`Opportunities`]).
pub trait ServiceCurve: fmt::Debug + Send {
    /// When `work` that starts at `start` is done; `None` if never, because the wire stays down from some
    /// instant on.
    fn finish(&self, start: Time, work: Work) -> Option<Finish>;

    /// The service from `start` to `end`, C(end) − C(start).
    fn served(&self, start: Time, end: Time) -> Work;

    /// The rate around `at`, for bounds, reports and estimates. The queue is told this rate
    /// ([`Queue::set_wire`](crate::queue::Queue::set_wire)) when the curve takes effect and after each
    /// change.
    fn rate(&self, at: Time) -> Rate;

    /// The first instant after `at` from which [`ServiceCurve::rate`] returns another value, or an earlier
    /// instant.
    fn next_change(&self, _at: Time) -> Time {
        Time::NEVER
    }

    /// The rate, if the curve is a [`ConstantRate`]: then a link needs no other method.
    fn constant(&self) -> Option<Rate> {
        None
    }

    /// Whether the surplus of a transmission ([`Finish::surplus`]) also serves a packet that arrives at that
    /// very instant, or only packets that were waiting. With a rate the surplus is the service of the rest of
    /// that nanosecond, so it does. An opportunity for which no packet was waiting is lost.
    fn keeps_surplus(&self) -> bool {
        true
    }
}

/// A constant rate; zero is a wire that is down.
#[derive(Clone, Copy, Debug)]
pub struct ConstantRate(pub Rate);

impl ServiceCurve for ConstantRate {
    #[inline]
    fn finish(&self, start: Time, work: Work) -> Option<Finish> {
        let rate = self.0.bits_per_second();
        if rate == 0 {
            return None; // not even zero bits
        }
        if self.0 == Rate::UNLIMITED || work.0 == 0 {
            return Some(Finish { at: start, surplus: Work::default() });
        }
        let (nanos, surplus) = match u64::try_from(work.0) {
            Ok(work) => {
                let nanos = work.div_ceil(rate);
                // The surplus is below `rate`, so the bits that the product loses beyond 64 cancel in the
                // difference.
                (nanos, Work(nanos.wrapping_mul(rate).wrapping_sub(work).into()))
            }
            Err(_) => {
                // Saturates only for an end beyond 584 years, which no run reaches.
                let nanos = u64::try_from(work.0.div_ceil(u128::from(rate))).unwrap_or(u64::MAX);
                let done = Work::done(self.0, Duration::from_nanos(nanos));
                (nanos, Work(done.0.saturating_sub(work.0)))
            }
        };
        Some(Finish { at: start + Duration::from_nanos(nanos), surplus })
    }

    fn served(&self, start: Time, end: Time) -> Work {
        Work::done(self.0, end.since(start))
    }

    fn rate(&self, _at: Time) -> Rate {
        self.0
    }

    fn constant(&self) -> Option<Rate> {
        Some(self.0)
    }
}

/// What a packet occupies on the wire beyond its network-layer bytes.
///
/// Computed in this order: the bytes that count (from the network header or from the link header on), plus
/// `extra`, at least `minimum`, then rounded up to whole cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overhead {
    /// Count the packet's link header.
    pub link_header: bool,
    /// Bytes added to each packet; negative if the modelled wire carries fewer. The sum is never below zero.
    pub extra: i32,
    /// The minimum number of bytes that a packet occupies (tc's "minimum packet unit", MPU).
    pub minimum: u32,
    /// Cells that the packet is segmented into.
    pub cells: Option<Cells>,
}

/// Fixed-size cells, each with a header: ATM has 48 bytes of payload in 53.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cells {
    /// Payload bytes per cell, at least 1.
    pub payload: u32,
    /// Bytes per cell on the wire.
    pub size: u32,
}

impl Overhead {
    /// The IP packet alone: what iperf's headers-included rate and most papers count. The default.
    pub const IP: Self = Self { link_header: false, extra: 0, minimum: 0, cells: None };
    /// The frame without its check sequence: what Linux qdiscs count.
    pub const FRAME: Self = Self { link_header: true, ..Self::IP };
    /// Ethernet on the wire: frame and check sequence (4), at least 64 bytes, plus preamble (8) and gap (12).
    pub const ETHERNET: Self = Self { link_header: true, extra: 24, minimum: 84, cells: None };
    /// ATM with AAL5 (ITU-T I.363.5): a trailer of 8 bytes, then cells of 48 payload bytes in 53.
    pub const ATM: Self =
        Self { link_header: false, extra: 8, minimum: 0, cells: Some(Cells { payload: 48, size: 53 }) };

    /// The bits that the packet occupies on the wire.
    pub const fn bits(&self, length: u32, link_header: u8) -> u64 {
        let counted = length as i64 + if self.link_header { link_header as i64 } else { 0 };
        let sum = counted + self.extra as i64;
        let bytes = if sum < self.minimum as i64 { self.minimum as i64 } else { sum };
        let bytes = if bytes < 0 { 0 } else { bytes as u64 };
        8 * match self.cells {
            None => bytes,
            Some(cell) => bytes.div_ceil(cell.payload as u64) * cell.size as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finish(rate: u64, bits: u64) -> (u64, u128) {
        let finish =
            ConstantRate(Rate::from_bits_per_second(rate)).finish(Time::ZERO, Work::bits(bits)).unwrap();
        (finish.at.nanos(), finish.surplus.0)
    }

    #[test]
    fn ends_are_rounded_up_and_the_rest_is_surplus() {
        assert_eq!(finish(1_000_000_000, 8), (8, 0));
        assert_eq!(finish(3_000_000_000, 10), (4, 2_000_000_000));
        assert_eq!(finish(1, 1), (1_000_000_000, 0));
        // 2^35 bits at 1 bit/s is more than 64 bits of work.
        assert_eq!(finish(1, 1 << 34), ((1 << 34) * 1_000_000_000, 0));
    }

    #[test]
    fn a_wire_that_is_down_never_ends_and_an_unlimited_one_at_once() {
        for bits in [0, 1] {
            assert_eq!(ConstantRate(Rate::DOWN).finish(Time::ZERO, Work::bits(bits)), None);
        }
        let now = Time::from_nanos(5);
        assert_eq!(ConstantRate(Rate::UNLIMITED).finish(now, Work::bits(1 << 35)).unwrap().at, now);
    }

    #[test]
    fn overheads_count_what_their_names_say() {
        // (overhead, network-layer bytes, bytes on the wire), worked by hand.
        for (overhead, length, bytes) in [
            (Overhead::IP, 1498, 1498),
            (Overhead::FRAME, 1498, 1512),
            (Overhead::ETHERNET, 1500, 1538),
            (Overhead::ETHERNET, 28, 84),
            (Overhead::ATM, 40, 53),
            (Overhead::ATM, 41, 106),
            (Overhead::ATM, 1500, 32 * 53),
            (Overhead { extra: -50, ..Overhead::IP }, 40, 0),
            (Overhead { extra: -20, minimum: 64, ..Overhead::IP }, 100, 80),
            (Overhead { extra: -20, minimum: 64, ..Overhead::IP }, 70, 64),
        ] {
            assert_eq!(overhead.bits(length, 14), bytes * 8, "{overhead:?} {length}");
        }
    }
}
