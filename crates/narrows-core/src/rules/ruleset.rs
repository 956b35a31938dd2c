//! The rules, what they have counted, and what belongs to them.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem;

use super::book::RuleBook;
use super::calls::Calls;
use super::index::Found;
use super::program::{PreparedRules, Program};
use super::state::RefusedCounts;
use super::tables::Tables;
use super::{Rule, RuleError, RuleSetConfig, StateView, States, Table};
use crate::random::Seed;
use crate::time::Time;

/// Rules, in the order of their numbers, and behind them the default rule, 65,535, which lets everything pass.
///
/// A packet is tried against rule after rule ([`walk`](Self::walk)) until one decides. See [`self`](super) for what cannot
/// be read off a rule.
#[derive(Debug)]
pub struct RuleSet {
    /// Shared with whoever changes the rules from elsewhere.
    pub(super) book: Arc<RuleBook>,
    /// What packets go by: of the book, unless that has changed since.
    pub(super) program: Program,
    /// Whether [`refresh`](Self::refresh) must come before the next packet.
    pub(super) stale: bool,
    pub(super) tables: Tables,
    pub(super) states: States,
    pub(super) calls: Calls,
    pub(super) exceeded: Exceeded,
    /// What the index has found for a packet. Kept for its memory.
    pub(super) found: Vec<Found>,
}

/// What a rule has counted since it came, or since it was set to zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleCounters {
    /// Packets on which its action was taken.
    pub packets: u64,
    /// Their bytes, from the network header on.
    pub bytes: u64,
    /// When the last one came.
    pub last: Option<Time>,
}

/// A rule, as a listing shows it.
#[derive(Clone, Copy, Debug)]
pub struct RuleView<'a> {
    /// The rule.
    pub rule: &'a Rule,
    /// What it has counted.
    pub counters: RuleCounters,
    /// Whether its set is enabled.
    pub enabled: bool,
}

/// Bounds that packets have met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exceeded {
    /// Packets that were denied because there was no dynamic rule for them.
    pub states: RefusedCounts,
    /// Calls that led no further than the next rule, as 16 were open.
    pub depth: u64,
    /// Packets that were denied after [`MOST_CALLS`](RuleSet::MOST_CALLS) calls.
    pub calls: u64,
    /// Packets that forgot on their way through a pipe that they were called, as there were more ways than can be numbered.
    pub forgotten: u64,
}

impl RuleSet {
    /// Rules whose random draws are keyed by `name`.
    ///
    /// # Errors
    /// When a rule is none, or two tables have one name.
    pub fn new(seed: Seed, name: &str, config: RuleSetConfig) -> Result<Self, RuleError> {
        let book = RuleBook::new(seed, name, &config)?;
        let mut tables = Tables::new(config.tables)?;
        tables.arrange(book.names());
        Ok(Self {
            program: Program::new(&book),
            book: Arc::new(book),
            stale: false,
            tables,
            states: States::new(config.states),
            calls: Calls::default(),
            exceeded: Exceeded::default(),
            found: Vec::new(),
        })
    }

    /// The rules in order, and at the end the default rule.
    pub fn rules(&self) -> impl ExactSizeIterator<Item = RuleView<'_>> {
        let mut counted = self.program.hot.iter().peekable();
        self.book.entries().map(move |(position, entry)| {
            while counted.next_if(|hot| hot.position < position).is_some() {}
            let own = counted.next_if(|hot| hot.position == position);
            let own = own.filter(|hot| hot.zeroed == entry.zeroed);
            RuleView {
                rule: &entry.rule,
                counters: own.map_or_else(RuleCounters::default, |hot| RuleCounters {
                    packets: hot.packets,
                    bytes: hot.bytes,
                    last: (hot.packets > 0).then_some(hot.last),
                }),
                enabled: self.book.is_enabled(entry.rule.set),
            }
        })
    }

    /// The tables, by name.
    pub fn tables(&self) -> impl Iterator<Item = (&str, &Table)> {
        self.tables.iter()
    }

    /// The table of this name.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.find(name)
    }

    /// The dynamic rules that are alive, oldest first.
    pub fn states(&self, now: Time) -> Vec<StateView> {
        // There may be many of either.
        let numbers: BTreeMap<u32, u16> =
            self.book.entries().map(|(_, entry)| (entry.order, entry.rule.number)).collect();
        self.states.views(now, |order| numbers.get(&order).copied().unwrap_or(0))
    }

    /// Bounds that packets have met.
    pub fn exceeded(&self) -> Exceeded {
        Exceeded { states: self.states.refused(), forgotten: self.calls.forgotten, ..self.exceeded }
    }

    /// A bit for each set whose rules are not tried.
    pub fn disabled_sets(&self) -> u32 {
        self.book.disabled_sets()
    }

    /// The rules, without what packets do to them.
    pub const fn book(&self) -> &Arc<RuleBook> {
        &self.book
    }

    /// Goes on with other rules, which have come from these by changes of a [`RuleBook`]. Tables, counters, dynamic rules
    /// and what packets in pipes know of where they go on stay, but for what belongs to rules that are gone. Gives back the
    /// rules that were there: to drop them takes longer than all the rest.
    pub fn replace(&mut self, rules: PreparedRules) -> PreparedRules {
        let book = mem::replace(&mut self.book, rules.book);
        self.end_states();
        self.tables.arrange(self.book.names());
        PreparedRules { book, program: self.take_up(rules.program) }
    }

    /// Works out what follows from all rules together.
    pub(super) fn refresh(&mut self) {
        self.take_up(Program::new(&self.book));
    }

    /// Goes on with another program, and gives back the one that was there.
    fn take_up(&mut self, mut program: Program) -> Program {
        program.carry_on(&self.program);
        self.stale = false;
        mem::replace(&mut self.program, program)
    }

    /// Takes dynamic rules away of which the book no longer has the rule that made them.
    pub(super) fn end_states(&mut self) {
        let is_there = |at: u32| self.book.is_at(self.program.positions[at as usize]);
        let parents = self.program.parents.iter();
        let gone: Vec<u32> = parents.filter(|(_, at)| !is_there(*at)).map(|(order, _)| *order).collect();
        if !gone.is_empty() {
            self.states.remove_of(&gone);
        }
    }

    /// About how many bytes rules, counters and what was built for the packets so far take, without tables and states.
    pub fn bytes(&self) -> usize {
        self.program.bytes()
    }
}
