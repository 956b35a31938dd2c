//! The queues of a link with rules, and which flow set of its pipe each of them is.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use super::PipeQueue;

/// Queues by their numbers; of each pipe it is known which are there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Queues {
    all: BTreeMap<u32, PipeQueue>,
    by_pipe: BTreeMap<u32, BTreeSet<u32>>,
}

impl Queues {
    /// The queues of a pipe, in the order of their numbers.
    pub fn of_pipe(&self, pipe: u32) -> impl Iterator<Item = (u32, &PipeQueue)> {
        let numbers = self.by_pipe.get(&pipe).into_iter().flatten();
        numbers.filter_map(|number| Some((*number, self.all.get(number)?)))
    }

    /// How many a pipe has.
    pub(super) fn count_of(&self, pipe: u32) -> usize {
        self.by_pipe.get(&pipe).map_or(0, BTreeSet::len)
    }

    /// Puts a queue in the place of the one that has its number, which it returns.
    pub fn insert(&mut self, number: u32, queue: PipeQueue) -> Option<PipeQueue> {
        let before = self.remove(number);
        self.by_pipe.entry(queue.pipe).or_default().insert(number);
        self.all.insert(number, queue);
        before
    }

    /// Takes a queue out.
    pub fn remove(&mut self, number: u32) -> Option<PipeQueue> {
        let queue = self.all.remove(&number)?;
        if let Some(others) = self.by_pipe.get_mut(&queue.pipe) {
            others.remove(&number);
            if others.is_empty() {
                self.by_pipe.remove(&queue.pipe);
            }
        }
        Some(queue)
    }
}

impl Deref for Queues {
    type Target = BTreeMap<u32, PipeQueue>;

    fn deref(&self) -> &Self::Target {
        &self.all
    }
}

impl<'a> IntoIterator for &'a Queues {
    type Item = (&'a u32, &'a PipeQueue);
    type IntoIter = std::collections::btree_map::Iter<'a, u32, PipeQueue>;

    fn into_iter(self) -> Self::IntoIter {
        self.all.iter()
    }
}

/// Which flow set of a pipe's queue, behind the first one, is which queue: a set that has packets keeps its place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    /// The number of each set's queue.
    numbers: Vec<u32>,
    places: BTreeMap<u32, usize>,
    /// Queues that have gone, as they were last.
    gone: BTreeMap<u32, PipeQueue>,
}

impl Places {
    /// The place of a queue.
    pub(super) fn of(&self, number: u32) -> Option<usize> {
        self.places.get(&number).copied()
    }

    /// The numbers of the queues, and what those were like last that have gone.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, Option<&PipeQueue>)> {
        self.numbers.iter().map(|number| (*number, self.gone.get(number)))
    }

    /// What a queue was like last that has gone.
    pub(super) fn gone(&self, number: u32) -> Option<&PipeQueue> {
        self.gone.get(&number)
    }

    /// How many queues there are, without those that have gone.
    pub(super) fn present(&self) -> usize {
        self.numbers.len() - self.gone.len()
    }

    /// A queue is there now.
    pub(super) fn join(&mut self, number: u32) {
        self.gone.remove(&number);
        self.places.entry(number).or_insert_with(|| {
            self.numbers.push(number);
            self.numbers.len() - 1
        });
    }

    /// A queue has gone, which was like this.
    pub(super) fn leave(&mut self, number: u32, queue: PipeQueue) {
        self.gone.insert(number, queue);
    }
}
