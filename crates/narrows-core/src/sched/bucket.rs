//! Exact token buckets.
//!
//! A bucket fills at its rate up to its burst. Tokens are billionths of a bit, [`Work`]'s unit: a rate in bits per
//! second times a time in nanoseconds. So there is no rounding and no drift:
//!
//! ```text
//! tokens(t) = min(burst, tokens(t₀) + rate·(t − t₀))
//! ```
//!
//! The payments in any span d are at most burst + rate·d, plus one payment if the bucket may go into debt.

use crate::sched::shaping::ShapingFault;
use crate::service::{Overhead, Work};
use crate::time::{Duration, Time};
use crate::units::{Bytes, Rate};

/// Bytes of link header of a packet, if the overhead counts them. A scheduler does not see the header; Ethernet is
/// assumed.
const LINK_HEADER: u8 = 14;

/// A bucket, and the instant at which it had these tokens. At an unlimited rate it is always full.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    rate: Rate,
    burst: i128,
    tokens: i128,
    at: Time,
}

impl Bucket {
    /// The maximum size of a bucket: slightly more than 2⁹⁶ tokens, far below the 2¹²⁷ of the arithmetic.
    pub(crate) const MOST: Bytes = Bytes::new(1 << 63);

    /// A full bucket.
    pub(crate) fn new(rate: Rate, burst: Bytes) -> Result<Self, ShapingFault> {
        if rate == Rate::DOWN {
            return Err(ShapingFault::NoRate);
        }
        if burst > Self::MOST {
            return Err(ShapingFault::BurstTooLong { found: burst, most: Self::MOST });
        }
        // At most 2⁶³ · 2³ · 2³⁰.
        let burst = i128::from(burst.get()) * 8_000_000_000;
        Ok(Self { rate, burst, tokens: burst, at: Time::ZERO })
    }

    /// The tokens at `now`, which must not be before the last payment. Negative if the bucket is in debt.
    #[inline]
    pub(crate) fn tokens(&self, now: Time) -> i128 {
        // At most 2⁹⁶ + 2¹⁰¹, see `pay`.
        let missing = (self.burst - self.tokens) as u128;
        let earned = Work::done(self.rate, now.since(self.at)).0;
        if earned >= missing || self.rate == Rate::UNLIMITED {
            self.burst
        } else {
            self.tokens + earned as i128
        }
    }

    /// Whether the bucket holds this cost at `now`.
    #[inline]
    pub(crate) fn affords(&self, now: Time, cost: Work) -> bool {
        self.tokens(now) >= signed(cost)
    }

    /// Whether the bucket could ever hold this cost.
    pub(crate) const fn could_afford(&self, cost: Work) -> bool {
        self.burst >= signed(cost)
    }

    /// Removes this cost, even if the bucket does not hold it. The debt is limited to what the bucket earns in a
    /// minute, or to this cost if that is greater; the excess is forgiven (as in the kernel, because the debt of an
    /// inner class must end at some time). That is below 2¹⁰¹.
    #[inline]
    pub(crate) fn pay(&mut self, now: Time, cost: Work) {
        if self.rate == Rate::UNLIMITED {
            return;
        }
        let most = Work::done(self.rate, Duration::from_secs(60)).0 as i128;
        self.tokens = (self.tokens(now) - signed(cost)).max(-most.max(signed(cost)));
        self.at = self.at.max(now);
    }

    /// The first instant at which the bucket holds this many tokens, if it could ever hold them.
    #[inline]
    pub(crate) fn when(&self, tokens: i128) -> Time {
        let missing = tokens - self.tokens;
        if missing <= 0 || self.rate == Rate::UNLIMITED {
            return self.at;
        }
        let (missing, rate) = (missing as u128, self.rate.bits_per_second());
        // The 64-bit division is several times faster, and sufficient below 2 GB.
        let nanos = match u64::try_from(missing) {
            Ok(missing) => missing.div_ceil(rate),
            Err(_) => u64::try_from(missing.div_ceil(rate.into())).unwrap_or(u64::MAX),
        };
        self.at + Duration::from_nanos(nanos)
    }

    /// The first instant at which this cost could be paid.
    pub(crate) fn when_affords(&self, cost: Work) -> Time {
        self.when(signed(cost))
    }

