//! Writes columns as a Parquet file (Snappy).

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

/// Rows in a row group: the unit that a reader can skip.
const GROUP: usize = 1 << 20;

/// Why a file cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {file}: {cause}")]
pub struct ParquetError {
    file: String,
    cause: parquet::errors::ParquetError,
}

/// Writes batches with one schema to a file.
///
/// # Errors
/// If writing fails.
pub fn write_parquet(path: &Path, schema: &SchemaRef, batches: &[RecordBatch]) -> Result<(), ParquetError> {
    let file = path.display().to_string();
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(GROUP))
        .set_created_by("narrows".into())
        .build();
    let write = || {
        let output = BufWriter::new(File::create(path)?);
        let mut writer = ArrowWriter::try_new(output, SchemaRef::clone(schema), Some(properties))?;
        batches.iter().try_for_each(|batch| writer.write(batch))?;
        Ok(writer.into_inner()?.flush()?)
    };
    write().map_err(|cause| ParquetError { file, cause })
}
