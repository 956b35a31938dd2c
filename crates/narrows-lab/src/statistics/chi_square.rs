//! Pearson's χ² test: counts in cells against what was expected there, `χ² = Σ (observed − expected)²/expected`. The
//! test for distributions with atoms, and for histograms.

use super::special::upper_gamma;

/// What a χ² test found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChiSquare {
    /// χ².
    pub statistic: f64,
    /// Cells − 1 − fitted parameters.
    pub freedom: u32,
    /// How probable a χ² of at least that is, where the counts are as expected but for chance.
    pub p_value: f64,
}

/// Tests counts against expected ones, of which about the same sum is asked. `fitted` parameters of what is expected
/// came from the counts. `None` where the numbers of cells differ, where a count is expected to be 0 or less, and where
/// no degree of freedom is left.
///
/// The p-value is that of the limit for large counts, `Q(freedom/2, χ²/2)`: join cells of fewer than five.
pub fn chi_square(observed: &[u64], expected: &[f64], fitted: u32) -> Option<ChiSquare> {
    let freedom =
        u32::try_from(observed.len()).ok()?.checked_sub(1)?.checked_sub(fitted).filter(|left| *left > 0)?;
    if observed.len() != expected.len() || !expected.iter().all(|count| *count > 0.0 && count.is_finite()) {
        return None;
    }
    let cells = observed.iter().zip(expected);
    let statistic: f64 = cells
        .map(|(&observed, &expected)| {
            let off = observed as f64 - expected;
            off * off / expected
        })
        .sum();
    Some(ChiSquare { statistic, freedom, p_value: upper_gamma(f64::from(freedom) / 2.0, statistic / 2.0) })
}
