//! Tables of addresses: an address gets the value of its longest matching prefix (ipfw(8), "LOOKUP TABLES").

mod blocks;
mod change;
mod iter;
mod key;
mod lpm;
mod node;
mod special;
#[cfg(test)]
mod tests;
mod trie;

use alloc::vec::Vec;

use crate::classify::Prefix;

pub use iter::{Matches, Prefixes};
pub use lpm::Lpm;
pub(super) use special::link_key;
pub use special::{Side, SpecialKey};

/// A table: a number for each prefix, or for each [`SpecialKey`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    entries: Lpm<u32>,
    /// Those entries that are interfaces, in order. They are few.
    interfaces: Vec<(Side, Prefix, u32)>,
}

impl Table {
    /// An empty table.
    pub const fn new() -> Self {
        Self { entries: Lpm::new(), interfaces: Vec::new() }
    }

    /// Sets the value of a prefix. Returns the previous value.
    pub fn insert(&mut self, prefix: Prefix, value: u32) -> Option<u32> {
        if let Some(side) = special::side_of(prefix) {
            self.forget_interface(prefix);
            let key = (side, prefix, value);
            let at =
                self.interfaces.partition_point(|one| (one.0, one.1.address()) < (side, prefix.address()));
            self.interfaces.insert(at, key);
        }
        self.entries.insert(prefix, value)
    }

    /// Removes a prefix. Returns its value.
    pub fn remove(&mut self, prefix: Prefix) -> Option<u32> {
        self.forget_interface(prefix);
        self.entries.remove(prefix)
    }

    fn forget_interface(&mut self, prefix: Prefix) {
        self.interfaces.retain(|one| one.1 != prefix);
    }

    /// The value of the first interface, by name, on this side whose value is accepted.
    pub fn interface(&self, side: Side, accepts: impl Fn(u32) -> bool) -> Option<u32> {
        let mut values = self.interfaces.iter().filter(|one| one.0 == side).map(|one| one.2);
        values.find(|&value| accepts(value))
    }

    /// The value of exactly this prefix.
    pub fn get(&self, prefix: Prefix) -> Option<u32> {
        self.entries.get(prefix).copied()
    }

    /// The value of the longest prefix that contains an address.
    #[inline]
    pub fn lookup(&self, address: [u8; 16]) -> Option<u32> {
        self.entries.lookup(address).copied()
    }

    /// All entries, IPv4 first, ordered by address, and for the same address from the shortest prefix to the longest.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Prefix, u32)> {
        self.entries.iter().map(|(prefix, &value)| (prefix, value))
    }

    /// The number of entries.
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the table is empty.
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.interfaces.clear();
    }

    /// Memory in bytes: see [`Lpm`].
    pub fn bytes(&self) -> usize {
        self.entries.bytes()
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
