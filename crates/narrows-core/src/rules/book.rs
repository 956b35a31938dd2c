//! Rules that can be changed independently of the packets that they process.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::ops::RangeBounds;

use super::check::{self, ALWAYS, DEFAULT};
use super::config::RuleSetConfig;
use super::tables::Names;
use super::test::{self, Terms};
use super::{Action, Masked, Rule, RuleError, Which};
use crate::random::{Seed, Stream};

/// The rules of a rule set in order, each with a permanent identity, without the state that packets create. A change
/// of a few rules takes time logarithmic in the number of rules.
///
/// To change the rules of a running [`RuleSet`](super::RuleSet) from elsewhere, keep a book made from the same
/// configuration, apply every change to it, and hand over the result of [`PreparedRules`](super::PreparedRules).
#[derive(Clone, Debug)]
pub struct RuleBook {
    seed: Seed,
    name: String,
    /// By [`position`]; the default rule is last.
    rules: BTreeMap<u64, Entry>,
    /// The order of the next rule.
    next: u32,
    /// How many rules have had each number.
    given: BTreeMap<u16, u32>,
    names: Arc<Names>,
    me: Vec<Masked>,
    disabled: u32,
}

/// A rule, and data derived from it alone. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) rule: Arc<Rule>,
    pub(super) order: u32,
    pub(super) stream: Option<Stream>,
    pub(super) terms: Terms,
    /// How often its counters were zeroed.
    pub(super) zeroed: u32,
}

/// The position of a rule: by number, then in the order of addition.
pub(super) const fn position(number: u16, order: u32) -> u64 {
    (number as u64) << 32 | order as u64
}

/// More rules than any script will have, and few enough that 32 bits never overflow.
const MOST_RULES: usize = 1_000_000;

