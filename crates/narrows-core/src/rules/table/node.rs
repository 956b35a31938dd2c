//! A node: six bits of an address.

/// Address bits per node.
pub(super) const STRIDE: u32 = 6;
/// Maximum number of levels that a node may skip: 54 bits.
pub(super) const MOST_SKIPPED: u32 = 9;
const SKIPPED_BITS: u64 = (1 << (MOST_SKIPPED * STRIDE)) - 1;

/// A node of a [`super::Lpm`], half a cache line. Level `l` covers bits `6l − 5` to `6l` of the address, so level 0
/// has only one bit. With this layout the most frequent prefixes, /24 in IPv4 and /48 in IPv6, are the longest
/// prefixes of their nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    /// Prefixes that end here: the one with `k` bits (0 to 5) in this level and the value `v` is bit `2^k − 1 + v`.
    pub(super) prefixes: u64,
    /// The values of the six bits for which there is a child.
    pub(super) children: u64,
    /// The number of levels between the parent and this node, and above that their bits.
    skip: u64,
    /// Start index of the children.
    pub(super) nodes: u32,
    /// Start index of the values.
    pub(super) values: u32,
}

/// For each value of the six bits, the prefixes that contain it.
const PREFIXES_OF: [u64; 64] = {
    let mut all = [0; 64];
    let mut value = 0;
    while value < 64 {
        let mut bits = 0;
        while bits < 6 {
            all[value] |= 1 << ((1 << bits) - 1 + (value >> (6 - bits)));
            bits += 1;
        }
        value += 1;
    }
    all
};

impl Node {
    /// An empty node, `levels` below its parent's child level, after these skipped bits.
    pub(super) fn behind(levels: u32, bits: u64) -> Self {
        Self { skip: bits << 8 | u64::from(levels), ..Self::default() }
    }

    /// The same node with other skipped levels.
    pub(super) fn moved(self, levels: u32, bits: u64) -> Self {
        Self { skip: Self::behind(levels, bits).skip, ..self }
    }

    /// The number of levels that it skips.
    #[inline]
    pub(super) const fn skipped(&self) -> u32 {
        self.skip as u8 as u32
    }

    /// The bits of the skipped levels.
    #[inline]
    pub(super) const fn skipped_bits(&self) -> u64 {
        self.skip >> 8
    }

    /// The prefixes here that contain this value of the six bits.
    #[inline]
    pub(super) const fn prefixes_of(&self, value: u32) -> u64 {
        self.prefixes & PREFIXES_OF[value as usize]
    }

    /// The rank of a prefix's value. The prefix must be here or about to be inserted.
    #[inline]
    pub(super) const fn rank_of_prefix(&self, bit: u32) -> u32 {
        (self.prefixes & ((1 << bit) - 1)).count_ones()
    }

    /// The rank of a child. The child must be here or about to be inserted.
    #[inline]
    pub(super) const fn rank_of_child(&self, value: u32) -> u32 {
        (self.children & ((1 << value) - 1)).count_ones()
    }

    /// Whether there is a child for this value.
    #[inline]
    pub(super) const fn has_child(&self, value: u32) -> bool {
        self.children >> value & 1 == 1
    }
}

/// The six bits of a level.
#[inline]
pub(super) const fn value_at(address: u128, level: u32) -> u32 {
    if level == 0 {
        // The five bits before the first do not exist.
        return (address >> 127) as u32;
    }
    // In the last level, the bits after the last come from the front. No prefix is long enough for that to matter.
    address.rotate_left(STRIDE * level + 1) as u32 & 63
}

/// The bits of `count` levels, at most [`MOST_SKIPPED`], from `level` on, before the last level.
#[inline]
pub(super) const fn bits_at(address: u128, level: u32, count: u32) -> u64 {
    if count == 0 {
        return 0;
    }
    let bits = (address >> (133 - STRIDE * (level + count))) as u64;
    bits & (SKIPPED_BITS >> ((MOST_SKIPPED - count) * STRIDE))
}

/// The level in which a prefix of this length ends, and its bit there.
pub(super) const fn end_of(address: u128, bits: u8) -> (u32, u32) {
    let (level, within) = ((bits as u32 + 5) / STRIDE, (bits as u32 + 5) % STRIDE);
    (level, (1 << within) - 1 + (value_at(address, level) >> (STRIDE - within)))
}

/// The length of the prefix with this bit in a level.
pub(super) const fn length_of(level: u32, bit: u32) -> u8 {
    (STRIDE * level + (bit + 1).ilog2() - 5) as u8
}
