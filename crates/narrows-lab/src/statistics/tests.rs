//! Against values that scipy 1.17.1 and numpy computed.

use super::special::{digamma, trigamma};
use super::*;

fn near(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance * expected.abs(), "{found:e} is not {expected:e}");
}

fn sample(values: &[f64]) -> Sample {
    Sample::new(values.to_vec()).unwrap()
}

fn few() -> (Sample, Sample) {
    (sample(&[1.2, 3.4, 0.5, 2.2, 7.1, 3.3, 0.9]), sample(&[2.0, 4.5, 6.1, 5.5, 3.9]))
}

/// Lists of different lengths that look random.
fn lists() -> (Vec<f64>, Vec<f64>) {
    let first = (1..=40).map(|i| f64::from(i * 37 % 101));
    (first.collect(), (1..=55).map(|i| f64::from(i * 53 % 97) * 1.3).collect())
}

#[test]
fn a_sample_is_sorted_and_finite() {
    assert!(Sample::new(Vec::new()).is_none());
    assert!(Sample::new(vec![1.0, f64::NAN]).is_none());
    assert!(Sample::new(vec![1.0, f64::INFINITY]).is_none());
    assert_eq!(sample(&[3.0, -1.0, 2.0]).values(), [-1.0, 2.0, 3.0]);
    assert_eq!(sample(&[5.0]).sd(), 0.0);
}

#[test]
fn moments_and_quantiles_are_those_of_numpy() {
    let (a, _) = few();
    near(a.mean(), 2.657142857142857, 1e-15);
    near(a.sd(), 2.2648452065260023, 1e-15);
    for (p, expected) in
        [(0.1, 0.74), (0.25, 1.05), (0.5, 2.2), (0.75, 3.35), (0.9, 4.88), (0.0, 0.5), (1.0, 7.1)]
    {
        near(a.quantile(p), expected, 1e-15);
    }
    assert_eq!((a.cdf(0.4), a.cdf(2.2), a.cdf(8.0)), (0.0, 4.0 / 7.0, 1.0));
    assert_eq!([0.0, 1.0 / 7.0, 0.3, 1.0].map(|p| a.inverse_cdf(p)), [0.5, 0.5, 1.2, 7.1]);
    // Far from zero, close together: the exact values are 10¹² + 1 and 1.
    let far = sample(&[1e12, 1e12 + 1.0, 1e12 + 2.0]);
    assert_eq!((far.mean(), far.sd()), (1e12 + 1.0, 1.0));
}

#[test]
fn one_sample_is_tested_as_by_scipy() {
    let test = sample(&[0.1, 0.7, 0.2, 0.9, 0.35, 0.35, 0.05]).kolmogorov_smirnov(|x| x.clamp(0.0, 1.0));
    near(test.distance, 0.3642857142857143, 1e-14);
    near(test.p_value, 0.2441405894558173, 1e-12);
}

/// A die's own distribution function has steps: a sample with each face once lies on it.
#[test]
fn steps_of_a_distribution_function_are_no_distance() {
    let die = |x: f64| (x.floor() / 6.0).clamp(0.0, 1.0);
    let faces = sample(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert!(faces.kolmogorov_smirnov(die).distance < 1e-15);
    near(sample(&[1.0, 1.0, 2.0, 2.0]).kolmogorov_smirnov(die).distance, 4.0 / 6.0, 1e-15);
}

#[test]
fn wasserstein_distances_are_those_of_scipy() {
    let (a, b) = few();
    near(a.wasserstein_to(&b), 2.0285714285714285, 1e-14);
    near(b.wasserstein_to(&a), 2.0285714285714285, 1e-14);
    let (first, second) = lists();
    near(sample(&first).wasserstein_to(&sample(&second)), 9.951818181818183, 1e-14);
    assert_eq!(a.wasserstein_to(&a), 0.0);
    // scipy.integrate.quad of |x − Q(u)|, sample by sample.
    near(a.wasserstein(|u| -3.0 * libm::log1p(-u)), 0.6726780878020873, 1e-6);
    near(a.wasserstein(|u| libm::pow(1.0 - u, -1.0 / 3.0)), 1.3798263902682202, 1e-5);
    // One value at 0 against the uniform distribution: ∫ u du.
    near(sample(&[0.0]).wasserstein(|u| u), 0.5, 1e-12);
    // What is shifted by 3 is 3 away.
    near(sample(&[0.0, 0.0]).wasserstein(|_| 3.0), 3.0, 1e-12);
}

#[test]
fn derivatives_of_the_gamma_function_are_those_of_scipy() {
    for (x, first, second) in [
        (0.1, -10.423754940411076, 101.43329915079275),
        (0.5, -1.9635100260214235, 4.93480220054468),
        (1.0, -0.5772156649015329, 1.6449340668482266),
        (2.5, 0.7031566406452432, 0.4903577561002349),
        (9.9, 2.2411803166063815, 0.1062830416287406),
        (50.0, 3.9019896734278925, 0.020201333226697128),
        (1e4, 9.21029037114285, 0.00010000500016666666),
    ] {
        near(digamma(x), first, 2e-13);
        near(trigamma(x), second, 2e-13);
    }
}
