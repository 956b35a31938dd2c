//! Correlated selections: the rate is that which was asked for, and neighbours are as alike as the copula says.

use narrows_core::model::quantile;
use narrows_core::model::selector::{Correlated, Selector, SelectorError};

use crate::sample::{Estimate, ratio, select};

const PACKETS: u64 = 300_000;

/// The correlation of neighbouring selections, by the probability that two standard normals of correlation ρ are both
/// below q: `Φ₂(q, q; ρ) = Φ(q)² + (1/2π)·∫₀^asin(ρ) exp(−q²/(1 + sin θ)) dθ`, by Simpson's rule.
fn expected(p: f64, spearman: f64) -> f64 {
    let rho = 2.0 * libm::sin(std::f64::consts::PI * spearman / 6.0);
    let (q, to, steps) = (quantile(p), rho.asin(), 2_000);
    let density = |theta: f64| libm::exp(-q * q / (1.0 + libm::sin(theta)));
    let width = to / f64::from(steps);
    let integral: f64 = (0..=steps)
        .map(|at| {
            let weight = if at == 0 || at == steps { 1.0 } else { f64::from(2 + 2 * (at % 2)) };
            weight * density(f64::from(at) * width)
        })
        .sum::<f64>()
        * width
        / 3.0;
    integral / (2.0 * std::f64::consts::PI) / (p * (1.0 - p))
}

#[test]
fn rate_and_correlation_of_neighbours() {
    // At one half the integral is asin(ρ): a check of the check.
    let rho = 2.0 * libm::sin(std::f64::consts::PI * 0.3 / 6.0);
    assert!((expected(0.5, 0.3) - rho.asin() * 2.0 / std::f64::consts::PI).abs() < 1e-12);
    for (percent, spearman) in [(1, 0.25), (1, 0.9), (10, 0.5), (50, 0.3), (30, -0.6), (5, 0.0)] {
        let p = ratio(percent, 100);
        let selector = Correlated::new(p, spearman).expect("a correlation");
        assert_eq!(selector.mean(), p.as_f64());
        let row: Vec<f64> =
            select(selector, 3, PACKETS).into_iter().map(|hit| f64::from(u8::from(hit))).collect();
        let what = format!("{percent} %, rank correlation {spearman}");
        let p = p.as_f64();
        Estimate::of_dependent(&row).assert_is(p, &what);
        let products: Vec<f64> =
            row.windows(2).map(|two| (two[0] - p) * (two[1] - p) / (p * (1.0 - p))).collect();
        Estimate::of_dependent(&products).assert_is(expected(p, spearman), &what);
    }
}

#[test]
fn never_and_always() {
    for (p, all) in [(ratio(0, 1), false), (ratio(1, 1), true)] {
        let row = select(Correlated::new(p, 0.7).expect("a correlation"), 1, 10_000);
        assert!(row.iter().all(|&hit| hit == all));
    }
    // As good as always, and as good as never: as floats these are 1 and a power of two.
    for (p, all) in [((1 << 63) - 1, true), ((1 << 63) - 100, true), (1, false), (100, false)] {
        let selector = Correlated::new(ratio(p, 1 << 63), 0.7).expect("a correlation");
        assert!(select(selector, 1, 10_000).iter().all(|&hit| hit == all), "{p} of 2^63");
    }
    for rho in [1.0, -1.0, 1.5, f64::NAN] {
        assert!(matches!(Correlated::new(ratio(1, 2), rho), Err(SelectorError::Correlation(_))), "{rho}");
    }
}
