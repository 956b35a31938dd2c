//! Errors in data files.

use crate::problem::Found;

/// An error in a data file. Prints one line: file, line, what was found there, what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}{}: {what}", line.map_or(String::new(), |line| format!(":{line}")))]
pub struct TableError {
    file: String,
    line: Option<usize>,
    what: String,
}

impl TableError {
    /// Line number, from 1; `None` if the error concerns the whole file.
    pub fn line(&self) -> Option<usize> {
        self.line
    }

    /// The error without its place.
    pub fn what(&self) -> &str {
        &self.what
    }

    pub(super) fn whole(file: &str, what: impl Into<String>) -> Self {
        Self { file: file.into(), line: None, what: what.into() }
    }

    pub(super) fn line_of(file: &str, line: usize, what: impl Into<String>) -> Self {
        Self { file: file.into(), line: Some(line), what: what.into() }
    }

    pub(super) fn found(file: &str, line: usize, found: &str, expected: &str) -> Self {
        Self::line_of(file, line, format!("found {}, expected {expected}", Found(found)))
    }
}
