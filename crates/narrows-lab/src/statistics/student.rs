//! Student's t distribution, also with a number of degrees of freedom that is no whole one, as Welch's interval has it.
//!
//! `P(T ≤ t) = 1 − I(ν/2, 1/2; ν/(ν + t²))/2` for `t ≥ 0` (Abramowitz and Stegun, 26.7.1 and 26.5.27).

use super::special::incomplete_beta;

/// The value that Student's t with `freedom` degrees of freedom stays below with the probability `share`, between 0 and 1.
pub fn t_quantile(share: f64, freedom: f64) -> f64 {
    if share < 0.5 {
        return -t_quantile(1.0 - share, freedom);
    }
    let (mut low, mut high) = (0.0, 1.0);
    while below(high, freedom) < share && high < f64::MAX / 2.0 {
        high *= 2.0;
    }
    loop {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            return middle;
        }
        match below(middle, freedom) < share {
            true => low = middle,
            false => high = middle,
        }
    }
}

/// `P(T ≤ t)`, t ≥ 0.
fn below(t: f64, freedom: f64) -> f64 {
    1.0 - incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t)) / 2.0
}
