//! A node: six bits of an address.

/// Bits of an address that a node takes.
pub(super) const STRIDE: u32 = 6;
/// Levels that a node may skip: 54 bits.
pub(super) const MOST_SKIPPED: u32 = 9;
const SKIPPED_BITS: u64 = (1 << (MOST_SKIPPED * STRIDE)) - 1;

/// A node of a [`super::Lpm`], half a cache line. It stands at a level: level `l` is about bits `6l − 5` to `6l` of the
/// address, so that level 0 has but one bit, and /24 in IPv4 and /48 in IPv6, which most prefixes are, are the longest
/// prefixes that their nodes hold.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    /// Which prefixes end here: that of `k` bits, 0 to 5, of this level with the value `v` is bit `2^k − 1 + v`.
    pub(super) prefixes: u64,
    /// For which values of the six bits there is a child.
    pub(super) children: u64,
    /// How many levels lie between the parent and this node, and above that their bits.
    skip: u64,
    /// Where the children are.
    pub(super) nodes: u32,
    /// Where the values are.
    pub(super) values: u32,
}

/// For each value of the six bits, the prefixes that it has.
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
    /// One without anything, `levels` below its parent's child level, behind these bits.
    pub(super) fn behind(levels: u32, bits: u64) -> Self {
        Self { skip: bits << 8 | u64::from(levels), ..Self::default() }
    }

    /// The same below other skipped levels.
    pub(super) fn moved(self, levels: u32, bits: u64) -> Self {
        Self { skip: Self::behind(levels, bits).skip, ..self }
    }

    /// How many levels it skips.
    #[inline]
    pub(super) const fn skipped(&self) -> u32 {
        self.skip as u8 as u32
    }

    /// The bits of the levels that it skips.
    #[inline]
    pub(super) const fn skipped_bits(&self) -> u64 {
        self.skip >> 8
    }

    /// The prefixes here that an address with this value of the six bits has.
    #[inline]
    pub(super) const fn prefixes_of(&self, value: u32) -> u64 {
        self.prefixes & PREFIXES_OF[value as usize]
    }

    /// Where the value of the prefix of this bit is, which must be here or is to come here.
    #[inline]
    pub(super) const fn rank_of_prefix(&self, bit: u32) -> u32 {
        (self.prefixes & ((1 << bit) - 1)).count_ones()
    }

    /// Which child this one is, which must be here or is to come here.
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
    // In the last level, those behind the last bit come from the front: no prefix is long enough to care.
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

/// The level in which a prefix of so many bits ends, and its bit there.
pub(super) const fn end_of(address: u128, bits: u8) -> (u32, u32) {
    let (level, within) = ((bits as u32 + 5) / STRIDE, (bits as u32 + 5) % STRIDE);
    (level, (1 << within) - 1 + (value_at(address, level) >> (STRIDE - within)))
}

/// The length of the prefix of this bit in a level.
pub(super) const fn length_of(level: u32, bit: u32) -> u8 {
    (STRIDE * level + (bit + 1).ilog2() - 5) as u8
}
