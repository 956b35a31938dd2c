//! Packets that skip the delay: `"1%"`, `"25% gap 5"`, `{ probability = "25%", gap = 5, correlation = "10%" }`, or
//! `"none"`.

use serde_json::{Value as Json, json};

use crate::keys::compound::{Group, Short};
use crate::keys::kind::{Compound, Integer};
use crate::keys::quantity::Percentage;
use crate::keys::schema::Definitions;
use crate::keys::{Form, Keyed, Kind, Row, row};
use crate::node::{Node, Value};
use crate::problem::Problem;
use crate::value::chance::{CORRELATION, Chance};
use crate::value::condition::Surroundings;

/// In every `gap` packets, the first `gap − 1` never skip the delay; after them, each packet skips it with
/// this probability until one has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reorder {
    /// Probability for each candidate.
    pub chance: Chance,
    /// At least 1.
    pub gap: u32,
}

impl Default for Reorder {
    fn default() -> Self {
        Self { chance: Chance::default(), gap: 1 }
    }
}

const GAP: Integer = Integer { what: "a gap", low: 1, high: u32::MAX as i64 };

impl Keyed for Reorder {
    const ROWS: &'static [Row<Self>] = &[
        row!("probability", chance.rate, Percentage, "The probability for each candidate, until one has.")
            .alias(&["rate"])
            .required(),
        row!("gap", gap, GAP, "After a packet that skipped the delay, this many less one are no candidates."),
        row!(
            "correlation",
            chance.correlation,
            CORRELATION,
            "The rank correlation (Spearman's) of the draws of one candidate and the next."
        ),
    ];
}

const SHORT: Short<Reorder> = Short {
    key: "probability",
    words: "probability",
    table: Group::new(
        "ReorderParts",
        "Of every `gap` packets the first `gap − 1` never skip the delay.",
        "{ probability = \"25%\", gap = 5 }",
    ),
};

/// A table, or `"1%"`, `"25% gap 5"` or `"none"`; `None` if no packet skips the delay.
pub(crate) struct ReorderOrNone;

impl Kind for ReorderOrNone {
    fn schema(&self, definitions: &mut Definitions) -> Json {
        let text = r"^ *(none|\+?[0-9_.]+([eE][+-]?[0-9]+)? *%?( gap [0-9]+)?) *$";
        json!({ "anyOf": [{ "type": "string", "pattern": text }, SHORT.schema(definitions)] })
    }

    fn words(&self) -> String {
        "probability, text or table".into()
    }

    fn compound(&self) -> Option<&dyn Compound> {
        Some(&SHORT)
    }
}

impl Form<Option<Reorder>> for ReorderOrNone {
    fn read(&self, node: &Node, around: Surroundings<'_>) -> Result<Option<Reorder>, Problem> {
        let reorder = match &node.value {
            Value::String(text) if text.trim() == "none" => return Ok(None),
            Value::String(text) if text.contains(" gap ") => {
                let (probability, gap) = text.split_once(" gap ").unwrap_or_default();
                let part = |text: &str| {
                    let value = Value::String(text.trim().into());
                    Node { span: node.span.clone(), value }
                };
                let chance = Chance::independent(Percentage.read(&part(probability), around)?);
                Reorder { chance, gap: GAP.read(&part(gap), around)? }
            }
            _ => SHORT.read(node, around)?,
        };
        Ok(Some(reorder).filter(|reorder| !reorder.chance.is_never()))
    }

    /// Always writes a table, as people look for the keys there.
    fn write(&self, reorder: &Option<Reorder>) -> Option<Value> {
        let Some(reorder) = reorder else { return Some(Value::String("none".into())) };
        SHORT.table.write(reorder)
    }
}

impl Reorder {
    /// The engine's reordering.
    pub(crate) fn build(self) -> Option<narrows_core::Reorder> {
        Some(narrows_core::Reorder { selector: self.chance.build()?, gap: self.gap })
    }
}
