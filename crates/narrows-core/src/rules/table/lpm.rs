//! Prefixes of IPv4 and IPv6 addresses, each with a value, and the longest that an address has.

use crate::classify::Prefix;

use super::iter::{Matches, Prefixes};
use super::key::{Address, key};
use super::trie::{Key, Trie};

/// Values by prefixes of addresses. IPv4 and IPv6 are apart: a prefix of less than 96 bits has no IPv4 address.
///
/// A million prefixes, with lengths as the Internet's have them, take about 23 MB beside what values own
/// (`benches/tables.rs`). A prefix takes at most 23 nodes of 32 bytes, and four times that while rows of nodes grow; in
/// such a table it is a third of a node. A look-up sees at most 23 nodes, five to nine in such a table, and touches one
/// value. A change moves at most two rows of 64 nodes or values, and a node for each level on the way. Room that is not
/// used holds default values.
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
    /// Without the 96 bits before them.
    v4: Trie<T>,
    v6: Trie<T>,
}

impl<T> Lpm<T> {
    /// Without prefixes.
    pub const fn new() -> Self {
        Self { v4: Trie::new(), v6: Trie::new() }
    }

    /// How many prefixes there are.
    pub const fn len(&self) -> usize {
        self.v4.len + self.v6.len
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of the longest prefix that this address has.
    #[inline]
    pub fn lookup(&self, address: [u8; 16]) -> Option<&T> {
        let (trie, address) = self.where_to_look(address);
        let (node, _, prefixes) = trie.longest(address)?;
        Some(trie.value(node, 63 - prefixes.leading_zeros()))
    }

    /// The values of all prefixes that this address has, from the shortest to the longest.
    pub fn matches(&self, address: [u8; 16]) -> Matches<'_, T> {
        let (trie, address) = self.where_to_look(address);
        Matches::new(trie, address)
    }

    /// The value of this very prefix.
    pub fn get(&self, prefix: Prefix) -> Option<&T> {
        let (is_v4, key) = key(prefix);
        let trie = if is_v4 { &self.v4 } else { &self.v6 };
        trie.find(key, |_, _| ()).map(|(node, bit)| trie.value(node, bit))
    }

    /// The value of this very prefix.
    pub fn get_mut(&mut self, prefix: Prefix) -> Option<&mut T> {
        let (trie, key) = self.place(prefix);
        let (node, bit) = trie.find(key, |_, _| ())?;
        Some(trie.value_mut(node, bit))
    }

    /// All prefixes and their values, those of IPv4 first: by address, and those of one address from the shortest to the
    /// longest.
    pub fn iter(&self) -> Prefixes<'_, T> {
        Prefixes::new(&self.v4, &self.v6)
    }

    /// The bytes that it takes in memory, beside what values own.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.v4.bytes() + self.v6.bytes()
    }

    /// The trie that an address is in, and as what.
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
    /// Sets the value of a prefix, and returns the one that it had.
    pub fn insert(&mut self, prefix: Prefix, value: T) -> Option<T> {
        let (trie, key) = self.place(prefix);
        trie.insert(key, value)
    }

    /// Takes a prefix out, and returns its value.
    pub fn remove(&mut self, prefix: Prefix) -> Option<T> {
        let (trie, key) = self.place(prefix);
        trie.remove(key)
    }

    /// Takes all prefixes out.
    pub fn clear(&mut self) {
        *self = Self::new();
    }
}

impl<T> Default for Lpm<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Alike are two that have the same prefixes with the same values, however they came to them.
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
