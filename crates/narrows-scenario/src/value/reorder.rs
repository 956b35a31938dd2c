//! Packets that skip the delay: `"1%"`, `"25% gap 5"`, `{ probability = "25%", gap = 5 }`, or `"none"`.

use narrows_core::model::Independent;

use crate::node::{Node, Value};
use crate::problem::Problem;
use crate::units::Share;

/// Of every `gap` packets the first `gap − 1` never skip the delay, and from then on each does with this probability
/// until one has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reorder {
    /// The probability for a candidate.
    pub probability: Share,
    /// At least 1.
    pub gap: u32,
}

impl Reorder {
    pub(crate) fn read(node: &Node) -> Result<Option<Self>, Problem> {
        let gap = |node: &Node| node.integer("a gap", 1..1 << 32).map(|gap| gap as u32);
        let (probability, gap) = match &node.value {
            Value::Table(table) => {
                table.only(&["probability", "gap"])?;
                let probability = table.required("probability", &node.span, Share::read)?;
                (probability, table.optional("gap", gap)?.unwrap_or(1))
            }
            Value::String(text) if text.trim() == "none" => return Ok(None),
            Value::String(text) => match text.split_once(" gap ") {
                Some((probability, number)) => {
                    let part = |text: &str| Node {
                        span: node.span.clone(),
                        value: Value::String(text.trim().into()),
                    };
                    (Share::read(&part(probability))?, gap(&part(number))?)
                }
                None => (Share::read(node)?, 1),
            },
            _ => (Share::read(node)?, 1),
        };
        Ok((!probability.is_zero()).then_some(Self { probability, gap }))
    }

    pub(crate) fn build(self) -> narrows_core::Reorder {
        let selector = Box::new(Independent(self.probability.probability()));
        narrows_core::Reorder { selector, gap: self.gap }
    }

    pub(crate) fn text(self) -> String {
        format!("{{ probability = \"{}\", gap = {} }}", self.probability, self.gap)
    }
}
