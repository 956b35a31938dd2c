//! What a direction does, in NetEm's words.

use super::Direction;
use crate::netem::{self, Around, InForce};

impl Direction {
    /// What it does, in NetEm's words as far as they go.
    pub fn netem(&self) -> InForce {
        let around = Around { rate: self.rate, overhead: self.overhead, bound: self.bound() };
        netem::in_force(&self.entries(), around)
    }
}
