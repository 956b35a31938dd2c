//! Which element has its next event when: a binary heap with one entry for each element that has one.
//!
//! Elements find their entry by a table of positions, so an entry moves instead of being left behind, and an idle
//! element has none. Equal instants are ordered by element id, which follows from the elements' names.

use alloc::vec;
use alloc::vec::Vec;

use crate::time::Time;

const ABSENT: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct Agenda {
    heap: Vec<(Time, u32)>,
    position: Vec<u32>,
}

impl Agenda {
    pub(crate) fn new(elements: usize) -> Self {
        Self { heap: Vec::new(), position: vec![ABSENT; elements] }
    }

    /// The earliest event and its element.
    #[inline]
    pub(crate) fn first(&self) -> Option<(Time, u32)> {
        self.heap.first().copied()
    }

    /// Sets the instant of the element's next event: [`Time::NEVER`] where it has none.
    #[inline]
    pub(crate) fn set(&mut self, element: u32, at: Time) {
        let position = self.position[element as usize];
        if position == ABSENT || at == Time::NEVER {
            return self.join_or_leave(element, at);
        }
        let position = position as usize;
        let before = core::mem::replace(&mut self.heap[position].0, at);
        if at < before && position > 0 {
            self.rise(position);
        } else if at > before && 2 * position + 1 < self.heap.len() {
            self.sink(position);
        }
    }

    #[inline(never)]
    fn join_or_leave(&mut self, element: u32, at: Time) {
        match (self.position[element as usize], at) {
            (ABSENT, Time::NEVER) => {}
            (ABSENT, at) => {
                self.heap.push((at, element));
                self.rise(self.heap.len() - 1);
            }
            (position, _) => self.remove(position as usize),
        }
    }

    fn remove(&mut self, position: usize) {
        let (_, element) = self.heap.swap_remove(position);
        self.position[element as usize] = ABSENT;
        if position < self.heap.len() {
            // The former last entry may belong above or below.
            let moved = self.heap[position].1;
            self.rise(position);
            self.sink(self.position[moved as usize] as usize);
        }
    }

    fn rise(&mut self, mut at: usize) {
        let entry = self.heap[at];
        while at > 0 {
            let parent = (at - 1) / 2;
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
            let left = 2 * at + 1;
            let Some(&(mut child)) = self.heap.get(left) else { break };
            let mut below = left;
            if let Some(&right) = self.heap.get(left + 1)
                && right < child
            {
                (child, below) = (right, left + 1);
            }
            if entry <= child {
                break;
            }
            self.place(at, child);
            at = below;
        }
        self.place(at, entry);
    }

    fn place(&mut self, at: usize, entry: (Time, u32)) {
        self.heap[at] = entry;
        self.position[entry.1 as usize] = at as u32;
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
                agenda.set(element, at.unwrap_or(Time::NEVER));
                plain[element as usize] = at;
                let first = plain.iter().enumerate().filter_map(|(e, t)| t.map(|t| (t, e as u32))).min();
                prop_assert_eq!(agenda.first(), first);
                prop_assert_eq!(agenda.heap.len(), plain.iter().flatten().count());
            }
        }
    }
}
