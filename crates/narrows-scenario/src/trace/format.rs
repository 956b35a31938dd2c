//! Trace formats and their properties.

use std::fmt;

use super::{MOST_POINTS, OPPORTUNITY, Trace};
use crate::problem::Problem;
use crate::source::Source;
use narrows_core::Duration;

/// A file format of traces. The source file of each format defines its constant.
#[derive(Clone, Copy)]
pub struct Format(pub(super) &'static Entry);

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Format {}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Format {
    /// Its name on the command line and in scenarios.
    pub const fn name(self) -> &'static str {
        self.0.name
    }
}

/// Why a trace cannot be written in a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotWrite {
    /// The trace has nothing that the format can express.
    #[error("a {format} file holds {says}, which this trace lacks")]
    Nothing {
        /// The format.
        format: Format,
        /// The columns that the format has.
        says: &'static str,
    },
    /// The format is for reading only.
    #[error("a {format} file is not written from a trace: {why}")]
    ReadOnly {
        /// The format.
        format: Format,
        /// Why, or what to use instead.
        why: &'static str,
    },
    /// The file would be too long.
    #[error("more than {MOST_POINTS} points; reduce them with --resample")]
    TooLong,
    /// There would be no opportunity.
    #[error(
        "the rate passes no packet of {OPPORTUNITY} bytes in the trace's {0}: a mahimahi file needs at least one"
    )]
    NoOpportunity(Duration),
}

/// Properties of a format.
pub(super) struct Entry {
    pub(super) name: &'static str,
    /// Whether a file that starts like this has the format.
    pub(super) begins: fn(Beginning<'_>) -> bool,
    /// File extensions that always mean this format.
    pub(super) always: &'static [&'static str],
    /// File extensions for which this format is written.
    pub(super) extensions: &'static [&'static str],
    pub(super) read: fn(&Source<'_>) -> Result<Trace, Problem>,
    /// Writes a trace, and adds remarks about what the file leaves out.
    pub(super) write: fn(&Trace, &mut Vec<String>) -> Result<String, CannotWrite>,
    /// Whether it has opportunities instead of a rate.
    pub(super) has_opportunities: bool,
    /// Whether a file can state that the trace repeats.
    pub(super) says_loop: bool,
}

/// The first line with content of a file.
#[derive(Clone, Copy)]
pub(super) struct Beginning<'a> {
    pub(super) line: &'a str,
    /// Its first non-blank character.
    pub(super) first: char,
    /// The text from there on.
    pub(super) text: &'a str,
}

impl Beginning<'_> {
    /// The first few hundred bytes of the text, for formats whose first line says little.
    pub(super) fn head(&self) -> &str {
        let mut end = self.text.len().min(400);
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        &self.text[..end]
    }

    /// The first few hundred lines, for logs with other text around what counts.
    pub(super) fn lines(&self) -> impl Iterator<Item = &str> {
        let mut end = self.text.len().min(1 << 16);
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        self.text[..end].lines().take(400)
    }

    /// Whether the first line is a header with all these columns.
    pub(super) fn has_columns(&self, names: &[&str]) -> bool {
        let cells = || self.line.split([',', ';', '\t']).map(|cell| cell.trim().trim_matches('"'));
        names.iter().all(|name| cells().any(|cell| cell == *name))
    }
}
