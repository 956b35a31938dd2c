//! A direction's settings as NetEm options.

use super::Direction;
use crate::netem::{self, Around, CurrentConfig};

impl Direction {
    /// The settings as NetEm options, as far as NetEm can express them.
    pub fn netem(&self) -> CurrentConfig {
        let around = Around { rate: self.rate, overhead: self.overhead, bound: self.bound() };
        netem::current_config(&self.entries(), around)
    }
}