impl RuleBook {
    /// The book of the rule set that [`RuleSet::new`](super::RuleSet::new) makes from the same arguments. Tables are
    /// ignored.
    ///
    /// # Errors
    /// If a rule is invalid.
    pub fn new(seed: Seed, name: &str, config: &RuleSetConfig) -> Result<Self, RuleError> {
        if config.disabled_sets >> ALWAYS != 0 {
            return Err(RuleError::AlwaysEnabled);
        }
        let mut book = Self {
            seed,
            name: name.to_string(),
            rules: BTreeMap::new(),
            next: 1,
            given: BTreeMap::new(),
            names: Arc::default(),
            me: config.me.clone(),
            disabled: config.disabled_sets,
        };
        let mut rules = config.rules.clone();
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
            book.insert(rule)?;
        }
        let rule = Arc::new(default_rule());
        let last = Entry { rule, order: u32::MAX, stream: None, terms: Terms::default(), zeroed: 0 };
        book.rules.insert(position(DEFAULT, last.order), last);
        Ok(book)
    }

    pub(super) const fn seed(&self) -> Seed {
        self.seed
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The first IPv4 address of the host that the rules are on.
    pub(super) fn own_address(&self) -> Option<Ipv4Addr> {
        let mut whole = self.me.iter().filter(|one| one.mask == u128::MAX);
        whole.find_map(|one| Ipv6Addr::from_bits(one.address).to_ipv4_mapped())
    }

    /// The rules in order, with the default rule at the end.
    pub fn rules(&self) -> impl ExactSizeIterator<Item = &Rule> {
        self.rules.values().map(|entry| &*entry.rule)
    }

    /// The number of the last rule before the default rule, if there is one.
    pub fn last_number(&self) -> Option<u16> {
        self.rules.values().rev().nth(1).map(|entry| entry.rule.number)
    }

    /// Whether there is such a rule. The default rule does not count.
    pub fn has(&self, which: &Which) -> bool {
        self.those(which).any(|(_, entry)| entry.rule.number != DEFAULT)
    }

    /// The disabled sets, one bit each.
    pub const fn disabled_sets(&self) -> u32 {
        self.disabled
    }

    pub(super) const fn is_enabled(&self, set: u8) -> bool {
        self.disabled >> set & 1 == 0
    }

    pub(super) fn entries(&self) -> impl ExactSizeIterator<Item = (u64, &Entry)> {
        self.rules.iter().map(|(&position, entry)| (position, entry))
    }

    /// Whether there is a rule at this position.
    pub(super) fn is_at(&self, position: u64) -> bool {
        self.rules.contains_key(&position)
    }

    /// The tables that rules use.
    pub(super) const fn names(&self) -> &Arc<Names> {
        &self.names
    }

    /// Adds a rule after those with the same number.
    pub(super) fn add(&mut self, mut rule: Rule) -> Result<(), RuleError> {
        rule.number = numbered(rule.number, self.last_number().unwrap_or(0));
        check::check(&rule)?;
        if self.rules.len() > MOST_RULES {
            return Err(RuleError::TooMany);
        }
        self.insert(rule)
    }

    fn insert(&mut self, rule: Rule) -> Result<(), RuleError> {
        let order = self.next;
        self.next = order.checked_add(1).filter(|&next| next < u32::MAX).ok_or(RuleError::TooMany)?;
        let nth = self.given.entry(rule.number).or_default();
        let stream = rule.probability.map(|_| {
            let purpose = alloc::format!("rule {} {nth}", rule.number);
            Stream::new(self.seed, &self.name, &purpose)
        });
        *nth += 1;
        let terms = test::compile(rule.number, &rule.terms, &self.me, &mut self.names);
        let place = position(rule.number, order);
        let rule = Arc::new(rule);
        self.rules.insert(place, Entry { rule, order, stream, terms, zeroed: 0 });
        Ok(())
    }

    /// Deletes rules, except the default rule.
    pub(super) fn delete(&mut self, which: &Which) -> Result<(), RuleError> {
        for position in self.select(which, true)? {
            self.rules.remove(&position);
        }
        Ok(())
    }

    /// Deletes all rules except those in set 31.
    pub(super) fn flush(&mut self) {
        self.rules.retain(|_, entry| entry.rule.set == ALWAYS);
    }

    /// Resets counters to zero.
    pub(super) fn zero(&mut self, which: &Which) -> Result<(), RuleError> {
        for position in self.select(which, false)? {
            self.edit(position, |entry| entry.zeroed = entry.zeroed.wrapping_add(1));
        }
        Ok(())
    }

    /// Enables and disables sets.
    pub(super) fn change_sets(&mut self, enable: u32, disable: u32) -> Result<(), RuleError> {
        let disabled = (self.disabled | disable) & !enable;
        if disabled >> ALWAYS != 0 {
            return Err(RuleError::AlwaysEnabled);
        }
        self.disabled = disabled;
        Ok(())
    }

    /// Moves rules to another set.
    pub(super) fn move_to(&mut self, which: &Which, to: u8) -> Result<(), RuleError> {
        is_set(to)?;
        for position in self.select(which, true)? {
            self.edit(position, |entry| Arc::make_mut(&mut entry.rule).set = to);
        }
        Ok(())
    }

    /// Exchanges the rules of two sets.
    pub(super) fn swap(&mut self, one: u8, other: u8) -> Result<(), RuleError> {
        is_set(one)?;
        is_set(other)?;
        for entry in self.rules.values_mut().filter(|entry| entry.rule.number != DEFAULT) {
            let to = match entry.rule.set {
                set if set == one => other,
                set if set == other => one,
                _ => continue,
            };
            Arc::make_mut(&mut entry.rule).set = to;
        }
        Ok(())
    }

    /// Sets the addresses of the host that the rules are on.
    pub(super) fn set_me(&mut self, me: Vec<Masked>) {
        self.me = me;
        for entry in self.rules.values_mut() {
            entry.terms = test::compile(entry.rule.number, &entry.rule.terms, &self.me, &mut self.names);
        }
    }

    fn edit(&mut self, position: u64, edit: impl FnOnce(&mut Entry)) {
        if let Some(entry) = self.rules.get_mut(&position) {
            edit(entry);
        }
    }

    /// The selected rules. It is an error if none has a requested number, and, with `alter`, if the default rule is
    /// selected.
    fn select(&self, which: &Which, alter: bool) -> Result<Vec<u64>, RuleError> {
        if let Some(set) = which.set {
            is_set(set)?;
        }
        let named = which.numbers.as_ref().filter(|_| alter);
        if named.is_some_and(|numbers| numbers.contains(&DEFAULT)) {
            return Err(RuleError::DefaultRule);
        }
        let found = self.those(which).filter(|(_, entry)| !(alter && entry.rule.number == DEFAULT));
        let found: Vec<_> = found.map(|(position, _)| position).collect();
        match &which.numbers {
            Some(numbers) if found.is_empty() => Err(RuleError::NoSuchRule { number: *numbers.start() }),
            _ => Ok(found),
        }
    }

    fn those(&self, which: &Which) -> impl Iterator<Item = (u64, &Entry)> {
        let (first, last) = match &which.numbers {
            Some(numbers) => (*numbers.start(), *numbers.end()),
            None => (0, DEFAULT),
        };
        let set = which.set;
        let between = (first <= last).then(|| self.between(position(first, 0)..=position(last, u32::MAX)));
        between.into_iter().flatten().filter(move |(_, entry)| set.is_none_or(|set| set == entry.rule.set))
    }

    fn between(&self, positions: impl RangeBounds<u64>) -> impl Iterator<Item = (u64, &Entry)> {
        self.rules.range(positions).map(|(&position, entry)| (position, entry))
    }
}

const fn is_set(set: u8) -> Result<(), RuleError> {
    if set > ALWAYS { Err(RuleError::NoSuchSet { set }) } else { Ok(()) }
}

/// The number of a new rule; 0 requests the next one. As in the reference, the last number is reused if there is no
/// higher one.
fn numbered(number: u16, greatest: u16) -> u16 {
    const STEP: u16 = 100;
    match number {
        0 if greatest < DEFAULT - STEP => greatest + STEP,
        0 => greatest,
        number => number,
    }
}

fn default_rule() -> Rule {
    Rule { set: ALWAYS, ..Rule::new(DEFAULT, Action::Allow) }
}
