//! The packets that a class, a filter or a policer is for: a condition, or a list of them.

use serde_json::json;

use crate::keys::kind::ByHand;
use crate::keys::{Form, Kind as _};
use crate::node::{Node, Value};
use crate::problem::Problem;
use crate::value::condition::{Match, Surroundings};

/// A condition, or a list of conditions of which one must match.
pub(crate) const MATCHES: ByHand<Vec<Match>> = ByHand {
    words: || "condition, or a list of them".into(),
    schema: |definitions| {
        let one = Match::FORM.schema(definitions);
        json!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }] })
    },
    read: |node, around| read_matches(node, "the class", around),
    write: |matches| match &matches[..] {
        [] => None,
        [one] => Some(one.value()),
        all => Some(Value::Array(all.iter().map(Match::value).map(Node::new).collect())),
    },
};

/// Reads a condition, or a list of conditions of which one must match. `whose` names the owner, such as
/// "the class `x`".
pub(super) fn read_matches(
    node: &Node,
    whose: &str,
    surroundings: Surroundings<'_>,
) -> Result<Vec<Match>, Problem> {
    match &node.value {
        Value::Array(items) if items.is_empty() => Err(Problem::new(format!("no packet can be in {whose}"))
            .at(&node.span)
            .help("a list of conditions matches if one of them does; this one is empty")),
        Value::Array(items) => items.iter().map(|item| Match::FORM.read(item, surroundings)).collect(),
        _ => Ok(vec![Match::FORM.read(node, surroundings)?]),
    }
}
