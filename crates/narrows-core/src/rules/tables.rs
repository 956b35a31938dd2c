//! The tables of a rule set, by name and by number.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{RuleError, Table};

/// The numbers of the tables that rules use. A name keeps its number.
#[derive(Clone, Debug, Default)]
pub(super) struct Names(BTreeMap<String, u32>);

impl Names {
    /// The number of the table with this name.
    pub(super) fn number(self: &mut Arc<Self>, name: &str) -> u32 {
        if let Some(&number) = self.0.get(name) {
            return number;
        }
        // There are fewer tables than conditions and commands, which are bounded by memory.
        let number = self.0.len() as u32;
        Arc::make_mut(self).0.insert(name.to_string(), number);
        number
    }
}

/// Tables. Every table that a rule uses exists, possibly empty.
#[derive(Debug, Default)]
pub(super) struct Tables {
    /// The index of each table.
    names: BTreeMap<String, u32>,
    tables: Vec<Table>,
    /// The names whose numbers equal the indices.
    arranged: Arc<Names>,
}

impl Tables {
    pub(super) fn new(tables: Vec<(String, Table)>) -> Result<Self, RuleError> {
        let mut all = Self::default();
        for (name, table) in tables {
            if all.names.contains_key(&name) {
                return Err(RuleError::TableTwice { table: name });
            }
            *all.get_or_make(&name) = table;
        }
        Ok(all)
    }

    /// Moves the tables that rules use to the indices equal to their numbers, and the others after them.
    pub(super) fn arrange(&mut self, names: &Arc<Names>) {
        if Arc::ptr_eq(&self.arranged, names) {
            return;
        }
        self.arranged = names.clone();
        let mut before: Vec<Table> = core::mem::take(&mut self.tables);
        let own = core::mem::take(&mut self.names);
        self.tables.resize_with(names.0.len(), Table::new);
        self.names.clone_from(&names.0);
        for (name, place) in own {
            *self.get_or_make(&name) = core::mem::take(&mut before[place as usize]);
        }
    }

    /// The table with this name.
    pub(super) fn find(&self, name: &str) -> Option<&Table> {
        self.names.get(name).map(|&place| self.get(place))
    }

    pub(super) fn find_mut(&mut self, name: &str) -> Option<&mut Table> {
        self.names.get(name).map(|&place| &mut self.tables[place as usize])
    }

    /// Like [`Self::find_mut`], creating the table if it does not exist.
    pub(super) fn get_or_make(&mut self, name: &str) -> &mut Table {
        let place = match self.names.get(name) {
            Some(&place) => place as usize,
            None => {
                self.names.insert(name.to_string(), self.tables.len() as u32);
                self.tables.push(Table::new());
                self.tables.len() - 1
            }
        };
        &mut self.tables[place]
    }

    /// The table with this number, once the tables are arranged.
    #[inline]
    pub(super) fn get(&self, number: u32) -> &Table {
        &self.tables[number as usize]
    }

    /// By name.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Table)> {
        self.names.iter().map(|(name, &place)| (name.as_str(), self.get(place)))
    }
}
