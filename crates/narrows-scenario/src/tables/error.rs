//! What is wrong with a file of numbers.

use crate::problem::Found;

/// A file of numbers that is not understood. It prints on one line: file, line, what was found there, what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}{}: {what}", line.map_or(String::new(), |line| format!(":{line}")))]
pub struct TableError {
    file: String,
    line: Option<usize>,
    what: String,
}

impl TableError {
    /// The line that is wrong, counted from 1; none where the file as a whole is.
    pub fn line(&self) -> Option<usize> {
        self.line
    }

    /// What is wrong, without the place.
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
