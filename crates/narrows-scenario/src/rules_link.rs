//! Links with rules: numbered rules send packets to pipes and queues, as ipfw and Dummynet do.
//!
//! ```toml
//! [links.net]
//! between = ["client", "server"]
//! rules = ["100 pipe 1 out", "200 queue 10 in"]
//! [links.net.pipes.1]
//! rate = "3mbit"
//! delay = "32ms"
//! [links.net.pipes.5]
//! rate = "4mbit"
//! [links.net.queues.10]
//! pipe = 5
//! weight = 20
//! ```
//!
//! Each packet meets the rules once: from the link's first end to its second as ipfw's "out", the other way as its "in". A
//! pipe is a link of the engine with a lane for either; a pipe with queues has a queue of flow sets; a pipe with a mask is
//! one link for each flow, made on first use.

mod assign;
mod batch;
mod build;
mod configure;
mod diff;
mod mask;
mod objects;
mod pipe;
mod queue;
mod queues;
mod read;
mod rows;
mod rules;
mod sharing;
mod tables;

pub(crate) use batch::{Batch, Done};
pub(crate) use build::RulesSite;
pub use pipe::Pipe;
pub use queue::PipeQueue;
pub use queues::Queues;
pub(crate) use read::{read, unknown_keys};
pub use sharing::Sharing;

use std::collections::BTreeMap;
use std::sync::Arc;

use narrows_core::Duration;
use narrows_core::rules::{Rule, RuleBook, Table};

use crate::direction::Direction;

/// Rules, and what they send packets to.
#[derive(Clone, Debug, PartialEq)]
pub struct RulesLink {
    /// What rules call the interface that they are at; nothing for the name of the link.
    pub interface: Option<String>,
    /// Whether a packet has passed when it leaves a pipe; else it goes on at the next rule.
    pub one_pass: bool,
    /// A bit for each set of rules that is disabled.
    pub disabled_sets: u32,
    /// The rules, in the order of their numbers.
    pub rules: Vec<Rule>,
    /// The tables, by name.
    pub tables: BTreeMap<String, Table>,
    /// The pipes, by number.
    pub pipes: BTreeMap<u32, Pipe>,
    /// The queues, by number.
    pub queues: Queues,
    pub(crate) memory: Memory,
}

/// What a run remembers of a link with rules and no file says. Two are equal whatever they are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    /// How often pipes of each number have been made anew, beyond the first time.
    generations: BTreeMap<u32, u32>,
    /// The rules as the engine tells them apart, once a command has changed them.
    book: Option<Arc<RuleBook>>,
}

impl Memory {
    /// That of a pipe that is made now.
    fn next_generation(&self, pipe: u32) -> u32 {
        self.generations.get(&pipe).map_or(0, |last| last + 1)
    }

    fn note_generation(&mut self, pipe: u32, generation: u32) {
        self.generations.insert(pipe, generation);
    }
}

impl PartialEq for Memory {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Default for RulesLink {
    /// No rules: every packet passes at once.
    fn default() -> Self {
        Self {
            interface: None,
            one_pass: true,
            disabled_sets: 0,
            rules: Vec::new(),
            tables: BTreeMap::new(),
            pipes: BTreeMap::new(),
            queues: Queues::default(),
            memory: Memory::default(),
        }
    }
}

/// The least and the highest number of a pipe or queue.
pub(crate) const NUMBERS: std::ops::RangeInclusive<u32> = 1..=65_534;

impl RulesLink {
    /// The engine's links of the pipes of the rules `name`: their names and values.
    pub fn directions(&self, name: &str) -> Vec<(String, &Direction)> {
        let one = |(number, pipe): (&u32, &'_ Pipe)| pipe.core_name(name, *number);
        self.pipes.iter().map(|entry| (one(entry), &entry.1.direction)).collect()
    }

    /// The queues that share the transmitter of this pipe, in the order of their numbers.
    pub fn queues_of(&self, pipe: u32) -> impl Iterator<Item = (u32, &PipeQueue)> {
        self.queues.of_pipe(pipe)
    }

    /// The default bounds of its pipes.
    pub(crate) fn default_bounds_mut(&mut self) -> impl Iterator<Item = &mut crate::bound::DefaultBound> {
        self.pipes.values_mut().map(|pipe| &mut pipe.direction.default_bound)
    }

    /// Works out the bounds of queues that are given none. `beside` is the round trip over the links that lie in a row with
    /// this one. A packet's way back is taken to be as long as the pipe.
    pub(crate) fn set_default_bounds(&mut self, beside: Option<Duration>) {
        for pipe in self.pipes.values_mut() {
            pipe.set_default_bound(beside);
        }
    }
}
