//! The arrival instants of the packets of a class, the first in front.

use alloc::vec::Vec;

use crate::time::Time;

/// A ring whose capacity is a power of two, so that a position is found by a mask.
#[derive(Debug, Default)]
pub(super) struct Ring {
    times: Vec<Time>,
    /// How many have been removed since the capacity was set.
    head: usize,
    len: usize,
}

impl Ring {
    #[inline]
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn place(&self, number: usize) -> usize {
        self.head.wrapping_add(number) & self.times.len().wrapping_sub(1)
    }

    #[inline]
    pub(super) fn front(&self) -> Option<Time> {
        if self.len == 0 { None } else { self.times.get(self.place(0)).copied() }
    }

    #[inline]
    pub(super) fn push(&mut self, time: Time) {
        if self.len == self.times.len() {
            self.grow();
        }
        let place = self.place(self.len);
        if let Some(free) = self.times.get_mut(place) {
            *free = time;
        }
        self.len += 1;
    }

    /// Removes the first entries.
    #[inline]
    pub(super) fn drop_front(&mut self, gone: usize) {
        self.head = self.head.wrapping_add(gone);
        self.len -= gone;
    }

    #[cold]
    fn grow(&mut self) {
        let room = (2 * self.times.len()).max(8);
        let mut times: Vec<Time> = (0..self.len).map(|number| self.times[self.place(number)]).collect();
        times.resize(room, Time::ZERO);
        (self.times, self.head) = (times, 0);
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::VecDeque;

    use super::*;

    #[test]
    fn it_is_a_row_however_it_grows_and_wraps() {
        let (mut ring, mut row) = (Ring::default(), VecDeque::new());
        let mut state = 1_u64;
        for number in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Up for some time, then down.
            let pushes = state >> 60 < if number / 1000 % 2 == 0 { 9 } else { 6 };
            if pushes {
                ring.push(Time::from_nanos(number));
                row.push_back(Time::from_nanos(number));
            } else {
                let gone = row.len().min((state >> 32) as usize & 3);
                ring.drop_front(gone);
                row.drain(..gone);
            }
            assert_eq!((ring.len(), ring.front()), (row.len(), row.front().copied()));
        }
        while let Some(first) = row.pop_front() {
            assert_eq!(ring.front(), Some(first));
            ring.drop_front(1);
        }
        assert_eq!(ring.front(), None);
    }
}
