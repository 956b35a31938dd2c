//! Flipped bits: `"0.1%"` or `{ rate, correlation }` of the packets have one; `{ bit-errors = "1e-6" }` of all bits;
//! `{ pattern = { file } }`.

use narrows_core::{BitErrors, Corruption};

use crate::node::{Node, Value};
use crate::pattern::About;
use crate::problem::Problem;
use crate::units::Share;
use crate::value::chance::Chance;
use crate::value::condition::Surroundings;
use crate::value::inline::Inline;
use crate::value::pattern::PatternUse;

/// Which bits are flipped.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Corrupt {
    /// One bit, anywhere, of these packets.
    Packets(Chance),
    /// Each bit with this probability, independently.
    BitErrors(Share),
    /// As written in a file.
    Pattern(PatternUse),
}

impl Default for Corrupt {
    fn default() -> Self {
        Self::Packets(Chance::default())
    }
}

impl Corrupt {
    /// The keys of its table.
    pub(crate) const KEYS: &[&str] = &["rate", "correlation", "bit-errors", "pattern"];

    pub(crate) fn read(node: &Node, around: Surroundings<'_>) -> Result<Self, Problem> {
        let Value::Table(table) = &node.value else { return Chance::read(node).map(Self::Packets) };
        table.only(Self::KEYS)?;
        let kinds: Vec<_> =
            ["rate", "bit-errors", "pattern"].into_iter().filter_map(|key| table.key(key)).collect();
        if let [first, second, ..] = kinds[..] {
            return Err(Problem::new(format!("`{}` beside `{}`", second.name, first.name))
                .at(&second.span)
                .help("keep one"));
        }
        if let Some(share) = table.optional("bit-errors", bit_errors)? {
            return Ok(Self::BitErrors(share));
        }
        if let Some(pattern) =
            table.optional("pattern", |node| PatternUse::read(node, About::BitErrors, around))?
        {
            return Ok(Self::Pattern(pattern));
        }
        Chance::read(node).map(Self::Packets)
    }

    /// Whether no bit is ever flipped.
    pub fn is_never(&self) -> bool {
        match self {
            Self::Packets(chance) => chance.is_never(),
            Self::BitErrors(share) => share.is_zero(),
            Self::Pattern(_) => false,
        }
    }

    /// The engine's, if any bit is flipped.
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

    /// As it stands in a file.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Packets(chance) => chance.text(),
            _ => self.table_text(),
        }
    }

    /// The same as a table, always.
    pub(crate) fn table_text(&self) -> String {
        let mut table = Inline::default();
        match self {
            Self::Packets(chance) => chance.write(&mut table),
            Self::BitErrors(share) => table.quoted("bit-errors", Some(share)),
            Self::Pattern(pattern) => table.plain("pattern", Some(pattern.text())),
        }
        table.finish()
    }
}

/// Reads the probability of each bit.
fn bit_errors(node: &Node) -> Result<Share, Problem> {
    let share = Share::read(node)?;
    let checked = BitErrors::new(share.probability());
    checked.map(|_| share).map_err(|error| Problem::new(error.to_string()).at(&node.span))
}

/// For people: what is flipped.
impl std::fmt::Display for Corrupt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Packets(chance) => write!(f, "one bit in {chance} of the packets"),
            Self::BitErrors(share) => write!(f, "each bit with a probability of {share}"),
            Self::Pattern(pattern) => write!(f, "bits by {pattern}"),
        }
    }
}
