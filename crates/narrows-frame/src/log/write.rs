//! Writes a log.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use narrows_core::{Duration, Time};
use serde::Serialize;

use super::{
    Arrived, Fed, FilePart, Header, Keep, LinkNumber, MAGIC, MOST_HEADER, MOST_RECORD, PortNumber, Record,
    VERSION,
};
use crate::file::WriteError;

/// A log that is written beside a run. A record costs a copy of its bytes into a buffer; no memory is allocated once
/// the buffers have grown to the longest record.
///
/// What a killed process had in its buffers is missing from the file: [`LogWriter::flush`] now and then. The last
/// record is [`Record::Ended`]; a log without one reads as cut short.
#[derive(Debug)]
pub struct LogWriter<W: Write> {
    output: W,
    file: String,
    keep: Keep,
    record: Vec<u8>,
}

impl LogWriter<BufWriter<File>> {
    /// Creates a file, or empties the one that is there.
    ///
    /// # Errors
    /// When it cannot be written, or the header has more than 16 MiB.
    pub fn create(path: impl AsRef<Path>, header: &Header) -> Result<Self, WriteError> {
        let file = path.as_ref().display().to_string();
        match File::create(path) {
            Ok(created) => Self::new(file, BufWriter::with_capacity(1 << 20, created), header),
            Err(error) => Err(WriteError { file, error }),
        }
    }
}

impl<W: Write> LogWriter<W> {
    /// Writes to `output`, which had better be buffered; `file` names it in errors.
    ///
    /// # Errors
    /// When it cannot be written, or the header has more than 16 MiB.
    pub fn new(file: impl Into<String>, output: W, header: &Header) -> Result<Self, WriteError> {
        let mut log = Self { output, file: file.into(), keep: header.keep, record: Vec::with_capacity(2048) };
        log.put(&MAGIC)?;
        log.put(&VERSION.to_le_bytes())?;
        log.record(header, MOST_HEADER)?;
        Ok(log)
    }

    /// A packet came in: `frame`, of which the first `headers` bytes are what [`crate::parse::Parsed::examined`] says.
    /// As much of it is written as the header's [`Keep`] asks for.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn arrived(
        &mut self,
        at: Time,
        late: Duration,
        port: PortNumber,
        frame: &[u8],
        headers: u32,
    ) -> Result<(), WriteError> {
        let keep = match self.keep {
            Keep::Headers => headers as usize,
            Keep::Bytes(bytes) => bytes.max(headers) as usize,
            Keep::Whole => frame.len(),
        };
        let length = frame.len() as u32;
        let frame = &frame[..keep.min(frame.len())];
        self.write(&Record::Arrived(Arrived { at, late, port, length, frame }))
    }

    /// Values were handed to a feed of a link, and these were taken. Many of them make several records.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn fed(&mut self, at: Time, link: LinkNumber, feed: &str, values: &[i64]) -> Result<(), WriteError> {
        // A value takes up to ten bytes.
        values
            .chunks(MOST_RECORD as usize / 16)
            .try_for_each(|values| self.write(&Record::Fed(Fed { at, link, feed, values: values.into() })))
    }

    /// What a file contains that the scenario, or the change that comes next, names. A long one makes several records.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn file(&mut self, name: &str, content: &[u8]) -> Result<(), WriteError> {
        let (length, step) = (content.len() as u64, MOST_RECORD as usize / 2);
        let mut offset = 0;
        loop {
            let bytes = &content[offset..content.len().min(offset + step)];
            self.write(&Record::File(FilePart { name, length, offset: offset as u64, bytes }))?;
            offset += bytes.len();
            if offset == content.len() {
                return Ok(());
            }
        }
    }

    /// Adds a record.
    ///
    /// # Errors
    /// When it cannot be written, or has more than 1 MiB.
    pub fn write(&mut self, record: &Record<'_>) -> Result<(), WriteError> {
        self.record(record, MOST_RECORD)
    }

    /// Hands what is buffered to the system.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.output.flush().map_err(|error| failed(&self.file, error))
    }

    /// Writes what is still buffered, and gives the writer back.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.flush()?;
        Ok(self.output)
    }

    /// Writes the length of what follows, and that.
    fn record(&mut self, record: &impl Serialize, most: u32) -> Result<(), WriteError> {
        self.record.clear();
        self.record.extend_from_slice(&[0; LENGTH]);
        let encoded = postcard::serialize_with_flavor(record, Appended(&mut self.record));
        encoded.map_err(|error| failed(&self.file, io::Error::new(io::ErrorKind::InvalidInput, error)))?;
        let length = self.record.len() - LENGTH;
        if length > most as usize {
            let what = format!("a record of {length} bytes is longer than {most}");
            return Err(failed(&self.file, io::Error::new(io::ErrorKind::InvalidInput, what)));
        }
        self.record[..LENGTH].copy_from_slice(&(length as u32).to_le_bytes());
        self.output.write_all(&self.record).map_err(|error| failed(&self.file, error))
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        self.output.write_all(bytes).map_err(|error| failed(&self.file, error))
    }
}

/// Bytes of the length before each record.
const LENGTH: usize = 4;

fn failed(file: &str, error: io::Error) -> WriteError {
    WriteError { file: file.into(), error }
}

/// Encodes behind what a buffer has.
struct Appended<'a>(&'a mut Vec<u8>);

impl postcard::ser_flavors::Flavor for Appended<'_> {
    type Output = ();

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}
