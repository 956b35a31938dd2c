//! Option languages of other tools: parses options word by word into documents of keys.
//!
//! An option is one row ([`Opt`]): its word, its argument ([`Unit`]), and the key that it sets.
//! [`Options`], a table of rows, parses words into a document, with errors that name what is allowed, and
//! prints a document in the language. The qdiscs and classes of `tc`, and ipfw's `config`, use such tables;
//! NetEm's grammar has its own code. [`shell`] reads scripts as a shell does. This module
//! does not depend on scenarios. Relations between options are checked elsewhere.

mod options;
mod services;
pub(crate) mod shell;
pub(crate) mod sleep;
mod words;

pub(crate) use options::{
    Effect, Follows, Opt, Options, Unit, is_zero, number, number_of, shown_as_is, text_of,
};
pub(crate) use services::SERVICES;
pub(crate) use words::{Source, Word, Words, keyword};

/// A value, and how it was interpreted if that is not obvious, as for a number without a unit.
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
