//! How tc interprets `maxburst` and `minburst`: S. Floyd, "Notes on class-based queueing: setting parameters", 1996.
//!
//! Computed once, in floating point with a pinned library, and constant for the class from then on.

use crate::units::{Bytes, Rate};

/// What tc computes a class's idle times from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packets {
    pub(super) bandwidth: Rate,
    pub(super) rate: Rate,
    /// Mean packet length.
    pub(super) average: Bytes,
    /// W is 2 to the power of minus this value.
    pub(super) ewma: u8,
}

impl Packets {
    /// Transmission time of a packet at a rate, in nanoseconds.
    fn time(self, rate: Rate) -> f64 {
        self.average.get() as f64 * 8e9 / rate.bits_per_second() as f64
    }

    /// g = 1 − W.
    fn g(self) -> f64 {
        1.0 - 1.0 / f64::from(1u32 << self.ewma)
    }

    /// The maximum average, divided by W, in nanoseconds. Starting from it, a class sends `burst` packets at the bandwidth
    /// before it is at its limit: the average is `(L/r − L/B)·(g⁻ᵇ − 1)`. The result is at least the transmission time of
    /// one packet.
    pub(super) fn maxidle(self, burst: u32) -> f64 {
        let (sent, earned) = (self.time(self.bandwidth), self.time(self.rate));
        let least = sent * (1.0 - self.g());
        let most = (earned - sent) * (libm::pow(self.g(), -f64::from(burst)) - 1.0);
        // A long burst exceeds any number; a thousand years suffice.
        let most = if self.bandwidth == self.rate || burst == 0 { least } else { most.max(least) };
        (most * f64::from(1u32 << self.ewma)).min(THOUSAND_YEARS)
    }

    /// How much longer than its average requires a class sleeps, in nanoseconds, so that it then sends `burst`
    /// packets: `(L/r − L/B)·(1 + (g⁻⁽ᵇ⁻¹⁾ − 1)/(1 − g))`.
    pub(super) fn offtime(self, burst: u32) -> f64 {
        let gap = (self.time(self.rate) - self.time(self.bandwidth)).max(0.0);
        let packets = match burst {
            0 => 0.0,
            1 => 1.0 / self.g() - 1.0,
            _ => 1.0 + (libm::pow(self.g(), -f64::from(burst - 1)) - 1.0) / (1.0 - self.g()),
        };
        (gap * packets).min(THOUSAND_YEARS)
    }
}

const THOUSAND_YEARS: f64 = 3.2e19;

#[cfg(test)]
mod tests {
    use super::*;

    /// Worked by hand: 1000 bytes at 1 and 10 Mbit/s take 8 and 0.8 ms; g = 31/32.
    #[test]
    fn idle_times_are_those_of_tc() {
        let packets = Packets {
            bandwidth: Rate::from_bits_per_second(10_000_000),
            rate: Rate::from_bits_per_second(1_000_000),
            average: Bytes::new(1000),
            ewma: 5,
        };
        let near = |one: f64, other: f64| assert!((one / other - 1.0).abs() < 1e-12, "{one} {other}");
        near(packets.maxidle(0), 800_000.0);
        let ratio = 32.0f64 / 31.0;
        let power = |n: u32| (0..n).fold(1.0, |product, _| product * ratio);
        near(packets.maxidle(20), 7_200_000.0 * (power(20) - 1.0) * 32.0);
        near(Packets { rate: packets.bandwidth, ..packets }.maxidle(20), 800_000.0);
        assert_eq!(packets.offtime(0), 0.0);
        near(packets.offtime(1), 7_200_000.0 * (ratio - 1.0));
        near(packets.offtime(4), 7_200_000.0 * (1.0 + (power(3) - 1.0) * 32.0));
        assert_eq!(packets.maxidle(u32::MAX), THOUSAND_YEARS);
    }
}
