//! Loss of packets, or marking instead.

use alloc::boxed::Box;

use super::Selector;

/// Which packets are lost.
#[derive(Debug)]
pub struct Loss {
    /// Selects the lost packets.
    pub selector: Box<dyn Selector>,
    /// Mark ECN-capable packets "congestion experienced" instead of losing them.
    pub mark: bool,
}

impl Loss {
    /// Loses the selected packets, without marking.
    pub fn of(selector: impl Selector + 'static) -> Self {
        Self { selector: Box::new(selector), mark: false }
    }
}
