//! Links with rules: numbered rules send packets to pipes and queues, as in ipfw and Dummynet.
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
//! Each packet passes the rules once: from the link's first end to its second as ipfw's "out", the other
//! way as its "in". A pipe is an engine link with one lane per direction. A pipe with queues has a queue of
//! flow sets. A pipe with a mask is one link per flow, created on first use.

mod assign;
mod batch;
mod build;
mod configure;
mod diff;
mod mask;
mod nat;
mod objects;
mod pipe;
mod placed;
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
use narrows_core::rules::{NatConfig, Rule, RuleBook, Table};

use crate::direction::Direction;

/// Rules, and the pipes and queues that they send packets to.
#[derive(Clone, Debug, PartialEq)]
pub struct RulesLink {
    /// Name of the interface in the rules; `None` for the name of the link.
    pub interface: Option<String>,
    /// Whether a packet that leaves a pipe or a translator is accepted; otherwise it continues at the next rule.
    pub one_pass: bool,
    /// Disabled sets of rules, one bit for each.
    pub disabled_sets: u32,
    /// Rules, in the order of their numbers.
    pub rules: Vec<Rule>,
    /// Tables by name.
    pub tables: BTreeMap<String, Table>,
    /// Translators by number.
    pub nats: BTreeMap<u32, NatConfig>,
    /// Pipes by number.
    pub pipes: BTreeMap<u32, Pipe>,
    /// Queues by number.
    pub queues: Queues,
    pub(crate) memory: Memory,
}

/// State of a link with rules that only exists during a run. All values compare equal.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    /// How often the pipe with each number was rebuilt.
    generations: BTreeMap<u32, u32>,
    /// The engine's rules, once a command has changed them.
    book: Option<Arc<RuleBook>>,
    /// Pipes that commands have deleted or rebuilt. The engine keeps what it has counted of them.
    former: Vec<Arc<Former>>,
}

/// A pipe that is no more, with the queues that shared it.
#[derive(Debug)]
struct Former {
    number: u32,
    pipe: Pipe,
    queues: Queues,
}

impl Memory {
    /// The generation of a pipe that is built now.
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
            nats: BTreeMap::new(),
            pipes: BTreeMap::new(),
            queues: Queues::default(),
            memory: Memory::default(),
        }
    }
}

/// The valid numbers of pipes and queues.
pub(crate) const NUMBERS: std::ops::RangeInclusive<u32> = 1..=65_534;

impl RulesLink {
    /// The engine links of the pipes of the rules `name`, with their settings.
    pub fn directions(&self, name: &str) -> Vec<(String, &Direction)> {
        let one = |(number, pipe): (&u32, &'_ Pipe)| pipe.core_name(name, *number);
        self.pipes.iter().map(|entry| (one(entry), &entry.1.direction)).collect()
    }

    /// For each pipe that commands have deleted or rebuilt, these rules with that pipe alone.
    pub(crate) fn former(&self) -> impl Iterator<Item = Self> {
        let alone = |former: &Arc<Former>| {
            let Former { number, pipe, queues } = &**former;
            Self { pipes: [(*number, pipe.clone())].into(), queues: queues.clone(), ..Self::default() }
        };
        self.memory.former.iter().map(alone)
    }

    /// Remembers a pipe that is about to be deleted or rebuilt.
    fn note_former(&mut self, number: u32) {
        let Some(pipe) = self.pipes.get(&number).cloned() else { return };
        self.memory.note_generation(number, pipe.run.generation);
        let mut queues = Queues::default();
        self.queues_of(number).for_each(|(queue, settings)| drop(queues.insert(queue, settings.clone())));
        self.memory.former.push(Arc::new(Former { number, pipe, queues }));
    }

    /// The queues that share the transmitter of this pipe, in the order of their numbers.
    pub fn queues_of(&self, pipe: u32) -> impl Iterator<Item = (u32, &PipeQueue)> {
        self.queues.of_pipe(pipe)
    }

    /// The default bounds of its pipes.
    pub(crate) fn default_bounds_mut(&mut self) -> impl Iterator<Item = &mut crate::bound::DefaultBound> {
        self.pipes.values_mut().map(|pipe| &mut pipe.direction.default_bound)
    }

    /// Computes the default bounds of queues. `beside` is the round-trip time over the links in series with
    /// this one. A packet's return path is assumed to have the same delay as the pipe.
    pub(crate) fn set_default_bounds(&mut self, beside: Option<Duration>) {
        for pipe in self.pipes.values_mut() {
            pipe.set_default_bound(beside);
        }
    }
}
