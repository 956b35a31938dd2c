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
    /// A capture is too far from the order of time.
    #[error("{file}: packet {number} is earlier than {}", disorder(*most, file))]
    Disordered {
        /// The file.
        file: String,
        /// The packet, from 1.
        number: u64,
        /// By how many places it may be away from its order.
        most: usize,
    },
    /// The read-ahead thread of a capture cannot be started.
    #[error("cannot start the thread that reads a capture: {0}")]
    Thread(io::Error),
    /// A kind of traffic that this version does not support.
    #[error("unknown kind of traffic `{0}`")]
    Unknown(String),
}

fn disorder(most: usize, file: &str) -> String {
    match most {
        0 => "the one before it; packets from a pipe must be in the order of time".into(),
        most => format!(
            "one that is more than {most} packets before it; put the packets in order first, as in: reordercap {file} ordered.pcapng"
        ),
    }
}
