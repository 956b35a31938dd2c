//! Changes of rules and tables while packets go through them.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::book::RuleBook;
use super::ruleset::RuleSet;
use super::{Masked, Rule, RuleError, Table, Which};
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
    /// All prefixes of a table at once, in place of those that it has.
    Table {
        /// The table, which is made if there is none.
        table: String,
        /// Its prefixes, with their values.
        entries: Box<Table>,
    },
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

impl RuleBook {
    /// Changes the rules. Tables are no part of a book: a change of one changes nothing here.
    ///
    /// # Errors
    /// When a rule is none, or nothing is there to be changed by that number. Nothing has changed then.
    pub fn change(&mut self, change: RuleChange) -> Result<(), RuleError> {
        match change {
            RuleChange::Add(rule) => self.add(rule)?,
            RuleChange::Delete(which) => self.delete(&which)?,
            RuleChange::Flush => self.flush(),
            RuleChange::Zero(which) => self.zero(&which)?,
            RuleChange::Sets { enable, disable } => self.change_sets(enable, disable)?,
            RuleChange::Move { which, to } => self.move_to(&which, to)?,
            RuleChange::Swap(one, other) => self.swap(one, other)?,
            RuleChange::Me(me) => self.set_me(me),
            RuleChange::Table { .. }
            | RuleChange::TableAdd { .. }
            | RuleChange::TableDelete { .. }
            | RuleChange::TableFlush { .. } => {}
        }
        Ok(())
    }
}

impl RuleSet {
    /// Changes rules or tables. What packets in pipes know of where they go on stays right.
    ///
    /// # Errors
    /// When a rule is none, or nothing is there to be changed by that number or prefix. Nothing has changed then.
    pub fn change(&mut self, _now: Time, change: RuleChange) -> Result<(), RuleError> {
        match change {
            RuleChange::Table { table, entries } => *self.tables.get_or_make(&table) = *entries,
            RuleChange::TableAdd { table, prefix, value } => {
                if let Some(value) = self.table(&table).and_then(|table| table.get(prefix)) {
                    return Err(RuleError::EntryExists { table, value });
                }
                self.tables.get_or_make(&table).insert(prefix, value);
            }
            RuleChange::TableDelete { table, prefix } => {
                let Some(entries) = self.tables.find_mut(&table) else {
                    return Err(RuleError::NoSuchTable { table });
                };
                if entries.remove(prefix).is_none() {
                    return Err(RuleError::NoSuchEntry { table });
                }
            }
            RuleChange::TableFlush { table } => {
                // As in ipfw, all tables are there from the start, without entries.
                if let Some(entries) = self.tables.find_mut(&table) {
                    entries.clear();
                }
            }
            of_rules => {
                let may_end = matches!(of_rules, RuleChange::Delete(_) | RuleChange::Flush);
                Arc::make_mut(&mut self.book).change(of_rules)?;
                if may_end {
                    self.end_states();
                }
                self.tables.arrange(self.book.names());
                self.stale = true;
            }
        }
        Ok(())
    }
}
