//! Insertion into a [`Trie`] and removal.

use core::mem;

use super::node::{MOST_SKIPPED, Node, STRIDE, bits_at, end_of, value_at};
use super::trie::{Key, Trie};

impl<T: Default> Trie<T> {
    /// Sets the value of a prefix. Returns the previous value.
    pub(super) fn insert(&mut self, key: Key, value: T) -> Option<T> {
        let old = self.enter(key, value);
        if old.is_none() {
            self.set_starts();
        }
        old
    }

    /// Removes a prefix. Returns its value.
    pub(super) fn remove(&mut self, key: Key) -> Option<T> {
        let value = self.take(key);
        if value.is_some() {
            self.set_starts();
        }
        value
    }

    fn enter(&mut self, key: Key, value: T) -> Option<T> {
        let address = key.address;
        let (end, bit) = end_of(address, key.bits);
        let mut at = match self.root {
            Some(root) => root,
            None => *self.root.insert(self.nodes.single(Node::default())),
        };
        let mut level = 0;
        loop {
            level = self.split(at, level, address, end);
            if level == end {
                return self.put(at, bit, value);
            }
            let next = value_at(address, level);
            let node = &self.nodes[at];
            let (rank, has_child) = (node.rank_of_child(next), node.has_child(next));
            level += 1;
            if !has_child {
                let (row, count) = (node.nodes, node.children.count_ones());
                let row = self.nodes.insert(row, count, rank, Node::default());
                let node = &mut self.nodes[at];
                node.nodes = row;
                node.children |= 1 << next;
                self.grow(row + rank, level, key, value);
                return None;
            }
            at = node.nodes + rank;
        }
    }

    fn take(&mut self, key: Key) -> Option<T> {
        // The path from the root, at most one node for each level.
        let mut way = [(0, 0); 23];
        let mut steps = 0;
        let (mut at, bit) = self.find(key, |at, value| {
            way[steps] = (at, value);
            steps += 1;
        })?;
        let node = &mut self.nodes[at];
        let (count, rank) = (node.prefixes.count_ones(), node.rank_of_prefix(bit));
        let (value, row) = self.values.remove(node.values, count, rank);
        node.values = row;
        node.prefixes &= !(1 << bit);
        self.len -= 1;
        while self.nodes[at].prefixes == 0 && self.nodes[at].children == 0 {
            let Some(parent) = steps.checked_sub(1) else {
                *self = Self::new();
                return Some(value);
            };
            steps = parent;
            let (parent, child) = way[parent];
            let node = &self.nodes[parent];
            let (row, count, rank) = (node.nodes, node.children.count_ones(), node.rank_of_child(child));
            let (_, row) = self.nodes.remove(row, count, rank);
            let node = &mut self.nodes[parent];
            node.nodes = row;
            node.children &= !(1 << child);
            at = parent;
        }
        self.join(at);
        if let Some(parent) = steps.checked_sub(1) {
            self.join(way[parent].0);
        }
        Some(value)
    }

    /// Makes the vacant node at `at`, which is a child for `level`, lead to a prefix.
    fn grow(&mut self, mut at: u32, mut level: u32, key: Key, value: T) {
        let address = key.address;
        let (end, bit) = end_of(address, key.bits);
        loop {
            let skipped = (end - level).min(MOST_SKIPPED);
            self.nodes[at] = Node::behind(skipped, bits_at(address, level, skipped));
            level += skipped;
            if level == end {
                self.put(at, bit, value);
                return;
            }
            let child = self.nodes.single(Node::default());
            let node = &mut self.nodes[at];
            node.nodes = child;
            node.children = 1 << value_at(address, level);
            at = child;
            level += 1;
        }
    }

    /// Sets the value of a prefix at its node.
    fn put(&mut self, at: u32, bit: u32, value: T) -> Option<T> {
        let node = &mut self.nodes[at];
        let rank = node.rank_of_prefix(bit);
        if node.prefixes >> bit & 1 == 1 {
            return Some(mem::replace(&mut self.values[node.values + rank], value));
        }
        node.values = self.values.insert(node.values, node.prefixes.count_ones(), rank, value);
        node.prefixes |= 1 << bit;
        self.len += 1;
        None
    }

    /// Moves the node at `at`, which is a child for `level`, up to where the address still agrees with its skipped
    /// bits, and not below the level `end`. Returns the node's new level.
    fn split(&mut self, at: u32, level: u32, address: u128, end: u32) -> u32 {
        let node = &mut self.nodes[at];
        let (skipped, bits) = (node.skipped(), node.skipped_bits());
        let different = bits ^ bits_at(address, level, skipped);
        let agreed = match different.checked_ilog2() {
            None => skipped,
            Some(first) => skipped - 1 - first / STRIDE,
        };
        let kept = agreed.min(end - level);
        if kept < skipped {
            let below = skipped - kept - 1;
            let lower = mem::take(node).moved(below, bits & ((1 << (STRIDE * below)) - 1));
            let mut upper = Node::behind(kept, bits >> (STRIDE * (below + 1)));
            upper.children = 1 << (bits >> (STRIDE * below) & 63);
            upper.nodes = self.nodes.single(lower);
            self.nodes[at] = upper;
        }
        level + kept
    }

    /// Removes a node that only leads to one other, if that node can skip as many levels.
    fn join(&mut self, at: u32) {
        let node = &self.nodes[at];
        if node.prefixes != 0 || !node.children.is_power_of_two() || Some(at) == self.root {
            return;
        }
        let (upper, row) = (node.clone(), node.nodes);
        let below = self.nodes[row].skipped();
        let skipped = upper.skipped() + 1 + below;
        if skipped <= MOST_SKIPPED {
            let (lower, _) = self.nodes.remove(row, 1, 0);
            let own = upper.skipped_bits() << STRIDE | u64::from(upper.children.trailing_zeros());
            let bits = own << (STRIDE * below) | lower.skipped_bits();
            self.nodes[at] = lower.moved(skipped, bits);
        }
    }
}
