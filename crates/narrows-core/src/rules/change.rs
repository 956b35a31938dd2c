//! Changes of rules and tables while packets go through them.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use super::check::{ALWAYS, DEFAULT};
use super::ruleset::RuleSet;
use super::test;
use super::{Masked, Rule, RuleError};
use crate::classify::Prefix;
use crate::time::Time;

/// A change of a rule set.
#[derive(Clone, Debug, PartialEq)]
pub enum RuleChange {
    /// Adds a rule behind those of its number. A number of 0 stands for 100 more than that of the last rule.
    Add(Rule),
    /// Takes rules out, with their dynamic rules.
    Delete(Which),
    /// Takes all rules out but those of set 31.
    Flush,
    /// Sets counters to zero.
    Zero(Which),
    /// Enables and disables sets: a bit for each. Where both are asked for, a set is enabled.
    Sets {
        /// Those whose rules are tried.
        enable: u32,
        /// Those whose rules are not; set 31 cannot be among them.
        disable: u32,
    },
    /// Puts rules into another set.
    Move {
        /// Which rules.
        which: Which,
        /// The set.
        to: u8,
    },
    /// The rules of each of two sets go into the other one.
    Swap(u8, u8),
    /// Adds a prefix to a table.
    TableAdd {
        /// The table, which is made if there is none.
        table: String,
        /// The prefix.
        prefix: Prefix,
        /// Its value.
        value: u32,
    },
    /// Takes this very prefix out of a table.
    TableDelete {
        /// The table.
        table: String,
        /// The prefix.
        prefix: Prefix,
    },
    /// Takes all prefixes out of a table.
    TableFlush {
        /// The table.
        table: String,
    },
    /// The addresses of the host that the rules are on.
    Me(Vec<Masked>),
}

/// Rules that fulfil both; by default all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Which {
    /// Those of these numbers.
    pub numbers: Option<RangeInclusive<u16>>,
    /// Those of this set.
    pub set: Option<u8>,
}

impl Which {
    fn has(&self, rule: &Rule) -> bool {
        self.numbers.as_ref().is_none_or(|numbers| numbers.contains(&rule.number))
            && self.set.is_none_or(|set| set == rule.set)
    }
}

impl RuleSet {
    /// Changes rules or tables. What packets in pipes know of where they go on stays right.
    ///
    /// # Errors
    /// When a rule is none, or nothing is there to be changed by that number or prefix. Nothing has changed then.
    pub fn change(&mut self, _now: Time, change: RuleChange) -> Result<(), RuleError> {
        match change {
            RuleChange::Add(rule) => return self.add(rule),
            RuleChange::Delete(which) => {
                self.select(&which, true)?;
                self.delete(|rule| which.has(rule));
            }
            RuleChange::Flush => self.delete(|rule| rule.set != ALWAYS),
            RuleChange::Zero(which) => {
                for at in self.select(&which, false)? {
                    (self.hot[at].packets, self.hot[at].bytes) = (0, 0);
                }
            }
            RuleChange::Sets { enable, disable } => {
                let disabled = (self.disabled | disable) & !enable;
                if disabled >> ALWAYS != 0 {
                    return Err(RuleError::AlwaysEnabled);
                }
                self.disabled = disabled;
            }
            RuleChange::Move { which, to } => {
                is_set(to)?;
                for at in self.select(&which, true)? {
                    self.rules[at].rule.set = to;
                }
            }
            RuleChange::Swap(one, other) => {
                is_set(one)?;
                is_set(other)?;
                for compiled in self.rules.iter_mut().filter(|compiled| compiled.rule.number != DEFAULT) {
                    compiled.rule.set = match compiled.rule.set {
                        set if set == one => other,
                        set if set == other => one,
                        set => set,
                    };
                }
            }
            RuleChange::TableAdd { table, prefix, value } => {
                if let Some(value) = self.table(&table).and_then(|table| table.get(prefix)) {
                    return Err(RuleError::EntryExists { table, value });
                }
                let number = self.tables.number(&table);
                self.tables.get_mut(number).insert(prefix, value);
                return Ok(());
            }
            RuleChange::TableDelete { table, prefix } => {
                let Some(number) = self.tables.find(&table) else {
                    return Err(RuleError::NoSuchTable { table });
                };
                if self.tables.get_mut(number).remove(prefix).is_none() {
                    return Err(RuleError::NoSuchEntry { table });
                }
                return Ok(());
            }
            RuleChange::TableFlush { table } => {
                // As in ipfw, all tables are there from the start, without entries.
                if let Some(number) = self.tables.find(&table) {
                    self.tables.get_mut(number).clear();
                }
                return Ok(());
            }
            RuleChange::Me(me) => {
                self.me = me;
                for compiled in &mut self.rules {
                    compiled.terms = test::compile(&compiled.rule.terms, &self.me, &mut self.tables);
                }
            }
        }
        self.stale = true;
        Ok(())
    }

    /// Where the rules are that are asked for. None of a number is an error, and where it is to `alter` them, so is the
    /// default rule.
    fn select(&self, which: &Which, alter: bool) -> Result<Vec<usize>, RuleError> {
        if let Some(set) = which.set {
            is_set(set)?;
        }
        let named = which.numbers.as_ref().filter(|_| alter);
        if named.is_some_and(|numbers| numbers.contains(&DEFAULT)) {
            return Err(RuleError::DefaultRule);
        }
        let rules = self.rules.iter().enumerate();
        let is_asked_for = |rule: &Rule| which.has(rule) && !(alter && rule.number == DEFAULT);
        let found: Vec<_> = rules.filter(|(_, one)| is_asked_for(&one.rule)).map(|(at, _)| at).collect();
        match &which.numbers {
            Some(numbers) if found.is_empty() => Err(RuleError::NoSuchRule { number: *numbers.start() }),
            _ => Ok(found),
        }
    }

    fn delete(&mut self, is_meant: impl Fn(&Rule) -> bool) {
        let stays: Vec<bool> =
            self.rules.iter().map(|one| one.rule.number == DEFAULT || !is_meant(&one.rule)).collect();
        for compiled in self.rules.iter().zip(&stays).filter(|&(_, &stays)| !stays).map(|(one, _)| one) {
            if compiled.rule.keep.is_some() {
                self.states.remove_of(compiled.order);
            }
        }
        retain(&mut self.rules, &stays);
        retain(&mut self.hot, &stays);
        retain(&mut self.positions, &stays);
    }
}

fn retain<T>(all: &mut Vec<T>, stays: &[bool]) {
    let mut stays = stays.iter();
    all.retain(|_| stays.next().is_none_or(|&stays| stays));
}

const fn is_set(set: u8) -> Result<(), RuleError> {
    if set > ALWAYS { Err(RuleError::NoSuchSet { set }) } else { Ok(()) }
}
