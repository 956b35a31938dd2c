//! Transmission slots at the end of the delay line: `{ gap = "10ms", packets = 8, bytes = 9000 }`, or
//! `"none"`. Packets leave only within a slot.

use narrows_core::{Bytes, Duration, SlotGap};

use serde_json::json;

use crate::keys::compound::Group;
use crate::keys::kind::{ByHand, Given, Integer, Or, text};
use crate::keys::{Form, Keyed, Kind, Row, row, schema};
use crate::node::Value;
use crate::units;
use crate::value::distribution::{Distribution, Shape, Uniform};

/// Timing and capacity of slots.
#[derive(Clone, Debug, PartialEq)]
pub struct Slots {
    /// Time from the request for a slot to its start.
    pub gap: Gap,
    /// Maximum number of packets per slot; `None` for no limit.
    pub packets: Option<u32>,
    /// Maximum number of bytes per slot; `None` for no limit.
    pub bytes: Option<u32>,
}

/// Time until a slot starts.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Gap {
    /// Constant.
    Fixed(Duration),
    /// Drawn for each slot.
    Drawn(Distribution),
}

impl Default for Slots {
    /// Has no gap, which is required.
    fn default() -> Self {
        Self { gap: Gap::Fixed(Duration::ZERO), packets: None, bytes: None }
    }
}

const DRAWN: Group<Distribution> =
    Group::new("GapModel", "A distribution of gaps.", "{ uniform = { low = \"5ms\", high = \"15ms\" } }");
const GAP: ByHand<Gap> = ByHand {
    words: || "time, or [a distribution](#distributions)".into(),
    schema: |definitions| json!({ "anyOf": [schema::time(definitions), DRAWN.schema(definitions)] }),
    read: |node, around| match &node.value {
        Value::Table(_) => DRAWN.read(node, around).map(Gap::Drawn),
        _ => units::positive_time(node).map(Gap::Fixed),
    },
    write: |gap| match gap {
        Gap::Fixed(gap) => Some(text(gap)),
        Gap::Drawn(distribution) => DRAWN.write(distribution),
    },
};
const PACKETS: Integer = Integer { what: "a number of packets", low: 1, high: u32::MAX as i64 };
const BYTES: ByHand<u32> = ByHand {
    words: || "whole number, or a size".into(),
    schema: |definitions| {
        let number = json!({ "type": "integer", "minimum": 1, "maximum": u32::MAX });
        json!({ "anyOf": [number, schema::size(definitions)] })
    },
    read: |node, _| match &node.value {
        Value::String(text) if text.trim().ends_with(char::is_alphabetic) => {
            let size = u32::try_from(units::size(node)?.get()).ok().filter(|size| *size > 0);
            size.ok_or_else(|| node.expected("1 byte to 4 GB"))
        }
        _ => node.integer("a number of bytes", 1..1 << 32).map(|bytes| bytes as u32),
    },
    write: |bytes| Some(Value::Integer(bytes.to_string())),
};

impl Keyed for Slots {
    const ROWS: &'static [Row<Self>] = &[
        row!(
            "gap",
            gap,
            GAP,
            "Time from the request for a slot (a packet is due and no slot is open) to its opening."
        )
        .required(),
        row!("packets", packets, Given(PACKETS), "Maximum packets per slot.").default("no limit"),
        row!("bytes", bytes, Given(BYTES), "Maximum bytes per slot, including [overhead](#overhead).")
            .default("no limit"),
    ];
}

pub(crate) const SLOTS: Or<Group<Slots>> = Or(
    "none",
    Group::new("SlotParts", "Slots, and how much leaves in one.", "{ gap = \"10ms\", packets = 8 }"),
);

impl Slots {
    /// The engine's slots.
    pub(crate) fn build(&self) -> narrows_core::Slots {
        narrows_core::Slots {
            gap: self.gap.build(),
            packets: self.packets.map_or(0, u64::from),
            bytes: Bytes::new(self.bytes.map_or(0, u64::from)),
        }
    }
}

impl Gap {
    /// The engine's gap.
    fn build(&self) -> SlotGap {
        match self {
            Self::Fixed(gap) => SlotGap::Between(*gap, *gap),
            Self::Drawn(distribution) => match distribution.shape {
                Shape::Uniform(Uniform { low, high }) if distribution.is_plain() => {
                    SlotGap::Between(low, high)
                }
                _ => SlotGap::Drawn(Box::new(distribution.engine().clone())),
            },
        }
    }
}

/// For display.
impl std::fmt::Display for Slots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.gap {
            Gap::Fixed(gap) => write!(f, "slots {gap} after a request")?,
            Gap::Drawn(gap) => write!(f, "slots after {gap}")?,
        }
        match (self.packets, self.bytes) {
            (None, None) => write!(f, ", for all waiting packets"),
            (Some(packets), None) => write!(f, ", for {packets} packets each"),
            (None, Some(bytes)) => write!(f, ", for {bytes} bytes each"),
            (Some(packets), Some(bytes)) => write!(f, ", for {packets} packets and {bytes} bytes each"),
        }
    }
}
