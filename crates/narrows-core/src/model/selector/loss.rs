//! What loses packets, or marks them instead.

use alloc::boxed::Box;

use super::Selector;

/// What loses packets.
#[derive(Debug)]
pub struct Loss {
    /// Those that are lost.
    pub selector: Box<dyn Selector>,
    /// Whether packets that can be marked with "congestion experienced" are marked instead.
    pub mark: bool,
}

impl Loss {
    /// Loses what is selected.
    pub fn of(selector: impl Selector + 'static) -> Self {
        Self { selector: Box::new(selector), mark: false }
    }
}
