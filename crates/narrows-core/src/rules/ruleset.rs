//! The rules, what they have counted, and what belongs to them.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::calls::Calls;
use super::check::{self, ALWAYS, DEFAULT};
use super::compiled::{Compiled, Hot, position};
use super::index::{Found, Index, Rules};
use super::state::RefusedCounts;
use super::tables::Tables;
use super::test::{self, Changes, Terms};
use super::{Action, Argument, Masked, Rule, RuleError, StateConfig, StateView, States, Table};
use crate::random::{Seed, Stream};
use crate::time::Time;

/// What a rule set is made of. The default has no rules, and all packets pass.
#[derive(Clone, Debug, Default)]
pub struct RuleSetConfig {
    /// The rules, in any order: those of one number stay in theirs. A number of 0 stands for 100 more than the greatest
    /// before, as with [`RuleChange::Add`](super::RuleChange::Add).
    pub rules: Vec<Rule>,
    /// Tables by name. Others that rules name have no entries.
    pub tables: Vec<(String, Table)>,
    /// The addresses of the host that the rules are on.
    pub me: Vec<Masked>,
    /// Lifetimes and bounds of dynamic rules.
    pub states: StateConfig,
    /// A bit for each set whose rules are not tried. Set 31 must not be among them.
    pub disabled_sets: u32,
}

/// Rules, in the order of their numbers, and behind them the default rule, 65,535, which lets everything pass.
///
/// A packet is tried against rule after rule ([`walk`](Self::walk)) until one decides. See [`self`](super) for what cannot
/// be read off a rule.
#[derive(Debug)]
pub struct RuleSet {
    seed: Seed,
    name: String,
    /// In order; the default rule is the last one.
    pub(super) rules: Vec<Compiled>,
    /// What is needed of each of them whenever it matches.
    pub(super) hot: Vec<Hot>,
    /// Where each of them is: see [`position`].
    pub(super) positions: Vec<u64>,
    /// The order of the next rule.
    next: u32,
    /// How many rules have had a number.
    given: BTreeMap<u16, u32>,
    pub(super) tables: Tables,
    pub(super) me: Vec<Masked>,
    pub(super) states: States,
    pub(super) disabled: u32,
    pub(super) calls: Calls,
    pub(super) exceeded: Exceeded,
    /// Orders of the rules that may have dynamic ones, and which they are.
    pub(super) parents: Vec<(u32, u32)>,
    /// Whether [`refresh`](Self::refresh) must come before the next packet.
    pub(super) stale: bool,
    /// Rules at which a packet is first asked for its dynamic rule, whatever else they ask for.
    pub(super) asking: Vec<u32>,
    /// The rule that decides on all outgoing packets, and the one for all incoming ones, if the first that any of them may
    /// match does: they need not be looked at.
    pub(super) heads: [Option<u32>; 2],
    pub(super) index: Index,
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

/// More rules than a script will have, and fewer than make 32 bits overflow anywhere.
const MOST_RULES: usize = 1_000_000;

impl RuleSet {
    /// Rules whose random draws are keyed by `name`.
    ///
    /// # Errors
    /// When a rule is none, or two tables have one name.
    pub fn new(seed: Seed, name: &str, config: RuleSetConfig) -> Result<Self, RuleError> {
        if config.disabled_sets >> ALWAYS != 0 {
            return Err(RuleError::AlwaysEnabled);
        }
        let mut set = Self {
            seed,
            name: name.to_string(),
            rules: Vec::new(),
            hot: Vec::new(),
            positions: Vec::new(),
            next: 1,
            given: BTreeMap::new(),
            tables: Tables::new(config.tables)?,
            me: config.me,
            states: States::new(config.states),
            disabled: config.disabled_sets,
            calls: Calls::default(),
            exceeded: Exceeded::default(),
            parents: Vec::new(),
            stale: true,
            asking: Vec::new(),
            heads: [None; 2],
            index: Index::default(),
            found: Vec::new(),
        };
        let mut rules = config.rules;
        let mut greatest = 0;
        for rule in &mut rules {
            rule.number = numbered(rule.number, greatest);
            greatest = greatest.max(rule.number);
            check::check(rule)?;
        }
        if rules.len() > MOST_RULES {
            return Err(RuleError::TooMany);
        }
        rules.sort_by_key(|rule| rule.number);
        for rule in rules {
            let at = set.rules.len();
            set.insert(at, rule)?;
        }
        let last = Compiled { rule: default_rule(), order: u32::MAX, stream: None, terms: Terms::default() };
        let place = position(DEFAULT, last.order);
        set.positions.push(place);
        set.hot.push(Hot::new(&last.rule, place));
        set.rules.push(last);
        set.refresh();
        Ok(set)
    }

    /// The rules in order, and at the end the default rule.
    pub fn rules(&self) -> impl ExactSizeIterator<Item = RuleView<'_>> {
        self.rules.iter().zip(&self.hot).map(|(Compiled { rule, .. }, hot)| RuleView {
            rule,
            counters: RuleCounters {
                packets: hot.packets,
                bytes: hot.bytes,
                last: (hot.packets > 0).then_some(hot.last),
            },
            enabled: self.is_enabled(rule.set),
        })
    }

    /// The tables, by name.
    pub fn tables(&self) -> impl Iterator<Item = (&str, &Table)> {
        self.tables.iter()
    }

