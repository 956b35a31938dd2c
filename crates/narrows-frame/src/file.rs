//! Shared by file readers and writers: the position in the file, and errors that name it.

use std::io::{self, ErrorKind, Read};

/// Why a file cannot be read any further. Data read before the error is valid.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be opened.
    #[error("cannot read {file}: {error}")]
    Open {
        /// The file.
        file: String,
        /// The system's error.
        #[source]
        error: io::Error,
    },
    /// The system reported an I/O error.
    #[error("cannot read {file} at byte {offset}: {error}")]
    Io {
        /// The file.
        file: String,
        /// How many bytes had been read.
        offset: u64,
        /// The system's error.
        #[source]
        error: io::Error,
    },
    /// The file is of another kind.
    #[error("{file} is not {wanted}: {found}")]
    Foreign {
        /// The file.
        file: String,
        /// The expected kind of file.
        wanted: &'static str,
        /// The kind of file found, as far as it can be recognised.
        found: String,
    },
    /// The file ends early: its writer was stopped, or the copy is incomplete.
    #[error(
        "{file} is cut short: at byte {offset} begins {what} of {wanted} bytes, and only {found} of them are there"
    )]
    Truncated {
        /// The file.
        file: String,
        /// The offset of the incomplete part. Everything before it is complete.
        offset: u64,
        /// What is incomplete.
        what: &'static str,
        /// Its expected length, as far as known.
        wanted: u64,
        /// How many bytes of it there are.
        found: u64,
    },
    /// The file violates its format.
    #[error("{file} is damaged: at byte {offset}, {what}")]
    Malformed {
        /// The file.
        file: String,
        /// The offset of the violation.
        offset: u64,
        /// What was found there.
        what: String,
    },
}

/// Why a file cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {file}: {error}")]
pub struct WriteError {
    /// The file.
    pub file: String,
    /// The system's error.
    #[source]
    pub error: io::Error,
}

/// A file that is read sequentially.
#[derive(Debug)]
pub(crate) struct Input<R> {
    reader: R,
    file: String,
    offset: u64,
}

impl<R: Read> Input<R> {
    pub(crate) fn new(file: String, reader: R) -> Self {
        Self { reader, file, offset: 0 }
    }

    /// How many bytes have been read.
    pub(crate) const fn offset(&self) -> u64 {
        self.offset
    }

    /// Reads the next `length` bytes, or as many as are left, and appends them to `buffer`. Memory grows with the
    /// data present, not with `length`. Returns the number of bytes read.
    pub(crate) fn read(&mut self, buffer: &mut Vec<u8>, length: usize) -> Result<usize, ReadError> {
        const STEP: usize = 64 << 10;
        let start = buffer.len();
        while buffer.len() - start < length {
            let from = buffer.len();
            let wanted = (length - (from - start)).min(STEP);
            buffer.resize(from + wanted, 0);
            let came = self.fill(&mut buffer[from..]);
            buffer.truncate(from + *came.as_ref().unwrap_or(&0));
            if came? < wanted {
                break;
            }
        }
        Ok(buffer.len() - start)
    }

    /// Like [`Input::read`], for a part of the file that starts at `offset` and must be complete.
    pub(crate) fn read_all(
        &mut self,
        buffer: &mut Vec<u8>,
        length: usize,
        offset: u64,
        what: &'static str,
    ) -> Result<(), ReadError> {
        let before = self.offset - offset;
        let came = self.read(buffer, length)?;
        if came == length {
            return Ok(());
        }
        Err(self.truncated(offset, what, before + length as u64))
    }

    /// Skips `length` bytes, or as many as are left. Returns the number skipped.
    pub(crate) fn skip(&mut self, length: u64) -> Result<u64, ReadError> {
        let came = io::copy(&mut (&mut self.reader).take(length), &mut io::sink())
            .map_err(|error| self.failed(error))?;
        self.offset += came;
        Ok(came)
    }

    /// The file ended within the part that starts at `offset`.
    pub(crate) fn truncated(&self, offset: u64, what: &'static str, wanted: u64) -> ReadError {
        ReadError::Truncated { file: self.file.clone(), offset, what, wanted, found: self.offset - offset }
    }

    pub(crate) fn malformed(&self, offset: u64, what: impl Into<String>) -> ReadError {
        ReadError::Malformed { file: self.file.clone(), offset, what: what.into() }
    }

    pub(crate) fn foreign(&self, wanted: &'static str, found: impl Into<String>) -> ReadError {
        ReadError::Foreign { file: self.file.clone(), wanted, found: found.into() }
    }

    fn failed(&self, error: io::Error) -> ReadError {
        ReadError::Io { file: self.file.clone(), offset: self.offset, error }
    }

    /// Fills the buffer, or as much of it as the file can.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, ReadError> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.reader.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(came) => filled += came,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
        self.offset += filled as u64;
        Ok(filled)
    }
}

/// Recognises a file's kind by its first bytes, for the error about a wrong file.
pub(crate) fn recognised(start: &[u8]) -> String {
    let known: [(&[u8], &str); 7] = [
        (&[0x1f, 0x8b], "it is compressed with gzip: unpack it first"),
        (&[0x28, 0xb5, 0x2f, 0xfd], "it is compressed with zstd: unpack it first"),
        (&[0xfd, b'7', b'z', b'X'], "it is compressed with xz: unpack it first"),
        (b"narr", "it is an input log of narrows"),
        (&[0x0a, 0x0d, 0x0d, 0x0a], "it is a pcapng capture"),
        (&[0xd4, 0xc3, 0xb2, 0xa1], "it is a pcap capture"),
        (&[0xa1, 0xb2, 0xc3, 0xd4], "it is a pcap capture"),
    ];
    if start.is_empty() {
        return "it is empty".into();
    }
    match known.iter().find(|(magic, _)| start.starts_with(magic)) {
        Some((_, what)) => (*what).into(),
        None => {
            let bytes: Vec<_> = start.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
            format!("it begins with the bytes {}", bytes.join(" "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_grows_with_what_is_there() {
        let mut input = Input::new("f".into(), &[7u8; 100_000][..]);
        let mut buffer = vec![1];
        assert_eq!(input.read(&mut buffer, 1 << 40).expect("memory reads"), 100_000);
        assert_eq!((buffer.len(), input.offset()), (100_001, 100_000));
        assert!(buffer.capacity() < 300_000, "{}", buffer.capacity());
        let error = input.read_all(&mut buffer, 5, 99_990, "a thing").expect_err("it is at its end");
        let expected =
            "f is cut short: at byte 99990 begins a thing of 15 bytes, and only 10 of them are there";
        assert_eq!(error.to_string(), expected);
    }
}
