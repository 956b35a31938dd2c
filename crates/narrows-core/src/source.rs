//! Traffic sources: arrival times and lengths of packets without a body.
//!
//! Virtual-time runs use sources as input; live runs can add them to a link as background traffic. The n-th
//! packet of a source depends only on the seed, the source's name and n.

mod sizes;

pub use sizes::Sizes;

use alloc::vec::Vec;

use crate::random::{Draw, Seed, Stream};
use crate::service::Work;
use crate::time::{Duration, Time};
use crate::units::Rate;

/// What a source sends, and when.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceConfig {
    /// The arrival process.
    pub arrivals: Arrivals,
    /// Packet lengths.
    pub lengths: Lengths,
    /// The time of the first packet, or the time from which the first gap counts.
    pub start: Time,
    /// No packet comes at or after this time.
    pub stop: Time,
    /// The maximum number of packets, if limited.
    pub packets: Option<u64>,
}

/// The arrival process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// Evenly spaced; the first packet at the start.
    Constant(Pace),
    /// A Poisson process: independent exponential gaps.
    Poisson(Pace),
    /// Evenly spaced during on periods, silent during off periods; begins with an on period. Period lengths
    /// are drawn independently.
    OnOff {
        /// The pace during on periods.
        pace: Pace,
        /// Length of on periods.
        on: Period,
        /// Length of off periods.
        off: Period,
    },
}

/// The mean rate of packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// A number of packets per unit of time.
    Packets {
        /// Number of packets.
        count: u64,
        /// The unit of time; not zero.
        per: Duration,
    },
    /// Each packet is followed by the time that its network-layer bits take at this rate.
    Bits(Rate),
}

/// The length of an on or off period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Period {
    /// Constant.
    Fixed(Duration),
    /// Exponential with this mean.
    Exponential(Duration),
    /// Pareto with this mean and shape: P(X > x) = (m/x)^shape for x ≥ m = mean·(shape − 1)/shape; shape
    /// above 1.
    Pareto {
        /// The mean.
        mean: Duration,
        /// The shape, above 1; at 2 and below the variance is infinite.
        shape: f64,
    },
}

/// Packet lengths, from the network header on.
#[derive(Clone, Debug, PartialEq)]
pub enum Lengths {
    /// All the same.
    Fixed(u32),
    /// Drawn independently: each length with a weight.
    Mix(Vec<(u32, u64)>),
}

/// A running source.
#[derive(Clone, Debug)]
pub struct Source {
    config: SourceConfig,
    gaps: Stream,
    lengths: Stream,
    periods: Stream,
    sent: u64,
    /// When the next packet comes, and the part of a nanosecond by which that was rounded up, in the unit of
    /// `pace`'s work.
    next: Time,
    owed: Work,
    on_until: Time,
    period: u64,
}

impl Source {
    /// A source whose draws are keyed by `seed` and `name`.
    pub fn new(seed: Seed, name: &str, config: SourceConfig) -> Self {
        let stream = |purpose| Stream::new(seed, name, purpose);
        let mut source = Self {
            gaps: stream("gap"),
            lengths: stream("length"),
            periods: stream("period"),
            sent: 0,
            next: config.start,
            owed: Work::default(),
            on_until: Time::NEVER,
            period: 0,
            config,
        };
        match source.config.arrivals {
            Arrivals::Constant(_) => {}
            Arrivals::Poisson(pace) => {
                let length = source.length();
                source.next = source.config.start + source.exponential_gap(pace, length);
            }
            Arrivals::OnOff { on, .. } => source.on_until = source.config.start + source.draw_period(on),
        }
        source
    }

    /// The time of the next packet.
    pub fn peek(&self) -> Option<Time> {
        let more = self.config.packets.is_none_or(|most| self.sent < most);
        (more && self.next < self.config.stop).then_some(self.next)
    }

