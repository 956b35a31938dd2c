//! What of a link is a plain value: it counts from the next packet on, whenever it changes.
//!
//! A new one is a field here, its default, and where the link asks for it.

use super::config::{Mtu, Order};

/// The plain values of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSettings {
    /// Whether packets may overtake one another in the delay line.
    pub order: Order,
    /// The most packets that the delay line holds. Those in flight stay when it changes.
    pub line_limit: Option<u64>,
    /// The longest packet, and what becomes of longer ones.
    pub mtu: Option<Mtu>,
}

impl LinkSettings {
    /// Those of a link that does nothing.
    pub const PLAIN: Self = Self { order: Order::Keep, line_limit: None, mtu: None };
}

impl Default for LinkSettings {
    fn default() -> Self {
        Self::PLAIN
    }
}
