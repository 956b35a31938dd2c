//! A Parquet file (Snappy) that is complete after each row group.
//!
//! Behind each row group the footer of the file so far is written, and the next row group replaces it. Whatever ends
//! the writing, also a full disk or the end of the process, leaves a file with the row groups before. Memory holds the
//! row group in progress, in encoded form, and what the footer says about each of the earlier ones.

//!
//! The library's writer of Arrow batches would do most of this; it brings code for each type that Arrow has, a megabyte of
//! the program. What is used here are its writers of single columns.

mod chunk;
mod leaf;
mod schema;

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions};
use arrow_schema::{DataType, Schema, SchemaRef};
use base64::prelude::{BASE64_STANDARD, Engine};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::{FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataWriter};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor};

use chunk::Chunk;
use leaf::Leaf;

/// Rows in a row group, the unit that a reader can skip, and its size in bytes: at most about so many.
const GROUP: usize = 1 << 20;
const GROUP_BYTES: usize = 1 << 24;

/// The application that wrote the file, as the format wants it.
const CREATED_BY: &str = concat!("narrows version ", env!("CARGO_PKG_VERSION"));

/// The key of the Arrow schema among what the footer says.
const ARROW_SCHEMA: &str = "ARROW:schema";

/// A Parquet file being written.
pub struct ParquetFile {
    writer: SerializedFileWriter<File>,
    /// The same file, with the same position.
    file: File,
    /// The columns of the row group in progress, its rows, and the size of their values, unencoded.
    chunks: Vec<Chunk>,
    waiting: usize,
    unencoded: usize,
    properties: WriterPropertiesPtr,
    schema: SchemaDescPtr,
    about: Vec<KeyValue>,
    /// The end of the last row group, the footer that follows, and the rows before.
    end: u64,
    footer: Vec<u8>,
    rows: u64,
    /// What encoding leaves of a byte, by the last row group; a guess before the first.
    ratio: f64,
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
        let properties = Arc::new(properties);
        let schema = schema::convert(schema).map_err(io_error)?;
        let writer =
            SerializedFileWriter::new(file.try_clone()?, Arc::clone(&schema), Arc::clone(&properties))
                .map_err(io_error)?;
        let mut file = Self {
            writer,
            file,
            chunks: Vec::new(),
            waiting: 0,
            unencoded: 0,
            properties,
            schema: Arc::new(SchemaDescriptor::new(schema)),
            about,
            end: 0,
            footer: Vec::new(),
            rows: 0,
            ratio: 0.5,
            failed: false,
        };
        file.try_seal()?;
        Ok(file)
    }

    /// Appends rows. They stay in memory until their row group is complete.
    ///
    /// # Errors
    /// If the file cannot be written: now or before. It then ends after its last complete row group.
    pub fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        self.check()?;
        let written = self.encode(batch).map_err(io_error);
        self.or_restore(written)?;
        if self.waiting >= GROUP || self.encoded() >= GROUP_BYTES {
            self.seal()?;
        }
        Ok(())
    }

    fn encode(&mut self, batch: &RecordBatch) -> Result<(), ParquetError> {
        let (mut leaves, schema) = (Vec::new(), batch.schema());
        for (field, column) in schema.fields().iter().zip(batch.columns()) {
            Leaf::append(field, column.as_ref(), &mut leaves)?;
        }
        if self.chunks.is_empty() {
            let columns = self.schema.columns().iter();
            let new = |column| Chunk::new(Arc::clone(column), Arc::clone(&self.properties));
            self.chunks = columns.map(new).collect();
        }
        if leaves.len() != self.chunks.len() {
            return Err(leaf::other_columns());
        }
        for (leaf, chunk) in leaves.iter().zip(&mut self.chunks) {
            leaf.write(&mut chunk.column)?;
            self.unencoded += leaf.size();
        }
        self.waiting += batch.num_rows();
        Ok(())
    }

    /// The estimated size of the row group in progress.
    fn encoded(&self) -> usize {
        (self.unencoded as f64 * self.ratio) as usize
    }

    /// Ends the row group and writes the footer: the file is complete and has all rows so far.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub fn seal(&mut self) -> io::Result<()> {
        self.check()?;
        if self.waiting == 0 {
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
        self.end + (self.encoded() + self.footer.len()) as u64
    }

    fn try_seal(&mut self) -> io::Result<()> {
        self.write_group().map_err(io_error)?;
        self.writer.flush()?;
        let end = self.writer.bytes_written() as u64;
        if self.unencoded > 0 {
            self.ratio = (end - self.end) as f64 / self.unencoded as f64;
        }
        (self.waiting, self.unencoded) = (0, 0);
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

    fn write_group(&mut self) -> Result<(), ParquetError> {
        if self.chunks.is_empty() {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        for chunk in self.chunks.drain(..) {
            let (bytes, closed) = chunk.close()?;
            group.append_column(&bytes, closed)?;
        }
        group.close()?;
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
    about.push(KeyValue::new(ARROW_SCHEMA.into(), encoded(schema)));
    about.sort_by(|a, b| a.key.cmp(&b.key));
    about
}

/// A schema as readers of Arrow look for it: a message of Arrow's IPC format, with its length before it, in base64.
fn encoded(schema: &Schema) -> String {
    let (mut dictionaries, options) = (DictionaryTracker::new(true), IpcWriteOptions::default());
    let message = IpcDataGenerator::default()
        .schema_to_bytes_with_dictionary_tracker(schema, &mut dictionaries, &options)
        .ipc_message;
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX).to_le_bytes();
    BASE64_STANDARD.encode([&[0xFF; 4], &length, message.as_slice()].concat())
}

/// A type that no table of narrows has.
fn unknown(kind: &DataType) -> ParquetError {
    ParquetError::NYI(format!("columns of {kind}"))
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

#[cfg(test)]
mod tests;
