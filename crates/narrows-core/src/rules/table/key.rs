//! Addresses and prefixes in the form used by tries: IPv4 without the bits that map it into IPv6.

use super::trie::Key;
use crate::classify::Prefix;

/// Bits before the IPv4 address in a mapped address.
const MAPPED_BITS: u8 = 96;
/// The mapping bits.
const MAPPED: u128 = 0xffff_0000_0000;

/// An address in the form used by its trie.
pub(super) enum Address {
    V4(u128),
    V6(u128),
}

impl Address {
    #[inline]
    pub(super) fn of(address: [u8; 16]) -> Self {
        let address = u128::from_be_bytes(address);
        if address >> 32 == MAPPED >> 32 { Self::V4(address << MAPPED_BITS) } else { Self::V6(address) }
    }
}

/// A prefix in the form used by its trie, and whether that is the IPv4 trie.
pub(super) fn key(prefix: Prefix) -> (bool, Key) {
    let (address, bits) = (u128::from_be_bytes(prefix.address()), prefix.bits());
    match (Address::of(prefix.address()), bits.checked_sub(MAPPED_BITS)) {
        (Address::V4(address), Some(bits)) => (true, Key { address, bits }),
        _ => (false, Key { address, bits }),
    }
}

/// The inverse of [`key`].
pub(super) fn prefix(is_v4: bool, Key { address, bits }: Key) -> Prefix {
    if is_v4 {
        Prefix::new((address >> MAPPED_BITS | MAPPED).to_be_bytes(), MAPPED_BITS + bits)
    } else {
        Prefix::new(address.to_be_bytes(), bits)
    }
}
