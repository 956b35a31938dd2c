//! A class of 802.11 DCF as a station: `{ name = "far", rate = "1mbit", hidden-from = ["near", "other"] }`.

use narrows_core::Rate;
use serde_json::json;

use crate::keys::kind::{ByHand, Given, text};
use crate::keys::{Keyed, Row, row, schema};
use crate::node::{Node, Value};
use crate::problem::Problem;
use crate::units;

/// A class as a station.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Station {
    /// Rate of its data frames; `None` for the link's.
    pub rate: Option<Rate>,
    /// The classes whose stations it does not hear, and that do not hear it.
    pub hidden_from: Vec<String>,
}

impl Keyed for Station {
    const ROWS: &'static [Row<Self>] = &[
        row!("rate", rate, Given(RATE), "Rate of the station's data frames, at most the link's.")
            .default("the link's"),
        row!(
            "hidden-from",
            hidden_from,
            NAMES,
            "Stations that this one does not hear, and that do not hear it. One of the two has to name the other."
        )
        .default("none"),
    ];
}

pub(super) const RATE: ByHand<Rate> = ByHand {
    words: || "rate of 802.11b".into(),
    schema: schema::rate,
    read: |node, _| {
        let rate = units::finite_rate(node)?;
        let allowed = "a rate of 802.11b: \"1mbit\", \"2mbit\", \"5.5mbit\" or \"11mbit\"";
        if RATES.contains(&rate) { Ok(rate) } else { Err(node.expected(allowed)) }
    },
    write: |rate| Some(text(rate)),
};
/// Names of classes; empty if there are none.
const NAMES: ByHand<Vec<String>> = ByHand {
    words: || "name of a class, or a list of them".into(),
    schema: |_| {
        let name = json!({ "type": "string" });
        json!({ "anyOf": [name, { "type": "array", "items": name }] })
    },
    read: |node, _| match &node.value {
        Value::Array(items) => items.iter().map(class_name).collect(),
        _ => Ok(vec![class_name(node)?]),
    },
    write: |names| match &names[..] {
        [] => None,
        [one] => Some(text(one)),
        all => Some(Value::Array(all.iter().map(text).map(Node::new).collect())),
    },
};

fn class_name(node: &Node) -> Result<String, Problem> {
    node.text("the name of a class").map(str::to_string)
}

/// The rates of 802.11b.
pub(crate) const RATES: [Rate; 4] = [
    Rate::from_bits_per_second(1_000_000),
    Rate::from_bits_per_second(2_000_000),
    Rate::from_bits_per_second(5_500_000),
    Rate::from_bits_per_second(11_000_000),
];
