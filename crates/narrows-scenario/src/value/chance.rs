//! Packets that something happens to with a probability, perhaps depending on the one before: `"1%"`, or
//! `{ rate = "1%", correlation = "25%" }`.

use narrows_core::model::Selector;
use narrows_core::model::selector::{Correlated, Independent};

use crate::keys::compound::{Group, Short};
use crate::keys::kind::ByHand;
use crate::keys::quantity::Percentage;
use crate::keys::schema;
use crate::keys::{Form, Keyed, Row, row};
use crate::units::Share;

pub(crate) const CHANCE: Short<Chance> = Short {
    key: "rate",
    words: "probability",
    table: Group::new(
        "ChanceParts",
        "A probability and a correlation.",
        "{ rate = \"1%\", correlation = \"25%\" }",
    ),
};
/// A rank correlation: what is 100% alike never changes.
pub(crate) const CORRELATION: ByHand<Share> = ByHand {
    words: || "probability below 100%".into(),
    schema: schema::share,
    read: |node, _| match Share::read(node)? {
        Share::ALWAYS => Err(node.expected("a correlation below 100%")),
        share => Ok(share),
    },
    write: |share| Percentage.write(share),
};

/// How often packets are selected, and how alike neighbours are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chance {
    /// The probability for each packet.
    pub rate: Share,
    /// The rank correlation (Spearman's) of the draws of one packet and the next; below 100%.
    pub correlation: Share,
}

impl Keyed for Chance {
    const ROWS: &'static [Row<Self>] = &[
        row!("rate", rate, Percentage, "Probability per packet.").required(),
        row!(
            "correlation",
            correlation,
            CORRELATION,
            "Rank correlation (Spearman) between the draws of consecutive packets."
        ),
    ];
}

impl Chance {
    /// Of packets independently of one another.
    pub(crate) const fn independent(rate: Share) -> Self {
        Self { rate, correlation: Share::ZERO }
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
