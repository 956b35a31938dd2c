//! Header fields as bits from the first one on, as wide as an address of one IP version.

use core::fmt::Debug;
use core::ops::{BitAnd, BitOr, BitXor};

use crate::rules::test::Hosts;

/// An address, or a shorter field shifted to the top.
pub(super) trait Address:
    Copy + Debug + Default + Ord + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self>
{
    /// A source and a destination.
    type Hosts: Copy + Debug + PartialEq + Into<Words>;

    const BITS: u8;

    /// The address of a packet.
    fn of(address: u128) -> Self;

    /// A field of `bits` bits.
    fn top(value: u16, bits: u8) -> Self;

    fn both(source: Self, destination: Self) -> Self::Hosts;

    /// Nonzero if they differ in a bit of the mask.
    fn differ(hosts: Self::Hosts, others: Self::Hosts, mask: Self::Hosts) -> u64;

    /// The addresses of this version, with their masks.
    fn hosts(hosts: &Hosts) -> impl Iterator<Item = (Self, Self)>;

    /// The number of leading bits that are set.
    fn leading_ones(self) -> u8;

    fn leading_zeros(self) -> u8;

    /// The `bits` bits after the first `skipped` bits. There must be that many, and at most 16 are requested.
    fn window(self, skipped: u8, bits: u8) -> usize;

    /// The first `bits` bits.
    fn first(self, bits: u8) -> Self;

    /// The value after those that share the first `bits` bits of this one. `None` after the last.
    fn behind(self, bits: u8) -> Option<Self>;
}

impl Address for u32 {
    type Hosts = u64;

    const BITS: u8 = 32;

    fn of(address: u128) -> Self {
        address as Self
    }

    fn top(value: u16, bits: u8) -> Self {
        Self::from(value) << (Self::BITS - u32::from(bits))
    }

    fn both(source: Self, destination: Self) -> u64 {
        u64::from(source) << 32 | u64::from(destination)
    }

    #[inline]
    fn differ(hosts: u64, others: u64, mask: u64) -> u64 {
        (hosts ^ others) & mask
    }

    fn hosts(hosts: &Hosts) -> impl Iterator<Item = (Self, Self)> {
        hosts.v4.iter().copied()
    }

    fn leading_ones(self) -> u8 {
        self.leading_ones() as u8
    }

    fn leading_zeros(self) -> u8 {
        self.leading_zeros() as u8
    }

    fn window(self, skipped: u8, bits: u8) -> usize {
        (self << skipped >> (Self::BITS - u32::from(bits))) as usize
    }

    fn first(self, bits: u8) -> Self {
        self & !Self::MAX.checked_shr(bits.into()).unwrap_or(0)
    }

    fn behind(self, bits: u8) -> Option<Self> {
        self.first(bits).checked_add(1u32.checked_shl(Self::BITS - u32::from(bits))?)
    }
}

impl Address for u128 {
    type Hosts = [u64; 4];

    const BITS: u8 = 128;

    fn of(address: u128) -> Self {
        address
    }

    fn top(value: u16, bits: u8) -> Self {
        Self::from(value) << (Self::BITS - u32::from(bits))
    }

    fn both(source: Self, destination: Self) -> [u64; 4] {
        [(source >> 64) as u64, source as u64, (destination >> 64) as u64, destination as u64]
    }

    #[inline]
    fn differ(hosts: [u64; 4], others: [u64; 4], mask: [u64; 4]) -> u64 {
        (0..4).fold(0, |differs, at| differs | (hosts[at] ^ others[at]) & mask[at])
    }

    fn hosts(hosts: &Hosts) -> impl Iterator<Item = (Self, Self)> {
        hosts.v6.iter().map(|one| (one.address, one.mask))
    }

    fn leading_ones(self) -> u8 {
        self.leading_ones() as u8
    }

    fn leading_zeros(self) -> u8 {
        self.leading_zeros() as u8
    }

    fn window(self, skipped: u8, bits: u8) -> usize {
        (self << skipped >> (Self::BITS - u32::from(bits))) as usize
    }

    fn first(self, bits: u8) -> Self {
        self & !Self::MAX.checked_shr(bits.into()).unwrap_or(0)
    }

    fn behind(self, bits: u8) -> Option<Self> {
        self.first(bits).checked_add(1u128.checked_shl(Self::BITS - u32::from(bits))?)
    }
}

/// Addresses in one word.
pub(super) struct Words(pub(super) u64);

impl From<u64> for Words {
    #[inline]
    fn from(hosts: u64) -> Self {
        Self(hosts)
    }
}

impl From<[u64; 4]> for Words {
    #[inline]
    fn from(hosts: [u64; 4]) -> Self {
        const SPREAD: u64 = 0xbf58_476d_1ce4_e5b9;
        Self(hosts.into_iter().fold(0, |word, part| (word ^ part).wrapping_mul(SPREAD) ^ word >> 29))
    }
}
