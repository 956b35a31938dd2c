//! Words as they are expanded.

use std::ops::Range;

use super::place::Place;
use super::values::Missing;
use crate::problem::Problem;

pub(super) const NOT_RUN: &str = "scripts are read and not run: write the value itself, or use `narrows tc commands` (`narrows ipfw commands`)";

/// A word after expansion, and its span in the script.
#[derive(Clone, Debug)]
pub(crate) struct Expanded {
    pub(super) text: String,
    pub(super) span: Range<usize>,
    pub(super) unknown: Option<Box<Unknown>>,
    /// It is a variable that is not set, without quotes: a shell has no word in its place.
    pub(super) vanishes: bool,
}

impl Expanded {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// Why its text is not known, but stands for what is not in the script.
    pub(crate) fn problem(&self) -> Option<&Problem> {
        self.unknown.as_ref().map(|unknown| &unknown.problem)
    }

    /// Whether its text is known, or is a name: `$NAME` of the first variable with the same value.
    pub(crate) fn is_named(&self) -> bool {
        self.unknown.as_ref().is_none_or(|unknown| unknown.is_named)
    }
}

/// Why a value is not known.
#[derive(Clone, Debug)]
pub(super) struct Unknown {
    pub(super) problem: Problem,
    pub(super) what: Missing,
    /// Whether the text says which value it is.
    pub(super) is_named: bool,
}

/// A part of a word that will be one word, or more.
#[derive(Clone, Debug, Default)]
pub(super) struct Field {
    pub(super) text: String,
    pub(super) unknown: Option<Box<Unknown>>,
}

impl Field {
    pub(super) fn known(text: impl Into<String>) -> Self {
        Self { text: text.into(), unknown: None }
    }

    pub(super) fn wrong(problem: Problem) -> Self {
        let unknown = Unknown { problem, what: Missing::Output, is_named: false };
        Self { text: String::new(), unknown: Some(Box::new(unknown)) }
    }
}

/// What an expansion comes to.
pub(super) enum Expansion {
    One(Field),
    /// Of `$@`: a word each, within quotes, too.
    All(Vec<Field>),
    /// Of `$*`: one text within quotes, with this between its parts.
    Joined(Vec<Field>, String),
    /// What stands in place of a value, as in `${A:-…}`, with its own quotes.
    Default(String, Place),
}

/// What quotes are within a text that is expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quotes {
    Word,
    /// In `${A:-…}`: values without quotes are divided, and so is the text.
    Default,
    /// They are text.
    Document,
}

/// What becomes of what is expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// Values without quotes may be several words.
    Words,
    /// It stays one text.
    One,
    /// One text, a pattern: what is in quotes stands for itself.
    Pattern,
}

pub(super) struct Fields {
    pub(super) done: Vec<Field>,
    pub(super) open: Option<Field>,
    pub(super) how: How,
    separators: Vec<char>,
    pub(super) length: usize,
    pub(super) quotes: Quotes,
}

impl Fields {
    pub(super) fn new(how: How, separators: Vec<char>) -> Self {
        Self { done: Vec::new(), open: None, how, separators, length: 0, quotes: Quotes::Word }
    }

    pub(super) fn open(&mut self) -> &mut Field {
        self.open.get_or_insert_default()
    }

    pub(super) fn literal(&mut self, text: &str, is_quoted: bool) {
        let escapes = is_quoted && self.how == How::Pattern;
        let open = self.open();
        if !escapes {
            open.text += text;
            return;
        }
        for c in text.chars() {
            if "*?[]\\+@!(){}|.^$-".contains(c) {
                open.text.push('\\');
            }
            open.text.push(c);
        }
    }

    pub(super) fn push(&mut self, expansion: Expansion, is_quoted: bool) {
        let (all, between) = match expansion {
            Expansion::One(field) => return self.one(field, is_quoted),
            Expansion::All(all) => (all, (self.how != How::Words).then(|| " ".to_owned())),
            Expansion::Joined(all, between) => {
                (all, (is_quoted || self.how != How::Words).then_some(between))
            }
            Expansion::Default(text, _) => return self.literal(&text, is_quoted),
        };
        if is_quoted && between.is_some() {
            self.open();
        }
        for (index, field) in all.into_iter().enumerate() {
            match &between {
                _ if index == 0 => {}
                Some(between) => self.literal(between, is_quoted),
                None => self.done.extend(self.open.take()),
            }
            self.one(field, is_quoted);
        }
    }

    fn one(&mut self, field: Field, is_quoted: bool) {
        self.length += field.text.len();
        if let Some(unknown) = field.unknown {
            let open = self.open();
            open.text += &field.text;
            match &mut open.unknown {
                Some(first) => {
                    first.is_named &= unknown.is_named;
                    if unknown.what != Missing::Argument {
                        first.what = unknown.what;
                    }
                }
                none => *none = Some(unknown),
            }
            return;
        }
        if is_quoted || self.how != How::Words {
            return self.literal(&field.text, is_quoted);
        }
        let separators = std::mem::take(&mut self.separators);
        let is_separator = |c: char| separators.contains(&c);
        let is_blank = |c: char| is_separator(c) && c.is_ascii_whitespace();
        let mut rest = field.text.as_str();
        while !rest.is_empty() {
            let end = rest.find(is_separator).unwrap_or(rest.len());
            if end > 0 {
                self.open().text += &rest[..end];
            }
            if end == rest.len() {
                break;
            }
            rest = rest[end..].trim_start_matches(is_blank);
            // One that is no blank ends a word, an empty one, too.
            if let Some(c) = rest.chars().next().filter(|c| is_separator(*c)) {
                self.open();
                rest = rest[c.len_utf8()..].trim_start_matches(is_blank);
            }
            self.done.extend(self.open.take());
        }
        self.separators = separators;
    }
}

/// The same, where its text is no name of the value.
pub(super) fn unnamed(unknown: Option<Box<Unknown>>) -> Option<Box<Unknown>> {
    unknown.map(|mut unknown| {
        unknown.is_named = false;
        unknown
    })
}