    /// Takes the next packet: its time and length.
    pub fn take(&mut self) -> Option<(Time, u32)> {
        let at = self.peek()?;
        let length = self.length();
        self.sent += 1;
        self.next = match self.config.arrivals {
            Arrivals::Constant(pace) => at + self.even_gap(pace, length),
            // The gap before a packet depends on that packet: with a pace in bits, it is the packet's own
            // time at that rate.
            Arrivals::Poisson(pace) => at + self.exponential_gap(pace, self.length()),
            Arrivals::OnOff { pace, on, off } => {
                let next = at + self.even_gap(pace, length);
                self.after_silence(next, on, off)
            }
        };
        Some((at, length))
    }

    /// The length of the next packet.
    fn length(&self) -> u32 {
        match &self.config.lengths {
            Lengths::Fixed(length) => *length,
            Lengths::Mix(mix) => {
                let total = mix.iter().map(|(_, weight)| weight).sum();
                let mut at = self.lengths.nth(self.sent).below(total);
                for &(length, weight) in mix {
                    if at < weight {
                        return length;
                    }
                    at -= weight;
                }
                0 // only for an empty mix
            }
        }
    }

    /// The exact gap at a pace, rounded up; the next gap makes up for the rounding.
    fn even_gap(&mut self, pace: Pace, length: u32) -> Duration {
        let (work, rate) = match pace {
            // `per` nanoseconds for `count` packets: each packet is `per` of work at a rate of `count` per
            // nanosecond.
            Pace::Packets { count, per } => (u128::from(per.nanos()), count),
            Pace::Bits(rate) => (Work::bits(u64::from(length) * 8).0, rate.bits_per_second()),
        };
        if rate == 0 {
            return Duration::MAX;
        }
        let work = work.saturating_sub(self.owed.0);
        let gap = work.div_ceil(u128::from(rate));
        self.owed = Work(gap * u128::from(rate) - work);
        Duration::from_nanos(u64::try_from(gap).unwrap_or(u64::MAX))
    }

    fn exponential_gap(&self, pace: Pace, length: u32) -> Duration {
        let mean = match pace {
            Pace::Packets { count, per } => per.nanos() as f64 / count as f64,
            Pace::Bits(rate) => f64::from(length) * 8e9 / rate.bits_per_second() as f64,
        };
        exponential(mean, &mut self.gaps.nth(self.sent))
    }

    /// Moves a time after the end of the on period past the off period that follows.
    fn after_silence(&mut self, mut next: Time, on: Period, off: Period) -> Time {
        while next >= self.on_until && self.on_until < self.config.stop {
            let silence = self.draw_period(off);
            let start = self.on_until + silence;
            self.on_until = start + self.draw_period(on);
            // The first packet of an on period comes at its start.
            next = start;
            self.owed = Work::default();
        }
        next
    }

    fn draw_period(&mut self, period: Period) -> Duration {
        let mut draw = self.periods.nth(self.period);
        self.period += 1;
        // Periods of zero length would loop forever at one instant.
        period.draw(&mut draw).max(Duration::from_nanos(1))
    }
}

impl Period {
    /// One period length, rounded to nanoseconds.
    pub fn draw(self, draw: &mut Draw) -> Duration {
        match self {
            Self::Fixed(length) => length,
            Self::Exponential(mean) => exponential(mean.nanos() as f64, draw),
            Self::Pareto { mean, shape } => {
                Duration::from_nanos(pareto(mean.nanos() as f64, shape, draw) as u64)
            }
        }
    }

    /// The mean.
    pub const fn mean(self) -> Duration {
        match self {
            Self::Fixed(mean) | Self::Exponential(mean) | Self::Pareto { mean, .. } => mean,
        }
    }
}

/// By inversion: P(X > x) = (m/x)^shape for x ≥ m = mean·(shape − 1)/shape.
fn pareto(mean: f64, shape: f64, draw: &mut Draw) -> f64 {
    let least = mean * (shape - 1.0) / shape;
    least * libm::pow(draw.uniform(), -1.0 / shape)
}

