//! The decision on a change that several packet threads make or none. `models/` tries every order of its steps.

use super::sync::Arc;
use super::sync::atomic::{AtomicU8, Ordering};

/// Whether a planned change is made: the first to decide, decides for all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decision(Arc<AtomicU8>);

impl Decision {
    const OPEN: u8 = 0;
    const MADE: u8 = 1;
    const GIVEN_UP: u8 = 2;

    /// Decides to make it, unless already decided; returns whether it is made.
    pub(crate) fn make(&self) -> bool {
        self.decide(Self::MADE) == Self::MADE
    }

    /// Decides not to make it, unless already decided; returns whether it is made.
    pub(crate) fn give_up(&self) -> bool {
        self.decide(Self::GIVEN_UP) == Self::MADE
    }

    fn decide(&self, to: u8) -> u8 {
        match self.0.compare_exchange(Self::OPEN, to, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => to,
            Err(decided) => decided,
        }
    }
}
