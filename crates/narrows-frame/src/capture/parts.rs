//! Shared by the readers of both formats: numbers in either byte order, and the positions of a packet's parts.

use super::Interface;
use crate::{LinkLayer, WallTime};

/// Positions in the buffer of the parts of the packet just read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) instant: WallTime,
    pub(super) interface: Interface,
    pub(super) length: u32,
    pub(super) bytes: (usize, usize),
    pub(super) comment: Option<(usize, usize)>,
}

/// More bytes than any packet or block that is not crafted to exhaust memory.
pub(super) const MOST_BYTES: u32 = 16 << 20;

/// A byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Big,
    Little,
}

impl Order {
    /// The number at `at`, or zero if there are too few bytes, which callers have checked.
    pub(super) fn short(self, bytes: &[u8], at: usize) -> u16 {
        let bytes = crate::bytes::array(bytes, at).unwrap_or_default();
        match self {
            Self::Big => u16::from_be_bytes(bytes),
            Self::Little => u16::from_le_bytes(bytes),
        }
    }

    /// Like [`Order::short`].
    pub(super) fn long(self, bytes: &[u8], at: usize) -> u32 {
        let bytes = crate::bytes::array(bytes, at).unwrap_or_default();
        match self {
            Self::Big => u32::from_be_bytes(bytes),
            Self::Little => u32::from_le_bytes(bytes),
        }
    }
}

/// The link layer for a LINKTYPE number, or an error message about it.
pub(super) fn layer_of(link_type: u32) -> Result<LinkLayer, String> {
    LinkLayer::from_link_type(link_type).ok_or_else(|| {
        format!(
            "packets have link type {link_type}; known are Ethernet (1), raw IP (101, 228, 229) and Linux cooked \
             (113, 276)"
        )
    })
}
