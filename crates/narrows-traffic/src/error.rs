//! Errors of traffic sources.

use std::io;

use narrows_frame::ReadError;

/// Why a source cannot send.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// A capture cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The read-ahead thread of a capture cannot be started.
    #[error("cannot start the thread that reads a capture: {0}")]
    Thread(io::Error),
    /// A kind of traffic that this version does not support.
    #[error("unknown kind of traffic `{0}`")]
    Unknown(String),
}
