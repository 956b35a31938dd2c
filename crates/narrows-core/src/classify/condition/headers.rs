//! Conditions on header fields that are not in a flow key.

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use crate::packet::{Headers, LinkAddress};

/// A condition on headers. As in a [`Condition`](super::Condition), every list that is not empty must have an entry that
/// matches. A packet whose headers are not known matches none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderCondition {
    /// Source addresses of the link layer.
    pub link_sources: Vec<LinkAddress>,
    /// Destination addresses of the link layer.
    pub link_destinations: Vec<LinkAddress>,
    /// IPv4 TTL or IPv6 hop limit.
    pub hop_limits: Vec<RangeInclusive<u8>>,
}

impl HeaderCondition {
    pub(super) fn holds(&self, headers: Option<&Headers>) -> bool {
        let Some(headers) = headers else { return false };
        let among = |all: &[LinkAddress], address| all.is_empty() || all.contains(&address);
        among(&self.link_sources, headers.link_source)
            && among(&self.link_destinations, headers.link_destination)
            && (self.hop_limits.is_empty()
                || self.hop_limits.iter().any(|range| range.contains(&headers.hop_limit)))
    }
}
