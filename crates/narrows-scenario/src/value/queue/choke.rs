//! `{ type = "choke", min = "30 packets", max = "90 packets", probability = 0.02, candidates = 1 }` (Pan and others 2000).

use std::ops::Range;

use narrows_core::aqm::ChokeConfig;

use super::{Manages, Red};
use crate::keys::kind::{Boolean, Decimal, Given, Integer};
use crate::keys::quantity::{PACKET_SIZE, PACKETS_OR_BYTES, Percentage};
use crate::keys::{Keyed, Parameters, Row, row};
use crate::node::Table;
use crate::problem::Problem;

/// The given settings of CHOKe: those of RED that it has, and its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choke {
    /// RED.
    pub red: Red,
    /// How many waiting packets are compared with an arriving one.
    pub candidates: u32,
}

impl Default for Choke {
    fn default() -> Self {
        Self { red: Red::default(), candidates: ChokeConfig::default().candidates }
    }
}

const CANDIDATES: Integer =
    Integer { what: "a number of packets", low: 1, high: ChokeConfig::MOST_CANDIDATES as i64 };

impl Keyed for Choke {
    const ROWS: &'static [Row<Self>] = &[
        row!(
            "candidates",
            candidates,
            CANDIDATES,
            "How many waiting packets, drawn at random, are compared with an arriving one."
        ),
        row!(
            "min",
            red.min,
            Given(PACKETS_OR_BYTES),
            "Compare packets, and drop some at random, while the average queue is above this."
        )
        .default("a third of `max`"),
        row!(
            "max",
            red.max,
            Given(PACKETS_OR_BYTES),
            "Drop every packet while the average queue is above this."
        )
        .default("three times `min`"),
        row!(
            "probability",
            red.config.probability,
            Percentage,
            "The drop probability when the average is at `max`, of packets without a match."
        ),
        row!(
            "weight",
            red.config.weight,
            Decimal(1e-9..=1.0),
            "The weight of an arrival in the moving average."
        ),
        row!(
            "ecn",
            red.config.ecn,
            Boolean,
            "Mark ECN-capable packets where RED would drop them; packets that match are dropped all the same."
        ),
        row!(
            "harddrop",
            red.config.harddrop,
            Boolean,
            "With `ecn`: drop, and not mark, what comes while the average is above `max`."
        ),
        row!(
            "typical-packet",
            red.config.typical_packet,
            PACKET_SIZE,
            "While the queue is empty, the average decays as if packets of this length were sent."
        ),
        row!(
            "by-length",
            red.config.by_length,
            Boolean,
            "With thresholds in bytes: drop shorter packets less often, in proportion to their length (off in Linux)."
        ),
        row!(
            "longest-packet",
            red.config.longest_packet,
            PACKET_SIZE,
            "With thresholds in bytes and `by-length`: the packet that is dropped with the full probability."
        ),
    ];

    fn check(&self, table: &Table, place: &Range<usize>) -> Result<(), Problem> {
        self.red.check(table, place)
    }
}

impl Choke {
    /// The effective settings.
    pub(crate) fn config(self) -> ChokeConfig {
        ChokeConfig { red: self.red.config(), candidates: self.candidates }
    }
}

impl Manages for Choke {
    /// Includes the effective thresholds.
    fn effective(&self) -> String {
        let (min, max) = self.red.thresholds();
        Self { red: Red { min: Some(min), max: Some(max), ..self.red }, ..*self }.words()
    }
}
