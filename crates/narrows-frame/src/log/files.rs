//! Reassembles the files of a log from their parts.

use std::collections::BTreeMap;

use super::FilePart;

/// The contents of the files that a scenario and its changes name, as far as the log has been read.
///
/// ```
/// use narrows_frame::log::{FilePart, LoggedFiles};
///
/// let mut files = LoggedFiles::default();
/// files.take(FilePart { name: "cell.down", length: 4, offset: 0, bytes: b"1\n2" })?;
/// files.take(FilePart { name: "cell.down", length: 4, offset: 3, bytes: b"\n" })?;
/// assert_eq!(files.whole().get("cell.down").map(Vec::as_slice), Some(&b"1\n2\n"[..]));
/// # Ok::<(), narrows_frame::log::FileError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoggedFiles {
    whole: BTreeMap<String, Vec<u8>>,
    /// The file being assembled, and its full length.
    open: Option<(String, u64, Vec<u8>)>,
}

/// A file part that does not continue the previous one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the file {name} in the log is not whole: after {had} bytes comes a part from byte {offset} on")]
pub struct FileError {
    /// The file.
    pub name: String,
    /// How many bytes of it there were.
    pub had: u64,
    /// Where the part starts.
    pub offset: u64,
}

impl LoggedFiles {
    /// Takes the next part. A file that occurs again replaces the earlier one.
    ///
    /// # Errors
    /// If it does not continue the part before it.
    pub fn take(&mut self, part: FilePart<'_>) -> Result<(), FileError> {
        let FilePart { name, length, offset, bytes } = part;
        let (named, whole, mut content) =
            self.open.take().unwrap_or_else(|| (name.into(), length, Vec::new()));
        let had = content.len() as u64;
        // Both are lengths in memory, so their sum fits in 64 bits.
        if named != name || whole != length || offset != had || had + bytes.len() as u64 > length {
            return Err(FileError { name: named, had, offset });
        }
        content.extend_from_slice(bytes);
        if content.len() as u64 == length {
            self.whole.insert(named, content);
        } else {
            self.open = Some((named, length, content));
        }
        Ok(())
    }

    /// Whether a file is still incomplete.
    pub const fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// The contents of the complete files, by their names in the scenario.
    pub const fn whole(&self) -> &BTreeMap<String, Vec<u8>> {
        &self.whole
    }
}
