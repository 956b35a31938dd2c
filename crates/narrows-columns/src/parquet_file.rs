//! A Parquet file (Snappy) that is complete after each row group.
//!
//! Behind each row group the footer of the file so far is written, and the next row group replaces it. Whatever ends
//! the writing, also a full disk or the end of the process, leaves a file with the row groups before. Memory holds the
//! row group in progress, in encoded form, and what the footer says about each of the earlier ones.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::arrow::{ARROW_SCHEMA_META_KEY, ArrowSchemaConverter, ArrowWriter, encode_arrow_schema};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::{FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataWriter};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::SchemaDescPtr;

/// Rows in a row group, the unit that a reader can skip, and its size in bytes: at most about so many.
const GROUP: usize = 1 << 20;
const GROUP_BYTES: usize = 1 << 24;

/// The application that wrote the file, as the format wants it.
const CREATED_BY: &str = concat!("narrows version ", env!("CARGO_PKG_VERSION"));

/// A Parquet file being written.
pub struct ParquetFile {
    writer: ArrowWriter<File>,
    /// The same file, with the same position.
    file: File,
    schema: SchemaDescPtr,
    about: Vec<KeyValue>,
    /// The end of the last row group, the footer that follows, and the rows before.
    end: u64,
    footer: Vec<u8>,
    rows: u64,
    failed: bool,
}

impl ParquetFile {
    /// Creates the file or empties it; it is complete and has no rows.
    ///
    /// # Errors
    /// If it cannot be created or written, or is a pipe.
    pub fn create(path: &Path, schema: &SchemaRef) -> io::Result<Self> {
        let file = File::create(path)?;
        let about = about(schema);
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_max_row_group_row_count(None)
            // Of each row group, not of each page: the footer has no index of pages.
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .build();
        let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let parquet_schema = ArrowSchemaConverter::new().convert(schema).map_err(io_error)?;
        let writer = ArrowWriter::try_new_with_options(file.try_clone()?, SchemaRef::clone(schema), options)
            .map_err(io_error)?;
        let (end, footer, rows) = (0, Vec::new(), 0);
        let mut file =
            Self { writer, file, schema: Arc::new(parquet_schema), about, end, footer, rows, failed: false };
        file.try_seal()?;
        Ok(file)
    }

    /// Appends rows. They stay in memory until their row group is complete.
    ///
    /// # Errors
    /// If the file cannot be written: now or before. It then ends after its last complete row group.
    pub fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        self.check()?;
        let written = self.writer.write(batch).map_err(io_error);
        self.or_restore(written)?;
        if self.writer.in_progress_rows() >= GROUP || self.writer.in_progress_size() >= GROUP_BYTES {
            self.seal()?;
        }
        Ok(())
    }

    /// Ends the row group and writes the footer: the file is complete and has all rows so far.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub fn seal(&mut self) -> io::Result<()> {
        self.check()?;
        if self.writer.in_progress_rows() == 0 {
            return Ok(());
        }
        let sealed = self.try_seal();
        self.or_restore(sealed)
    }

    /// Rows in complete row groups.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The estimated size of the file with all rows so far, in bytes.
    pub fn size(&self) -> u64 {
        self.end + (self.writer.in_progress_size() + self.footer.len()) as u64
    }

    fn try_seal(&mut self) -> io::Result<()> {
        self.writer.flush().map_err(io_error)?;
        self.writer.sync()?;
        let end = self.writer.bytes_written() as u64;
        let groups = self.writer.flushed_row_groups();
        let rows: i64 = groups.iter().map(|group| group.num_rows()).sum();
        let about = Some(self.about.clone());
        let file = FileMetaData::new(1, rows, Some(CREATED_BY.into()), about, Arc::clone(&self.schema), None);
        let metadata = ParquetMetaData::new(file, groups.to_vec());
        let mut footer = Vec::new();
        ParquetMetaDataWriter::new(&mut footer, &metadata).finish().map_err(io_error)?;
        self.file.write_all(&footer)?;
        self.file.seek(SeekFrom::Start(end))?;
        // No footer is shorter than the one that it replaces, so nothing of that one is left behind it.
        (self.end, self.footer, self.rows) = (end, footer, rows.unsigned_abs());
        Ok(())
    }

    /// Lets the next row group fail, as on a full disk.
    #[cfg(test)]
    pub(crate) fn fill_disk(&mut self) {
        *self.writer.inner_mut() = File::options().write(true).open("/dev/full").expect("Linux has it");
    }

    fn check(&self) -> io::Result<()> {
        match self.failed {
            true => Err(io::Error::other("an earlier write failed")),
            false => Ok(()),
        }
    }

    /// After an error, cuts the file to its last state that was complete.
    fn or_restore(&mut self, result: io::Result<()>) -> io::Result<()> {
        if result.is_err() {
            self.failed = true;
            // What the error says is more than that this fails too.
            let _ = self.file.set_len(self.end);
            let _ = self.file.seek(SeekFrom::Start(self.end));
            let _ = self.file.write_all(&self.footer);
        }
        result
    }
}

impl std::fmt::Debug for ParquetFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParquetFile")
            .field("rows", &self.rows)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

/// What the footer says about the table, and the Arrow schema, from which readers of Arrow know dictionaries.
fn about(schema: &Schema) -> Vec<KeyValue> {
    let mut about: Vec<KeyValue> =
        schema.metadata().iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone())).collect();
    about.push(KeyValue::new(ARROW_SCHEMA_META_KEY.into(), encode_arrow_schema(schema)));
    about.sort_by(|a, b| a.key.cmp(&b.key));
    about
}

/// The error of the system, where there is one.
fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(cause) => match cause.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(cause) => io::Error::other(cause),
        },
        other => io::Error::other(other),
    }
}

/// Writes batches with one schema to a file.
///
/// # Errors
/// If writing fails.
pub fn write_parquet(path: &Path, schema: &SchemaRef, batches: &[RecordBatch]) -> io::Result<()> {
    let mut file = ParquetFile::create(path, schema)?;
    batches.iter().try_for_each(|batch| file.write(batch))?;
    file.seal()
}
