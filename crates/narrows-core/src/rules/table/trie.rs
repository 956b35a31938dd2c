//! A trie with six bits per node and bitmaps instead of arrays (W. Eatherton, G. Varghese and Z. Dittia, "Tree
//! bitmap: hardware/software IP lookups with incremental updates", ACM SIGCOMM CCR 34(2), 2004). Difference: a node
//! may skip bits in which all prefixes below it agree, so that host addresses are reached in few steps.

use super::blocks::Blocks;
use super::node::{Node, STRIDE, bits_at, end_of, value_at};

/// Address prefixes, stored from the upper bits on.
#[derive(Clone, Debug)]
pub(super) struct Trie<T> {
    pub(super) nodes: Blocks<Node>,
    pub(super) values: Blocks<T>,
    /// The index of the first node, at level 0. `None` if the trie is empty.
    pub(super) root: Option<u32>,
    /// Where lookups start, for addresses whose first bit is 0 and 1. Recomputed at each change.
    pub(super) starts: [Start; 2],
    pub(super) len: usize,
}

/// A prefix.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    /// Its bits, followed by zeros.
    pub(super) address: u128,
    /// The length in bits.
    pub(super) bits: u8,
}

/// Where lookups start for addresses with the same first bit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    /// The node to which they lead from the root, if any.
    node: Option<u32>,
    /// The longest prefix that contains all of them: its node, the node's level, and the prefixes there.
    seen: Option<(u32, u32, u64)>,
}

impl Start {
    const NONE: Self = Self { node: None, seen: None };
}

impl<T> Trie<T> {
    /// An empty trie.
    pub(super) const fn new() -> Self {
        Self { nodes: Blocks::new(), values: Blocks::new(), root: None, starts: [Start::NONE; 2], len: 0 }
    }

    /// The value of a prefix, mutable.
    pub(super) fn value_mut(&mut self, node: u32, bit: u32) -> &mut T {
        let node = &self.nodes[node];
        &mut self.values[node.values + node.rank_of_prefix(bit)]
    }

    /// Memory in bytes, without the trie itself and memory owned by values.
    pub(super) fn bytes(&self) -> usize {
        self.nodes.bytes() + self.values.bytes()
    }

    #[inline]
    pub(super) fn node(&self, at: u32) -> &Node {
        &self.nodes[at]
    }

    /// The value of the prefix with this bit in a node.
    #[inline]
    pub(super) fn value(&self, node: u32, bit: u32) -> &T {
        let node = &self.nodes[node];
        &self.values[node.values + node.rank_of_prefix(bit)]
    }

    /// The last node on the path of an address with prefixes that contain it, the node's level, and these prefixes.
    #[inline]
    pub(super) fn longest(&self, address: u128) -> Option<(u32, u32, u64)> {
        let Start { node, mut seen } = self.starts[(address >> 127) as usize];
        let Some(mut at) = node else { return seen };
        // Level 0 had one bit: these are the bits of the following levels.
        let (mut level, mut rest) = (1, address << 1);
        loop {
            let node = &self.nodes[at];
            let skipped = node.skipped();
            if skipped != 0 {
                if (rest >> (128 - STRIDE * skipped)) as u64 != node.skipped_bits() {
                    return seen;
                }
                rest <<= STRIDE * skipped;
                level += skipped;
            }
            let value = (rest >> (128 - STRIDE)) as u32;
            let prefixes = node.prefixes_of(value);
            if prefixes != 0 {
                seen = Some((at, level, prefixes));
            }
            if !node.has_child(value) {
                return seen;
            }
            at = node.nodes + node.rank_of_child(value);
            rest <<= STRIDE;
            level += 1;
        }
    }

    /// Recomputes the starts after a change of nodes.
    pub(super) fn set_starts(&mut self) {
        self.starts = [self.start(0), self.start(1 << 127)];
    }

    /// The start for addresses with the first bit of this one.
    fn start(&self, address: u128) -> Start {
        let mut start = Start::NONE;
        if let Some(at) = self.root {
            let (node, value) = (&self.nodes[at], value_at(address, 0));
            let prefixes = node.prefixes_of(value);
            start.seen = (prefixes != 0).then_some((at, 0, prefixes));
            start.node = node.has_child(value).then(|| node.nodes + node.rank_of_child(value));
        }
        start
    }

    /// The node of a prefix and its bit there. `passed` is called with each node on the path, and the value of the
    /// child that follows.
    pub(super) fn find(&self, key: Key, mut passed: impl FnMut(u32, u32)) -> Option<(u32, u32)> {
        let address = key.address;
        let (end, bit) = end_of(address, key.bits);
        let mut at = self.root?;
        let mut level = 0;
        loop {
            let node = &self.nodes[at];
            let skipped = node.skipped();
            if level + skipped > end || bits_at(address, level, skipped) != node.skipped_bits() {
                return None;
            }
            level += skipped;
            if level == end {
                return (node.prefixes >> bit & 1 == 1).then_some((at, bit));
            }
            let value = value_at(address, level);
            if !node.has_child(value) {
                return None;
            }
            passed(at, value);
            at = node.nodes + node.rank_of_child(value);
            level += 1;
        }
    }
}
