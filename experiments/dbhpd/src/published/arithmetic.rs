//! The listing's formulas, sound and otherwise. Waits are in ticks; averages in whatever unit the fault leaves them.

use narrows_core::{Duration, Time};

use super::{Average, Clock, Faults, PublishedClass, PublishedEstimator, Steps, Word};

/// Bits behind the point of a sound average.
const POINT: u32 = 20;

#[derive(Clone, Copy, Debug)]
pub(super) struct Arithmetic {
    faults: Faults,
    clock: Clock,
}

/// A jiffy of that kernel on that processor, in nanoseconds, and how many ticks its schedulers make of it.
const JIFFY: u64 = 10_000_000;
const TICKS_OF_JIFFY: u64 = 1 << 13;

impl Arithmetic {
    pub(super) const fn new(faults: Faults, clock: Clock) -> Self {
        Self { faults, clock }
    }

    pub(super) const fn instant(&self, at: Time) -> u64 {
        match self.clock {
            Clock::Nanoseconds => at.nanos(),
            Clock::Microseconds => at.nanos() / 1000,
            Clock::Jiffies => at.nanos() / JIFFY * TICKS_OF_JIFFY,
        }
    }

    /// A parameter, which is compared with ticks as it is given, in microseconds.
    pub(super) const fn ticks(&self, span: Duration) -> u64 {
        match self.clock {
            Clock::Nanoseconds => span.nanos(),
            Clock::Microseconds | Clock::Jiffies => span.nanos() / 1000,
        }
    }

