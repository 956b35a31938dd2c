//! Finds the interval that contains a value.

use alloc::vec::Vec;

use super::address::Address;

/// Rows of adjacent intervals from zero on, each with a number.
///
/// In a long row, the bits after the common bits of all interval starts lead to a short part of the row. This takes
/// two loads for most rows, where a binary search would take more than ten. A part that is still long is handled in
/// the same way.
#[derive(Debug)]
pub(super) struct Intervals<A> {
    /// Interval starts.
    starts: Vec<A>,
    numbers: Vec<u32>,
    jumps: Vec<Jump<A>>,
    buckets: Vec<Bucket>,
}

/// A row of intervals.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    first: u32,
    count: u32,
    /// `NONE` for a short row.
    jump: u32,
}

/// Leads to a part of some interval starts.
#[derive(Clone, Copy, Debug)]
struct Jump<A> {
    /// The common bits, and their number.
    shared: A,
    skipped: u8,
    /// This many bits after them select a bucket.
    bits: u8,
    buckets: u32,
    first: u32,
    count: u32,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// The first interval start in it or after it.
    first: u32,
    /// The number of starts, or with [`DEEPER`] the next jump.
    count: u32,
}

const NONE: u32 = u32::MAX;
const DEEPER: u32 = 1 << 31;
/// This many starts are searched quickly.
const SHORT: usize = 8;

impl<A: Address> Intervals<A> {
    pub(super) const fn new() -> Self {
        Self { starts: Vec::new(), numbers: Vec::new(), jumps: Vec::new(), buckets: Vec::new() }
    }

    /// Adds a row of intervals: the start of each, in order and beginning at zero, and its number.
    pub(super) fn add(&mut self, row: &[(A, u32)]) -> Row {
        let (first, count) = (self.starts.len(), row.len());
        self.starts.extend(row.iter().map(|&(start, _)| start));
        self.numbers.extend(row.iter().map(|&(_, number)| number));
        // A value that is in no other interval is in the first one.
        let jump = if count > SHORT + 1 { self.jump(first + 1, count - 1) } else { NONE };
        Row { first: first as u32, count: count as u32, jump }
    }

    /// Makes a jump over these starts, more than one.
    fn jump(&mut self, first: usize, count: usize) -> u32 {
        let (least, greatest) = (self.starts[first], self.starts[first + count - 1]);
        let skipped = (least ^ greatest).leading_zeros();
        let bits = (count.ilog2() as u8 + 1).min(16).min(A::BITS - skipped);
        let (number, buckets) = (self.jumps.len(), self.buckets.len());
        self.jumps.push(Jump {
            shared: least.first(skipped),
            skipped,
            bits,
            buckets: buckets as u32,
            first: first as u32,
            count: count as u32,
        });
        self.buckets.resize(buckets + (1 << bits), Bucket { first: 0, count: 0 });
        let mut next = first;
        for nth in 0..1 << bits {
            let left = &self.starts[next..first + count];
            let inside = left.iter().take_while(|start| start.window(skipped, bits) == nth).count();
            let deeper = if inside > SHORT { DEEPER | self.jump(next, inside) } else { inside as u32 };
            self.buckets[buckets + nth] = Bucket { first: next as u32, count: deeper };
            next += inside;
        }
        number as u32
    }

    /// The number of the interval of a row that contains a value.
    #[inline]
    pub(super) fn find(&self, row: Row, value: A) -> u32 {
        let (mut first, mut count, mut jump) = (row.first, row.count, row.jump);
        while jump != NONE {
            let at = &self.jumps[jump as usize];
            if (value ^ at.shared).first(at.skipped) != A::default() {
                // It is before all of them or after them.
                (first, count) = (at.first, if value < at.shared { 0 } else { at.count });
                return self.numbers[(first + count) as usize - 1];
            }
            let bucket = self.buckets[at.buckets as usize + value.window(at.skipped, at.bits)];
            (first, count, jump) = if bucket.count & DEEPER == 0 {
                (bucket.first, bucket.count, NONE)
            } else {
                (bucket.first, 0, bucket.count & !DEEPER)
            };
        }
        let starts = &self.starts[first as usize..][..count as usize];
        let before = starts.partition_point(|&start| start <= value);
        self.numbers[first as usize + before - 1]
    }

    pub(super) fn shrink(&mut self) {
        self.starts.shrink_to_fit();
        self.numbers.shrink_to_fit();
        self.jumps.shrink_to_fit();
        self.buckets.shrink_to_fit();
    }

    pub(super) fn bytes(&self) -> usize {
        self.starts.capacity() * size_of::<A>()
            + self.numbers.capacity() * size_of::<u32>()
            + self.jumps.capacity() * size_of::<Jump<A>>()
            + self.buckets.capacity() * size_of::<Bucket>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every value near a beginning is where halving finds it.
    fn check<A: Address + core::fmt::Debug>(starts: impl Iterator<Item = A>, steps: [fn(A) -> A; 3]) {
        let mut starts: Vec<A> = core::iter::once(A::default()).chain(starts).collect();
        starts.sort_unstable();
        starts.dedup();
        let row: Vec<_> = starts.iter().copied().zip(0..).collect();
        let mut intervals = Intervals::new();
        // Not the first row.
        intervals.add(&[(A::default(), 7)]);
        let place = intervals.add(&row);
        for &start in &starts {
            for step in steps {
                let value = step(start);
                let found = starts.partition_point(|&start| start <= value) as u32 - 1;
                assert_eq!(intervals.find(place, value), found, "{value:?} among {starts:?}");
            }
        }
    }

    #[test]
    fn values_are_found_in_rows_of_all_sorts() {
        let steps: [fn(u32) -> u32; 3] = [|v| v, |v| v.wrapping_add(1), |v| v.wrapping_sub(1)];
        for count in [0, 1, 8, 9, 10, 100, 3_000] {
            check((0..count).map(|n| n * 256 + 0x0a00_0000), steps);
            check((0..count).map(|n: u32| n.wrapping_mul(0x9e37_79b9)), steps);
            // Ever closer to each other: a part of a part of a part is long.
            check((0..count).map(|n| u32::MAX >> (n % 32) ^ n >> 5), steps);
        }
        let wide: [fn(u128) -> u128; 3] = [|v| v, |v| v.wrapping_add(1), |v| v.wrapping_sub(1)];
        for count in [1u128, 9, 1_000] {
            check((0..count).map(|n| 0x2001 << 112 | (n % 40) << 64 | (n / 40)), wide);
            check((0..count).map(|n| u128::MAX >> (n % 128) ^ n >> 7), wide);
        }
    }
}
