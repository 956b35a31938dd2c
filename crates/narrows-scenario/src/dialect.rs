//! Languages of other tools: options, word by word, and the documents of keys that they become.
//!
//! An option is one row ([`Opt`]): its word, what follows it ([`Unit`]), and the key that it sets. [`Options`], a table of
//! rows, read words into a document with errors that name what is allowed, and print a document in the language's words.
//! The disciplines and classes of `tc` have such tables, and so has ipfw's `config`; NetEm's grammar has code of its own.
//! This module knows no scenario. By hand stay relations across options.

mod options;
mod words;

pub(crate) use options::{Follows, Opt, Options, Unit, is_zero, number, number_of, shown_as_is, text_of};
pub(crate) use words::{Source, Word, Words, keyword};

/// A value, and what it was taken as where that is not plain, such as a number without a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Read<T> {
    pub(crate) value: T,
    pub(crate) taken_as: Option<String>,
}

impl<T> Read<T> {
    /// A value that needs no explanation.
    pub(crate) fn plain(value: T) -> Self {
        Self { value, taken_as: None }
    }

    pub(crate) fn map<U>(self, f: impl FnOnce(T) -> U) -> Read<U> {
        Read { value: f(self.value), taken_as: self.taken_as }
    }
}
