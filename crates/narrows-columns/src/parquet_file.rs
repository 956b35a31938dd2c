//! Columns as a Parquet file, written as they come.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use crate::{BATCH, Columns};

/// Rows in a row group: what a reader may skip.
const GROUP: usize = 1 << 20;

/// Why a file cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {file}: {cause}")]
pub struct ParquetError {
    file: String,
    cause: parquet::errors::ParquetError,
}

/// Writes batches of one schema as a file.
///
/// # Errors
/// When it cannot be written.
pub fn write_parquet(path: &Path, schema: &SchemaRef, batches: &[RecordBatch]) -> Result<(), ParquetError> {
    let file = path.display().to_string();
    let write = || {
        let output = BufWriter::new(File::create(path)?);
        let mut writer = ArrowWriter::try_new(output, SchemaRef::clone(schema), Some(properties()))?;
        batches.iter().try_for_each(|batch| writer.write(batch))?;
        Ok(writer.into_inner()?.flush()?)
    };
    write().map_err(|cause| ParquetError { file, cause })
}

fn properties() -> WriterProperties {
    WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(GROUP))
        .set_created_by("narrows".into())
        .build()
}

/// A Parquet file (Snappy) of packets or of a series. The first error is kept until the end: what comes after it is let go.
pub struct ParquetFile<C> {
    file: String,
    columns: C,
    writer: ArrowWriter<Box<dyn Write + Send>>,
    error: Option<parquet::errors::ParquetError>,
}

impl<C: Columns> ParquetFile<C> {
    /// A file, which is made anew.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(path: &Path) -> Result<Self, ParquetError> {
        let failed = |cause| ParquetError { file: path.display().to_string(), cause };
        let file = File::create(path).map_err(|error| failed(error.into()))?;
        Self::new(&path.display().to_string(), BufWriter::new(file))
    }

    /// The same for anything that is written to, which is called `file` in errors.
    ///
    /// # Errors
    /// When the schema cannot be written.
    pub fn new(file: &str, output: impl Write + Send + 'static) -> Result<Self, ParquetError> {
        let output: Box<dyn Write + Send> = Box::new(output);
        let writer = ArrowWriter::try_new(output, C::schema(), Some(properties()));
        let writer = writer.map_err(|cause| ParquetError { file: file.into(), cause })?;
        Ok(Self { file: file.into(), columns: C::default(), writer, error: None })
    }

    /// Appends what `push` pushes.
    pub fn push(&mut self, push: impl FnOnce(&mut C)) {
        push(&mut self.columns);
        if self.columns.rows() >= BATCH {
            self.write();
        }
    }

    /// Whether writing has failed.
    pub fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    fn write(&mut self) {
        let batch = self.columns.take();
        if self.error.is_none() {
            self.error = self.writer.write(&batch).err();
        }
    }

    /// Completes the file. One that is dropped without this is no Parquet file.
    ///
    /// # Errors
    /// What went wrong first.
    pub fn finish(mut self) -> Result<(), ParquetError> {
        if self.columns.rows() > 0 {
            self.write();
        }
        let result = match self.error {
            Some(cause) => Err(cause),
            None => self.writer.into_inner().and_then(|mut output| Ok(output.flush()?)),
        };
        result.map_err(|cause| ParquetError { file: self.file, cause })
    }
}

impl<C> std::fmt::Debug for ParquetFile<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParquetFile").field("file", &self.file).finish_non_exhaustive()
    }
}
