//! The capture of a live run.

use serde::{Deserialize, Serialize};

use crate::human::{count, packets};

/// The capture file and what is missing from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureReport {
    /// The file.
    pub file: String,
    /// Packets in it; `None` if it could not be completed.
    pub written_packets: Option<u64>,
    /// Delivered or dropped packets that are not in it because the disk could not keep up; all that are not in it for
    /// certain if it could not be completed.
    pub missing_packets: u64,
    /// Why it ends early, if it does.
    pub error: Option<String>,
    /// Whether that is because its reader closed it.
    #[serde(skip)]
    pub reader_is_gone: bool,
}

impl CaptureReport {
    /// The same as a sentence.
    pub fn sentence(&self) -> String {
        let Self { file, written_packets, missing_packets: missing, error, .. } = self;
        let written = match (written_packets, error) {
            (Some(written), _) => format!("the capture {file} has {}", packets(*written)),
            (None, Some(error)) => format!("the capture {file} IS INCOMPLETE: {error}"),
            (None, None) => format!("the capture {file} IS INCOMPLETE"),
        };
        match (missing, error) {
            (0, _) => written,
            (_, Some(_)) => format!("{written}; {} packets are MISSING", count(*missing)),
            (_, None) => {
                format!("{written}; {} more are MISSING because the disk was too slow", count(*missing))
            }
        }
    }
}
