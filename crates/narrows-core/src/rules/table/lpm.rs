//! Longest prefix match: values by prefixes of IPv4 and IPv6 addresses.

use crate::classify::Prefix;

use super::iter::{Matches, Prefixes};
use super::key::{Address, key};
use super::trie::{Key, Trie};

/// Values by address prefix. IPv4 and IPv6 are separate: a prefix of less than 96 bits contains no IPv4 address.
///
/// A million prefixes with the length distribution of the Internet take about 23 MB, without memory owned by values
/// (`benches/tables.rs`). A prefix takes at most 23 nodes of 32 bytes, and four times that while rows of nodes grow;
/// in such a table it takes a third of a node. A lookup visits at most 23 nodes (five to nine in such a table) and
/// reads one value. A change moves at most two rows of 64 nodes or values, and one node for each level on the path.
/// Unused space holds default values.
///
/// ```
/// use narrows_core::classify::Prefix;
/// use narrows_core::rules::Lpm;
///
/// let address = |last| [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last];
/// let mut nets = Lpm::new();
/// nets.insert(Prefix::new(address(0), 96 + 24), "office");
/// nets.insert(Prefix::new(address(7), 128), "printer");
/// assert_eq!(nets.lookup(address(7)), Some(&"printer"));
/// assert_eq!(nets.lookup(address(8)), Some(&"office"));
/// ```
#[derive(Clone, Debug)]
pub struct Lpm<T> {
    /// Without the leading 96 mapping bits.
    v4: Trie<T>,
    v6: Trie<T>,
}

impl<T> Lpm<T> {
    /// An empty table.
    pub const fn new() -> Self {
        Self { v4: Trie::new(), v6: Trie::new() }
    }

    /// The number of prefixes.
    pub const fn len(&self) -> usize {
        self.v4.len + self.v6.len
    }

    /// Whether there are no prefixes.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of the longest prefix that contains this address.
    #[inline]
    pub fn lookup(&self, address: [u8; 16]) -> Option<&T> {
        let (trie, address) = self.where_to_look(address);
        let (node, _, prefixes) = trie.longest(address)?;
        Some(trie.value(node, 63 - prefixes.leading_zeros()))
    }

    /// The values of all prefixes that contain this address, from the shortest to the longest.
    pub fn matches(&self, address: [u8; 16]) -> Matches<'_, T> {
        let (trie, address) = self.where_to_look(address);
        Matches::new(trie, address)
    }

    /// The value of exactly this prefix.
    pub fn get(&self, prefix: Prefix) -> Option<&T> {
        let (is_v4, key) = key(prefix);
        let trie = if is_v4 { &self.v4 } else { &self.v6 };
        trie.find(key, |_, _| ()).map(|(node, bit)| trie.value(node, bit))
    }

    /// The value of exactly this prefix, mutable.
    pub fn get_mut(&mut self, prefix: Prefix) -> Option<&mut T> {
        let (trie, key) = self.place(prefix);
        let (node, bit) = trie.find(key, |_, _| ())?;
        Some(trie.value_mut(node, bit))
    }

    /// All prefixes and their values, IPv4 first, ordered by address, and for the same address from the shortest to
    /// the longest.
    pub fn iter(&self) -> Prefixes<'_, T> {
        Prefixes::new(&self.v4, &self.v6)
    }

    /// Memory in bytes, without memory owned by values.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.v4.bytes() + self.v6.bytes()
    }

    /// The trie of an address, and the address in that trie's form.
    #[inline]
    fn where_to_look(&self, address: [u8; 16]) -> (&Trie<T>, u128) {
        match Address::of(address) {
            Address::V4(address) => (&self.v4, address),
            Address::V6(address) => (&self.v6, address),
        }
    }

    fn place(&mut self, prefix: Prefix) -> (&mut Trie<T>, Key) {
        let (is_v4, key) = key(prefix);
        (if is_v4 { &mut self.v4 } else { &mut self.v6 }, key)
    }
}

impl<T: Default> Lpm<T> {
    /// Sets the value of a prefix. Returns the previous value.
    pub fn insert(&mut self, prefix: Prefix, value: T) -> Option<T> {
        let (trie, key) = self.place(prefix);
        trie.insert(key, value)
    }

    /// Removes a prefix. Returns its value.
    pub fn remove(&mut self, prefix: Prefix) -> Option<T> {
        let (trie, key) = self.place(prefix);
        trie.remove(key)
    }

    /// Removes all prefixes.
    pub fn clear(&mut self) {
        *self = Self::new();
    }
}

impl<T> Default for Lpm<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Equal if both have the same prefixes with the same values, independent of their history.
impl<T: PartialEq> PartialEq for Lpm<T> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl<T: Eq> Eq for Lpm<T> {}

impl<'a, T> IntoIterator for &'a Lpm<T> {
    type Item = (Prefix, &'a T);
    type IntoIter = Prefixes<'a, T>;
    fn into_iter(self) -> Prefixes<'a, T> {
        self.iter()
    }
}
