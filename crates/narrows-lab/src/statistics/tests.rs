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

/// Tables have them (NIST/SEMATECH e-Handbook, 1.3.6.7.2); here with more digits.
#[test]
fn quantiles_of_t_are_those_of_the_tables() {
    for (freedom, share, expected) in [
        (1.0, 0.975, 12.706204736174707),
        (2.0, 0.975, 4.302652729749464),
        (3.0, 0.95, 2.353363434801823),
        (4.0, 0.975, 2.7764451051977943),
        (5.0, 0.99, 3.364929998907218),
        (9.0, 0.975, 2.262157162798205),
        (10.0, 0.995, 3.169272672616951),
        (19.0, 0.975, 2.093024054408309),
        (30.0, 0.95, 1.697260886593957),
        (120.0, 0.975, 1.979930405082422),
        (1000.0, 0.975, 1.9623390808264085),
    ] {
        near(t_quantile(share, freedom), expected, 1e-9);
    }
    // Closed forms: Cauchy's distribution, and the one of two degrees of freedom.
    for share in [0.51, 0.6, 0.9, 0.999, 0.999999] {
        near(t_quantile(share, 1.0), -1.0 / libm::tan(std::f64::consts::PI * share), 1e-9);
        near(t_quantile(share, 2.0), (2.0 * share - 1.0) / (2.0 * share * (1.0 - share)).sqrt(), 1e-9);
        near(t_quantile(1.0 - share, 2.0), -t_quantile(share, 2.0), 1e-9);
    }
    assert_eq!(t_quantile(0.5, 7.0), 0.0);
    // Between whole numbers of degrees of freedom there are others.
    assert!(
        t_quantile(0.975, 2.0) > t_quantile(0.975, 2.5) && t_quantile(0.975, 2.5) > t_quantile(0.975, 3.0)
    );
}

fn parts(values: &[f64]) -> Vec<Part> {
    values.iter().map(|&sum| Part { sum, weight: 1.0 }).collect()
}

fn batch_means(values: &[f64]) -> BatchMeans {
    BatchMeans::new(&parts(values)).unwrap()
}

#[test]
fn batches_are_of_one_length_and_no_more_than_twenty() {
    for (values, batches, length) in [
        (2, 2, 1),
        (9, 9, 1),
        (20, 20, 1),
        (21, 20, 1),
        (25, 12, 2),
        (39, 19, 2),
        (40, 20, 2),
        (1950, 20, 97),
    ] {
        let batching = Batching::of(values);
        assert_eq!((batching.batches, batching.length), (batches, length), "{values}");
        let all: Vec<f64> = (0..values as i32).map(f64::from).collect();
        let found = batch_means(&all);
        assert_eq!(found.batches(), batches, "{values}");
        // What does not fill a batch is at the beginning.
        let left_out = batching.left_out(values);
        assert_eq!(found.mean(), (values - 1 + left_out) as f64 / 2.0, "{values}");
    }
    assert_eq!(Batching::of(0).batches, 0);
    assert!(BatchMeans::new(&parts(&[1.0])).is_none() && BatchMeans::new(&[]).is_none());
    assert!(BatchMeans::new(&[Part::default(); 30]).is_none(), "nothing to divide by");
}

/// Against mpmath, from the formulas.
#[test]
fn intervals_of_batch_means_are_students_and_welchs() {
    let first = batch_means(&[27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1]);
    let second = batch_means(&[27.1, 22.0, 20.8, 23.4, 23.5, 25.8]);
    let interval = first.interval(0.95);
    near(interval.mean, 20.375, 1e-12);
    near(interval.half, 3.0491441031706493, 1e-9);
    near(interval.high() - interval.low(), 2.0 * interval.half, 1e-12);
    // 11.81 degrees of freedom.
    let difference = first.difference_to(&second, 0.95);
    near(difference.mean, 3.391666666666667, 1e-12);
    near(difference.half, 3.5026551355275022, 1e-9);
    assert!(!difference.excludes_zero() && first.difference_to(&second, 0.9).excludes_zero());
    assert_eq!(first.difference_to(&first, 0.95).mean, 0.0);
}

#[test]
fn pairs_know_what_both_met() {
    let first = [3.0, 9.0, 1.0, 7.0, 20.0, 2.0];
    let second = first.map(|value| value + 1.0);
    let (a, b) = (batch_means(&first), batch_means(&second));
    assert!(!a.difference_to(&b, 0.95).excludes_zero());
    let paired = a.paired_difference_to(&b, 0.95).unwrap();
    near(paired.mean, 1.0, 1e-12);
    assert!(paired.half < 1e-12 && paired.excludes_zero());
    // Deviations of the differences 1, 2, 3: 1, 0, 1.
    let paired =
        batch_means(&[1.0, 1.0, 1.0]).paired_difference_to(&batch_means(&[2.0, 3.0, 4.0]), 0.95).unwrap();
    near(paired.half, 4.302652729749464 / 3.0_f64.sqrt(), 1e-12);
    assert!(a.paired_difference_to(&batch_means(&first[1..]), 0.95).is_none());
}

/// A ratio of sums, as of packets dropped and offered: batches weigh by what they divide by.
#[test]
fn a_ratio_is_that_of_the_sums() {
    let parts = [(1.0, 10.0), (0.0, 0.0), (5.0, 20.0)].map(|(sum, weight)| Part { sum, weight });
    let found = BatchMeans::new(&parts).unwrap();
    assert_eq!((found.mean(), found.batches()), (0.2, 3));
    // X̄ = 10; deviations: (1 − 2)/10, 0, (5 − 4)/10.
    near(found.interval(0.95).half, 4.302652729749464 * (0.02_f64 / 6.0).sqrt(), 1e-12);
}

/// What 95 % is to mean: of 400 runs of an autoregressive process, a mean within the interval in all but some twenty.
#[test]
fn intervals_cover_the_mean_of_a_correlated_process() {
    const MEAN: f64 = 5.0;
    let mut state = 1_u64;
    let mut uniform = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let covered = (0..400).filter(|_| {
        let mut value = MEAN;
        let values: Vec<f64> = (0..2000)
            .map(|_| {
                value = MEAN + 0.7 * (value - MEAN) + uniform() - 0.5;
                value
            })
            .collect();
        let interval = batch_means(&values).interval(0.95);
        interval.low() <= MEAN && MEAN <= interval.high()
    });
    let covered = covered.count();
    assert!((366..=394).contains(&covered), "{covered} of 400");
}
