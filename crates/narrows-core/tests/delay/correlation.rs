//! Correlated delays: correlated as asked, and each by itself with its distribution.

use narrows_core::model::{Correlated, Distribution};
use narrows_core::{Duration, Seed, Stream, Time};

use crate::statistics::{correlation, critical, distance, spearman, stream};

const DRAWS: u64 = 300_000;

fn distributions() -> Vec<Distribution> {
    let normal = |mean, sd| Distribution::normal(mean, sd).expect("in range");
    let mixture = vec![(3.0, normal(5e6, 5e5)), (1.0, normal(20e6, 3e6))];
    let points = vec![(1_000, 0.0), (2_000, 0.9), (50_000, 1.0)];
    let points = points.into_iter().map(|(x, p)| (Duration::from_micros(x), p)).collect();
    vec![
        normal(10e6, 2e6),
        Distribution::exponential(4e6).expect("in range"),
        Distribution::gamma(0.7, 5e6).expect("in range"),
        Distribution::pareto(2.5, 1e6).expect("in range"),
        Distribution::pareto_normal(20e6, 3e6).expect("in range"),
        Distribution::mixture(mixture).expect("in range"),
        Distribution::points(points).expect("in range"),
    ]
}

/// Of so many packets at this gap.
fn delays(model: &mut Correlated, seed: u64, packets: u64, gap: u64) -> Vec<f64> {
    let stream = stream(seed);
    (0..packets).map(|n| model.next(Time::from_nanos(n * gap), &mut stream.nth(n)).nanos() as f64).collect()
}

/// Of these that are so far apart that the test of independent samples holds.
fn assert_marginal(values: &[f64], apart: usize, distribution: &Distribution) {
    let thinned: Vec<f64> = values.iter().copied().step_by(apart).collect();
    let places = (1..500).map(|i| f64::from(i) / 500.0).map(|p| (distribution.quantile(p), p));
    let (found, critical) = (distance(&thinned, &places.collect::<Vec<_>>()), critical(thinned.len()));
    assert!(found < critical, "{distribution}: {found}, not below {critical}, of {}", thinned.len());
}

#[test]
fn neighbours_have_the_rank_correlation_asked_for_and_the_distribution_stays() {
    for (number, distribution) in (0..).zip(distributions()) {
        // The standard error is (1 − ρ²)/√n and less, 0.002.
        // What counts is the normal number, not the distribution: one each.
        let (asked, apart) = [(0.25, 8), (0.6, 16), (-0.5, 12)][number as usize % 3];
        let mut model = Correlated::per_packet(distribution.clone(), asked).unwrap();
        let values = delays(&mut model, number, DRAWS, 0);
        let found = spearman(&values);
        assert!((found - asked).abs() < 0.01, "{distribution}: {found}, not {asked}");
        assert_marginal(&values, apart, &distribution);
    }
    let mut model = Correlated::per_packet(distributions().swap_remove(1), 0.95).unwrap();
    let values = delays(&mut model, 9, DRAWS, 0);
    let found = spearman(&values);
    assert!((found - 0.95).abs() < 0.01, "{found}, not 0.95");
    assert_marginal(&values, 150, &distributions()[1]);
}

#[test]
fn extreme_correlations_are_taken_and_others_refused() {
    let normal = || Distribution::normal(10e6, 2e6).unwrap();
    let all_alike = delays(&mut Correlated::per_packet(normal(), 1.0).unwrap(), 1, 100, 0);
    assert!(all_alike.iter().all(|&value| value == all_alike[0]));
    let mirrored = delays(&mut Correlated::per_packet(normal(), -1.0).unwrap(), 1, 100, 0);
    assert!(mirrored.windows(2).all(|pair| (pair[0] + pair[1] - 20e6).abs() <= 1.0));
    for wrong in [1.01, -1.01, f64::NAN] {
        assert!(Correlated::per_packet(normal(), wrong).is_none());
    }
    assert!(Correlated::in_time(normal(), Duration::ZERO).is_none());
}

/// Matérn's, of smoothness 3/2.
fn covariance(distance: f64, length: f64) -> f64 {
    let x = 3f64.sqrt() * distance / length;
    (1.0 + x) * libm::exp(-x)
}

/// So wide that rounding to nanoseconds is nothing, and nothing is below zero.
fn wide() -> Distribution {
    Distribution::normal(1e12, 1e11).expect("in range")
}

