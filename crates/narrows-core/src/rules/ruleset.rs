//! The rules, their counters, tables and dynamic rules.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem;

use super::book::RuleBook;
use super::calls::Calls;
use super::index::Found;
use super::nat::Nat;
use super::program::{PreparedRules, Program};
use super::state::RefusedCounts;
use super::tables::Tables;
use super::{NatConfig, Rule, RuleError, RuleSetConfig, StateView, States, Table};
use crate::random::Seed;
use crate::time::Time;

/// Rules in order of their numbers, followed by the default rule, 65,535, which passes everything.
///
/// A packet is tried against rule after rule ([`walk`](Self::walk)) until one decides. See [`self`](super) for the
/// semantics.
#[derive(Debug)]
pub struct RuleSet {
    /// Shared with code that changes the rules from elsewhere.
    pub(super) book: Arc<RuleBook>,
    /// The program that packets use. It belongs to the book, unless the book has changed since.
    pub(super) program: Program,
    /// Whether [`refresh`](Self::refresh) must be called before the next packet.
    pub(super) stale: bool,
    pub(super) tables: Tables,
    pub(super) states: States,
    pub(super) nats: BTreeMap<u32, Nat>,
    pub(super) calls: Calls,
    pub(super) exceeded: Exceeded,
    /// What the index has found for a packet. Kept to reuse its memory.
    pub(super) found: Vec<Found>,
}

/// Counters of a rule since it was added or zeroed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleCounters {
    /// Packets to which its action was applied.
    pub packets: u64,
    /// Their bytes, from the network header on.
    pub bytes: u64,
    /// When the last of them arrived.
    pub last: Option<Time>,
}

/// A rule as shown in a listing.
#[derive(Clone, Copy, Debug)]
pub struct RuleView<'a> {
    /// The rule.
    pub rule: &'a Rule,
    /// Its counters.
    pub counters: RuleCounters,
    /// Whether its set is enabled.
    pub enabled: bool,
}

/// A translator as shown in a listing.
#[derive(Clone, Copy, Debug)]
pub struct NatView<'a> {
    /// Its number.
    pub number: u32,
    /// What it does.
    pub config: &'a NatConfig,
    /// How many flows it has: of ICMP, UDP, TCP and other protocols.
    pub flows: [usize; 4],
}

/// How often packets have met a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exceeded {
    /// Packets denied because no dynamic rule could be created for them.
    pub states: RefusedCounts,
    /// Calls that continued at the next rule because 16 were open.
    pub depth: u64,
    /// Packets denied after [`MOST_CALLS`](RuleSet::MOST_CALLS) calls.
    pub calls: u64,
    /// Packets denied because a translator had no port or no room left for their flow.
    pub nat: u64,
    /// Packets that lost their open calls on the way through a pipe, because there were more call stacks than can be
    /// numbered.
    pub forgotten: u64,
}

impl RuleSet {
    /// A rule set whose random draws are keyed by `name`.
    ///
    /// # Errors
    /// If a rule is invalid, or two tables have the same name.
    pub fn new(seed: Seed, name: &str, config: RuleSetConfig) -> Result<Self, RuleError> {
        let book = RuleBook::new(seed, name, &config)?;
        let mut tables = Tables::new(config.tables)?;
        tables.arrange(book.names());
        let mut nats = BTreeMap::new();
        for (number, config) in config.nats {
            config.check(number)?;
            nats.insert(number, Nat::new(seed, name, number, config));
        }
        Ok(Self {
            program: Program::new(&book),
            book: Arc::new(book),
            stale: false,
            tables,
            states: States::new(config.states),
            nats,
            calls: Calls::default(),
            exceeded: Exceeded::default(),
            found: Vec::new(),
        })
    }

    /// The rules in order, with the default rule at the end.
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

    /// The table with this name.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.find(name)
    }

    /// The live dynamic rules, oldest first.
    pub fn states(&self, now: Time) -> Vec<StateView> {
        // There may be many of both.
        let numbers: BTreeMap<u32, u16> =
            self.book.entries().map(|(_, entry)| (entry.order, entry.rule.number)).collect();
        self.states.views(now, |order| numbers.get(&order).copied().unwrap_or(0))
    }

    /// The translators, by number.
    pub fn nats(&self, now: Time) -> impl Iterator<Item = NatView<'_>> {
        let view = move |(&number, nat): (&u32, _)| NatView {
            number,
            config: Nat::config(nat),
            flows: nat.flows(now),
        };
        self.nats.iter().map(view)
    }

    /// How often packets have met a limit.
    pub fn exceeded(&self) -> Exceeded {
        Exceeded {
            states: self.states.refused(),
            nat: self.exceeded.nat + self.nats.values().map(Nat::refused).sum::<u64>(),
            forgotten: self.calls.forgotten,
            ..self.exceeded
        }
    }

    /// The disabled sets, one bit each.
    pub fn disabled_sets(&self) -> u32 {
        self.book.disabled_sets()
    }

    /// The rules, without the state that packets create.
    pub const fn book(&self) -> &Arc<RuleBook> {
        &self.book
    }

    /// Replaces the rules by others that were derived from them by changes of a [`RuleBook`]. Tables, counters,
    /// dynamic rules and the positions of packets in pipes are kept, except those that belong to deleted rules.
    /// Returns the previous rules, because dropping them takes longer than everything else.
    pub fn replace(&mut self, rules: PreparedRules) -> PreparedRules {
        let book = mem::replace(&mut self.book, rules.book);
        self.end_states();
        self.tables.arrange(self.book.names());
        PreparedRules { book, program: self.take_up(rules.program) }
    }

    /// Recompiles the program from all rules.
    pub(super) fn refresh(&mut self) {
        self.take_up(Program::new(&self.book));
    }

    /// Switches to another program and returns the previous one.
    fn take_up(&mut self, mut program: Program) -> Program {
        program.carry_on(&self.program);
        self.stale = false;
        mem::replace(&mut self.program, program)
    }

    /// Removes dynamic rules whose parent rule is no longer in the book.
    pub(super) fn end_states(&mut self) {
        let is_there = |at: u32| self.book.is_at(self.program.positions[at as usize]);
        let parents = self.program.parents.iter();
        let gone: Vec<u32> = parents.filter(|(_, at)| !is_there(*at)).map(|(order, _)| *order).collect();
        if !gone.is_empty() {
            self.states.remove_of(&gone);
        }
    }

    /// Approximate memory in bytes of rules, counters and the indexes built so far, without tables and dynamic rules.
    pub fn bytes(&self) -> usize {
        self.program.bytes()
    }
}
