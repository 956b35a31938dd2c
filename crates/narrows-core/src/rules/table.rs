//! Tables of addresses: the longest prefix that an address has decides (ipfw(8), "LOOKUP TABLES").

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

/// A table: a number for each of its prefixes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table(Lpm<u32>);

impl Table {
    /// Without entries.
    pub const fn new() -> Self {
        Self(Lpm::new())
    }

    /// Sets the value of a prefix, and returns the one that it had.
    pub fn insert(&mut self, prefix: Prefix, value: u32) -> Option<u32> {
        self.0.insert(prefix, value)
    }

    /// Takes a prefix out, and returns its value.
    pub fn remove(&mut self, prefix: Prefix) -> Option<u32> {
        self.0.remove(prefix)
    }

    /// The value of this very prefix.
    pub fn get(&self, prefix: Prefix) -> Option<u32> {
        self.0.get(prefix).copied()
    }

    /// The value of the longest prefix that an address has.
    #[inline]
    pub fn lookup(&self, address: [u8; 16]) -> Option<u32> {
        self.0.lookup(address).copied()
    }

    /// All entries, those of IPv4 first: by address, and those of one address from the shortest prefix to the longest.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Prefix, u32)> {
        self.0.iter().map(|(prefix, &value)| (prefix, value))
    }

    /// How many entries there are.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes all entries out.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The bytes that it takes in memory: see [`Lpm`] for how many.
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
