//! Iteration over tries.

use alloc::vec::Vec;

use crate::bits::Bits;
use crate::classify::Prefix;

use super::key;
use super::node::{bits_at, length_of, value_at};
use super::trie::{Key, Trie};

/// All prefixes and their values: see [`Lpm::iter`](super::Lpm::iter).
#[derive(Debug)]
pub struct Prefixes<'a, T> {
    v4: InOrder<'a, T>,
    v6: InOrder<'a, T>,
}

impl<'a, T> Prefixes<'a, T> {
    pub(super) fn new(v4: &'a Trie<T>, v6: &'a Trie<T>) -> Self {
        Self { v4: InOrder::new(v4), v6: InOrder::new(v6) }
    }
}

impl<'a, T> Iterator for Prefixes<'a, T> {
    type Item = (Prefix, &'a T);

    fn next(&mut self) -> Option<Self::Item> {
        let of_v4 = self.v4.next().map(|(key, value)| (key::prefix(true, key), value));
        of_v4.or_else(|| self.v6.next().map(|(key, value)| (key::prefix(false, key), value)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.v4.left + self.v6.left;
        (left, Some(left))
    }
}

impl<T> ExactSizeIterator for Prefixes<'_, T> {}

/// All prefixes of a trie in order.
#[derive(Debug)]
struct InOrder<'a, T> {
    trie: &'a Trie<T>,
    /// The unfinished nodes, from the root down.
    open: Vec<Open>,
    left: usize,
}

/// An unfinished node.
#[derive(Debug)]
struct Open {
    node: u32,
    level: u32,
    /// The bits above it.
    address: u128,
    /// Remaining prefixes and children.
    prefixes: u64,
    children: u64,
}

impl<'a, T> InOrder<'a, T> {
    fn new(trie: &'a Trie<T>) -> Self {
        let mut iter = Self { trie, open: Vec::new(), left: trie.len };
        if let Some(root) = trie.root {
            iter.open(root, 0, 0);
        }
        iter
    }

    /// Opens a node, a child for `level` with these bits above it.
    fn open(&mut self, node: u32, level: u32, above: u128) {
        let at = self.trie.node(node);
        let level = level + at.skipped();
        let address = above | placed(at.skipped_bits(), level);
        self.open.push(Open { node, level, address, prefixes: at.prefixes, children: at.children });
    }
}

/// Shifts bits so that the last of them is the last before `level`.
const fn placed(bits: u64, level: u32) -> u128 {
    // Level 0 begins 5 bits before the first.
    if level == 0 { 0 } else { (bits as u128) << (133 - 6 * level) }
}

/// The six bits of a level, at their position in an address.
const fn value_placed(value: u32, level: u32) -> u128 {
    // In the last level only the first of them exists.
    if level > 21 { (value >> 5) as u128 } else { (value as u128) << (127 - 6 * level) }
}

/// The first six-bit value that a prefix contains, and the prefix's length: the sort key for prefixes of a node.
const fn place_of(bit: u32) -> (u32, u32) {
    let bits = (bit + 1).ilog2();
    ((bit + 1 - (1 << bits)) << (6 - bits), bits)
}

impl<'a, T> Iterator for InOrder<'a, T> {
    type Item = (Key, &'a T);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let open = self.open.last_mut()?;
            let first = Bits(open.prefixes).min_by_key(|&bit| place_of(bit));
            let child = (open.children != 0).then(|| open.children.trailing_zeros());
            // A prefix that begins where a child does is shorter.
            if let Some(bit) = first.filter(|&bit| child.is_none_or(|child| place_of(bit).0 <= child)) {
                open.prefixes &= !(1 << bit);
                self.left -= 1;
                let address = open.address | value_placed(place_of(bit).0, open.level);
                let key = Key { address, bits: length_of(open.level, bit) };
                return Some((key, self.trie.value(open.node, bit)));
            }
            let Some(child) = child else {
                self.open.pop();
                continue;
            };
            open.children &= !(1 << child);
            let node = self.trie.node(open.node);
            let at = node.nodes + node.rank_of_child(child);
            let (level, above) = (open.level + 1, open.address | value_placed(child, open.level));
            self.open(at, level, above);
        }
    }
}

/// The values of all prefixes of an address, the shortest first: see [`Lpm::matches`](super::Lpm::matches).
#[derive(Debug)]
pub struct Matches<'a, T> {
    trie: &'a Trie<T>,
    address: u128,
    /// The next node, and the level that it is a child for.
    next: Option<(u32, u32)>,
    /// The node whose prefixes are being returned, and those that remain.
    node: u32,
    prefixes: Bits,
}

impl<'a, T> Matches<'a, T> {
    pub(super) fn new(trie: &'a Trie<T>, address: u128) -> Self {
        Self { trie, address, next: trie.root.map(|root| (root, 0)), node: 0, prefixes: Bits(0) }
    }
}

impl<'a, T> Iterator for Matches<'a, T> {
    type Item = &'a T;

    #[inline]
    fn next(&mut self) -> Option<&'a T> {
        loop {
            if let Some(bit) = self.prefixes.next() {
                return Some(self.trie.value(self.node, bit));
            }
            let (at, level) = self.next.take()?;
            let node = self.trie.node(at);
            if bits_at(self.address, level, node.skipped()) != node.skipped_bits() {
                return None;
            }
            let level = level + node.skipped();
            let value = value_at(self.address, level);
            (self.node, self.prefixes) = (at, Bits(node.prefixes_of(value)));
            if node.has_child(value) {
                self.next = Some((node.nodes + node.rank_of_child(value), level + 1));
            }
        }
    }
}
