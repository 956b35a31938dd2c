//! What can go wrong with a source.

use std::io;

use narrows_frame::ReadError;

/// Why a source cannot send.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// A capture could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The thread that reads a capture ahead could not be started.
    #[error("cannot start the thread that reads a capture: {0}")]
    Thread(io::Error),
    /// A kind of traffic that this version does not know.
    #[error("unknown kind of traffic `{0}`")]
    Unknown(String),
}
