//! Words that tc lets one shorten: what a known word begins with stands for it, and for the first one of several.
//!
//! Source: `matches()` of iproute2, which it uses for some of its words; others must be written out.

use crate::dialect::{Options, Word, Words};
use crate::node::Table;
use crate::problem::Problem;

/// Whether a word may stand for a longer one.
pub(super) fn stands_for(word: &str, full: &str) -> bool {
    !word.is_empty() && full.starts_with(word)
}

/// The word, or the first of these words that it stands for.
pub(super) fn in_full<'a>(word: Word<'a>, known: &[&'a str]) -> Word<'a> {
    match known.iter().find(|known| stands_for(word.text, known)) {
        Some(full) => Word::new(full, &word.span()),
        None => word,
    }
}

/// Parses options up to the first other word. Those in `short`, in tc's order, may be shortened.
pub(super) fn read_some(
    options: Options,
    short: &'static [&'static str],
    words: &mut Words<'_>,
) -> Result<Table, Problem> {
    let mut table = Table::default();
    loop {
        let word = words.peek().filter(|word| options.find(word.text).is_none());
        if let Some(word) = word {
            words.write_out(in_full(word, short));
        }
        if !options.read_one(words, &mut table, &mut Vec::new())? {
            return Ok(table);
        }
    }
}

/// Parses options up to the end; `of` names their object.
pub(super) fn read_all(
    options: Options,
    short: &'static [&'static str],
    of: &str,
    words: &mut Words<'_>,
) -> Result<Table, Problem> {
    let table = read_some(options, short, words)?;
    options.read_all(of, words).map(|_| table)
}
