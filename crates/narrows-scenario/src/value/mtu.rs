//! MTU: `1400`, `{ bytes = 1400, policy = "black-hole" }`, or `"none"`.

use std::fmt::Display;

use narrows_core::{Bytes, Mtu, MtuPolicy};
use serde_json::{Value as Json, json};

use crate::keys::compound::{As, Group, Short};
use crate::keys::kind::{Choice, Form, Kind, Or};
use crate::keys::schema::Definitions;
use crate::keys::{Keyed, Row, row};
use crate::node::{Node, Value};
use crate::problem::Problem;
use crate::surroundings::Surroundings;
use crate::units;

/// The keys of its table.
#[derive(Default)]
pub(crate) struct Parts {
    bytes: u32,
    policy: MtuPolicy,
}

/// Every IPv4 link carries 68 bytes (RFC 791), and no IP packet exceeds 65,535.
const BYTES: MtuBytes = MtuBytes { low: 68 };
const POLICY: Choice<MtuPolicy> = Choice {
    what: "policy",
    choices: &[
        ("fragment", MtuPolicy::Fragment),
        ("answer", MtuPolicy::Answer),
        ("black-hole", MtuPolicy::BlackHole),
    ],
};

impl Keyed for Parts {
    const ROWS: &'static [Row<Self>] = &[
        row!("bytes", bytes, BYTES, "Maximum IP packet length, in bytes.").required(),
        row!("policy", policy, POLICY, "What to do with longer packets."),
    ];
}

pub(crate) const MTU: Or<As<Short<Parts>, Parts, Mtu>> = Or(
    "none",
    As {
        kind: Short {
            key: "bytes",
            words: "whole number",
            table: Group::new(
                "MtuParts",
                "The longest packet and what becomes of longer ones.",
                "{ bytes = 1400, policy = \"answer\" }",
            ),
        },
        into: |Parts { bytes, policy }| Mtu { bytes, policy },
        from: |&Mtu { bytes, policy }| Parts { bytes, policy },
    },
);

/// An MTU in bytes, with or without a unit: MTUs are usually written without one. At most 65,535.
pub(crate) struct MtuBytes {
    pub(crate) low: u32,
}

impl Kind for MtuBytes {
    fn schema(&self, _: &mut Definitions) -> Json {
        json!({ "anyOf": [
            { "type": "integer", "minimum": self.low, "maximum": 65_535 },
            { "type": "string", "pattern": r"^ *[0-9]+ *(bytes?|B)? *$" },
        ] })
    }

    fn words(&self) -> String {
        format!("whole number, {} to 65535", self.low)
    }
}

impl<V: TryFrom<u64> + Display> Form<V> for MtuBytes {
    fn read(&self, node: &Node, _: Surroundings<'_>) -> Result<V, Problem> {
        let plain = match &node.value {
            Value::Integer(text) | Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        plain
            .or_else(|| units::size(node).ok().map(Bytes::get))
            .filter(|bytes| (self.low.into()..65_536).contains(bytes))
            .and_then(|bytes| V::try_from(bytes).ok())
            .ok_or_else(|| {
                node.expected(&format!("a number of bytes from {} to 65535, such as 1400", self.low))
            })
    }

    fn write(&self, value: &V) -> Option<Value> {
        Some(Value::Integer(value.to_string()))
    }
}
