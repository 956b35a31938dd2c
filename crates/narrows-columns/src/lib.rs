//! Files of packet records and series, CSV or Parquet by the file's name, and the same rows as Arrow columns.
//!
//! A [`RowFile`] takes the rows of a [`Table`] and writes them. With the feature `parquet`, `PacketColumns` and
//! `SeriesColumns` turn rows into Arrow record batches, in memory (`Columns`) and for `ParquetFile`. Columns
//! have the names of the CSV files; text is dictionary-encoded; times are 64-bit nanoseconds. Their version is
//! `narrows.columns` in the metadata of the schema and of the file; it is raised when a column changes.
//!
//! ```
//! use narrows_columns::{RowFile, Series};
//! use narrows_core::Time;
//! use narrows_report::LinkCounts;
//!
//! let path = std::env::temp_dir().join(format!("narrows-columns-{}.csv", std::process::id()));
//! let mut file = RowFile::<Series>::create(&path)?;
//! let counts = LinkCounts::default();
//! file.put(&counts.row(&counts, (Time::ZERO, Time::from_nanos(1_000_000)), "access.down"))?;
//! file.finish()?;
//! assert!(std::fs::read_to_string(&path)?.ends_with("0,1000000,link,access.down,,0,0,0,,0,0,0,0,0,\n"));
//! # std::fs::remove_file(&path)
//! # ; Ok::<(), std::io::Error>(())
//! ```

#![forbid(unsafe_code)]

#[cfg(feature = "parquet")]
mod column;
#[cfg(feature = "parquet")]
mod packets;
#[cfg(feature = "parquet")]
mod parquet_file;
#[cfg(feature = "parquet")]
mod passed;
mod row_file;
#[cfg(feature = "parquet")]
mod series;
mod table;

#[cfg(feature = "parquet")]
pub use column::{BATCH, Columns, with_one_dictionary};
#[cfg(feature = "parquet")]
pub use packets::PacketColumns;
#[cfg(feature = "parquet")]
pub use parquet_file::{ParquetFile, write_parquet};
pub use row_file::RowFile;
#[cfg(feature = "parquet")]
pub use series::SeriesColumns;
pub use table::{Packets, Series, Table};
