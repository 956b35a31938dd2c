//! The registry of formats: a line for each, and a file that says what it is called, what its files look like, and how it is
//! read and written.

use std::fmt;
use std::str::FromStr;

use super::source::Source;
use super::write::CannotWrite;
use super::{Trace, csv, mahimahi, netem_trace, pattern, theaterq};
use crate::problem::{Problem, nearest, one_of};

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

macro_rules! formats {
    ($($(#[$doc:meta])* $format:ident = $module:ident;)+) => {
        /// How a trace is written down.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Format {
            $($(#[$doc])* $format,)+
        }

        impl Format {
            /// All of them.
            pub const ALL: [Self; [$(Self::$format),+].len()] = [$(Self::$format),+];

            pub(super) const fn about(self) -> &'static Entry {
                match self {
                    $(Self::$format => &$module::FORMAT,)+
                }
            }
        }
    };
}

// The later ones are asked first whether a file is theirs.
formats! {
    /// A header that names columns and units, then rows.
    Csv = csv;
    /// One opportunity a line, in whole milliseconds.
    Mahimahi = mahimahi;
    /// JSON or TOML with a tag for each model, as the netem-trace crate and rattan read and write it.
    NetemTrace = netem_trace;
    /// Rows of five or ten whole numbers, as TheaterQ's character device takes them.
    TheaterQ = theaterq;
    /// A pattern per millisecond of narrows' own: see [`crate::pattern`]. Read only.
    Pattern = pattern;
}

impl Format {
    /// As it is named on the command line and in scenarios.
    pub const fn name(self) -> &'static str {
        self.about().name
    }

    /// By the extension where that decides, else by the first line that says something.
    pub(super) fn guess(name: &str, source: &Source<'_>) -> Result<Self, Problem> {
        let extension = extension(name);
        if let Some(format) = Self::ALL.into_iter().find(|format| has(format.about().always, &extension)) {
            return Ok(format);
        }
        let telling = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
        let line = source.lines().find(telling).ok_or_else(|| source.empty())?;
        let first = line.trim_start().chars().next().unwrap_or_default();
        let begins = |format: &Self| (format.about().begins)(Beginning { line, first });
        Self::ALL.into_iter().rev().find(begins).ok_or_else(|| {
            Problem::new("this is none of the formats that are known")
                .at(&source.span(line))
                .help(format!("name it: {}", one_of(&Self::ALL.map(Self::name))))
        })
    }

    /// The format that a file of this name is written in.
    pub fn of_file(name: &str) -> Option<Self> {
        let extension = extension(name);
        Self::ALL.into_iter().find(|format| has(format.about().extensions, &extension))
    }
}

fn extension(name: &str) -> Option<String> {
    name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase())
}

fn has(extensions: &[&str], extension: &Option<String>) -> bool {
    extension.as_ref().is_some_and(|extension| extensions.contains(&extension.as_str()))
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = Self::ALL.map(Self::name);
        Self::ALL.into_iter().find(|format| format.name() == text).ok_or_else(|| {
            let hint =
                nearest(text, names).map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default();
            format!("a format is {}{hint}", one_of(&names))
        })
    }
}
