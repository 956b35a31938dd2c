//! MTU: `1400`, `{ bytes = 1400, policy = "black-hole" }`, or `"none"`.

use narrows_core::{Mtu, MtuPolicy};
use serde_json::json;

use crate::keys::compound::{As, Group, Short};
use crate::keys::kind::{ByHand, Choice, Or};
use crate::keys::{Keyed, Row, row};
use crate::node::{Node, Value};
use crate::problem::Problem;

/// The keys of its table.
#[derive(Default)]
pub(crate) struct Parts {
    bytes: u32,
    policy: MtuPolicy,
}

const BYTES: ByHand<u32> = ByHand {
    words: || "whole number, 68 to 65535".into(),
    schema: |_| {
        json!({ "anyOf": [
            { "type": "integer", "minimum": 68, "maximum": 65535 },
            { "type": "string", "pattern": "^ *[0-9]+ *(bytes)? *$" },
        ] })
    },
    read: |node, _| bytes(node),
    write: |bytes| Some(Value::Integer(bytes.to_string())),
};
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

/// Every IPv4 link carries 68 bytes (RFC 791), and no IP packet exceeds 65,535. The unit is optional, as
/// MTUs are usually written without one.
fn bytes(node: &Node) -> Result<u32, Problem> {
    let text = match &node.value {
        Value::Integer(text) => text.as_str(),
        Value::String(text) => text.trim().strip_suffix("bytes").unwrap_or(text),
        _ => "",
    };
    let bytes = text.trim().parse().ok().filter(|bytes| (68..65_536).contains(bytes));
    bytes.ok_or_else(|| node.expected("a number of bytes from 68 to 65535, such as 1400"))
}
