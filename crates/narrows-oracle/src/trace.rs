//! What became of each datagram.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A datagram that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Came {
    /// Its number in the order of sending.
    pub number: u32,
    /// When, in nanoseconds of the wall clock.
    pub at: u64,
    /// DSCP and ECN that it came with.
    pub traffic_class: u8,
}

/// All of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// When each was sent, in nanoseconds of the wall clock.
    pub sent: Vec<u64>,
    /// Those that came, in order.
    pub came: Vec<Came>,
}

impl Trace {
    /// The first arrival of each datagram that came: in nanoseconds since it was sent.
    pub fn delays(&self) -> BTreeMap<u32, u64> {
        let mut delays = BTreeMap::new();
        for came in &self.came {
            delays
                .entry(came.number)
                .or_insert_with(|| came.at.saturating_sub(self.sent[came.number as usize]));
        }
        delays
    }

    /// How many came marked "congestion experienced".
    pub fn marked(&self) -> usize {
        self.came.iter().filter(|came| came.traffic_class & 3 == 3).count()
    }

    /// How many did not come.
    pub fn lost(&self) -> usize {
        self.sent.len() - self.delays().len()
    }
}
