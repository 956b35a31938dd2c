//! Reads input logs.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use serde::Deserialize;

use super::{Header, LoggedFiles, MAGIC, MOST_HEADER, MOST_RECORD, OLDEST, Record, VERSION};
use crate::file::{Input, ReadError, recognised};

/// An input log, read sequentially. A record is borrowed until the next one is read, and memory does not grow with
/// the file.
#[derive(Debug)]
pub struct LogReader<R> {
    input: Input<R>,
    version: u32,
    header: Header,
    buffer: Vec<u8>,
    /// The record in the buffer that was peeked at but not returned yet: its offset, or the error.
    ready: Option<Result<u64, ReadError>>,
    done: bool,
}

const RECORD: &str = "a record";
const WANTED: &str = "an input log of narrows";

impl LogReader<BufReader<File>> {
    /// Opens a file.
    ///
    /// # Errors
    /// If the file cannot be opened, is not a log, or has an unsupported version.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ReadError> {
        let file = path.as_ref().display().to_string();
        match File::open(path) {
            Ok(opened) => Self::new(file, BufReader::with_capacity(1 << 20, opened)),
            Err(error) => Err(ReadError::Open { file, error }),
        }
    }
}

impl<R: Read> LogReader<R> {
    /// Reads from `reader`, which should be buffered; `file` names it in errors.
    ///
    /// # Errors
    /// If it is not a log, has an unsupported version, or ends within its header.
    pub fn new(file: impl Into<String>, reader: R) -> Result<Self, ReadError> {
        let mut input = Input::new(file.into(), reader);
        let mut buffer = Vec::new();
        input.read(&mut buffer, MAGIC.len())?;
        if buffer != MAGIC {
            return Err(input.foreign(WANTED, recognised(&buffer)));
        }
        buffer.clear();
        input.read_all(&mut buffer, 4, 0, "the start of an input log")?;
        let version = number(&buffer);
        if !(OLDEST..=VERSION).contains(&version) {
            let found = format!(
                "it is one of version {version}, and this program reads versions {OLDEST} to {VERSION}"
            );
            return Err(input.foreign("an input log that can be read here", found));
        }
        let start = input.offset();
        if !next(&mut input, &mut buffer, MOST_HEADER)? {
            return Err(input.truncated(start, "the header", 4));
        }
        let header = decoded(&input, start, &buffer)?;
        Ok(Self { input, version, header, buffer, ready: None, done: false })
    }

    /// The format version. Before version 3, queues without a limit had another default.
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// What applies to the whole run.
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// How many bytes of the file have been read.
    pub fn offset(&self) -> u64 {
        self.input.offset()
    }

    /// The record that [`LogReader::read`] returns next.
    ///
    /// # Errors
    /// Those of that function.
    pub fn peek(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        if self.done {
            return Ok(None);
        }
        let ready = match self.ready.take() {
            Some(ready) => ready,
            None => self.advance(),
        };
        // Any error ends the log.
        self.done = ready.is_err();
        let start = ready?;
        self.ready = Some(Ok(start));
        decoded(&self.input, start, &self.buffer).map(Some)
    }

    /// The next record; `None` after [`Record::Ended`] and after an error.
    ///
    /// # Errors
    /// If the file is damaged or ends before [`Record::Ended`], which happens when its writer was killed. Records
    /// read before are valid.
    pub fn read(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        if self.done {
            return Ok(None);
        }
        // Any error below ends the log.
        self.done = true;
        let start = match self.ready.take() {
            Some(ready) => ready?,
            None => self.advance()?,
        };
        let record = decoded(&self.input, start, &self.buffer)?;
        if matches!(record, Record::Ended(_)) {
            let end = self.input.offset();
            if self.input.skip(1)? > 0 {
                return Err(self.input.malformed(end, "there is something behind the last record"));
            }
        } else {
            self.done = false;
        }
        Ok(Some(record))
    }
}

impl<R: Read> LogReader<R> {
    /// Reads the contents of the files that the scenario in the header names: all records up to the first that is not
    /// a [`Record::File`]. [`LogReader::read`] returns that one next, or the error that took its place.
    ///
    /// # Errors
    /// If a file is incomplete.
    pub fn read_files(&mut self) -> Result<LoggedFiles, ReadError> {
        let mut files = LoggedFiles::default();
        while !self.done {
            let start = match self.ready.take().unwrap_or_else(|| self.advance()) {
                Ok(start) => start,
                Err(error) if files.is_open() => {
                    self.done = true;
                    return Err(error);
                }
                Err(error) => {
                    self.ready = Some(Err(error));
                    break;
                }
            };
            let taken = match postcard::take_from_bytes::<Record<'_>>(&self.buffer) {
                Ok((Record::File(part), [])) => files.take(part),
                _ if files.is_open() => {
                    self.done = true;
                    return Err(self.input.malformed(start, "the file before this record is not whole"));
                }
                // Any other record, or an error, is left for the next read.
                _ => {
                    self.ready = Some(Ok(start));
                    break;
                }
            };
            if let Err(error) = taken {
                self.done = true;
                return Err(self.input.malformed(start, error.to_string()));
            }
        }
        Ok(files)
    }

    /// Reads the next record into the buffer. Returns its offset.
    fn advance(&mut self) -> Result<u64, ReadError> {
        let start = self.input.offset();
        match next(&mut self.input, &mut self.buffer, MOST_RECORD)? {
            true => Ok(start),
            false => Err(self.input.truncated(
                start,
                "a further record (it does not end with the one for the end of the run)",
                4,
            )),
        }
    }
}

/// Reads the next record into the buffer. Returns whether there was one.
fn next<R: Read>(input: &mut Input<R>, buffer: &mut Vec<u8>, most: u32) -> Result<bool, ReadError> {
    let start = input.offset();
    buffer.clear();
    match input.read(buffer, 4)? {
        0 => return Ok(false),
        4 => {}
        _ => return Err(input.truncated(start, RECORD, 4)),
    }
    let length = number(buffer);
    if length > most {
        return Err(input.malformed(start, format!("a record claims to have {length} bytes")));
    }
    buffer.clear();
    input.read_all(buffer, length as usize, start, RECORD)?;
    Ok(true)
}

fn number(bytes: &[u8]) -> u32 {
    bytes.first_chunk().copied().map(u32::from_le_bytes).unwrap_or_default()
}

/// Decodes a record, which must use all bytes.
fn decoded<'a, T: Deserialize<'a>, R: Read>(
    input: &Input<R>,
    start: u64,
    bytes: &'a [u8],
) -> Result<T, ReadError> {
    match postcard::take_from_bytes(bytes) {
        Ok((record, [])) => Ok(record),
        Ok((_, rest)) => Err(input.malformed(start, format!("a record has {} bytes too many", rest.len()))),
        Err(error) => Err(input.malformed(start, format!("a record makes no sense ({error})"))),
    }
}
