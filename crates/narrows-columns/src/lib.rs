//! What runs record, as columns: records of packets and rows of series, with the names that the files of CSV have.
//!
//! [`PacketColumns`] and [`SeriesColumns`] take rows and give Arrow's record batches, [`write_parquet`] writes these.
//! Text is kept once and referred to by number (dictionaries), times are nanoseconds in 64 bits. The version of the columns is
//! `narrows.columns` in the schema's metadata, and is raised when a column changes.

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

/// Rows in a batch: some five megabytes of packets.
pub const BATCH: usize = 1 << 16;

/// The version of the columns.
const VERSION: &str = "1";

/// Rows that become batches.
pub trait Columns: Default {
    /// What the columns are.
    fn schema() -> SchemaRef;

    /// Rows since the last [`take`](Self::take).
    fn rows(&self) -> usize;

    /// The rows since the last time. Dictionaries grow from batch to batch: an entry keeps its number.
    fn take(&mut self) -> RecordBatch;
}
