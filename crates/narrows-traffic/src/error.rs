//! What can go wrong with a source.

use narrows_frame::ReadError;

/// Why a source cannot send.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// A capture could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A kind of traffic that this version does not know.
    #[error("the traffic `{0}` is of a kind that is not known here")]
    Unknown(String),
}
