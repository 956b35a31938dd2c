//! What a direction does, in NetEm's words.

use super::Direction;
use crate::netem::{self, Around, CurrentConfig};

impl Direction {
    /// What it does, in NetEm's words as far as they go.
    pub fn netem(&self) -> CurrentConfig {
        let around = Around { rate: self.rate, overhead: self.overhead, bound: self.bound() };
        netem::current_config(&self.entries(), around)
    }
}
