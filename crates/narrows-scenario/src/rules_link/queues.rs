//! The queues of a link with rules, and the flow set of each in its pipe.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use super::PipeQueue;

/// Queues by number, indexed by pipe.
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

    /// The number of queues of a pipe.
    pub(super) fn count_of(&self, pipe: u32) -> usize {
        self.by_pipe.get(&pipe).map_or(0, BTreeSet::len)
    }

    /// Inserts a queue; returns the replaced one.
    pub fn insert(&mut self, number: u32, queue: PipeQueue) -> Option<PipeQueue> {
        let before = self.remove(number);
        self.by_pipe.entry(queue.pipe).or_default().insert(number);
        self.all.insert(number, queue);
        before
    }

    /// Removes a queue.
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

/// Assigns the flow sets of a pipe's queue, after the first one, to queues: a set with packets keeps its
/// place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    /// The queue number of each set.
    numbers: Vec<u32>,
    places: BTreeMap<u32, usize>,
    /// Deleted queues, with their last settings.
    gone: BTreeMap<u32, PipeQueue>,
}

impl Places {
    /// The place of a queue.
    pub(super) fn of(&self, number: u32) -> Option<usize> {
        self.places.get(&number).copied()
    }

    /// The numbers of the queues, and the last settings of those that are deleted.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, Option<&PipeQueue>)> {
        self.numbers.iter().map(|number| (*number, self.gone.get(number)))
    }

    /// The last settings of a deleted queue.
    pub(super) fn gone(&self, number: u32) -> Option<&PipeQueue> {
        self.gone.get(&number)
    }

    /// The number of existing queues.
    pub(super) fn present(&self) -> usize {
        self.numbers.len() - self.gone.len()
    }

    /// Adds a queue.
    pub(super) fn join(&mut self, number: u32) {
        self.gone.remove(&number);
        self.places.entry(number).or_insert_with(|| {
            self.numbers.push(number);
            self.numbers.len() - 1
        });
    }

    /// Marks a queue as deleted, with its last settings.
    pub(super) fn leave(&mut self, number: u32, queue: PipeQueue) {
        self.gone.insert(number, queue);
    }
}