    fn nanos(&self, ticks: u128) -> Duration {
        let nanos = match self.clock {
            Clock::Nanoseconds => ticks,
            Clock::Microseconds => ticks * 1000,
            Clock::Jiffies => ticks * u128::from(JIFFY / TICKS_OF_JIFFY),
        };
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    pub(super) fn duration(&self, ticks: u64) -> Duration {
        self.nanos(ticks.into())
    }

    /// An average as a time, as far as it is one: one that was never divided is none, and shows as it is kept.
    pub(super) fn shown(&self, average: u64) -> Duration {
        let part = match self.faults.average {
            Average::Sound => 1 << POINT,
            Average::NeverDivided => 1,
            Average::Kept1024 => 1024,
        };
        self.nanos(u128::from(average) / part)
    }

    /// `γ·w + (1024 − γ)·d̄`, with n = 1.
    pub(super) fn ewma(&self, class: &PublishedClass, average: u64, wait: u64) -> u64 {
        self.weighed(1, class.gamma, average, wait)
    }

    /// The average that a departure after such a wait would leave, by the class's estimator.
    pub(super) fn estimate(&self, class: &PublishedClass, average: u64, wait: u64) -> u64 {
        let once = self.ewma(class, average, wait);
        let PublishedEstimator::ProportionalError { steps } = class.estimator else { return once };
        let n = match self.faults.steps {
            Steps::Equations => self.steps_of_error(steps, average, wait),
            Steps::Text => by_the_text(steps, once, wait),
            Steps::Appendix => by_the_appendix(steps, once, wait),
        };
        self.weighed(n, class.gamma, average, wait)
    }

    /// `n·γ·w + (1024 − n·γ)·d̄`. The sound one keeps n·γ at 1024 or below.
    fn weighed(&self, n: u32, gamma: u32, average: u64, wait: u64) -> u64 {
        let old = u64::from(1024_u32.wrapping_sub(n.wrapping_mul(gamma)));
        let new = match self.faults.word {
            Word::Bits64 => u64::from(n.wrapping_mul(gamma)).wrapping_mul(wait),
            // An int times a long, both of 32 bits.
            Word::Bits32 => u64::from(n.wrapping_mul(gamma).wrapping_mul(wait as u32)),
        };
        match self.faults.average {
            Average::NeverDivided => new.wrapping_add(old.wrapping_mul(average)),
            Average::Kept1024 => new.wrapping_add(old.wrapping_mul(average) >> 10),
            Average::Sound => {
                let share = n.saturating_mul(gamma).min(1024);
                let sum =
                    u128::from(share) * self.fine(wait) + u128::from(1024 - share) * u128::from(average);
                (sum >> 10) as u64
            }
        }
    }

    fn fine(&self, ticks: u64) -> u128 {
        u128::from(ticks) << POINT
    }

    /// The n of the equations.
    fn steps_of_error(&self, steps: u32, average: u64, wait: u64) -> u32 {
        let (delay, average) = match self.faults.average {
            Average::Sound => (self.fine(wait), u128::from(average)),
            Average::NeverDivided => (u128::from(wait), u128::from(average)),
            Average::Kept1024 => (u128::from(wait) << 10, u128::from(average)),
        };
        let error = delay.abs_diff(average) * 8;
        let within = (1..=steps).find(|&n| error <= u128::from(n) * average);
        within.unwrap_or(steps).max(1)
    }

    /// `(g·d̄ + (1024 − g)·w)/δ`, for comparisons only.
    pub(super) fn hybrid(&self, class: &PublishedClass, average: u64, wait: u64) -> u128 {
        let (g, rest) = (class.g, 1024 - class.g.min(1024));
        let sum = match self.faults.average {
            Average::Sound => u128::from(g) * u128::from(average) + u128::from(rest) * self.fine(wait),
            _ => {
                let wait = match self.faults.word {
                    Word::Bits64 => u64::from(rest).wrapping_mul(wait),
                    Word::Bits32 => u64::from(rest.wrapping_mul(wait as u32)),
                };
                u128::from(u64::from(g).wrapping_mul(average).wrapping_add(wait))
            }
        };
        let ddp = u128::from(class.ddp);
        match (self.faults.average, self.faults.word) {
            // Thirty-two bits below tell any two of the sound ones apart that differ by as much as 2⁻³² of a tick.
            (Average::Sound, Word::Bits64) => (sum << 32) / ddp,
            (Average::Sound, Word::Bits32) => u128::from((sum >> POINT) as u32) / ddp,
            (_, Word::Bits64) => sum / ddp,
            (_, Word::Bits32) => u128::from(sum as u32) / ddp,
        }
    }

    /// What EWMA-r's mean of so many delays is, and what is left in the place of their sum.
    pub(super) fn mean(&self, sum: u64, samples: u32) -> (u64, u64) {
        let samples = u64::from(samples);
        let divided = match self.faults.word {
            Word::Bits64 => sum,
            Word::Bits32 => u64::from(sum as u32),
        };
        let scale = match self.faults.average {
            Average::Sound => POINT,
            Average::NeverDivided => 0,
            Average::Kept1024 => 10,
        };
        if self.faults.remainder {
            ((divided % samples) << scale, divided / samples)
        } else {
            (((u128::from(divided) << scale) / u128::from(samples)) as u64, sum)
        }
    }
}

/// The loops of equation 4.2. `average` is the tentative one.
fn by_the_text(steps: u32, average: u64, wait: u64) -> u32 {
    let beyond = |eighths: u32| wait > u64::from(eighths).wrapping_mul(average) >> 3;
    let mut n = steps;
    for _ in 0..steps {
        if beyond(8_u32.wrapping_add(n)) {
            break;
        }
        n -= 1;
    }
    if wait > average {
        n = 1;
    }
    if n == 0 {
        for _ in 0..steps {
            n += 1;
            if beyond(8_u32.wrapping_sub(n)) {
                break;
            }
        }
    }
    n
}

/// The loops of appendix A, which compare with the same value in every round: n is the number of steps where the wait is
/// below that, and where it is not, n runs down to 0 and up to the number of steps again.
fn by_the_appendix(steps: u32, average: u64, wait: u64) -> u32 {
    let within = wait < u64::from(8_u32.wrapping_add(steps)).wrapping_mul(average) >> 3;
    let mut n = steps;
    for _ in 0..steps {
        if within {
            break;
        }
        n -= 1;
    }
    if n == 0 {
        for _ in 0..steps {
            n += 1;
            if within {
                break;
            }
        }
    }
    n
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With the appendix's loops n is the number of steps whatever the wait: EWMA-pe is an EWMA of n·γ.
    #[test]
    fn the_loops_of_the_appendix_know_one_n_only() {
        for (average, wait) in [(0, 0), (1000, 10), (1000, 999), (1000, 1001), (1000, 100_000), (7, u64::MAX)]
        {
            assert_eq!(by_the_appendix(8, average, wait), 8);
        }
    }

    /// The text's take the largest n where the wait is far above, by the first loop, and then set it to 1 again; only
    /// below the average is there more than one n.
    #[test]
    fn the_loops_of_the_text_see_errors_below_the_average_only() {
        for wait in [1001, 1200, 1500, 100_000] {
            assert_eq!(by_the_text(8, 1000, wait), 1);
        }
        let found = [990, 870, 700, 510, 300, 130, 10, 0].map(|wait| by_the_text(8, 1000, wait));
        assert_eq!(found, [1, 2, 3, 4, 6, 7, 8, 8]);
    }
}
