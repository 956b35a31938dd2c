//! Output files of a run: buffered, with errors that name the file.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use narrows_columns::{RowFile, Table};

use crate::error::SimError;

/// Where an output goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Standard output.
    StandardOutput,
    /// A file, created or truncated.
    File(PathBuf),
}

/// `-` is standard output; anything else is a file path.
impl From<PathBuf> for Destination {
    fn from(path: PathBuf) -> Self {
        if path.as_os_str() == "-" { Self::StandardOutput } else { Self::File(path) }
    }
}

impl Destination {
    /// Whether what has been written stays: in standard output, pipes, terminals.
    pub(crate) fn is_written_once(&self) -> bool {
        match self {
            Self::StandardOutput => true,
            Self::File(path) => {
                let is_other = std::fs::metadata(path).is_ok_and(|found| !found.is_file());
                is_other && path != Path::new("/dev/null")
            }
        }
    }
}

/// An open output.
pub(crate) struct Output {
    name: String,
    writer: BufWriter<Box<dyn Write>>,
}

impl Output {
    pub(crate) fn open(destination: &Destination) -> Result<Self, SimError> {
        let (name, inner): (String, Box<dyn Write>) = match destination {
            Destination::StandardOutput => ("standard output".into(), Box::new(io::stdout())),
            Destination::File(path) => {
                let name = path.display().to_string();
                match File::create(path) {
                    Ok(file) => (name, Box::new(file)),
                    Err(source) => return Err(SimError::Write { name, source }),
                }
            }
        };
        Ok(Self { name, writer: BufWriter::with_capacity(1 << 16, inner) })
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<(), SimError> {
        self.writer.write_all(bytes).map_err(|source| self.error(source))
    }

    /// Flushes buffered data. An output that is dropped without this call silently loses its end.
    pub(crate) fn finish(mut self) -> Result<(), SimError> {
        self.writer.flush().map_err(|source| self.error(source))
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn error(&self, source: io::Error) -> SimError {
        SimError::Write { name: self.name.clone(), source }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// An open output of rows.
pub(crate) struct Rows<T: Table> {
    name: String,
    file: RowFile<T>,
}

impl<T: Table> Rows<T> {
    pub(crate) fn open(destination: &Destination) -> Result<Self, SimError> {
        let (name, file) = match destination {
            Destination::StandardOutput => ("standard output".into(), RowFile::csv(io::stdout())),
            Destination::File(path) => (path.display().to_string(), RowFile::create(path)),
        };
        match file {
            Ok(file) => Ok(Self { name, file }),
            Err(source) => Err(SimError::Write { name, source }),
        }
    }

    /// CSV to memory or any writer, for tests.
    #[cfg(test)]
    pub(crate) fn to(writer: impl Write + Send + 'static) -> Self {
        Self { name: "test".into(), file: RowFile::csv(writer).expect("the first line is only buffered") }
    }

    pub(crate) fn put(&mut self, row: &T::Row<'_>) -> Result<(), SimError> {
        self.file.put(row).map_err(|source| self.error(source))
    }

    pub(crate) fn finish(mut self) -> Result<(), SimError> {
        self.file.finish().map_err(|source| self.error(source))
    }

    fn error(&self, source: io::Error) -> SimError {
        SimError::Write { name: self.name.clone(), source }
    }
}
