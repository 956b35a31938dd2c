//! Statistics of samples: quantiles, goodness-of-fit tests, distances between distributions; intervals for means over time.
//!
//! Most of it operates on a [`Sample`]: finite values in ascending order, at least one. Values are plain numbers in
//! whatever unit the caller uses; distances are in the same unit. [`BatchMeans`] takes values in order of time.
//!
//! **Assumptions of the tests.** Kolmogorov-Smirnov p-values assume *independent* values and a *continuous*
//! distribution that was not fitted to them. Values that follow one another in time are usually correlated and must
//! be thinned first. A distribution with atoms, or fitted parameters, give too large a p-value.
//!
//! ```
//! use narrows_lab::statistics::Sample;
//!
//! let sample = Sample::new(vec![0.1, 0.7, 0.2, 0.9]).unwrap();
//! let test = sample.kolmogorov_smirnov(|x| x.clamp(0.0, 1.0));
//! assert!((test.distance - 0.3).abs() < 1e-12); // at 0.2, where half of the sample lies
//! assert!(test.p_value > 0.7);
//! ```

mod batch_means;
mod kolmogorov_smirnov;
mod sample;
pub(crate) mod special;
mod student;
mod wasserstein;

pub use batch_means::{BatchMeans, Batching, Interval, Part};
pub use kolmogorov_smirnov::KolmogorovSmirnov;
pub use sample::Sample;
pub use student::t_quantile;

#[cfg(test)]
mod tests;
