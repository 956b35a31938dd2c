//! Random selection of packets, optionally correlated: `"1%"`, or `{ rate = "1%", correlation = "25%" }`.

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
/// A rank correlation, below 100%: at 100% the outcome would never change.
pub(crate) const CORRELATION: ByHand<Share> = ByHand {
    words: || "probability below 100%".into(),
    schema: schema::share,
    read: |node, _| match Share::read(node)? {
        Share::ALWAYS => Err(node.expected("a correlation below 100%")),
        share => Ok(share),
    },
    write: |share| Percentage.write(share),
};

/// The probability that a packet is selected, and the correlation between consecutive packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chance {
    /// Probability per packet.
    pub rate: Share,
    /// Rank correlation (Spearman's) between the draws of consecutive packets; below 100%.
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
    /// Independent selection of packets.
    pub(crate) const fn independent(rate: Share) -> Self {
        Self { rate, correlation: Share::ZERO }
    }

    /// Whether it never selects a packet.
    pub const fn is_never(self) -> bool {
        self.rate.is_zero()
    }

    /// The engine's selector; `None` if nothing is selected.
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

/// For display: `1%`, `1% (correlation 25%)`.
impl std::fmt::Display for Chance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.correlation.is_zero() {
            true => self.rate.fmt(f),
            false => write!(f, "{} (correlation {})", self.rate, self.correlation),
        }
    }
}
