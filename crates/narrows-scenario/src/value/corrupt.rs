//! Bit errors: `"0.1%"` or `{ rate, correlation }` for packets with one flipped bit; `{ bit-errors = "1e-6"
//! }` for single bits; `{ pattern = { file } }`.

use std::ops::Range;

use narrows_core::{BitErrors, Corruption};

use crate::keys::compound::{Group, Short};
use crate::keys::kind::ByHand;
use crate::keys::quantity::Percentage;
use crate::keys::{Choosing, Form, Keyed, Row, schema};
use crate::node::{Node, Table};
use crate::pattern::About;
use crate::problem::Problem;
use crate::units::Share;
use crate::value::chance::{CORRELATION, Chance};
use crate::value::pattern::{PatternOf, PatternUse};

/// Which bits are flipped.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Corrupt {
    /// Selected packets get one flipped bit at a random position.
    Packets(Chance),
    /// Each bit is flipped independently with this probability.
    BitErrors(Share),
    /// Bits as listed in a pattern file.
    Pattern(PatternUse),
}

impl Default for Corrupt {
    fn default() -> Self {
        Self::Packets(Chance::default())
    }
}

const BIT_ERRORS: ByHand<Share> = ByHand {
    words: || "probability, up to 10%".into(),
    schema: schema::share,
    read: |node, _| bit_errors(node),
    write: |share| Percentage.write(share),
};
const PATTERN: PatternOf = PatternOf(About::BitErrors);

impl Keyed for Corrupt {
    const CHOICES: &'static [Row<Self>] = &[
        Row::new(
            "rate",
            &Percentage,
            "Share of packets with one flipped bit, at a uniformly random position.",
            |of: &Self| Percentage.write(&of.packets()?.rate),
            |of: &mut Self, node, around| {
                *of = Self::Packets(Chance::independent(Percentage.read(node, around)?));
                Ok(())
            },
        )
        .choice(),
        Row::new(
            "bit-errors",
            &BIT_ERRORS,
            "Bit error rate.",
            |of: &Self| match of {
                Self::BitErrors(share) => BIT_ERRORS.write(share),
                _ => None,
            },
            |of: &mut Self, node, around| {
                *of = Self::BitErrors(BIT_ERRORS.read(node, around)?);
                Ok(())
            },
        )
        .choice(),
        Row::new(
            "pattern",
            &PATTERN,
            "Pattern of bit errors.",
            |of: &Self| match of {
                Self::Pattern(pattern) => PATTERN.write(pattern),
                _ => None,
            },
            |of: &mut Self, node, around| {
                *of = Self::Pattern(PATTERN.read(node, around)?);
                Ok(())
            },
        )
        .choice(),
    ];
    const CHOOSING: Choosing = Choosing {
        none: "no kind of error is given",
        several: "more than one kind of error",
        help: "keep one",
    };
    const ROWS: &'static [Row<Self>] = &[Row::new(
        "correlation",
        &CORRELATION,
        "Rank correlation between consecutive packets; with `rate`.",
        |of: &Self| CORRELATION.write(&of.packets()?.correlation),
        |of: &mut Self, node, around| {
            let correlation = CORRELATION.read(node, around)?;
            if let Self::Packets(chance) = of {
                chance.correlation = correlation;
            }
            Ok(())
        },
    )];

    fn check(&self, table: &Table, _: &Range<usize>) -> Result<(), Problem> {
        match (self, table.key("correlation")) {
            (Self::BitErrors(_) | Self::Pattern(_), Some(key)) => {
                Err(Problem::new("`correlation` requires `rate`").at(&key.span))
            }
            _ => Ok(()),
        }
    }
}

pub(crate) const CORRUPT: Short<Corrupt> = Short {
    key: "rate",
    words: "probability",
    table: Group::new(
        "CorruptParts",
        "One of `rate`, `bit-errors` and `pattern`.",
        "{ bit-errors = \"1e-7\" }",
    ),
};

impl Corrupt {
    fn packets(&self) -> Option<&Chance> {
        match self {
            Self::Packets(chance) => Some(chance),
            _ => None,
        }
    }

    /// Whether no bit is ever flipped.
    pub fn is_never(&self) -> bool {
        match self {
            Self::Packets(chance) => chance.is_never(),
            Self::BitErrors(share) => share.is_zero(),
            Self::Pattern(_) => false,
        }
    }

    /// The engine's bit errors; `None` if no bit is flipped.
    pub(crate) fn build(&self) -> Option<Corruption> {
        match self {
            _ if self.is_never() => None,
            Self::Packets(chance) => chance.build().map(Corruption::Packets),
            Self::BitErrors(share) => {
                let errors =
                    BitErrors::new(share.probability()).expect("the rate was checked when it was read");
                Some(Corruption::BitErrors(errors))
            }
            Self::Pattern(pattern) => Some(pattern.corruption()),
        }
    }
}

/// Reads the bit error probability.
fn bit_errors(node: &Node) -> Result<Share, Problem> {
    let share = Share::read(node)?;
    let checked = BitErrors::new(share.probability());
    checked.map(|_| share).map_err(|error| Problem::new(error.to_string()).at(&node.span))
}

/// For display.
impl std::fmt::Display for Corrupt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Packets(chance) => write!(f, "one bit in {chance} of the packets"),
            Self::BitErrors(share) => write!(f, "each bit with a probability of {share}"),
            Self::Pattern(pattern) => write!(f, "bits by {pattern}"),
        }
    }
}
