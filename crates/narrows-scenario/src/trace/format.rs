//! Formats, and what is to be known of one.

use std::fmt;

use super::{MOST_POINTS, OPPORTUNITY, Trace};
use crate::problem::Problem;
use crate::source::Source;
use narrows_core::Duration;

/// How a trace is written down. The file of each format has its constant.
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
    /// As it is named on the command line and in scenarios.
    pub const fn name(self) -> &'static str {
        self.0.name
    }
}

/// Why a trace cannot be written in a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotWrite {
    /// It has nothing that the format can say.
    #[error("a {format} file holds {says}, which this trace lacks")]
    Nothing {
        /// The format.
        format: Format,
        /// What it has columns for.
        says: &'static str,
    },
    /// The format is for reading only.
    #[error("a pattern is not written from a trace: `narrows pattern make` makes patterns")]
    ReadOnly,
    /// It would be too long.
    #[error("more than {MOST_POINTS} points; reduce them with --resample")]
    TooLong,
    /// No opportunity comes up.
    #[error(
        "the rate passes no packet of {OPPORTUNITY} bytes in the trace's {0}: a mahimahi file needs at least one"
    )]
    NoOpportunity(Duration),
}

/// What is to be known of a format.
pub(super) struct Entry {
    pub(super) name: &'static str,
    /// Whether a file that begins like this is one.
    pub(super) begins: fn(Beginning<'_>) -> bool,
    /// The extensions of files that are always read so.
    pub(super) always: &'static [&'static str],
    /// The extensions of files that are written so.
    pub(super) extensions: &'static [&'static str],
    pub(super) read: fn(&Source<'_>) -> Result<Trace, Problem>,
    /// Writes it, with remarks about what the file does not say.
    pub(super) write: fn(&Trace, &mut Vec<String>) -> Result<String, CannotWrite>,
    /// Whether it has opportunities where others have a rate.
    pub(super) has_opportunities: bool,
    /// Whether a file says that the trace repeats.
    pub(super) says_loop: bool,
}

/// The first line of a file that says something.
#[derive(Clone, Copy)]
pub(super) struct Beginning<'a> {
    pub(super) line: &'a str,
    /// Its first character that is not blank.
    pub(super) first: char,
}
