//! Link profiles: how long a packet occupies the medium beyond its bits.
//!
//! Source: Carbone and Rizzo, "Dummynet revisited", ACM CCR 40(2), 2010, section 3.7, and `ipfw/dummynet.c`.
//! The overhead of a medium access protocol (preambles, gaps, backoff, acknowledgements, retries) is given as
//! a distribution function, a polyline of (probability, time). For each packet, i is drawn uniformly from 0…n
//! − 1. The packet occupies the medium for the polyline's value at `i/n` and then for `bits/rate`. If `i/n`
//! is at or above the loss level, the packet is lost after that time.
//!
//! ```text
//!   probability
//!   1 ┤              ┌──      a vertical line: one time for a range of probabilities
//!     │         ____/         a slope: uniform between two times
//! 0.5 ┤    ┌───'              a horizontal line: a jump; at its very probability the longer time counts
//!   0 ┤────┘
//!     └────────────────── time
//! ```
//!
//! The polyline is evaluated once at n probabilities, so a link draws one number and reads one entry per
//! packet. On a slope the entries are the lower ends of n equal shares, as in the reference: their mean is
//! below the mean of the slope by the slope's height over 2n. So a slope from 0 to n slots of time is exactly
//! uniform on 0, 1, …, n − 1 slots.
//!
//! Departures from the reference: times are whole nanoseconds instead of milliseconds; a link without a rate
//! limit also has air time; below the first point and above the last one, those points' times apply (the
//! reference extends the first slope, and reads beyond the last point); a loss level that is not a multiple
//! of 1/n is not rounded down.
//!
//! ```
//! use narrows_core::{AirTime, Duration, Probability};
//!
//! let millis = Duration::from_millis;
//! // Half of all packets 200 ms, the others between 300 ms and 1 s; the last tenth of those is lost.
//! let half = Probability::from_ratio(1, 2).expect("it is below 1");
//! let level = Probability::from_ratio(95, 100).expect("it is below 1");
//! let points = [(Probability::ZERO, millis(200)), (half, millis(200)), (half, millis(300)), (Probability::ONE, millis(1000))];
//! let profile = AirTime::new(&points, 100, level)?;
//! assert_eq!(profile.times()[49..52], [millis(200), millis(300), millis(314)]);
//! assert_eq!(profile.lost(), 5);
//! # Ok::<(), narrows_core::AirTimeError>(())
//! ```

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::random::Draw;
use crate::time::Duration;
use crate::units::Probability;

/// The distribution of the extra air time of packets, and which packets are lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AirTime {
    /// Times at equal steps of probability from 0 on; at least one.
    times: Arc<[Duration]>,
    /// The first entry whose packets are lost.
    lost_from: u32,
}

/// Why a profile is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AirTimeError {
    /// There are fewer than two points.
    TooFewPoints,
    /// The number of samples is not in 2…[`AirTime::MOST_SAMPLES`].
    Samples(u32),
    /// The probability or the time of this point, counted from 0, is below that of the point before.
    GoesDown(usize),
}

impl core::fmt::Display for AirTimeError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::TooFewPoints => f.write_str("a profile has at least two points"),
            Self::Samples(found) => {
                write!(f, "{found} samples: a profile has from 2 to {}", AirTime::MOST_SAMPLES)
            }
            Self::GoesDown(point) => write!(f, "the curve goes down at point {point}"),
        }
    }
}

impl core::error::Error for AirTimeError {}

impl AirTime {
    /// The maximum number of samples, that of the reference: 8 KiB.
    pub const MOST_SAMPLES: u32 = 1024;
    /// The default number of samples.
    pub const SAMPLES: u32 = 100;

