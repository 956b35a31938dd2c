//! The event schedule: a heap with one entry for each element that has a next event.
//!
//! A table of positions finds an element's entry, so an entry is moved in place instead of leaving a stale
//! one behind, and an idle element has none. Equal times are ordered by element id, which follows from the
//! elements' names.

use alloc::vec;
use alloc::vec::Vec;

use crate::time::Time;

const ABSENT: u32 = u32::MAX;

/// Children of an entry. With more children the heap has fewer levels, and moving an entry touches less
/// memory.
const WIDTH: usize = 4;

#[derive(Debug)]
pub(crate) struct Agenda {
    heap: Vec<Entry>,
    position: Vec<u32>,
}

/// A time and an element in one number: two of them compare without a branch, which no processor could
/// predict in a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry(u128);

impl Entry {
    const fn new(at: Time, element: u32) -> Self {
        Self((at.nanos() as u128) << 64 | element as u128)
    }

    const fn at(self) -> Time {
        Time::from_nanos((self.0 >> 64) as u64)
    }

    const fn element(self) -> u32 {
        self.0 as u32
    }
}

impl Agenda {
    pub(crate) fn new(elements: usize) -> Self {
        Self { heap: Vec::new(), position: vec![ABSENT; elements] }
    }

    /// Makes room for one more element, which gets the next number.
    pub(crate) fn add(&mut self) {
        self.position.push(ABSENT);
    }

    /// The earliest event and its element.
    #[inline]
    pub(crate) fn first(&self) -> Option<(Time, u32)> {
        self.heap.first().map(|first| (first.at(), first.element()))
    }

    /// All elements that have a next event, in no particular order.
    pub(crate) fn elements(&self) -> impl ExactSizeIterator<Item = u32> {
        self.heap.iter().map(|entry| entry.element())
    }

    /// Sets the time of the element's next event; [`Time::NEVER`] for none.
    #[inline]
    pub(crate) fn set(&mut self, element: u32, at: Time) {
        let position = self.position[element as usize];
        if position == ABSENT || at == Time::NEVER {
            return self.join_or_leave(element, at);
        }
        let position = position as usize;
        let before = core::mem::replace(&mut self.heap[position], Entry::new(at, element)).at();
        if at < before && position > 0 {
            self.rise(position);
        } else if at > before && WIDTH * position + 1 < self.heap.len() {
            self.sink(position);
        }
    }

    /// As [`Agenda::set`], for the element that [`Agenda::first`] has just named.
    #[inline]
    pub(crate) fn set_first(&mut self, element: u32, at: Time) {
        debug_assert!(self.first().is_some_and(|(_, first)| first == element));
        match self.heap.first_mut() {
            Some(first) if at != Time::NEVER => {
                *first = Entry::new(at, element);
                if self.heap.len() > 1 {
                    self.sink(0);
                }
            }
            _ => self.join_or_leave(element, at),
        }
    }

    #[inline(never)]
    fn join_or_leave(&mut self, element: u32, at: Time) {
        match (self.position[element as usize], at) {
            (ABSENT, Time::NEVER) => {}
            (ABSENT, at) => {
                self.position[element as usize] = self.heap.len() as u32;
                self.heap.push(Entry::new(at, element));
                if self.heap.len() > 1 {
                    self.rise(self.heap.len() - 1);
                }
            }
            (position, _) => self.remove(position as usize),
        }
    }

    fn remove(&mut self, position: usize) {
        let removed = self.heap.swap_remove(position);
        self.position[removed.element() as usize] = ABSENT;
        if let Some(moved) = self.heap.get(position).copied() {
            // The former last entry may belong above or below.
            self.rise(position);
            self.sink(self.position[moved.element() as usize] as usize);
        }
    }

    fn rise(&mut self, mut at: usize) {
        let entry = self.heap[at];
        while at > 0 {
            let parent = (at - 1) / WIDTH;
            if self.heap[parent] <= entry {
                break;
            }
            self.place(at, self.heap[parent]);
            at = parent;
        }
        self.place(at, entry);
    }

    fn sink(&mut self, mut at: usize) {
        let entry = self.heap[at];
        loop {
            let first = WIDTH * at + 1;
            let last = (first + WIDTH).min(self.heap.len());
            let Some((&least, others)) = self.heap.get(first..last).and_then(<[_]>::split_first) else {
                break;
            };
            let (mut child, mut below) = (least, first);
            for (&other, place) in others.iter().zip(first + 1..) {
                let is_less = other < child;
                child = if is_less { other } else { child };
                below = if is_less { place } else { below };
            }
            if entry <= child {
                break;
            }
            self.place(at, child);
            at = below;
        }
        self.place(at, entry);
    }

    fn place(&mut self, at: usize, entry: Entry) {
        self.heap[at] = entry;
        self.position[entry.element() as usize] = at as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_agrees_with_a_sorted_list(
            steps in proptest::collection::vec((0u32..12, proptest::option::of(0u64..20)), 1..200)
        ) {
            let mut agenda = Agenda::new(12);
            let mut plain = [None; 12];
            for (element, at) in steps {
                let at = at.map(Time::from_nanos);
                let to = at.unwrap_or(Time::NEVER);
                match agenda.first() {
                    Some((_, first)) if first == element => agenda.set_first(element, to),
                    _ => agenda.set(element, to),
                }
                plain[element as usize] = at;
                let first = plain.iter().enumerate().filter_map(|(e, t)| t.map(|t| (t, e as u32))).min();
                prop_assert_eq!(agenda.first(), first);
                prop_assert_eq!(agenda.heap.len(), plain.iter().flatten().count());
            }
        }
    }
}