/// By inversion, rounded to nanoseconds.
fn exponential(mean: f64, draw: &mut Draw) -> Duration {
    Duration::from_nanos((-mean * libm::log(draw.uniform()) + 0.5) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(arrivals: Arrivals) -> SourceConfig {
        SourceConfig {
            arrivals,
            lengths: Lengths::Fixed(1000),
            start: Time::ZERO,
            stop: Time::from_nanos(1_000_000_000_000),
            packets: None,
        }
    }

    fn instants(arrivals: Arrivals, count: usize) -> Vec<Time> {
        let mut source = Source::new(Seed(5), "s", config(arrivals));
        (0..count).map_while(|_| source.take().map(|(at, _)| at)).collect()
    }

    const THIRD: Pace = Pace::Packets { count: 3, per: Duration::from_nanos(10) };

    #[test]
    fn even_gaps_carry_their_remainder() {
        let at = instants(Arrivals::Constant(THIRD), 3_001);
        assert_eq!(at[..4].iter().map(|t| t.nanos()).collect::<Vec<_>>(), [0, 4, 7, 10]);
        assert_eq!(at[3_000], Time::from_nanos(10_000));
        let bits = instants(Arrivals::Constant(Pace::Bits(Rate::from_bits_per_second(3_000))), 4);
        assert_eq!(bits[3], Time::from_nanos(8_000_000_000));
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_the_variance() {
        let pace = Pace::Packets { count: 1000, per: Duration::from_secs(1) };
        let at = instants(Arrivals::Poisson(pace), 100_000);
        let gaps: Vec<f64> = at.windows(2).map(|w| w[1].since(w[0]).seconds()).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|g| (g - mean) * (g - mean)).sum::<f64>() / gaps.len() as f64;
        // Standard errors: the mean's is 1 ms/√10⁵ = 3.2 µs, the variance's √8 times that, relatively.
        assert!((mean - 1e-3).abs() < 4.0 * 3.2e-6, "{mean}");
        assert!((variance * 1e6 - 1.0).abs() < 4.0 * 0.009, "{variance}");
    }

    #[test]
    fn on_off_sends_in_on_periods_only_and_keeps_the_duty_cycle() {
        let pace = Pace::Packets { count: 1, per: Duration::from_millis(1) };
        let (on, off) = (Duration::from_millis(10), Duration::from_millis(30));
        let at = instants(Arrivals::OnOff { pace, on: Period::Fixed(on), off: Period::Fixed(off) }, 100);
        for (n, t) in at.iter().enumerate() {
            assert_eq!(t.nanos(), (n as u64 / 10) * 40_000_000 + (n as u64 % 10) * 1_000_000);
        }
        let pareto = Period::Pareto { mean: on, shape: 1.9 };
        let at = instants(Arrivals::OnOff { pace, on: pareto, off: Period::Exponential(off) }, 20_000);
        let duty = at.len() as f64 * 1e-3 / at[at.len() - 1].seconds();
        assert!((0.2..0.33).contains(&duty), "{duty}");
    }

    #[test]
    fn lengths_come_with_their_weights_and_limits_hold() {
        let lengths = Lengths::Mix(Vec::from([(40, 7), (576, 4), (1500, 1)]));
        let packets = Some(12_000);
        let config = SourceConfig { lengths, packets, ..config(Arrivals::Constant(THIRD)) };
        let mut source = Source::new(Seed(1), "mix", config);
        let mut seen = [0u32; 3];
        while let Some((_, length)) = source.take() {
            seen[match length {
                40 => 0,
                576 => 1,
                _ => 2,
            }] += 1;
        }
        assert_eq!(seen.iter().sum::<u32>(), 12_000);
        // Binomial: 4 standard deviations of 12,000 draws are below 219.
        for (count, expected) in seen.into_iter().zip([7_000u32, 4_000, 1_000]) {
            assert!(count.abs_diff(expected) < 219, "{seen:?}");
        }
    }
}