    /// The profile through these points, in order of both probability and time, evaluated at `samples`
    /// probabilities. A packet is lost if its probability is at or above `loss_level`.
    ///
    /// # Errors
    /// If there are fewer than two points, they are not in order, or the number of samples is out of range.
    pub fn new(
        points: &[(Probability, Duration)],
        samples: u32,
        loss_level: Probability,
    ) -> Result<Self, AirTimeError> {
        if points.len() < 2 {
            return Err(AirTimeError::TooFewPoints);
        }
        if !(2..=Self::MOST_SAMPLES).contains(&samples) {
            return Err(AirTimeError::Samples(samples));
        }
        if let Some(at) = points.windows(2).position(|pair| pair[1].0 < pair[0].0 || pair[1].1 < pair[0].1) {
            return Err(AirTimeError::GoesDown(at + 1));
        }
        let place = |index: u32| Probability::from_ratio(index.into(), samples.into()).unwrap_or_default();
        let times: Vec<Duration> = (0..samples).map(|index| value(points, place(index))).collect();
        let lost_from = (0..samples).find(|&index| place(index) >= loss_level).unwrap_or(samples);
        Ok(Self { times: times.into(), lost_from })
    }

    /// The times at equal steps of probability from 0 on, in order. All are equally likely.
    pub fn times(&self) -> &[Duration] {
        &self.times
    }

    /// How many of [`AirTime::times`], counted from the end, belong to lost packets.
    pub fn lost(&self) -> usize {
        self.times.len() - self.lost_from as usize
    }

    /// The mean over all packets, including lost ones, rounded down.
    pub fn mean(&self) -> Duration {
        let sum: u128 = self.times.iter().map(|time| u128::from(time.nanos())).sum();
        // The mean is at most the longest time.
        Duration::from_nanos((sum / self.times.len() as u128) as u64)
    }

    /// The minimum time.
    pub fn shortest(&self) -> Duration {
        self.times.first().copied().unwrap_or_default()
    }

    /// The maximum time.
    pub fn longest(&self) -> Duration {
        self.times.last().copied().unwrap_or_default()
    }

    /// The time of one packet, and whether the packet is lost after it.
    pub(super) fn draw(&self, draw: &mut Draw) -> (Duration, bool) {
        let index = draw.below(self.times.len() as u64) as usize;
        (self.times[index], index >= self.lost_from as usize)
    }
}

