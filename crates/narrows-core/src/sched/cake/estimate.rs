//! An estimate of the rate at which packets arrive (`autorate-ingress`).

use crate::time::{Duration, Time};
use crate::units::Rate;

const SECOND: u64 = 1_000_000_000;

/// The highest recent rate of arrivals.
///
/// A window ends with a packet that comes after a longer pause than usual, so bursts of a medium that sends packets together
/// do not count by themselves. Averages follow growth by a quarter and decline by a 256th.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimate {
    /// The last packet; `None` before the first.
    last: Option<Time>,
    /// The mean pause, in ns.
    pause: u64,
    window: Time,
    bytes: u64,
    /// In bytes per second.
    peak: u64,
}

impl Estimate {
    pub(super) const fn new() -> Self {
        Self { last: None, pause: 0, window: Time::ZERO, bytes: 0, peak: 0 }
    }

    /// A frame of this length arrives. Returns the bandwidth to set when it ends a window: 15 sixteenths of the peak.
    pub(super) fn arrive(&mut self, now: Time, length: u64) -> Option<Rate> {
        self.bytes += length;
        let pause = self.last.map_or(SECOND, |last| now.since(last).nanos().min(SECOND));
        self.pause = average(self.pause, pause);
        let is_first = self.last.replace(now).is_none();
        if pause <= self.pause {
            return None;
        }
        // Linux counts the first window from the start of the machine, long ago.
        let span: Duration = if is_first { Duration::MAX } else { now.since(self.window) };
        // No link has 2⁶⁰ bytes a second.
        let rate = u128::from(self.bytes) * u128::from(SECOND) / u128::from(span.nanos().max(1));
        self.peak = average(self.peak, rate.min(1 << 60) as u64);
        (self.bytes, self.window) = (0, now);
        let bytes = self.peak - self.peak.div_ceil(16);
        Some(if bytes == 0 { Rate::UNLIMITED } else { Rate::from_bits_per_second(bytes * 8) })
    }
}

/// An average that follows growth faster than decline, in integers as Linux computes it.
const fn average(before: u64, sample: u64) -> u64 {
    let shift = if sample > before { 2 } else { 8 };
    before - (before >> shift) + (sample >> shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of 1250 bytes, `gap` apart, with a longer pause after every tenth.
    fn packets(estimate: &mut Estimate, from: Time, gap: u64, count: u64) -> (Time, Option<Rate>) {
        let (mut now, mut rate) = (from, None);
        for packet in 0..count {
            now = now + Duration::from_micros(if packet % 10 == 9 { gap + gap / 2 } else { gap });
            rate = estimate.arrive(now, 1250).or(rate);
        }
        (now, rate)
    }

    #[test]
    fn it_finds_the_rate_of_arrivals() {
        let mut estimate = Estimate::new();
        // The first packet of all says nothing: no limit.
        assert_eq!(estimate.arrive(Time::from_nanos(5), 1250), Some(Rate::UNLIMITED));
        let (now, rate) = packets(&mut estimate, Time::from_nanos(5), 1000, 8000);
        // 10 packets in 10.5 ms, 15 sixteenths of it.
        let expected = 1250.0 * 8.0 * 10.0 / 0.0105 * 15.0 / 16.0;
        let found = rate.unwrap().bits_per_second() as f64;
        assert!((found / expected - 1.0).abs() < 0.01, "{found} for {expected}");
        // Twice the rate is found within some windows, half of it slowly.
        let (now, rate) = packets(&mut estimate, now, 500, 4000);
        let faster = rate.unwrap().bits_per_second() as f64;
        assert!((faster / expected / 2.0 - 1.0).abs() < 0.02, "{faster}");
        let (_, rate) = packets(&mut estimate, now, 1000, 500);
        let falling = rate.unwrap().bits_per_second() as f64;
        assert!(falling < faster && falling > expected * 1.5, "{falling}");
    }
}
