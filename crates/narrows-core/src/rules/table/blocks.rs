//! Short rows of values in one vector, each identified by its start index.

use alloc::vec::Vec;
use core::mem;
use core::ops::{Index, IndexMut, Range};

/// Rows of up to 64 values. A row's capacity is a power of two. Freed space is reused for rows of the same capacity,
/// and holds default values in the meantime.
///
/// Space is never reused for another capacity. With insertions only, the total is at most four times the size of the
/// contents. With insertions and removals, it is at most 14 times the maximum size of the contents: seven capacities,
/// each half full at worst. A quarter is added as reserve for growth.
#[derive(Clone, Debug)]
pub(super) struct Blocks<T> {
    slots: Vec<T>,
    /// Start indices of free space, by the logarithm of the capacity.
    free: [Vec<u32>; 7],
}

impl<T> Blocks<T> {
    pub(super) const fn new() -> Self {
        Self { slots: Vec::new(), free: [const { Vec::new() }; 7] }
    }

    /// Memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        let free = self.free.iter().map(Vec::capacity).sum::<usize>();
        self.slots.capacity() * size_of::<T>() + free * size_of::<u32>()
    }
}

impl<T: Default> Blocks<T> {
    /// Creates a row of one value.
    pub(super) fn single(&mut self, value: T) -> u32 {
        let at = self.take(0);
        self[at] = value;
        at
    }

    /// Inserts a value at `rank` into the row of `count` values at `at`. Returns the row's new start index.
    pub(super) fn insert(&mut self, at: u32, count: u32, rank: u32, value: T) -> u32 {
        let to = if count == 0 {
            self.take(0)
        } else if count.is_power_of_two() {
            let to = self.take(count.ilog2() as usize + 1);
            self.carry(at, to, rank);
            self.carry(at + rank, to + rank + 1, count - rank);
            self.free[count.ilog2() as usize].push(at);
            to
        } else {
            // The slot after the last value is free: it moves to `rank`, and the others move up by one.
            self.slots[range(at + rank, count - rank + 1)].rotate_right(1);
            at
        };
        self[to + rank] = value;
        to
    }

    /// Removes the value at `rank` from the row of `count` values at `at`. Returns it with the row's new start index.
    pub(super) fn remove(&mut self, at: u32, count: u32, rank: u32) -> (T, u32) {
        let value = mem::take(&mut self[at + rank]);
        self.slots[range(at + rank, count - rank)].rotate_left(1);
        let left = count - 1;
        if left == 0 {
            self.free[0].push(at);
            return (value, 0);
        }
        if !left.is_power_of_two() {
            return (value, at);
        }
        let to = self.take(left.ilog2() as usize);
        self.carry(at, to, left);
        self.free[left.ilog2() as usize + 1].push(at);
        (value, to)
    }

    /// Allocates space for two to the power of `class` values.
    fn take(&mut self, class: usize) -> u32 {
        if let Some(at) = self.free[class].pop() {
            return at;
        }
        let (at, more) = (self.slots.len(), 1 << class);
        if at + more > self.slots.capacity() {
            // Grow by a quarter: doubling, the default of vectors, would leave half of a large table empty.
            self.slots.reserve_exact(more.max(at / 4));
        }
        self.slots.resize_with(at + more, T::default);
        // More slots would be 16 GiB of the smallest kind.
        u32::try_from(at).expect("fewer than 2^32 slots")
    }

    /// Moves values from one position to another that does not overlap.
    fn carry(&mut self, from: u32, to: u32, count: u32) {
        for nth in 0..count {
            self.slots.swap((from + nth) as usize, (to + nth) as usize);
        }
    }
}

fn range(at: u32, count: u32) -> Range<usize> {
    at as usize..(at + count) as usize
}

impl<T> Index<u32> for Blocks<T> {
    type Output = T;
    #[inline]
    fn index(&self, at: u32) -> &T {
        &self.slots[at as usize]
    }
}

impl<T> IndexMut<u32> for Blocks<T> {
    #[inline]
    fn index_mut(&mut self, at: u32) -> &mut T {
        &mut self.slots[at as usize]
    }
}
