//! ipfw commands for rules, sets and tables.

use narrows_core::classify::Prefix;
use narrows_core::rules::{FlowEntry, FlowFields, Rule, RuleChange, Table, Which};

use super::batch::Batch;
use super::read::next_number;
use crate::ipfw::{Network, Rules, SetCommand, TableCommand, TableKey};
use crate::problem::Problem;

/// The set whose rules a flush keeps, and which cannot be disabled.
const ALWAYS: u8 = 31;

impl Batch<'_> {
    pub(super) fn add(&mut self, mut rule: Rule) -> Result<(), Problem> {
        if rule.number == 0 {
            rule.number = next_number(self.book()?.last_number().unwrap_or(0));
        }
        self.change_rules(RuleChange::Add(rule))
    }

    pub(super) fn delete(&mut self, rules: &Rules) -> Result<(), Problem> {
        these(rules).into_iter().try_for_each(|which| {
            self.find(&which)?;
            self.change_rules(RuleChange::Delete(which))
        })
    }

    pub(super) fn delete_set(&mut self, set: u8) -> Result<(), Problem> {
        self.change_rules(RuleChange::Delete(Which { numbers: None, set: Some(set) }))
    }

    pub(super) fn zero(&mut self, rules: &Rules) -> Result<(), Problem> {
        these(rules).into_iter().try_for_each(|which| {
            self.find(&which)?;
            self.change_rules(RuleChange::Zero(which))
        })
    }

    /// Checks that the given numbers are those of existing rules.
    fn find(&mut self, which: &Which) -> Result<(), Problem> {
        let Some(numbers) = &which.numbers else { return Ok(()) };
        if self.book()?.has(which) {
            return Ok(());
        }
        let of = which.set.map_or(String::new(), |set| format!(" of set {set}"));
        Err(Problem::new(match (numbers.start(), numbers.end()) {
            (65_535, _) => "rule 65535 is the default rule, which stays".into(),
            (one, last) if one == last => format!("there is no rule {one}{of}"),
            (first, last) => format!("there are no rules {first} to {last}{of}"),
        }))
    }

    pub(super) fn change_sets(&mut self, change: SetCommand) -> Result<(), Problem> {
        let change = match change {
            SetCommand::Enable { enable, disable } => {
                if (self.book()?.disabled_sets() | disable) & !enable & 1 << ALWAYS != 0 {
                    return Err(Problem::new("set 31 cannot be disabled"));
                }
                RuleChange::Sets { enable, disable }
            }
            SetCommand::MoveRule { rule: number, to } => {
                let which = Which { numbers: Some(number..=number), set: None };
                self.find(&which)?;
                RuleChange::Move { which, to }
            }
            SetCommand::Move { from, to } => {
                RuleChange::Move { which: Which { numbers: None, set: Some(from) }, to }
            }
            SetCommand::Swap(one, other) => RuleChange::Swap(one, other),
            SetCommand::Show => return Ok(()),
        };
        self.change_rules(change)
    }

    pub(super) fn change_table(&mut self, change: &TableCommand) -> Result<(), Problem> {
        match change {
            TableCommand::Add { table, entries } => {
                for (key, value) in entries {
                    let value = *value;
                    let prefix = match key {
                        TableKey::Network(network) => prefix(network),
                        TableKey::Flow(fields, flow) => {
                            self.add_flow(table, *fields, *flow, value)?;
                            continue;
                        }
                    };
                    let rows = self.tables().entry(table.clone()).or_default();
                    if rows.insert(prefix, value).is_some() {
                        self.tell_of_table(RuleChange::TableDelete { table: table.clone(), prefix });
                    }
                    self.tell_of_table(RuleChange::TableAdd { table: table.clone(), prefix, value });
                }
            }
            TableCommand::Delete { table, entries } => {
                for key in entries {
                    let network = match key {
                        TableKey::Network(network) => network,
                        TableKey::Flow(_, flow) => {
                            let rows = self.tables().get_mut(table);
                            if rows.and_then(|rows| rows.remove_flow(*flow)).is_none() {
                                return Err(Problem::new(format!("{key} is not in table {table}")));
                            }
                            self.tell_of_table(RuleChange::FlowDelete { table: table.clone(), flow: *flow });
                            continue;
                        }
                    };
                    let rows = self.tables().get_mut(table);
                    // An interface is removed wherever it is.
                    let keys = std::iter::once(*network).chain(network.elsewhere());
                    let removed = rows.and_then(|rows| {
                        keys.map(|key| prefix(&key)).find(|&prefix| rows.remove(prefix).is_some())
                    });
                    let Some(prefix) = removed else {
                        return Err(Problem::new(format!("{network} is not in table {table}")));
                    };
                    self.tell_of_table(RuleChange::TableDelete { table: table.clone(), prefix });
                }
            }
            TableCommand::Flush(one) => self.flush_tables(one.as_deref())?,
            TableCommand::Swap(one, other) => self.swap_tables(one, other),
            TableCommand::Create { table, flow: None } => {
                self.tables().entry(table.clone()).or_default();
            }
            TableCommand::Create { table, flow: Some(fields) } => self.create_flows(table, *fields)?,
            TableCommand::Destroy(table) => match self.tables().remove(table) {
                None => return Err(Problem::new(format!("there is no table {table}"))),
                Some(rows) if rows.flow_fields().is_some() => {
                    let entries = Box::default();
                    self.tell_of_table(RuleChange::Table { table: table.clone(), entries });
                }
                Some(rows) if !rows.is_empty() => {
                    self.tell_of_table(RuleChange::TableFlush { table: table.clone() });
                }
                Some(_) => {}
            },
            TableCommand::List(_) | TableCommand::Info(_) => {}
        }
        Ok(())
    }

    /// Makes an empty or new table one of flows.
    fn create_flows(&mut self, table: &str, fields: FlowFields) -> Result<(), Problem> {
        let rows = self.tables().entry(table.into()).or_default();
        if rows.flow_fields() == Some(fields) {
            return Ok(());
        }
        if !rows.is_empty() {
            return Err(Problem::new(format!("table {table} has entries of another type"))
                .help(format!("first: table {table} destroy")));
        }
        *rows = Table::of_flows(fields);
        let entries = Box::new(rows.clone());
        self.tell_of_table(RuleChange::Table { table: table.into(), entries });
        Ok(())
    }

    fn add_flow(
        &mut self,
        table: &str,
        fields: FlowFields,
        flow: FlowEntry,
        value: u32,
    ) -> Result<(), Problem> {
        self.create_flows(table, fields)?;
        let rows = self.tables().entry(table.into()).or_default();
        let table = || table.to_string();
        if rows.insert_flow(flow, value).is_some() {
            self.tell_of_table(RuleChange::FlowDelete { table: table(), flow });
        }
        self.tell_of_table(RuleChange::FlowAdd { table: table(), flow, value });
        Ok(())
    }

    /// A table that does not exist is an empty one.
    fn swap_tables(&mut self, one: &str, other: &str) {
        if one == other {
            return;
        }
        let [first, second] = [one, other].map(|name| self.tables().remove(name).unwrap_or_default());
        for (name, before, rows) in [(one, &first, &second), (other, &second, &first)] {
            let table = String::from(name);
            if before.flow_fields().is_some() || rows.flow_fields().is_some() {
                let entries = Box::new((*rows).clone());
                self.tell_of_table(RuleChange::Table { table: table.clone(), entries });
            } else {
                if !before.is_empty() {
                    self.tell_of_table(RuleChange::TableFlush { table: table.clone() });
                }
                for (prefix, value) in rows.iter() {
                    self.tell_of_table(RuleChange::TableAdd { table: table.clone(), prefix, value });
                }
            }
            self.tables().insert(table, rows.clone());
        }
    }

    fn flush_tables(&mut self, one: Option<&str>) -> Result<(), Problem> {
        if let Some(table) = one.filter(|table| !self.tables().contains_key(*table)) {
            return Err(Problem::new(format!("there is no table {table}")));
        }
        let these = self.tables().iter_mut().filter(|(name, _)| one.is_none_or(|one| one == *name));
        let mut flushed = Vec::new();
        for (name, rows) in these.filter(|(_, rows)| !rows.is_empty()) {
            rows.clear();
            flushed.push(name.clone());
        }
        flushed.into_iter().for_each(|table| self.tell_of_table(RuleChange::TableFlush { table }));
        Ok(())
    }
}

/// The selection in the engine's type.
fn these(rules: &Rules) -> Vec<Which> {
    if rules.numbers.is_empty() {
        return vec![Which { numbers: None, set: rules.set }];
    }
    rules.numbers.iter().map(|numbers| Which { numbers: Some(numbers.clone()), set: rules.set }).collect()
}

fn prefix(network: &Network) -> Prefix {
    Prefix::new(network.address.to_be_bytes(), network.bits)
}
