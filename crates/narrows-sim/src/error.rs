//! Errors of a run.

use std::io;

use narrows_core::{BuildError, Time};
use narrows_frame::log::FileError;
use narrows_frame::{ReadError, WriteError};
use narrows_scenario::ScenarioError;
use narrows_traffic::SourceError;

use crate::whole::Whole;

/// Why a run in virtual time failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimError {
    /// An output cannot be opened or written.
    #[error("cannot write {name}: {source}")]
    Write {
        /// The file, or `standard output`.
        name: String,
        /// The cause.
        source: io::Error,
    },
    /// A capture or an input log cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The network cannot be built.
    #[error("the network cannot be built: {0}")]
    Build(#[from] BuildError),
    /// The names in a log do not match its scenario.
    #[error("{file} is inconsistent: its {what} differ from its scenario's")]
    ForeignLog {
        /// The file.
        file: String,
        /// What does not match.
        what: &'static str,
    },
    /// A file that a log's scenario names is incomplete in the log.
    #[error("{file} is inconsistent: {source}")]
    LoggedFile {
        /// The log.
        file: String,
        /// The cause.
        source: FileError,
    },
    /// A change of the scenario cannot be applied.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The scenario has no traffic.
    #[error(
        "{0} has no traffic, which `sim` needs. Add a [[traffic]] with from, to and poisson, constant, on-off, aimd, capture or an application"
    )]
    NoTraffic(String),
    /// A time series needs an interval.
    #[error("the interval of a time series is zero: give one such as 100ms")]
    NoInterval,
    /// A traffic source is invalid.
    #[error(transparent)]
    Source(SourceError),
    /// Endless traffic without a duration.
    #[error(
        "the traffic `{0}` never ends: set the run's duration, the traffic's `stop`, or how much it sends (`packets`; `size` of `aimd`, `transactions` of applications)"
    )]
    Endless(String),
    /// Responsive senders keep sending while time hardly advances.
    #[error(
        "responding sources act more than {most} times in a millisecond, at {at}: the network between them takes no time. Give a link a rate or a delay, or users a `think` time"
    )]
    Rush {
        /// The instant at which the limit was exceeded.
        at: Time,
        /// The limit.
        most: u64,
    },
    /// A run on several threads has to begin again on one, but has written packets to where it cannot begin again.
    #[error("the run cannot go on with several threads: {}. Use one thread", .0.words())]
    Whole(Whole),
}

impl SimError {
    /// Whether the reader of an output closed it, which is not an error of the run: `narrows sim … --packets - |
    /// head`.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Write { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }
}

impl From<SourceError> for SimError {
    fn from(error: SourceError) -> Self {
        match error {
            SourceError::Read(error) => Self::Read(error),
            other => Self::Source(other),
        }
    }
}

impl From<WriteError> for SimError {
    fn from(WriteError { file, error }: WriteError) -> Self {
        Self::Write { name: file, source: error }
    }
}
