//! Data files that describe delays: NetEm's distribution tables, measured samples, histograms, cumulative
//! distribution functions.
//!
//! | file | content | read by |
//! |---|---|---|
//! | `.dist` | NetEm's table: whole numbers, 8192 per standard deviation, the inverse of a distribution function | [`read_dist`] |
//! | samples | a number a line, or a column of a CSV file | [`read_samples`] |
//! | histogram | `lower bound,count,unit` a row, as for `sch_delay`; the last row ends the last bin and has count 0 | [`read_histogram`] |
//! | distribution function | `delay,probability` a row, both increasing, up to 1 | [`read_cdf`] |
//!
//! In all of them, empty lines and lines that start with `#` are skipped. Errors are [`TableError`]s with
//! the line number.
//!
//! ```
//! use narrows_scenario::tables::{SampleColumn, read_samples};
//!
//! let samples = read_samples("rtt.txt", b"# a ping\n1.5ms\n2ms\n", &SampleColumn::default()).unwrap();
//! assert_eq!(samples.nanoseconds(), [1_500_000.0, 2_000_000.0]);
//! let error = read_samples("rtt.txt", b"1.5ms\nNaN\n", &SampleColumn::default()).unwrap_err();
//! assert!(error.to_string().starts_with("rtt.txt:2: found `NaN`"));
//! ```

mod cdf;
mod dist;
mod error;
mod histogram;
mod quantity;
mod rows;
mod samples;

pub use cdf::read_cdf;
pub use dist::{MOST_ENTRIES, read_dist, write_dist};
pub use error::TableError;
pub use histogram::read_histogram;
pub use quantity::TimeUnit;
pub use samples::{SampleColumn, Samples, read_samples};

#[cfg(test)]
mod tests;
