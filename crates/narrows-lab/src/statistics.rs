//! Statistics of samples: quantiles, tests of fit, distances between distributions.
//!
//! [`Sample`] is what the rest works on: values in rising order, finite, at least one. A value is a bare number here,
//! in whatever unit the caller counts; distances come in the same unit.
//!
//! **What the tests assume.** The p-values of Kolmogorov and Smirnov are those of *independent* values against a
//! *continuous* distribution that was not fitted to them: values that follow one another in time are correlated as a
//! rule, and have to be thinned first; a distribution with atoms gives too large a p-value, and so do parameters that
//! were fitted.
//!
//! ```
//! use narrows_lab::statistics::Sample;
//!
//! let sample = Sample::new(vec![0.1, 0.7, 0.2, 0.9]).unwrap();
//! let test = sample.kolmogorov_smirnov(|x| x.clamp(0.0, 1.0));
//! assert!((test.distance - 0.3).abs() < 1e-12); // at 0.2, where half of the sample lies
//! assert!(test.p_value > 0.7);
//! ```

mod kolmogorov_smirnov;
mod sample;
pub(crate) mod special;
mod wasserstein;

pub use kolmogorov_smirnov::KolmogorovSmirnov;
pub use sample::Sample;

#[cfg(test)]
mod tests;
