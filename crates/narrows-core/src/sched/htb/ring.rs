//! A set of small numbers that take turns in numerical order.

use alloc::vec;
use alloc::vec::Vec;

/// A hierarchical bitmap: one bit for each number, one bit for each word of these that is not zero, and so on up to a
/// single word; and the number whose turn it is. The turn may be a number that is not in the set: then the next one
/// has the turn. So a number that is removed and inserted again before its turn loses nothing, and operations in
/// between do not matter.
#[derive(Clone, Debug, Default)]
pub(super) struct Ring {
    /// Words by layers, the bits of the numbers first.
    layers: Vec<Vec<u64>>,
    pub(super) turn: u32,
}

impl Ring {
    /// A ring for numbers below this.
    pub(super) fn new(numbers: usize) -> Self {
        let mut layers = Vec::new();
        let mut words = numbers.div_ceil(64).max(1);
        loop {
            layers.push(vec![0; words]);
            if words == 1 {
                return Self { layers, turn: 0 };
            }
            words = words.div_ceil(64);
        }
    }

    /// Whether there is room for any number: whether it was created by [`Ring::new`].
    pub(super) fn has_room(&self) -> bool {
        !self.layers.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.layers.last().is_none_or(|top| top[0] == 0)
    }

    #[inline]
    pub(super) fn insert(&mut self, mut number: u32) {
        for layer in &mut self.layers {
            let word = &mut layer[(number >> 6) as usize];
            let was_empty = *word == 0;
            *word |= 1 << (number & 63);
            if !was_empty {
                return;
            }
            number >>= 6;
        }
    }

    #[inline]
    pub(super) fn remove(&mut self, mut number: u32) {
        for layer in &mut self.layers {
            let word = &mut layer[(number >> 6) as usize];
            *word &= !(1 << (number & 63));
            if *word != 0 {
                return;
            }
            number >>= 6;
        }
    }

    /// The smallest number in the set that is at least `from`.
    #[inline]
    pub(super) fn next(&self, from: u32) -> Option<u32> {
        let mut from = from;
        for (height, layer) in self.layers.iter().enumerate() {
            let word = layer.get((from >> 6) as usize).copied().unwrap_or(0) & u64::MAX << (from & 63);
            if word != 0 {
                let mut number = from & !63 | word.trailing_zeros();
                for lower in self.layers[..height].iter().rev() {
                    number = number << 6 | lower[number as usize].trailing_zeros();
                }
                return Some(number);
            }
            from = (from >> 6) + 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_finds_the_next_as_a_sorted_set_does(
            numbers in prop_oneof![1usize..130, 4_000usize..4_200, 260_000usize..270_000],
            steps in vec((any::<bool>(), any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..200),
        ) {
            let (mut ring, mut model) = (Ring::new(numbers), BTreeSet::new());
            for (inserts, number, from) in steps {
                let number = number.index(numbers) as u32;
                if inserts {
                    ring.insert(number);
                    model.insert(number);
                } else {
                    ring.remove(number);
                    model.remove(&number);
                }
                let from = from.index(numbers + 1) as u32;
                prop_assert_eq!(ring.next(from), model.range(from..).next().copied());
                prop_assert_eq!(ring.next(0), model.first().copied());
                prop_assert_eq!(ring.is_empty(), model.is_empty());
            }
        }
    }
}
