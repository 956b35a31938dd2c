//! Packets that something happens to with a probability, perhaps depending on the one before: `"1%"`, or
//! `{ rate = "1%", correlation = "25%" }`.

use narrows_core::model::Selector;
use narrows_core::model::selector::{Correlated, Independent};

use crate::node::{Node, Table, Value};
use crate::problem::Problem;
use crate::units::Share;
use crate::value::inline::Inline;

/// How often packets are selected, and how alike neighbours are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chance {
    /// The probability for each packet.
    pub rate: Share,
    /// The rank correlation (Spearman's) of the draws of one packet and the next; below 100%.
    pub correlation: Share,
}

impl Chance {
    /// The keys of its table.
    pub(crate) const KEYS: &[&str] = &["rate", "correlation"];

    /// Of packets independently of one another.
    pub(crate) const fn independent(rate: Share) -> Self {
        Self { rate, correlation: Share::ZERO }
    }

    pub(crate) fn read(node: &Node) -> Result<Self, Problem> {
        let Value::Table(table) = &node.value else { return Ok(Self::independent(Share::read(node)?)) };
        table.only(Self::KEYS)?;
        Self::read_table(node, table)
    }

    /// Reads its keys among others.
    pub(crate) fn read_table(node: &Node, table: &Table) -> Result<Self, Problem> {
        let rate = table.required("rate", &node.span, Share::read)?;
        let correlation = table.optional("correlation", correlation)?.unwrap_or_default();
        Ok(Self { rate, correlation })
    }

    /// Whether it never happens.
    pub const fn is_never(self) -> bool {
        self.rate.is_zero()
    }

    /// The engine's, if anything is selected.
    pub(crate) fn build(self) -> Option<Box<dyn Selector>> {
        match self {
            Self { rate, .. } if rate.is_zero() => None,
            Self { rate, correlation } if correlation.is_zero() => {
                Some(Box::new(Independent(rate.probability())))
            }
            Self { rate, correlation } => Some(Box::new(
                Correlated::new(rate.probability(), correlation.as_f64())
                    .expect("a correlation below one is checked when it is read"),
            )),
        }
    }

    /// Adds its keys to a table.
    pub(crate) fn write(self, table: &mut Inline) {
        table.quoted("rate", Some(self.rate));
        table.quoted("correlation", (!self.correlation.is_zero()).then_some(self.correlation));
    }

    /// As it stands in a file.
    pub(crate) fn text(self) -> String {
        if self.correlation.is_zero() {
            return format!("\"{}\"", self.rate);
        }
        self.table_text()
    }

    /// The same as a table, always.
    pub(crate) fn table_text(self) -> String {
        let mut table = Inline::default();
        self.write(&mut table);
        table.finish()
    }
}

/// For people: `1%`, `1% (correlation 25%)`.
impl std::fmt::Display for Chance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.correlation.is_zero() {
            true => self.rate.fmt(f),
            false => write!(f, "{} (correlation {})", self.rate, self.correlation),
        }
    }
}

/// Reads a rank correlation: what is 100% alike never changes.
pub(crate) fn correlation(node: &Node) -> Result<Share, Problem> {
    match Share::read(node)? {
        Share::ALWAYS => Err(node.expected("a correlation below 100%")),
        share => Ok(share),
    }
}
