//! Recorded data as columns: packet records and rows of series, with the column names of the CSV files.
//!
//! [`PacketColumns`] and [`SeriesColumns`] take rows and return Arrow record batches; [`write_parquet`] writes these
//! to a file. Text is dictionary-encoded; times are 64-bit nanoseconds. The column version is `narrows.columns` in
//! the schema's metadata; it is raised when a column changes.

#![forbid(unsafe_code)]

mod column;
mod packets;
mod parquet_file;
mod series;

pub use column::with_one_dictionary;
pub use packets::PacketColumns;
pub use parquet_file::{ParquetError, write_parquet};
pub use series::SeriesColumns;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

/// Rows in a batch: about five megabytes of packets.
pub const BATCH: usize = 1 << 16;

/// The version of the columns.
const VERSION: &str = "1";

/// Collects rows into batches.
pub trait Columns: Default {
    /// The schema of the columns.
    fn schema() -> SchemaRef;

    /// Rows since the last [`take`](Self::take).
    fn rows(&self) -> usize;

    /// The rows since the last call. Dictionaries grow from batch to batch: an entry keeps its number.
    fn take(&mut self) -> RecordBatch;
}
