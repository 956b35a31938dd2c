//! Packets that skip the delay: `"1%"`, `"25% gap 5"`, `{ probability = "25%", gap = 5, correlation = "10%" }`, or
//! `"none"`.

use crate::node::{Node, Table, Value};
use crate::problem::Problem;
use crate::units::Share;
use crate::value::chance::{self, Chance};
use crate::value::inline::Inline;

/// Of every `gap` packets the first `gap − 1` never skip the delay, and from then on each does with this probability
/// until one has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reorder {
    /// The probability for a candidate.
    pub chance: Chance,
    /// At least 1.
    pub gap: u32,
}

impl Reorder {
    /// The keys of its table. `rate` is what the other impairments call the probability.
    pub(crate) const KEYS: &[&str] = &["probability", "rate", "gap", "correlation"];

    pub(crate) fn read(node: &Node) -> Result<Option<Self>, Problem> {
        let gap = |node: &Node| node.integer("a gap", 1..1 << 32).map(|gap| gap as u32);
        let (chance, gap) = match &node.value {
            Value::Table(table) => {
                table.only(Self::KEYS)?;
                (Self::chance(node, table)?, table.optional("gap", gap)?.unwrap_or(1))
            }
            Value::String(text) if text.trim() == "none" => return Ok(None),
            Value::String(text) => match text.split_once(" gap ") {
                Some((probability, number)) => {
                    let part = |text: &str| Node {
                        span: node.span.clone(),
                        value: Value::String(text.trim().into()),
                    };
                    (Chance::independent(Share::read(&part(probability))?), gap(&part(number))?)
                }
                None => (Chance::independent(Share::read(node)?), 1),
            },
            _ => (Chance::independent(Share::read(node)?), 1),
        };
        Ok((!chance.is_never()).then_some(Self { chance, gap }))
    }

    fn chance(node: &Node, table: &Table) -> Result<Chance, Problem> {
        if let (Some(_), Some(key)) = (table.key("probability"), table.key("rate")) {
            return Err(Problem::new("both `probability` and `rate`, which are the same").at(&key.span));
        }
        let key = if table.get("rate").is_some() { "rate" } else { "probability" };
        let rate = table.required(key, &node.span, Share::read)?;
        let correlation = table.optional("correlation", chance::correlation)?.unwrap_or_default();
        Ok(Chance { rate, correlation })
    }

    /// The engine's.
    pub(crate) fn build(self) -> Option<narrows_core::Reorder> {
        Some(narrows_core::Reorder { selector: self.chance.build()?, gap: self.gap })
    }

    pub(crate) fn text(self) -> String {
        let Self { chance: Chance { rate, correlation }, gap } = self;
        let mut table = Inline::default();
        table.quoted("probability", Some(rate));
        table.plain("gap", Some(gap));
        table.quoted("correlation", (!correlation.is_zero()).then_some(correlation));
        table.finish()
    }
}
