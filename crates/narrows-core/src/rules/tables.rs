//! The tables of a rule set, by name and by number.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{RuleError, Table};

/// Tables. One that a rule names is there, if without entries.
#[derive(Clone, Debug, Default)]
pub(super) struct Tables {
    names: BTreeMap<String, u32>,
    tables: Vec<Table>,
}

impl Tables {
    pub(super) fn new(tables: Vec<(String, Table)>) -> Result<Self, RuleError> {
        let mut all = Self::default();
        for (name, table) in tables {
            if all.names.contains_key(&name) {
                return Err(RuleError::TableTwice { table: name });
            }
            let number = all.number(&name);
            *all.get_mut(number) = table;
        }
        Ok(all)
    }

    /// The number of the table of this name.
    pub(super) fn number(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.names.get(name) {
            return number;
        }
        // There are fewer tables than conditions of rules and commands, which memory bounds.
        let number = self.tables.len() as u32;
        self.names.insert(name.to_string(), number);
        self.tables.push(Table::new());
        number
    }

    /// The number of a table that there is.
    pub(super) fn find(&self, name: &str) -> Option<u32> {
        self.names.get(name).copied()
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> &Table {
        &self.tables[number as usize]
    }

    pub(super) fn get_mut(&mut self, number: u32) -> &mut Table {
        &mut self.tables[number as usize]
    }

    /// By name.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Table)> {
        self.names.iter().map(|(name, &number)| (name.as_str(), self.get(number)))
    }
}
