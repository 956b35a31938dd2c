//! Writes input logs.

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

/// An input log being written beside a run. A record costs one copy of its bytes into a buffer; no memory is
/// allocated once the buffers have grown to the longest record.
///
/// Buffered records are lost if the process is killed: call [`LogWriter::flush`] now and then. The last record is
/// [`Record::Ended`]; a log without it reads as truncated.
#[derive(Debug)]
pub struct LogWriter<W: Write> {
    output: W,
    file: String,
    keep: Keep,
    record: Vec<u8>,
}

impl LogWriter<BufWriter<File>> {
    /// Creates or truncates a file.
    ///
    /// # Errors
    /// If writing fails, or the header is larger than 16 MiB.
    pub fn create(path: impl AsRef<Path>, header: &Header) -> Result<Self, WriteError> {
        let file = path.as_ref().display().to_string();
        match File::create(path) {
            Ok(created) => Self::new(file, BufWriter::with_capacity(1 << 20, created), header),
            Err(error) => Err(WriteError { file, error }),
        }
    }
}

impl<W: Write> LogWriter<W> {
    /// Writes to `output`, which should be buffered; `file` names it in errors.
    ///
    /// # Errors
    /// If writing fails, or the header is larger than 16 MiB.
    pub fn new(file: impl Into<String>, output: W, header: &Header) -> Result<Self, WriteError> {
        let mut log = Self { output, file: file.into(), keep: header.keep, record: Vec::with_capacity(2048) };
        log.put(&MAGIC)?;
        log.put(&VERSION.to_le_bytes())?;
        log.record(header, MOST_HEADER)?;
        Ok(log)
    }

    /// A packet arrived: `frame`, of which the engine needs the first `headers` bytes
    /// ([`crate::parse::Parsed::examined`]). As much of it is written as the header's [`Keep`] says.
    ///
    /// # Errors
    /// If writing fails.
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

    /// Values were passed to a link's feed, and these were accepted. Many values are split into several records.
    ///
    /// # Errors
    /// If writing fails.
    pub fn fed(&mut self, at: Time, link: LinkNumber, feed: &str, values: &[i64]) -> Result<(), WriteError> {
        // A value takes at most ten bytes.
        values
            .chunks(MOST_RECORD as usize / 16)
            .try_for_each(|values| self.write(&Record::Fed(Fed { at, link, feed, values: values.into() })))
    }

    /// The contents of a file that the scenario, or the following change, names. A long file is split into several
    /// records.
    ///
    /// # Errors
    /// If writing fails.
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
    /// If writing fails, or the record is larger than 1 MiB.
    pub fn write(&mut self, record: &Record<'_>) -> Result<(), WriteError> {
        self.record(record, MOST_RECORD)
    }

    /// Flushes buffered data to the system.
    ///
    /// # Errors
    /// If writing fails.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.output.flush().map_err(|error| failed(&self.file, error))
    }

    /// Flushes buffered data and returns the writer.
    ///
    /// # Errors
    /// If writing fails.
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.flush()?;
        Ok(self.output)
    }

    /// Writes a record, preceded by its length.
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

/// Encodes by appending to a buffer.
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
