//! Changes of rules and tables at run time.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::book::RuleBook;
use super::nat::Nat;
use super::ruleset::RuleSet;
use super::{FlowEntry, Masked, NatConfig, Rule, RuleError, Table, Which};
use crate::classify::Prefix;
use crate::time::Time;

/// A change of a rule set.
#[derive(Clone, Debug, PartialEq)]
pub enum RuleChange {
    /// Adds a rule after those with the same number. The number 0 stands for 100 more than that of the last rule.
    Add(Rule),
    /// Deletes rules, with their dynamic rules.
    Delete(Which),
    /// Deletes all rules except those in set 31.
    Flush,
    /// Resets counters to zero.
    Zero(Which),
    /// Enables and disables sets, one bit each. A set in both is enabled.
    Sets {
        /// Sets to enable.
        enable: u32,
        /// Sets to disable; set 31 cannot be disabled.
        disable: u32,
    },
    /// Moves rules to another set.
    Move {
        /// The rules.
        which: Which,
        /// The new set.
        to: u8,
    },
    /// Exchanges the rules of two sets.
    Swap(u8, u8),
    /// Replaces all prefixes of a table at once.
    Table {
        /// The table. It is created if it does not exist.
        table: String,
        /// Its prefixes, with their values.
        entries: Box<Table>,
    },
    /// Adds a prefix to a table.
    TableAdd {
        /// The table. It is created if it does not exist.
        table: String,
        /// The prefix.
        prefix: Prefix,
        /// Its value.
        value: u32,
    },
    /// Removes exactly this prefix from a table.
    TableDelete {
        /// The table.
        table: String,
        /// The prefix.
        prefix: Prefix,
    },
    /// Adds a flow to a table of flows.
    FlowAdd {
        /// The table.
        table: String,
        /// The flow.
        flow: FlowEntry,
        /// Its value.
        value: u32,
    },
    /// Removes a flow from a table of flows.
    FlowDelete {
        /// The table.
        table: String,
        /// The flow.
        flow: FlowEntry,
    },
    /// Removes all entries from a table.
    TableFlush {
        /// The table.
        table: String,
    },
    /// Sets what a translator does, or removes it with its flows. An existing one keeps its flows.
    Nat {
        /// The translator's number.
        number: u32,
        /// What it does.
        config: Option<Box<NatConfig>>,
    },
    /// Sets the addresses of the host that the rules are on.
    Me(Vec<Masked>),
}

impl RuleBook {
    /// Changes the rules. A book has no tables and translators, so a change of one has no effect here.
    ///
    /// # Errors
    /// If a rule is invalid, or there is nothing with that number to change. Then nothing has changed.
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
            | RuleChange::FlowAdd { .. }
            | RuleChange::FlowDelete { .. }
            | RuleChange::TableFlush { .. }
            | RuleChange::Nat { .. } => {}
        }
        Ok(())
    }
}

impl RuleSet {
    /// Changes rules or tables. Packets in pipes continue at the correct place.
    ///
    /// # Errors
    /// If a rule is invalid, or there is nothing with that number or prefix to change. Then nothing has changed.
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
            RuleChange::FlowAdd { table, flow, value } => {
                let flows = self.flows_of(&table)?;
                if let Some(value) = flows.lookup_flow(flow) {
                    return Err(RuleError::EntryExists { table, value });
                }
                flows.insert_flow(flow, value);
            }
            RuleChange::FlowDelete { table, flow } => {
                if self.flows_of(&table)?.remove_flow(flow).is_none() {
                    return Err(RuleError::NoSuchEntry { table });
                }
            }
            RuleChange::TableFlush { table } => {
                // As in ipfw, all tables exist from the start, without entries.
                if let Some(entries) = self.tables.find_mut(&table) {
                    entries.clear();
                }
            }
            RuleChange::Nat { number, config: Some(config) } => {
                config.check(number)?;
                match self.nats.get_mut(&number) {
                    Some(nat) => nat.set_config(*config),
                    None => {
                        let nat = Nat::new(self.book.seed(), self.book.name(), number, *config);
                        self.nats.insert(number, nat);
                    }
                }
            }
            RuleChange::Nat { number, config: None } => {
                let gone = self.nats.remove(&number).ok_or(RuleError::NoSuchNat { nat: number })?;
                self.exceeded.nat += gone.refused();
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

    fn flows_of(&mut self, table: &str) -> Result<&mut Table, RuleError> {
        let found = self.tables.find_mut(table).filter(|found| found.flow_fields().is_some());
        found.ok_or_else(|| RuleError::NotOfFlows { table: table.into() })
    }
}
