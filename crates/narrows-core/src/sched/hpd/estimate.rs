//! The average delay of the packets that have left a class.

use super::gamma::WHOLE;
use crate::class::Estimator;
use crate::time::{Duration, Time};

/// An estimate in nanoseconds, with 16 fraction bits: with delays of up to 47 bits it has at most 63.
#[derive(Debug)]
pub(super) struct Estimate {
    average: u64,
    phase: Phase,
    /// Since when the class has been idle. The start of the run for a class that never had a packet.
    idle_since: Time,
}

/// How the next delay is used.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// It counts as much as each delay since the restart.
    Mean {
        /// Sum of these delays, in nanoseconds: below 2⁷⁹.
        sum: u128,
        count: u32,
    },
    /// It counts with weight γ.
    Moving,
}

/// Fraction bits of an average.
pub(super) const FRACTION: u32 = 16;

/// Longer delays, beyond about 39 hours, count as this.
const LONGEST: u64 = (1 << 47) - 1;

impl Estimate {
    pub(super) fn new(estimator: Estimator) -> Self {
        let phase = match estimator {
            Estimator::EwmaR { .. } => Phase::Mean { sum: 0, count: 0 },
            _ => Phase::Moving,
        };
        Self { average: 0, phase, idle_since: Time::ZERO }
    }

    /// In nanoseconds, times 2^[`FRACTION`].
    #[inline]
    pub(super) const fn scaled(&self) -> u64 {
        self.average
    }

    /// Rounded to the nearest nanosecond.
    pub(super) fn average(&self) -> Duration {
        Duration::from_nanos((self.average + (1 << (FRACTION - 1))) >> FRACTION)
    }

    /// Changes the estimator. It continues from the present average.
    pub(super) fn set_estimator(&mut self, before: Estimator, now: Estimator) {
        if core::mem::discriminant(&before) != core::mem::discriminant(&now) {
            self.phase = Phase::Moving;
        }
    }

    /// The class becomes idle.
    #[inline]
    pub(super) const fn idle(&mut self, now: Time) {
        self.idle_since = now;
    }

    /// A packet arrives at the idle class. Returns whether the average restarts.
    #[inline]
    pub(super) fn activate(&mut self, now: Time, estimator: Estimator) -> bool {
        match estimator {
            Estimator::EwmaR { cycle, .. } if now.since(self.idle_since) >= cycle => {
                (self.average, self.phase) = (0, Phase::Mean { sum: 0, count: 0 });
                true
            }
            _ => false,
        }
    }

    /// A packet departs after this delay. `gamma` is in units of 1/[`WHOLE`].
    #[inline]
    pub(super) fn depart(&mut self, delay: Duration, gamma: u64, estimator: &Estimator) {
        let nanos = delay.nanos().min(LONGEST);
        let scaled = nanos << FRACTION;
        match *estimator {
            Estimator::Ewma => self.smooth(scaled, gamma),
            Estimator::EwmaR { threshold, .. } => match &mut self.phase {
                Phase::Mean { sum, count } if *count < threshold => {
                    *count += 1;
                    *sum += u128::from(nanos);
                    let count = u128::from(*count);
                    // The sum has 95 bits, and the mean is at most its greatest term.
                    self.average = (((*sum << FRACTION) + count / 2) / count) as u64;
                }
                _ => {
                    self.phase = Phase::Moving;
                    self.smooth(scaled, gamma);
                }
            },
            Estimator::EwmaPe { steps, width } => {
                let n = self.error_steps(scaled, width.parts().into()).min(u128::from(steps.max(1)));
                self.smooth(scaled, (gamma * n as u64).min(WHOLE)); // n has 8 bits
            }
        }
    }

    /// `d̄ ← γ·d + (1 − γ)·d̄`, rounded to nearest: products of 63 and 33 bits.
    #[inline]
    fn smooth(&mut self, scaled: u64, gamma: u64) {
        let newest = u128::from(scaled) * u128::from(gamma);
        let history = u128::from(self.average) * u128::from(WHOLE - gamma);
        self.average = ((newest + history + u128::from(WHOLE / 2)) >> 32) as u64; // no more than the greater one
    }

    /// The number of steps by which the delay differs from the average, at least one. `parts` steps make up the whole
    /// average.
    fn error_steps(&self, scaled: u64, parts: u128) -> u128 {
        match scaled.abs_diff(self.average) {
            0 => 1,
            _ if self.average == 0 => u128::MAX,
            error => (u128::from(error) * parts).div_ceil(self.average.into()),
        }
    }
}
