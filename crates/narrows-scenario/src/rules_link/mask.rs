//! The keys `mask` and `most` of pipes and queues.

use narrows_core::classify::FlowMask;
use serde_json::{Map, Value as Json, json};

use crate::keys::kind::{ByHand, Integer};
use crate::keys::schema::{self, Definitions};
use crate::node::{Key, Node};
use crate::problem::Problem;
use crate::value;

pub(super) const MASK: ByHand<Option<FlowMask>> = ByHand {
    words: || "`\"all\"` or table".into(),
    schema,
    read: |node, _| value::read_mask(node),
    write: |mask| Some(Node::typed(&value::mask_text(*mask), 0).value),
};

/// A number of links or flows that a mask makes.
pub(super) const fn most(what: &'static str) -> Integer {
    Integer { what, low: 1, high: 1 << 20 }
}

/// That `most` of a table bounds nothing.
pub(super) fn without_mask(most: &Key, what: &str) -> Problem {
    Problem::new(format!("`most` without a mask, which makes {what}"))
        .at(&most.span)
        .help("say what tells flows apart: mask = { src-ip = \"0xffffffff\" }")
}

/// The bits that count.
const PARTS: &[(&str, &str)] = &[
    ("src-ip", "Of the IPv4 source address."),
    ("dst-ip", "Of the IPv4 destination address."),
    ("src-ip6", "Of the IPv6 source address."),
    ("dst-ip6", "Of the IPv6 destination address."),
    ("src-port", "Of the source port."),
    ("dst-port", "Of the destination port."),
    ("proto", "Of the protocol number."),
    ("flow-id", "Of the IPv6 flow label."),
];

fn schema(definitions: &mut Definitions) -> Json {
    schema::define(definitions, "Mask", |_| {
        let bits = |doc: &str| {
            json!({
                "description": format!(
                    "{doc} `all`, a number such as `0xff`, or for addresses one of them such as `255.255.255.0`."
                ),
                "anyOf": [{ "type": "integer", "minimum": 0 }, { "type": "string" }],
            })
        };
        let mut parts: Map<String, Json> =
            PARTS.iter().map(|(name, doc)| (name.to_string(), bits(doc))).collect();
        let queue = "Whether the queue counts to which rules have sent a packet.";
        parts.insert("queue".into(), json!({ "type": "boolean", "description": queue }));
        json!({
            "description": "What tells flows apart.",
            "anyOf": [
                { "type": "string", "enum": ["all", "none"] },
                {
                    "type": "object",
                    "description": "The bits that count: packets that agree in them are one flow.",
                    "properties": parts,
                    "additionalProperties": false,
                },
            ],
        })
    })
}
