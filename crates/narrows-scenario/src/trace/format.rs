//! Formats, and what is to be known of one.

use super::{MOST_POINTS, OPPORTUNITY, Trace};
use crate::problem::Problem;
use crate::source::Source;
use narrows_core::Duration;

/// How a trace is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A header that names columns and units, then rows.
    Csv,
    /// One opportunity a line, in whole milliseconds.
    Mahimahi,
    /// JSON or TOML with a tag for each model, as the netem-trace crate and rattan read and write it.
    NetemTrace,
    /// Rows of five or ten whole numbers, as TheaterQ's character device takes them.
    TheaterQ,
    /// A pattern per millisecond of narrows' own: see [`crate::pattern`]. Read only.
    Pattern,
}

/// Why a trace cannot be written in a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotWrite {
    /// It has nothing that the format can say.
    #[error("a {format} file says {says}, and this trace has no such column")]
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
    #[error("that comes to more than {MOST_POINTS} points; --resample makes them fewer")]
    TooLong,
    /// No opportunity comes up.
    #[error(
        "the rate lets no packet of {OPPORTUNITY} bytes through in all of the trace's {0}: a mahimahi file has at least one"
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
