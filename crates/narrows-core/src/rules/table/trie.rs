//! A trie of six bits a node, with bitmaps in the place of arrays (W. Eatherton, G. Varghese and Z. Dittia, "Tree bitmap:
//! hardware/software IP lookups with incremental updates", ACM SIGCOMM CCR 34(2), 2004). Departure: a node may skip bits in
//! which all prefixes below it agree, so that hosts are near.

use super::blocks::Blocks;
use super::node::{Node, STRIDE, bits_at, end_of, value_at};

/// The prefixes of addresses, which begin with the upper bits.
#[derive(Clone, Debug)]
pub(super) struct Trie<T> {
    pub(super) nodes: Blocks<Node>,
    pub(super) values: Blocks<T>,
    /// Where the first node is, at level 0, unless there is nothing.
    pub(super) root: Option<u32>,
    /// Where look-ups start of addresses whose first bit is 0, and of those where it is 1. Made anew with each change.
    pub(super) starts: [Start; 2],
    pub(super) len: usize,
}

/// A prefix.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    /// Its bits, and zeros behind them.
    pub(super) address: u128,
    /// How many.
    pub(super) bits: u8,
}

/// Where look-ups start of addresses that agree in their first bit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    /// Where they lead from the root, if anywhere.
    node: Option<u32>,
    /// Of the prefixes that they all have, the longest: its node, the level of that, and the prefixes there.
    seen: Option<(u32, u32, u64)>,
}

impl Start {
    const NONE: Self = Self { node: None, seen: None };
}

impl<T> Trie<T> {
    /// Without prefixes.
    pub(super) const fn new() -> Self {
        Self { nodes: Blocks::new(), values: Blocks::new(), root: None, starts: [Start::NONE; 2], len: 0 }
    }

    /// Where the value of a prefix is.
    pub(super) fn value_mut(&mut self, node: u32, bit: u32) -> &mut T {
        let node = &self.nodes[node];
        &mut self.values[node.values + node.rank_of_prefix(bit)]
    }

    /// The bytes that it takes, beside itself and what values own.
    pub(super) fn bytes(&self) -> usize {
        self.nodes.bytes() + self.values.bytes()
    }

    #[inline]
    pub(super) fn node(&self, at: u32) -> &Node {
        &self.nodes[at]
    }

    /// The value of the prefix of this bit in a node.
    #[inline]
    pub(super) fn value(&self, node: u32, bit: u32) -> &T {
        let node = &self.nodes[node];
        &self.values[node.values + node.rank_of_prefix(bit)]
    }

    /// The last node on the way of an address that has prefixes of it, the level of that, and which prefixes.
    #[inline]
    pub(super) fn longest(&self, address: u128) -> Option<(u32, u32, u64)> {
        let Start { node, mut seen } = self.starts[(address >> 127) as usize];
        let Some(mut at) = node else { return seen };
        // Level 0 had one bit: these are the bits of the levels to come.
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

    /// After a change of nodes.
    pub(super) fn set_starts(&mut self) {
        self.starts = [self.start(0), self.start(1 << 127)];
    }

    /// Where look-ups start of addresses that have their first bit from this one.
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

    /// The node of a prefix and its bit there; `passed` hears of each node on the way there, and of the value of the child
    /// that leads on.
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
