//! Reads a log.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use serde::Deserialize;

use super::{Header, LoggedFiles, MAGIC, MOST_HEADER, MOST_RECORD, OLDEST, Record, VERSION};
use crate::file::{Input, ReadError, recognised};

/// A log, read from its start to its end. A record is borrowed until the next one is read, and memory does not grow
/// with the file.
#[derive(Debug)]
pub struct LogReader<R> {
    input: Input<R>,
    version: u32,
    header: Header,
    buffer: Vec<u8>,
    /// Where the record begins that is in the buffer but was not given out yet, if there is one, or why there is none.
    ready: Option<Result<u64, ReadError>>,
    done: bool,
}

const RECORD: &str = "a record";
const WANTED: &str = "an input log of narrows";

impl LogReader<BufReader<File>> {
    /// Opens a file.
    ///
    /// # Errors
    /// When it cannot be opened, is no log, or is one of another version.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ReadError> {
        let file = path.as_ref().display().to_string();
        match File::open(path) {
            Ok(opened) => Self::new(file, BufReader::with_capacity(1 << 20, opened)),
            Err(error) => Err(ReadError::Io { file, offset: 0, error }),
        }
    }
}

impl<R: Read> LogReader<R> {
    /// Reads from `reader`, which had better be buffered; `file` names it in errors.
    ///
    /// # Errors
    /// When it is no log, one of another version, or ends within its header.
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

    /// The version of the format. Before version 3, queues without a bound had another default.
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// What holds for the whole run.
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// How far the file was read, in bytes.
    pub fn offset(&self) -> u64 {
        self.input.offset()
    }

    /// What [`LogReader::read`] gives next.
    ///
    /// # Errors
    /// As of that.
    pub fn peek(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        if self.done {
            return Ok(None);
        }
        let ready = match self.ready.take() {
            Some(ready) => ready,
            None => self.advance(),
        };
        // Whatever goes wrong is the end.
        self.done = ready.is_err();
        let start = ready?;
        self.ready = Some(Ok(start));
        decoded(&self.input, start, &self.buffer).map(Some)
    }

    /// The next record; nothing after [`Record::Ended`], and after an error.
    ///
    /// # Errors
    /// When the file ends before [`Record::Ended`], as it does when its writer was killed, or is damaged. What was read
    /// before is good.
    pub fn read(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        if self.done {
            return Ok(None);
        }
        // Whatever goes wrong below is the end.
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
    /// Reads what the files contain that the scenario in the header names: all records up to the first that is no
    /// [`Record::File`], which [`LogReader::read`] gives next, as it says why there is none.
    ///
    /// # Errors
    /// When a file is not whole.
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
                // Whatever it is, it is for the next reader.
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

    /// Reads the next record into the buffer. Returns where it begins.
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

/// Reads the next record into the buffer. Says whether there was one.
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

/// The record that the bytes are, all of them.
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
