//! Rows that define the options of a qdisc, and rows that relate the keys of a direction to NetEm.
//!
//! The rows of a qdisc's options define its grammar, its text and its explanation. The rows of the keys
//! define the conversion of options to keys and back. The rows of each option are in the file with its
//! name.

use narrows_core::Rate;
use narrows_core::queue::Bound;
use narrows_core::service::Overhead;

use super::options::{Chance, Netem};
use super::units;
use crate::dialect::{Read, Word, Words, keyword};
use crate::node::{Node, Value};
use crate::problem::{Found, Problem};
use crate::units::Share;

pub(super) const PERCENTAGE: &str = "a percentage";
pub(super) const TIME: &str = "a time";

/// One option of the qdisc whose options are `T`.
pub(super) struct Row<T: 'static> {
    /// Its word, which is used in output, followed by synonyms.
    pub(super) words: &'static [&'static str],
    /// Parses what follows the word.
    pub(super) read: fn(&mut T, Word<'_>, &mut Reader<'_, '_>) -> Result<(), Problem>,
    /// What follows the word in tc syntax; `None` if the option is not needed.
    pub(super) show: fn(&T) -> Option<String>,
    /// What it does, in sentences.
    pub(super) explain: fn(&T) -> Vec<String>,
}

/// The options in tc syntax, in the order of the rows.
pub(super) fn show<T>(rows: &[Row<T>], options: &T) -> String {
    let shown = |row: &Row<T>| {
        let after = (row.show)(options)?;
        Some(if after.is_empty() { row.words[0].to_owned() } else { format!("{} {after}", row.words[0]) })
    };
    rows.iter().filter_map(shown).collect::<Vec<_>>().join(" ")
}

/// One option as written, for the explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Clause {
    /// The first of its words.
    pub(super) option: &'static str,
    /// Its words, separated by single spaces.
    pub(super) text: String,
    /// Numbers without a unit, and how each was interpreted.
    pub(super) bare: Vec<(String, String)>,
}

/// The remaining words, and notes about those already read.
pub(super) struct Reader<'w, 't> {
    pub(super) words: &'w mut Words<'t>,
    bare: Vec<(String, String)>,
}

/// Options already read, each with the word that named it.
pub(super) struct Said<'t>(Vec<(Clause, Word<'t>)>);

impl<'t> Said<'t> {
    /// The word that named an option, if it was given.
    pub(super) fn word(&self, option: &str) -> Option<Word<'t>> {
        self.0.iter().find(|(clause, _)| clause.option == option).map(|(_, word)| *word)
    }

    pub(super) fn clauses(self) -> Vec<Clause> {
        self.0.into_iter().map(|(clause, _)| clause).collect()
    }
}

/// Parses options up to the end of the text. `what` describes an option, as in "option of netem".
pub(super) fn read_all<'t, T>(
    rows: &'static [Row<T>],
    what: &str,
    into: &mut T,
    words: &mut Words<'t>,
    hint: fn(Word<'_>, Problem) -> Problem,
) -> Result<Said<'t>, Problem> {
    let known: Vec<_> =
        rows.iter().enumerate().flat_map(|(i, row)| row.words.iter().map(move |word| (*word, i))).collect();
    let mut said = Said(Vec::new());
    while let Some(word) = words.take() {
        let position = words.position() - 1;
        let row = &rows[keyword(word, what, &known).map_err(|problem| hint(word, problem))?];
        let option = row.words[0];
        let mut reader = Reader { words, bare: Vec::new() };
        let first = said.0.iter().find(|(clause, _)| clause.option == option);
        if let Some((clause, first)) = first {
            // The same again changes nothing; tc refuses a second `loss`.
            let mut ahead = reader.words.clone();
            let mut again = Reader { words: &mut ahead, bare: Vec::new() };
            if option != "loss"
                && (row.read)(into, word, &mut again).is_ok()
                && again.words.since(position) == clause.text
            {
                *reader.words = ahead;
                continue;
            }
            return Err(word
                .problem(format!("duplicate {}", Found(word.text)))
                .also(&first.span(), "the first time")
                .help(
                    "remove one of the two: tc takes the last of most options, but ignores a second `loss`",
                ));
        }
        (row.read)(into, word, &mut reader)?;
        let bare = reader.bare;
        said.0.push((Clause { option, text: words.since(position), bare }, word));
    }
    Ok(said)
}

impl<'t> Reader<'_, 't> {
    /// Returns the parsed value, and notes how a number without a unit was interpreted.
    pub(super) fn keep<T>(&mut self, word: Word<'_>, read: Read<T>) -> T {
        self.bare.extend(read.taken_as.map(|taken| (word.text.to_owned(), taken)));
        read.value
    }

    /// Notes how a number that never has a unit was interpreted.
    pub(super) fn note(&mut self, word: Word<'_>, taken_as: String) {
        self.bare.push((word.text.into(), taken_as));
    }

    /// The value of a word.
    pub(super) fn value<'a, T>(
        &mut self,
        word: Word<'a>,
        read: impl FnOnce(Word<'a>) -> Result<Read<T>, Problem>,
    ) -> Result<T, Problem> {
        read(word).map(|read| self.keep(word, read))
    }

    /// The value of the next word, which must follow `after`. `what` describes it, with its article.
    pub(super) fn expect<T>(
        &mut self,
        after: Word<'_>,
        what: &str,
        read: impl FnOnce(Word<'t>) -> Result<Read<T>, Problem>,
    ) -> Result<T, Problem> {
        let word = self.words.expect(after, what)?;
        self.value(word, read)
    }

    /// A required percentage, and an optional correlation.
    pub(super) fn chance(&mut self, after: Word<'_>) -> Result<Chance, Problem> {
        let number = self.words.expect(after, PERCENTAGE)?;
        self.chance_of(number)
    }

    /// Same, with the percentage already read.
    pub(super) fn chance_of(&mut self, number: Word<'_>) -> Result<Chance, Problem> {
        let share = self.value(number, units::percent)?;
        let correlation = self.correlation()?;
        // An event that never happens has no correlation.
        let correlation = if share.is_zero() { Share::ZERO } else { correlation };
        Ok(Chance { share, correlation })
    }

    /// An optional correlation.
    pub(super) fn correlation(&mut self) -> Result<Share, Problem> {
        self.words.take_number(false).map_or(Ok(Share::ZERO), |number| self.value(number, units::percent))
    }
}

/// A key of a direction that relates to NetEm, which another qdisc replaces.
pub(super) struct Key {
    pub(super) name: &'static str,
    /// Its value in a plain link, as written in a file.
    pub(super) plain: &'static str,
    /// Its value from the options; `None` for the value of a plain link.
    pub(super) write: fn(&Netem) -> Result<Option<Value>, Problem>,
    /// Converts its value to options; `None` if NetEm cannot express it.
    pub(super) read: fn(&mut InReading, &Node) -> Option<()>,
}

impl Key {
    /// A key that NetEm cannot express.
    pub(super) const fn unrepresentable(name: &'static str, plain: &'static str) -> Self {
        Self { name, plain, write: |_| Ok(None), read: |_, _| None }
    }
}

/// The options converted so far from the keys of a direction.
pub(super) struct InReading {
    pub(super) netem: Netem,
    /// Whether the delays come from a feed.
    pub(super) fed: bool,
    /// Whether packets may overtake one another.
    pub(super) allow: bool,
    pub(super) direction: Around,
}

/// What the options of a key depend on besides its value.
#[derive(Clone, Copy)]
pub(crate) struct Around {
    pub(crate) rate: Rate,
    pub(crate) overhead: Overhead,
    pub(crate) bound: Bound,
}
