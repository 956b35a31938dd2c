//! Conditions on header fields that are not in a flow key.

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use crate::packet::{Headers, LinkAddress};

/// Addresses of the link layer that agree with one in some bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkPattern {
    address: LinkAddress,
    mask: LinkAddress,
}

impl LinkPattern {
    /// The addresses that agree with `address` in the bits of `mask`.
    pub fn new(address: LinkAddress, mask: LinkAddress) -> Self {
        Self { address: core::array::from_fn(|byte| address[byte] & mask[byte]), mask }
    }

    /// The bits that count.
    pub const fn mask(&self) -> LinkAddress {
        self.mask
    }

    /// What they must be; zero where they do not count.
    pub const fn address(&self) -> LinkAddress {
        self.address
    }

    /// Whether an address is one of them.
    pub fn matches(&self, address: LinkAddress) -> bool {
        Self::new(address, self.mask) == *self
    }

    /// The addresses that are in both; `None` if there are none.
    pub fn and(&self, other: &Self) -> Option<Self> {
        let either = |one: LinkAddress, two: LinkAddress| core::array::from_fn(|byte| one[byte] | two[byte]);
        let both = Self { address: either(self.address, other.address), mask: either(self.mask, other.mask) };
        (self.matches(both.address) && other.matches(both.address)).then_some(both)
    }
}

impl From<LinkAddress> for LinkPattern {
    fn from(address: LinkAddress) -> Self {
        Self { address, mask: [0xff; 6] }
    }
}

/// A condition on headers. As in a [`Condition`](super::Condition), every list that is not empty must have an entry that
/// matches. A packet whose headers are not known matches none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderCondition {
    /// Source addresses of the link layer.
    pub link_sources: Vec<LinkPattern>,
    /// Destination addresses of the link layer.
    pub link_destinations: Vec<LinkPattern>,
    /// IPv4 TTL or IPv6 hop limit.
    pub hop_limits: Vec<RangeInclusive<u8>>,
    /// The VLAN of the first tag; 0 for packets without a tag.
    pub vlans: Vec<RangeInclusive<u16>>,
    /// Whether it is a fragment. `None` for any packet.
    pub fragments: Option<Fragments>,
}

/// A set of places of a packet among the fragments of a packet (RFC 791, RFC 8200).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fragments(u8);

impl Fragments {
    /// Whole packets, those that are not IP among them.
    pub const WHOLE: Self = Self(1);
    /// First fragments.
    pub const FIRST: Self = Self(2);
    /// All other fragments.
    pub const LATER: Self = Self(4);

    /// Those of both sets.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    const fn has(self, headers: &Headers) -> bool {
        const MORE: u8 = 0x20;
        const FRAGMENT_HEADER: u8 = 0x01;
        let one = if headers.is_later_fragment {
            Self::LATER
        } else if headers.fragment & MORE != 0 || headers.extension_headers & FRAGMENT_HEADER != 0 {
            Self::FIRST
        } else {
            Self::WHOLE
        };
        self.0 & one.0 != 0
    }
}

impl HeaderCondition {
    pub(super) fn holds(&self, headers: Option<&Headers>) -> bool {
        let Some(headers) = headers else { return false };
        let among = |all: &[LinkPattern], address| {
            all.is_empty() || all.iter().any(|pattern| pattern.matches(address))
        };
        among(&self.link_sources, headers.link_source)
            && among(&self.link_destinations, headers.link_destination)
            && (self.hop_limits.is_empty()
                || self.hop_limits.iter().any(|range| range.contains(&headers.hop_limit)))
            && (self.vlans.is_empty() || self.vlans.iter().any(|range| range.contains(&headers.vlan)))
            && self.fragments.is_none_or(|set| set.has(headers))
    }
}