#[test]
fn in_time_the_covariance_is_materns_at_even_gaps() {
    let length = 1_000_000;
    for per_length in [1, 4, 20] {
        let mut model = Correlated::in_time(wide(), Duration::from_nanos(length)).unwrap();
        let values = delays(&mut model, 20 + per_length, DRAWS, length / per_length);
        // One length is worth about half an independent sample.
        let error = 1.0 / (DRAWS as f64 / per_length as f64 / 2.0).sqrt();
        for lag in [1, 2, 5, 10, 30] {
            let wanted = covariance(lag as f64 / per_length as f64, 1.0);
            let found = correlation(&values, lag);
            assert!(
                (found - wanted).abs() < 4.0 * error,
                "{per_length} a length, {lag}: {found}, not {wanted}"
            );
        }
    }
}

#[test]
fn in_time_the_covariance_is_materns_at_uneven_gaps() {
    const GAPS: [u64; 5] = [1, 20_000, 250_000, 1_000_000, 3_000_000];
    let mut model = Correlated::in_time(wide(), Duration::from_nanos(1_000_000)).unwrap();
    let (draws, choice) = (stream(31), Stream::new(Seed(1), "gaps", "choice"));
    let mut at = 0;
    // (which gap led here, normal number)
    let mut visits: Vec<(usize, f64)> = Vec::new();
    for n in 0..DRAWS {
        let gap = choice.nth(n).below(GAPS.len() as u64) as usize;
        at += GAPS[gap];
        let delay = model.next(Time::from_nanos(at), &mut draws.nth(n)).nanos() as f64;
        visits.push((gap, (delay - 1e12) / 1e11));
    }
    for (first, &gap) in GAPS.iter().enumerate() {
        let pairs = visits.windows(2).filter(|pair| pair[1].0 == first);
        let products: Vec<f64> = pairs.map(|pair| pair[0].1 * pair[1].1).collect();
        let found = products.iter().sum::<f64>() / products.len() as f64;
        let wanted = covariance(gap as f64, 1e6);
        // A product has a variance of up to 2, and one in two is independent.
        assert!(
            (found - wanted).abs() < 4.0 * 2.0 / (products.len() as f64).sqrt(),
            "{gap}: {found}, not {wanted}"
        );
        for (second, &next) in GAPS.iter().enumerate() {
            let triples = visits.windows(3).filter(|three| three[1].0 == first && three[2].0 == second);
            let products: Vec<f64> = triples.map(|three| three[0].1 * three[2].1).collect();
            let found = products.iter().sum::<f64>() / products.len() as f64;
            let wanted = covariance((gap + next) as f64, 1e6);
            let error = 2.0 / (products.len() as f64).sqrt();
            assert!((found - wanted).abs() < 4.0 * error, "{gap} and {next}: {found}, not {wanted}");
        }
    }
}

#[test]
fn in_time_the_distribution_stays() {
    for (number, distribution) in (40..).zip(distributions()) {
        let mut model = Correlated::in_time(distribution.clone(), Duration::from_millis(20)).unwrap();
        // k(4·ℓ) = 0.008
        let values = delays(&mut model, number, DRAWS / 2, 20_000_000);
        assert_marginal(&values, 4, &distribution);
    }
}

#[test]
fn the_first_packet_and_the_second_have_the_distribution_too() {
    let distribution = Distribution::gamma(0.7, 5e6).unwrap();
    let in_time = Correlated::in_time(distribution.clone(), Duration::from_millis(20)).unwrap();
    let per_packet = Correlated::per_packet(distribution.clone(), 0.5).unwrap();
    for model in [in_time, per_packet] {
        for place in [0, 1] {
            let of_seed = |seed: u64| delays(&mut model.clone(), 1_000 + seed, 2, 1_000_000)[place];
            assert_marginal(&(0..20_000).map(of_seed).collect::<Vec<_>>(), 1, &distribution);
        }
    }
}

#[test]
fn at_one_instant_there_is_one_delay() {
    let mut model = Correlated::in_time(wide(), Duration::from_millis(1)).unwrap();
    let stream = stream(50);
    let mut at = |n, time| model.next(Time::from_nanos(time), &mut stream.nth(n));
    let (first, twin, later) = (at(0, 5), at(1, 5), at(2, 10));
    assert_eq!(first, twin);
    // At a gap of 5 ns of a length of 1 ms the process moves by some 10⁻⁵.
    assert_ne!(later, twin);
    assert!((later.nanos() as f64 - twin.nanos() as f64).abs() < 1e11 * 1e-4);
}
