//! The registry of formats: one line for each. The source file of a format defines its name, how to
//! recognise its files, and how to read and write them.

use std::str::FromStr;

use narrows_core::Duration;

use super::described;
use super::format::{Beginning, CannotWrite, Format};
use super::unknown::unknown;
use super::{Then, Trace};
use crate::problem::{Problem, nearest, one_of};
use crate::source::Source;

/// A trace as a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The file.
    pub text: String,
    /// Content of the trace that the file leaves out, or has only approximately.
    pub remarks: Vec<String>,
}

/// The default step for converting opportunities to a rate is 1 ms, or the next power of ten with no more steps than this. A trace
/// of more than a quarter of an hour gets longer ones: a few bytes can say a long time, in which nothing is sent.
const MOST_STEPS: u64 = 1_000_000;

impl Format {
    /// All formats. To recognise a file, they are tried from last to first.
    pub const ALL: &'static [Self] = &[
        Self::CSV,
        Self::MAHIMAHI,
        Self::MM_LINK,
        Self::NETEM_TRACE,
        Self::JSON_ROWS,
        Self::ALPHARTC,
        Self::ALPHARTC_DOWNLINK,
        Self::GENET,
        Self::NTRACE,
        Self::IPERF3,
        Self::THEATERQ,
        Self::PATTERN,
        Self::SABRE,
        Self::PENSIEVE,
        Self::OBOE,
        Self::NORWAY,
        Self::NYU_METS,
        Self::UCC,
        Self::LUMOS5G,
        Self::SIGCOMM21_5G,
        Self::FCC,
        Self::PING,
        Self::IPERF_TEXT,
        Self::SPEEDTEST_CLI,
    ];

    /// Guesses the format by the extension if that is unambiguous, else by the first line with content.
    pub(super) fn guess(name: &str, source: &Source<'_>) -> Result<Self, Problem> {
        let extension = extension(name);
        if let Some(format) = Self::ALL.iter().copied().find(|format| has(format.0.always, &extension)) {
            return Ok(format);
        }
        if described::in_comment(source).is_some() {
            return Ok(Self::CSV);
        }
        let telling = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
        let line = source.lines().find(telling).ok_or_else(|| source.empty())?;
        let first = line.trim_start().chars().next().unwrap_or_default();
        let text = &source.text[source.span(line).start..];
        let begins = |format: &Self| (format.0.begins)(Beginning { line, first, text });
        let found = Self::ALL.iter().copied().rev().find(begins);
        // Such as `"time","rate"`, or a header whose first cell is empty.
        let header = || described::has_header(source, line).then_some(Self::CSV);
        found.or_else(header).ok_or_else(|| unknown(source, line))
    }

    /// The names of all.
    pub fn names() -> Vec<&'static str> {
        Self::ALL.iter().map(|format| format.name()).collect()
    }

    /// The format to write for a file with this name.
    pub fn of_file(name: &str) -> Option<Self> {
        let extension = extension(name);
        Self::ALL.iter().copied().find(|format| has(format.0.extensions, &extension))
    }
}

fn extension(name: &str) -> Option<String> {
    name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase())
}

fn has(extensions: &[&str], extension: &Option<String>) -> bool {
    extension.as_ref().is_some_and(|extension| extensions.contains(&extension.as_str()))
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = Self::names();
        Self::ALL.iter().copied().find(|format| format.name() == text).ok_or_else(|| {
            let hint = nearest(text, names.iter().copied())
                .map(|name| format!(" (did you mean `{name}`?)"))
                .unwrap_or_default();
            format!("a format is {}{hint}", one_of(&names))
        })
    }
}

impl Trace {
    /// Writes the trace. CSV reads back as the same trace; for other formats, remarks list what is left
    /// out.
    ///
    /// # Errors
    /// If nothing would be left, or the file would be too long.
    pub fn write(&self, format: Format) -> Result<Written, CannotWrite> {
        let mut remarks = Vec::new();
        // A mahimahi file has opportunities, all others a rate.
        let spread = match &self.opportunities {
            Some(_) if !format.0.has_opportunities => {
                let before = self.remarks.len();
                let mut steps = (0..8).map(|power| Duration::from_millis(10u64.pow(power)));
                let is_enough = |step: &Duration| self.length.nanos().div_ceil(step.nanos()) <= MOST_STEPS;
                let step = steps.find(is_enough).ok_or(CannotWrite::TooLong)?;
                let trace = self.resample(step).ok_or(CannotWrite::TooLong)?;
                remarks.extend(trace.remarks.iter().skip(before).cloned());
                Some(trace)
            }
            _ => None,
        };
        let trace = spread.as_ref().unwrap_or(self);
        let text = (format.0.write)(trace, &mut remarks)?;
        if self.then == Then::Loop && !format.0.says_loop {
            remarks.push(
                "the file does not state that the trace repeats: set `then = \"loop\"` in the scenario"
                    .into(),
            );
        }
        Ok(Written { text, remarks })
    }
}
