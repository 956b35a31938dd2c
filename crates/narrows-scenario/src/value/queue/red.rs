//! `{ type = "red", min = "5 packets", max = "15 packets", probability = 0.1, weight = 0.002 }` (Floyd and Jacobson 1993).

use std::ops::Range;

use narrows_core::aqm::{self, RedConfig, Thresholds};
use narrows_core::queue::Bound;
use narrows_core::{Bytes, Probability};

use super::{Maker, Manages, maker};
use crate::keys::kind::{Boolean, Decimal, Given};
use crate::keys::quantity::{PACKET_SIZE, PACKETS_OR_BYTES, Percentage};
use crate::keys::{Keyed, Parameters, Row, row};
use crate::node::Table;
use crate::problem::Problem;

/// The given settings of RED.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Red {
    /// Average backlog above which packets are dropped at random, in packets or bytes. Default: a third of
    /// `max`, or 5 packets.
    pub min: Option<Bound>,
    /// Average backlog above which every packet is dropped, or with `gentle` an increasing share of
    /// packets. Default: three times `min`.
    pub max: Option<Bound>,
    /// All settings other than the thresholds.
    pub config: RedConfig,
}

impl Keyed for Red {
    const ROWS: &'static [Row<Self>] = &[
        row!(
            "min",
            min,
            Given(PACKETS_OR_BYTES),
            "Drop packets at random while the average queue is above this."
        )
        .default("a third of `max`"),
        row!(
            "max",
            max,
            Given(PACKETS_OR_BYTES),
            "Drop every packet while the average queue is above this; with `gentle`, a rising share of them."
        )
        .default("three times `min`"),
        row!(
            "probability",
            config.probability,
            Percentage,
            "The drop probability when the average is at `max`."
        ),
        row!("weight", config.weight, Decimal(1e-9..=1.0), "The weight of an arrival in the moving average."),
        row!(
            "gentle",
            config.gentle,
            Boolean,
            "Raise the drop probability gradually from `max` to twice that; a key of `red` only."
        ),
        row!("ecn", config.ecn, Boolean, "Mark ECN-capable packets instead of dropping them."),
        row!(
            "harddrop",
            config.harddrop,
            Boolean,
            "With `ecn`: drop, and not mark, what comes while the average is above `max`."
        ),
        row!(
            "nodrop",
            config.nodrop,
            Boolean,
            "With `ecn`: let a packet in that cannot be marked, where it would be dropped."
        ),
        row!(
            "restart",
            config.restart,
            Boolean,
            "Start anew, with an average of zero, when a packet finds the queue empty."
        ),
        row!(
            "adaptive",
            config.adaptive,
            Boolean,
            "Move `probability` every half second, within 1 % and 50 %, so that the average stays half way between `min` and `max`."
        ),
        row!(
            "typical-packet",
            config.typical_packet,
            PACKET_SIZE,
            "While the queue is empty, the average decays as if packets of this length were sent."
        ),
        row!(
            "by-length",
            config.by_length,
            Boolean,
            "With thresholds in bytes: drop shorter packets less often, in proportion to their length (off in Linux)."
        ),
        row!(
            "longest-packet",
            config.longest_packet,
            PACKET_SIZE,
            "With thresholds in bytes and `by-length`: the packet that is dropped with the full probability."
        ),
    ];

    fn check(&self, table: &Table, place: &Range<usize>) -> Result<(), Problem> {
        let place = |key: &str| table.get(key).map_or(place, |value| &value.span);
        if self.config.probability == Probability::ZERO {
            return Err(Problem::new("a probability of zero drops nothing between the thresholds")
                .at(place("probability"))
                .help("write one above 0%, such as 10%"));
        }
        if self.config.nodrop && !self.config.ecn {
            return Err(Problem::new("`nodrop` without `ecn` lets every packet in")
                .at(place("nodrop"))
                .help("it is for packets that cannot be marked, among others that are"));
        }
        if let (Some(min), Some(max)) = (self.min, self.max)
            && core::mem::discriminant(&min) != core::mem::discriminant(&max)
        {
            return Err(Problem::new(format!(
                "`min` is {min} and `max` is {max}: one in packets, one in bytes"
            ))
            .at(place("max"))
            .also(place("min"), "`min`")
            .help("use the same unit for both"));
        }
        let (min, max) = self.thresholds();
        if number(min) >= number(max) {
            return Err(Problem::new(format!("`min`, {min}, is not below `max`, {max}"))
                .at(place("min"))
                .also(place("max"), "`max`")
                .help("between the two averages packets are dropped at random; usual is a `max` of three times `min`"));
        }
        Ok(())
    }
}

impl Red {
    /// The "gentle" variant: its probability rises gradually above `max`.
    pub(super) fn gentle() -> Self {
        Self { config: RedConfig { gentle: true, ..RedConfig::default() }, ..Self::default() }
    }

    /// The effective `min` and `max`.
    pub(crate) fn thresholds(self) -> (Bound, Bound) {
        let times = |bound, by: u64| match bound {
            Bound::Packets(packets) => Bound::Packets(packets * by),
            Bound::Bytes(bytes) => Bound::Bytes(Bytes::new(bytes.get() * by)),
        };
        let third = |bound| match bound {
            Bound::Packets(packets) => Bound::Packets(packets.div_ceil(3)),
            Bound::Bytes(bytes) => Bound::Bytes(Bytes::new(bytes.get().div_ceil(3))),
        };
        match (self.min, self.max) {
            (Some(min), Some(max)) => (min, max),
            (Some(min), None) => (min, times(min, 3)),
            (None, Some(max)) => (third(max), max),
            (None, None) => match RedConfig::default().thresholds {
                Thresholds::Packets { min, max } => (Bound::Packets(min), Bound::Packets(max)),
                Thresholds::Bytes { min, max } => (Bound::Bytes(min), Bound::Bytes(max)),
            },
        }
    }

    /// The effective settings.
    pub(crate) fn config(self) -> RedConfig {
        let (min, max) = self.thresholds();
        let thresholds = match min {
            Bound::Packets(min) => Thresholds::Packets { min, max: number(max) },
            Bound::Bytes(min) => Thresholds::Bytes { min, max: Bytes::new(number(max)) },
        };
        RedConfig { thresholds, ..self.config }
    }
}

impl Manages for Red {
    fn maker(&self) -> Option<Maker> {
        Some(maker(aqm::Red::new(self.config())))
    }

    /// Includes the effective thresholds.
    fn effective(&self) -> String {
        let (min, max) = self.thresholds();
        Self { min: Some(min), max: Some(max), ..*self }.words()
    }
}

/// A threshold, in packets or bytes.
pub(crate) const fn number(bound: Bound) -> u64 {
    match bound {
        Bound::Packets(packets) => packets,
        Bound::Bytes(bytes) => bytes.get(),
    }
}
