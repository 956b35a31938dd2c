//! Distributions of delays: fitted to samples, made into tables and scenario entries, drawn.

mod estimate;
mod fit;
mod mixture;
mod shape;
mod table;

pub use fit::{Fit, FitJson, Fits, fit};
pub use shape::Shape;
pub use table::{Judgement, Table, by_quantiles, maketable};

#[cfg(test)]
mod tests;
