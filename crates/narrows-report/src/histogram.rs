//! A histogram that takes memory only for the steps that were used.
//!
//! The steps are those of HdrHistogram with three significant digits: whole numbers up to 2047, then 1024 steps between
//! each power of two and the next. Its table of all steps up to the greatest value takes 8 KiB for each power of two, and a
//! large network has some histograms for each of its flows; here a step in use takes 11 to 21 bytes.

use std::ops::RangeInclusive;

/// Counts of values in steps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    /// A hash table with open addressing. An entry has the number of its step in the lower 16 bits and the count above
    /// them; it is 0 if it is free.
    entries: Vec<u64>,
    used: usize,
    values: u64,
}

/// Steps between two powers of two, in bits.
const DIGITS: u32 = 10;
const STEP: u64 = 0xffff;
const ONE: u64 = STEP + 1;
/// Entries of the first table.
const FEW: usize = 8;

impl Histogram {
    /// Greater values count as this one.
    pub(crate) const GREATEST: u64 = (1 << 62) - 1;

    /// Counts a value.
    #[inline]
    pub(crate) fn record(&mut self, value: u64) {
        self.values += 1;
        self.count(step_of(value.min(Self::GREATEST)), 1);
    }

    #[inline]
    fn count(&mut self, step: u64, times: u64) {
        // At most three quarters are in use, so there is a free entry.
        if self.used * 4 >= self.entries.len() * 3 {
            self.grow();
        }
        let mask = self.entries.len() - 1;
        let mut at = place(step) & mask;
        loop {
            match &mut self.entries[at] {
                free @ 0 => {
                    *free = times << 16 | step;
                    self.used += 1;
                    return;
                }
                // A step that is full, after 2⁴⁸ values, stays as it is.
                entry if *entry & STEP == step => {
                    return *entry = entry.checked_add(times * ONE).unwrap_or(*entry);
                }
                _ => at = (at + 1) & mask,
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let more = vec![0; (self.entries.len() * 2).max(FEW)];
        let entries = std::mem::replace(&mut self.entries, more);
        self.used = 0;
        entries
            .into_iter()
            .filter(|&entry| entry != 0)
            .for_each(|entry| self.count(entry & STEP, entry >> 16));
    }

    /// Adds the counts of another one.
    pub(crate) fn add(&mut self, other: &Self) {
        self.values += other.values;
        let entries = other.entries.iter().filter(|&&entry| entry != 0);
        entries.for_each(|entry| self.count(entry & STEP, entry >> 16));
    }

    /// Forgets all values and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.entries.fill(0);
        (self.used, self.values) = (0, 0);
    }

    /// How many values were counted.
    pub(crate) const fn values(&self) -> u64 {
        self.values
    }

    /// The values that each step in use stands for, and how many were counted there, from the least step on.
    pub(crate) fn steps(&self) -> Vec<(RangeInclusive<u64>, u64)> {
        let mut all: Vec<_> = self.entries.iter().filter(|&&entry| entry != 0).copied().collect();
        all.sort_unstable_by_key(|entry| entry & STEP);
        all.into_iter().map(|entry| (values_of(entry & STEP), entry >> 16)).collect()
    }
}

const fn step_of(value: u64) -> u64 {
    let shift = (63 - DIGITS) - (value | ((2 << DIGITS) - 1)).leading_zeros();
    ((shift as u64) << DIGITS) + (value >> shift)
}

const fn values_of(step: u64) -> RangeInclusive<u64> {
    if step < 2 << DIGITS {
        return step..=step;
    }
    let shift = (step >> DIGITS) - 1;
    let least = ((1 << DIGITS) + (step & ((1 << DIGITS) - 1))) << shift;
    least..=least + (1 << shift) - 1
}

/// Where to look for a step first. Neighbours stay neighbours: values of one histogram are often close to each other.
/// Steps of different powers of two do not begin at the same place.
const fn place(step: u64) -> usize {
    (step + (step >> DIGITS) * 397) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn steps_follow_each_other() {
        let greatest = step_of(Histogram::GREATEST);
        assert!(greatest <= STEP);
        let mut next = 0;
        for step in 0..=greatest {
            let values = values_of(step);
            assert_eq!(*values.start(), next);
            assert_eq!((step_of(*values.start()), step_of(*values.end())), (step, step));
            // Half a part in a thousand on either side of the middle.
            assert!((values.end() - values.start()) * 1000 <= *values.start());
            next = values.end() + 1;
        }
        assert_eq!(next, Histogram::GREATEST + 1);
    }

    fn values() -> impl Strategy<Value = Vec<u64>> {
        let value = (0u32..42, any::<u64>()).prop_map(|(bits, value)| value & ((1 << bits) - 1));
        // Some come several times.
        proptest::collection::vec(prop_oneof![value, 0u64..40], 0..2000)
    }

    fn published(values: &[u64]) -> hdrhistogram::Histogram<u64> {
        let mut published = hdrhistogram::Histogram::new_with_bounds(1, 2, 3).unwrap();
        published.auto(true);
        values.iter().for_each(|&value| published.record(value).unwrap());
        published
    }

    proptest! {
        #[test]
        fn its_steps_are_those_of_the_published_one(first in values(), then in values()) {
            let (mut one, mut other) = (Histogram::default(), Histogram::default());
            first.iter().for_each(|&value| one.record(value));
            then.iter().for_each(|&value| other.record(value));
            one.add(&other);
            let mut published = published(&first);
            published.add(self::published(&then)).unwrap();
            let expected: Vec<_> = published
                .iter_recorded()
                .map(|step| {
                    let last = step.value_iterated_to();
                    (published.lowest_equivalent(last)..=last, step.count_at_value())
                })
                .collect();
            prop_assert_eq!(one.steps(), expected);
            prop_assert_eq!(one.values(), published.len());
            prop_assert!(one.entries.len() <= (one.used * 8 / 3).max(FEW));
            one.clear();
            prop_assert_eq!((one.steps(), one.values()), (vec![], 0));
        }
    }
}