    /// The tokens at `now`, in nanoseconds at the bucket's rate.
    pub(crate) fn span(&self, now: Time) -> i64 {
        let nanos = self.tokens(now) / i128::from(self.rate.bits_per_second());
        nanos.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}

/// Below 2¹²⁷: a packet and its overhead are below 2³⁶ bits, and a minimum cost is below 2⁶⁸.
const fn signed(cost: Work) -> i128 {
    cost.0 as i128
}

/// The cost of a packet: its bits on the wire, and at least those of `least` bytes.
#[inline]
pub(crate) fn cost(length: u32, overhead: &Overhead, least: Bytes) -> Work {
    cost_with_header(length, LINK_HEADER, overhead, least)
}

/// Like [`cost`], with a known link header.
#[inline]
pub(crate) fn cost_with_header(length: u32, link_header: u8, overhead: &Overhead, least: Bytes) -> Work {
    let bits = u128::from(overhead.bits(length, link_header)).max(u128::from(least.get()) * 8);
    Work(bits * 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bucket(rate: u64, burst: u64) -> Bucket {
        Bucket::new(Rate::from_bits_per_second(rate), Bytes::new(burst)).unwrap()
    }

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    #[test]
    fn it_is_full_at_first_and_fills_at_its_rate() {
        // 8 bits in 3 ns at 8/3 Gbit/s, say 2,666,666,667 bit/s: a hair sooner.
        let mut bucket = bucket(2_666_666_667, 2);
        assert!(bucket.affords(at(0), Work::bits(16)) && !bucket.affords(at(0), Work::bits(17)));
        bucket.pay(at(0), Work::bits(16));
        assert_eq!(bucket.when_affords(Work::bits(8)), at(3));
        assert!(!bucket.affords(at(2), Work::bits(8)) && bucket.affords(at(3), Work::bits(8)));
        assert_eq!(bucket.when_affords(Work::bits(16)), at(6));
        // No more than the burst, however long it lies idle.
        assert_eq!(bucket.tokens(Time::NEVER), Work::bits(16).0 as i128);
        assert!(bucket.could_afford(Work::bits(16)) && !bucket.could_afford(Work::bits(17)));
    }

    #[test]
    fn the_ends_of_the_arithmetic_hold() {
        let mut widest = bucket(u64::MAX - 1, Bucket::MOST.get());
        widest.pay(at(0), cost(u32::MAX, &Overhead::FRAME, Bytes::new(u64::MAX)));
        assert!(widest.tokens(at(0)) < 0);
        assert!(widest.when(0) > at(0) && widest.tokens(Time::NEVER) == widest.burst);
        let mut slowest = bucket(1, 1);
        slowest.pay(at(0), Work::bits(1 << 36));
        // A minute's debt is 60 bits here, but what one packet costs is owed in any case.
        assert_eq!(slowest.when(0), Time::NEVER);
        assert_eq!(slowest.span(at(0)), i64::MIN);
        slowest.pay(Time::NEVER, Work::bits(1 << 30));
        slowest.pay(Time::NEVER, Work::bits(70));
        // A minute's debt is 60 bits here, and what a packet costs is owed in any case.
        assert_eq!(slowest.span(Time::NEVER), -70_000_000_000);
        let mut unlimited = Bucket::new(Rate::UNLIMITED, Bytes::new(1)).unwrap();
        unlimited.pay(at(5), Work::bits(1 << 36));
        assert_eq!((unlimited.tokens(at(5)), unlimited.when(0)), (8_000_000_000, at(0)));
        assert_eq!(Bucket::new(Rate::DOWN, Bytes::new(1)).err(), Some(ShapingFault::NoRate));
    }

    proptest! {
        /// Paid whenever it can be, over spans of any length: no token is lost to rounding, none is made.
        #[test]
        fn what_is_paid_is_what_was_earned(
            rate in 1u64..10_000_000_000,
            payments in proptest::collection::vec((1u64..2_000, 0u64..1_000_000), 1..60),
        ) {
            let mut bucket = bucket(rate, 2_000);
            let (mut now, mut paid) = (Time::ZERO, 0u128);
            for &(bytes, wait) in &payments {
                let cost = Work::bits(bytes * 8);
                let last = now;
                now = (now + Duration::from_nanos(wait)).max(bucket.when_affords(cost));
                let before = bucket.tokens(now);
                prop_assert!(bucket.affords(now, cost));
                // What a bucket held before the last payment is not known.
                if now > last && bucket.when_affords(cost) == now {
                    prop_assert!(!bucket.affords(Time::from_nanos(now.nanos() - 1), cost), "not a moment sooner");
                }
                bucket.pay(now, cost);
                paid += cost.0;
                prop_assert_eq!(bucket.tokens(now), before - cost.0 as i128);
                prop_assert!(paid <= Work::bits(16_000).0 + Work::done(bucket.rate, now.since(Time::ZERO)).0);
            }
        }
    }
}
