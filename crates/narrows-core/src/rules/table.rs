//! Tables of addresses: an address gets the value of its longest matching prefix (ipfw(8), "LOOKUP TABLES").

mod blocks;
mod change;
mod iter;
mod key;
mod lpm;
mod node;
#[cfg(test)]
mod tests;
mod trie;

use crate::classify::Prefix;

pub use iter::{Matches, Prefixes};
pub use lpm::Lpm;

/// A table: a number for each prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table(Lpm<u32>);

impl Table {
    /// An empty table.
    pub const fn new() -> Self {
        Self(Lpm::new())
    }

    /// Sets the value of a prefix. Returns the previous value.
    pub fn insert(&mut self, prefix: Prefix, value: u32) -> Option<u32> {
        self.0.insert(prefix, value)
    }

    /// Removes a prefix. Returns its value.
    pub fn remove(&mut self, prefix: Prefix) -> Option<u32> {
        self.0.remove(prefix)
    }

    /// The value of exactly this prefix.
    pub fn get(&self, prefix: Prefix) -> Option<u32> {
        self.0.get(prefix).copied()
    }

    /// The value of the longest prefix that contains an address.
    #[inline]
    pub fn lookup(&self, address: [u8; 16]) -> Option<u32> {
        self.0.lookup(address).copied()
    }

    /// All entries, IPv4 first, ordered by address, and for the same address from the shortest prefix to the longest.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Prefix, u32)> {
        self.0.iter().map(|(prefix, &value)| (prefix, value))
    }

    /// The number of entries.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the table is empty.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Memory in bytes: see [`Lpm`].
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

impl FromIterator<(Prefix, u32)> for Table {
    fn from_iter<I: IntoIterator<Item = (Prefix, u32)>>(entries: I) -> Self {
        let mut table = Self::new();
        for (prefix, value) in entries {
            table.insert(prefix, value);
        }
        table
    }
}