/// The polyline's value at a probability, to the nearest nanosecond. At a jump it is the longer time.
fn value(points: &[(Probability, Duration)], at: Probability) -> Duration {
    let after = points.partition_point(|point| point.0 <= at);
    let Some(before) = after.checked_sub(1) else { return points[0].1 };
    let Some(&(to, high)) = points.get(after) else { return points[before].1 };
    let (from, low) = points[before];
    // Probabilities are below 2^63 and times below 2^64: the products and their sum stay below 2^127.
    let (width, part) = (u128::from(to.raw() - from.raw()), u128::from(at.raw() - from.raw()));
    let rise = u128::from((high - low).nanos()) * part;
    low + Duration::from_nanos(((rise + width / 2) / width) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ratio(numerator: u64, denominator: u64) -> Probability {
        Probability::from_ratio(numerator, denominator).unwrap()
    }

    fn nanos(times: &AirTime) -> Vec<u64> {
        times.times().iter().map(|time| time.nanos()).collect()
    }

    #[test]
    fn a_slope_of_n_slots_is_uniform_in_whole_slots() {
        let points = [
            (Probability::ZERO, Duration::from_nanos(7)),
            (Probability::ONE, Duration::from_nanos(32 * 20 + 7)),
        ];
        let times = AirTime::new(&points, 32, Probability::ONE).unwrap();
        assert_eq!(nanos(&times), (0..32).map(|slot| 7 + 20 * slot).collect::<Vec<u64>>());
        assert_eq!((times.lost(), times.mean().nanos(), times.longest().nanos()), (0, 7 + 310, 7 + 620));
    }

    #[test]
    fn jumps_take_the_longer_time_and_the_ends_their_own() {
        // 2010's example, in which the curve begins at 0.2 and ends at 0.98.
        let points = [(20, 100), (40, 130), (50, 130), (80, 1500), (98, 2000)]
            .map(|(percent, nanos)| (ratio(percent, 100), Duration::from_nanos(nanos)));
        let times = nanos(&AirTime::new(&points, 100, ratio(99, 100)).unwrap());
        assert_eq!(times[..20], [100; 20]);
        assert_eq!((times[20], times[30], times[40], times[49], times[50]), (100, 115, 130, 130, 130));
        // 130 + 1370/30 and 1500 + 500/18 a hundredth, to the nearest.
        assert_eq!((times[51], times[80], times[81]), (176, 1500, 1528));
        assert_eq!(times[98..], [2000, 2000]);
        let jump = [(0, 1), (50, 1), (50, 3), (50, 9), (100, 9)]
            .map(|(percent, nanos)| (ratio(percent, 100), Duration::from_nanos(nanos)));
        assert_eq!(nanos(&AirTime::new(&jump, 4, Probability::ONE).unwrap()), [1, 1, 9, 9]);
    }

    #[test]
    fn a_packet_is_lost_at_or_above_the_level() {
        let points = [(Probability::ZERO, Duration::ZERO), (Probability::ONE, Duration::ZERO)];
        let lost = |level, samples| AirTime::new(&points, samples, level).unwrap().lost();
        assert_eq!(lost(ratio(9, 10), 100), 10);
        assert_eq!(lost(ratio(9, 10), 10), 1);
        // 0.9 and 1/3 are no multiples of 2^-63, yet equal to themselves.
        assert_eq!(lost(ratio(1, 3), 300), 200);
        // Between two steps it is the next one that is above.
        assert_eq!(lost(ratio(895, 1000), 100), 10);
        assert_eq!((lost(Probability::ZERO, 100), lost(Probability::ONE, 1024)), (100, 0));
    }

    #[test]
    fn what_is_no_distribution_function_is_refused() {
        let point = |percent, nanos| (ratio(percent, 100), Duration::from_nanos(nanos));
        let new = |points: &[_], samples| AirTime::new(points, samples, Probability::ONE).unwrap_err();
        assert_eq!(new(&[point(0, 1)], 100), AirTimeError::TooFewPoints);
        assert_eq!(new(&[point(10, 1), point(20, 2), point(15, 3)], 100), AirTimeError::GoesDown(2));
        assert_eq!(new(&[point(10, 2), point(20, 1)], 100), AirTimeError::GoesDown(1));
        for samples in [0, 1, 1025] {
            assert_eq!(new(&[point(0, 1), point(100, 2)], samples), AirTimeError::Samples(samples));
        }
    }

    proptest! {
        /// Against the polyline in floats.
        #[test]
        fn the_times_are_the_polylines(
            mut corners in proptest::collection::vec((0u64..=1000, 0u64..1 << 40), 2..20),
            samples in 2u32..=1024,
        ) {
            corners.sort_unstable();
            let mut highest = 0;
            for corner in &mut corners {
                highest = corner.1.max(highest);
                corner.1 = highest;
            }
            let points: Vec<_> = corners.iter().map(|&(p, nanos)| (ratio(p, 1000), Duration::from_nanos(nanos))).collect();
            let times = AirTime::new(&points, samples, Probability::ONE).unwrap();
            for (index, time) in times.times().iter().enumerate() {
                let below = corners.iter().rev().find(|corner| corner.0 * u64::from(samples) <= index as u64 * 1000);
                let above = corners.iter().find(|corner| corner.0 * u64::from(samples) > index as u64 * 1000);
                let expected = match (below, above) {
                    (Some(&(p0, t0)), Some(&(p1, t1))) => {
                        // In whole numbers up to here: on a steep slope a float of `p` would be too coarse.
                        let part = index as u64 * 1000 - p0 * u64::from(samples);
                        t0 as f64 + (t1 - t0) as f64 * part as f64 / ((p1 - p0) * u64::from(samples)) as f64
                    }
                    (Some(only), None) | (None, Some(only)) => only.1 as f64,
                    (None, None) => unreachable!(),
                };
                prop_assert!((time.nanos() as f64 - expected).abs() < 0.51, "{} {}", time, expected);
            }
        }
    }
}
