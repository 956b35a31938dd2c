//! The class with the largest hybrid delay.
//!
//! With λ the least common multiple of all δ, `λ·1024·h = (λ/δ)·g·d̄ + (λ/δ)·(1024 − g)·w` is an integer in the units
//! of the averages, and its comparison is exact: equal hybrid delays compare equal. As long as λ has at most 33 bits,
//! a class costs one multiplication. If it has more, classes are compared in pairs, each multiplied by the δ of the
//! other.

use alloc::vec::Vec;
use core::hint::select_unpredictable;
use core::num::NonZero;

use super::estimate::FRACTION;
use crate::bits::Bits;
use crate::class::Per1024;
use crate::sched::FlowId;
use crate::time::Time;

/// The terms of a class's hybrid delay.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Part {
    /// The term of the average: below 2¹⁰⁶.
    average: u128,
    /// What each nanosecond of waiting adds: below 2⁵⁹.
    slope: u64,
    /// What each unit of the average adds: below 2⁴³.
    factor: u64,
    /// When the first packet arrived.
    pub(super) head: Time,
    /// Known from the first packet of the class on.
    pub(super) flow: FlowId,
}

impl Part {
    /// λ·1024·h in the units of the averages: below 2¹²⁴.
    #[inline(always)]
    fn hybrid(&self, now: Time) -> u128 {
        self.average + u128::from(self.slope) * u128::from(now.since(self.head).nanos())
    }

    /// The slope, and the factor of the average.
    pub(super) const fn scale(&self) -> (u64, u64) {
        (self.slope, self.factor)
    }

    /// Sets the average, which has 63 bits.
    #[inline]
    pub(super) fn set_average(&mut self, average: u64) {
        self.average = u128::from(self.factor) * u128::from(average);
    }
}

/// The terms of all classes, by number.
#[derive(Debug, Default)]
pub(super) struct Parts {
    parts: Vec<Part>,
    /// δ of each class, and the factor of its hybrid delay: λ/δ, or 1 if λ would be too large.
    scales: Vec<(u32, u64)>,
    /// Whether λ is small enough.
    common: bool,
}

impl Parts {
    /// The maximum of λ.
    const MOST: u64 = 1 << 32;

    /// Sets the δ of all classes. Their other terms must then be set again.
    pub(super) fn set_ddps(&mut self, ddps: &[NonZero<u32>]) {
        let common = ddps.iter().try_fold(1, |lcm: u64, ddp| {
            let ddp = u64::from(ddp.get());
            let lcm = lcm / gcd(lcm, ddp) * ddp; // below 2⁶⁴: at most 2³² so far
            (lcm <= Self::MOST).then_some(lcm)
        });
        self.common = common.is_some();
        let scale = |ddp: &NonZero<u32>| (ddp.get(), common.map_or(1, |lcm| lcm / u64::from(ddp.get())));
        self.scales = ddps.iter().map(scale).collect();
        self.parts.resize(ddps.len(), Part::default());
    }

    /// Sets the weights of waiting time and average.
    pub(super) fn set_g(&mut self, class: u32, g: Per1024) {
        let (_, scale) = self.scales[class as usize];
        let part = &mut self.parts[class as usize];
        part.slope = (scale * u64::from(g.rest())) << FRACTION; // 33, 11 and 16 bits
        part.factor = scale * u64::from(g.get());
    }

    /// Whether all hybrid delays have a common denominator.
    pub(super) const fn is_common(&self) -> bool {
        self.common
    }

    /// The terms of a class.
    #[inline]
    pub(super) fn of(&self, class: u32) -> &Part {
        &self.parts[class as usize]
    }

    /// Mutable access to the terms of a class.
    #[inline]
    pub(super) fn of_mut(&mut self, class: u32) -> &mut Part {
        &mut self.parts[class as usize]
    }

    /// The class with the largest hybrid delay among those whose bits are set, at least one; on a tie, the one with
    /// the lowest number.
    #[inline]
    pub(super) fn largest(&self, now: Time, among: u32) -> u32 {
        let first = among.trailing_zeros();
        let mut rest = among & among.wrapping_sub(1);
        if rest == 0 {
            return first;
        }
        if !self.common {
            return self.largest_by_pairs(now, among);
        }
        let (mut class, mut most) = (first, self.parts[first as usize].hybrid(now));
        while rest != 0 {
            let other = rest.trailing_zeros();
            rest &= rest - 1;
            let hybrid = self.parts[other as usize].hybrid(now);
            // Which one is larger is unpredictable.
            let larger = hybrid > most;
            class = select_unpredictable(larger, other, class);
            most = select_unpredictable(larger, hybrid, most);
        }
        class
    }

    /// Like [`Self::largest`], for any δ.
    #[cold]
    fn largest_by_pairs(&self, now: Time, among: u32) -> u32 {
        let hybrid = |class: u32| self.parts[class as usize].hybrid(now); // below 2⁹²
        let ddp = |class: u32| u128::from(self.scales[class as usize].0);
        let larger = |one: u32, other: u32| {
            if hybrid(other) * ddp(one) > hybrid(one) * ddp(other) { other } else { one }
        };
        Bits(among.into()).reduce(larger).unwrap_or_default()
    }
}

const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
