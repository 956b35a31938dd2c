//! Delay distributions: fitted to samples, converted to tables and scenario entries, plotted.

mod entry;
mod estimate;
mod figure;
mod fit;
mod mixture;
mod report;
mod shape;
mod table;

pub use entry::{EntryError, cdf_entry, histogram_entry, read_entry};
pub use figure::figure;
pub use fit::{Fit, FitJson, Fits, fit};
pub use report::Source;
pub use shape::Shape;
pub use table::{Judgement, Table, by_quantiles, maketable};

#[cfg(test)]
mod tests;
