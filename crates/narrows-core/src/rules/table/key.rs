//! Addresses and prefixes as tries have them: those of IPv4 without the bits that map them into IPv6.

use super::trie::Key;
use crate::classify::Prefix;

/// Bits before the IPv4 address in one that is mapped into IPv6.
const MAPPED_BITS: u8 = 96;
/// These.
const MAPPED: u128 = 0xffff_0000_0000;

/// An address as its trie has it.
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

/// A prefix as its trie has it, and whether that is IPv4's.
pub(super) fn key(prefix: Prefix) -> (bool, Key) {
    let (address, bits) = (u128::from_be_bytes(prefix.address()), prefix.bits());
    match (Address::of(prefix.address()), bits.checked_sub(MAPPED_BITS)) {
        (Address::V4(address), Some(bits)) => (true, Key { address, bits }),
        _ => (false, Key { address, bits }),
    }
}

/// The other way round.
pub(super) fn prefix(is_v4: bool, Key { address, bits }: Key) -> Prefix {
    if is_v4 {
        Prefix::new((address >> MAPPED_BITS | MAPPED).to_be_bytes(), MAPPED_BITS + bits)
    } else {
        Prefix::new(address.to_be_bytes(), bits)
    }
}