    /// The table of this name.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.find(name).map(|number| self.tables.get(number))
    }

    /// The dynamic rules that are alive, oldest first.
    pub fn states(&self, now: Time) -> Vec<StateView> {
        // There may be many of either.
        let numbers: BTreeMap<u32, u16> = self.rules.iter().map(|one| (one.order, one.rule.number)).collect();
        self.states.views(now, |order| numbers.get(&order).copied().unwrap_or(0))
    }

    /// Bounds that packets have met.
    pub fn exceeded(&self) -> Exceeded {
        Exceeded { states: self.states.refused(), forgotten: self.calls.forgotten, ..self.exceeded }
    }

    /// A bit for each set whose rules are not tried.
    pub const fn disabled_sets(&self) -> u32 {
        self.disabled
    }

    pub(super) const fn is_enabled(&self, set: u8) -> bool {
        self.disabled >> set & 1 == 0
    }

    /// The first rule of at least this number. There is always one.
    pub(super) fn first_of(&self, number: u32) -> usize {
        let first = u64::from(number.min(DEFAULT.into())) << 32;
        self.positions.partition_point(|&one| one < first)
    }

    /// Adds a rule that was checked behind those of its number.
    pub(super) fn add(&mut self, mut rule: Rule) -> Result<(), RuleError> {
        let greatest = self.rules.iter().rev().nth(1).map_or(0, |last| last.rule.number);
        rule.number = numbered(rule.number, greatest);
        check::check(&rule)?;
        if self.rules.len() > MOST_RULES {
            return Err(RuleError::TooMany);
        }
        self.insert(self.first_of(u32::from(rule.number) + 1), rule)
    }

    fn insert(&mut self, at: usize, rule: Rule) -> Result<(), RuleError> {
        let order = self.next;
        self.next = order.checked_add(1).filter(|&next| next < u32::MAX).ok_or(RuleError::TooMany)?;
        let nth = self.given.entry(rule.number).or_default();
        let stream = rule.probability.map(|_| {
            let purpose = alloc::format!("rule {} {nth}", rule.number);
            Stream::new(self.seed, &self.name, &purpose)
        });
        *nth += 1;
        let terms = test::compile(&rule.terms, &self.me, &mut self.tables);
        let place = position(rule.number, order);
        self.positions.insert(at, place);
        self.hot.insert(at, Hot::new(&rule, place));
        self.rules.insert(at, Compiled { rule, order, stream, terms });
        self.stale = true;
        Ok(())
    }

    /// Works out what follows from all rules together.
    pub(super) fn refresh(&mut self) {
        self.stale = false;
        self.parents.clear();
        self.asking.clear();
        let changes = Changes {
            dscp: self.rules.iter().any(|one| matches!(one.rule.action, Action::SetDscp(_))),
            tags: self.rules.iter().any(|one| one.rule.tag.is_some()),
        };
        for at in 0..self.rules.len() {
            let Compiled { rule, order, .. } = &self.rules[at];
            let target = match self.hot[at].action {
                // There are fewer than 2^32 rules.
                Action::SkipTo(Argument::Number(to)) | Action::Call(Argument::Number(to)) => {
                    self.first_of(to) as u32
                }
                _ => 0,
            };
            let is_enabled = self.is_enabled(rule.set);
            if rule.keep.is_some() {
                self.parents.push((*order, at as u32));
                self.asking.extend(is_enabled.then_some(at as u32));
            }
            self.hot[at].target = target;
            self.hot[at].flags = Hot::flags(&self.rules[at], is_enabled, changes);
        }
        self.parents.sort_unstable();
        self.heads = [self.head(false), self.head(true)];
        self.index = Index::new(Rules { rules: &self.rules, hot: &self.hot });
    }

    fn head(&self, incoming: bool) -> Option<u32> {
        for (at, (compiled, hot)) in
            (0..).zip(self.rules.iter().zip(&self.hot)).filter(|(_, (_, hot))| hot.is(Hot::ENABLED))
        {
            match test::hold_by_direction(&compiled.terms, incoming) {
                // Where a rule keeps, packets are asked for their dynamic rules.
                Some(false) if !hot.is(Hot::KEEPS) => {}
                Some(true) if hot.is(Hot::PLAIN) => return Some(at),
                _ => return None,
            }
        }
        None
    }

    /// About how many bytes rules, counters and what was built for the packets so far take, without tables and states.
    pub fn bytes(&self) -> usize {
        let terms = |one: &Compiled| size_of_val(&*one.terms);
        let rules = self.rules.capacity() * size_of::<Compiled>() + self.hot.capacity() * size_of::<Hot>();
        rules + self.rules.iter().map(terms).sum::<usize>() + self.index.bytes()
    }
}

/// The number of a new rule; 0 asks for the next one. As in the reference, the last number is given again where there is no
/// other.
fn numbered(number: u16, greatest: u16) -> u16 {
    const STEP: u16 = 100;
    match number {
        0 if greatest < DEFAULT - STEP => greatest + STEP,
        0 => greatest,
        number => number,
    }
}

fn default_rule() -> Rule {
    Rule {
        number: DEFAULT,
        set: ALWAYS,
        probability: None,
        action: Action::Allow,
        log: false,
        tag: None,
        terms: Vec::new(),
        keep: None,
        comment: None,
    }
}
