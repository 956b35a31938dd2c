//! Resamples a trace in equal steps.
//!
//! Each step has the mean over its time of rate, delay, loss and duplicates, so that the same number of
//! bits can pass in it. A rate that is unlimited anywhere in a step is unlimited in all of it. A queue
//! bound has no mean: the value at the start of the step is used. Opportunities become a rate: those in (a,
//! b] are the bits that pass from a to b, since an opportunity serves what waits before it; those at the
//! very start recur at the end, and count there.

use narrows_core::queue::Bound;
use narrows_core::{Duration, Probability, Rate, Time};

use crate::trace::column::points;
use crate::trace::{Column, MOST_POINTS, OPPORTUNITY, Trace};

/// Bits of one opportunity.
const BITS: u128 = OPPORTUNITY as u128 * 8;

impl Trace {
    /// The trace in steps of this length; the last one may be shorter. `None` for a step of zero, or for
    /// more steps than a trace may have.
    pub fn resample(&self, step: Duration) -> Option<Self> {
        if step == Duration::ZERO || self.length.nanos().div_ceil(step.nanos()) > MOST_POINTS as u64 {
            return None;
        }
        let steps = Steps { step: step.nanos(), length: self.length.nanos() };
        let mut trace = Self {
            rate: self.rate.as_ref().map(|column| points(steps.rates(column))),
            delay: self.delay.as_ref().map(|column| {
                points(steps.means(
                    column,
                    |delay| delay.nanos().into(),
                    |nanos| Duration::from_nanos(nanos as u64),
                ))
            }),
            loss: self.loss.as_ref().map(|column| points(steps.shares(column))),
            duplicate: self.duplicate.as_ref().map(|column| points(steps.shares(column))),
            bound: self.bound.as_ref().map(|column| points(steps.bounds(column))),
            opportunities: None,
            ..self.clone()
        };
        if let Some(opportunities) = &self.opportunities {
            trace.rate = Some(points(steps.opportunities(opportunities)));
            trace.remarks.push(format!(
                "opportunities are written as a rate in steps of {step}: what is sent at once in the original is spread over a step"
            ));
        }
        Some(trace)
    }
}

/// Equal steps; the last one may be shorter.
struct Steps {
    step: u64,
    length: u64,
}

impl Steps {
    /// Start and end of each step.
    fn each(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let (step, length) = (self.step, self.length);
        // Above zero, and at most the maximum number of points of a trace.
        (0..length.div_ceil(step))
            .map(move |number| (number * step, number.saturating_add(1).saturating_mul(step).min(length)))
    }

    /// The mean of `value` over the column's values in each step, rounded to the nearest integer.
    fn means<T: Copy>(
        &self,
        column: &[(Time, T)],
        value: impl Fn(T) -> u128,
        back: impl Fn(u128) -> T,
    ) -> Column<T> {
        let mut next = 0;
        let mut now = None;
        self.each()
            .map(|(start, end)| {
                let (mut at, mut sum) = (start, 0u128);
                while at < end {
                    while column.get(next).is_some_and(|point| point.0.nanos() <= at) {
                        now = Some(column[next].1);
                        next += 1;
                    }
                    let until = column.get(next).map_or(end, |point| point.0.nanos().min(end));
                    // Values are below 2⁶⁴ and times below 2⁶².
                    sum += now.map_or(0, &value) * u128::from(until - at);
                    at = until;
                }
                let span = u128::from(end - start);
                (Time::from_nanos(start), back((sum + span / 2) / span))
            })
            .collect()
    }

    fn rates(&self, column: &[(Time, Rate)]) -> Column<Rate> {
        let value = |rate: Rate| if rate == Rate::UNLIMITED { 0 } else { u128::from(rate.bits_per_second()) };
        let mut rates = self.means(column, value, |bits| Rate::from_bits_per_second(bits as u64));
        let ends = column.iter().skip(1).map(|point| point.0.nanos()).chain([self.length]);
        for (point, end) in column.iter().zip(ends).filter(|(point, _)| point.1 == Rate::UNLIMITED) {
            let steps = (point.0.nanos() / self.step) as usize..end.div_ceil(self.step) as usize;
            rates[steps].iter_mut().for_each(|step| step.1 = Rate::UNLIMITED);
        }
        rates
    }

    fn shares(&self, column: &[(Time, Probability)]) -> Column<Probability> {
        const ONE: u64 = 1 << 63;
        // Probabilities are multiples of 2⁻⁶³; a float keeps 53 bits, more precise than any measurement.
        let value = |share: Probability| (share.as_f64() * ONE as f64) as u128;
        let back =
            |parts: u128| Probability::from_ratio((parts as u64).min(ONE), ONE).expect("it is at most one");
        self.means(column, value, back)
    }

    fn bounds(&self, column: &[(Time, Bound)]) -> Column<Bound> {
        let mut next = 0;
        let mut points: Column<Bound> = Vec::new();
        for (start, _) in self.each() {
            while column.get(next).is_some_and(|point| point.0.nanos() <= start) {
                next += 1;
            }
            let held = column[next.saturating_sub(1)].1;
            points.push((Time::from_nanos(start), held));
        }
        points
    }

    fn opportunities(&self, opportunities: &[Time]) -> Column<Rate> {
        let first = opportunities.iter().take_while(|time| **time == Time::ZERO).count();
        let (mut next, mut points) = (first, Vec::new());
        for (start, end) in self.each() {
            let before = next;
            while opportunities.get(next).is_some_and(|time| time.nanos() <= end) {
                next += 1;
            }
            let again = if end == self.length { first } else { 0 };
            let bits = (next - before + again) as u128 * BITS;
            let span = u128::from(end - start);
            let rate = (bits * 1_000_000_000 + span / 2) / span;
            points.push((Time::from_nanos(start), Rate::from_bits_per_second(rate as u64)));
        }
        points
    }
}
