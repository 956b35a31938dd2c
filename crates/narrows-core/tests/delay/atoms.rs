//! Distributions with values that have a probability of their own: judged by χ², as the test of Kolmogorov and Smirnov does
//! not hold for them.

use std::collections::BTreeMap;

use narrows_core::model::{BelowZero, Correlated, Distribution, Sampler, builtin_table};
use narrows_core::{Duration, Time};

use crate::statistics::{chi_square, critical, distance, stream};

const DRAWS: u64 = 1_000_000;

fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

fn draws(distribution: &Distribution, seed: u64) -> Vec<u64> {
    let (sampler, stream) = (Sampler::new(distribution), stream(seed));
    (0..DRAWS).map(|n| sampler.sample(&mut stream.nth(n)).nanos()).collect()
}

/// All draws are atoms, and as often as `atoms` says.
fn check(values: &[u64], atoms: &[(u64, f64)]) {
    let places: BTreeMap<u64, usize> = atoms.iter().enumerate().map(|(i, &(x, _))| (x, i)).collect();
    let mut counts = vec![0; atoms.len()];
    for value in values {
        counts[places[value]] += 1;
    }
    let probabilities: Vec<f64> = atoms.iter().map(|&(_, p)| p).collect();
    let (chi, limit) = chi_square(&counts, &probabilities);
    assert!(chi < limit, "χ² is {chi}, not below {limit}");
}

fn samples() -> Distribution {
    Distribution::samples([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5].map(micros).to_vec()).expect("in range")
}

/// Each value as often as it is in the list, out of 11.
const SHARES: [(u64, f64); 7] =
    [(1000, 2.0), (2000, 1.0), (3000, 2.0), (4000, 1.0), (5000, 3.0), (6000, 1.0), (9000, 1.0)];

#[test]
fn samples_are_drawn_as_often_as_they_are_there() {
    let shares = SHARES.map(|(x, count)| (x, count / 11.0));
    check(&draws(&samples(), 1), &shares);
    let found: Vec<_> = samples().atoms();
    for ((x, p), (place, share)) in found.iter().zip(shares) {
        assert!(*x == place as f64 && (p - share).abs() < 1e-15);
    }
    // Of the definition: the least value that is not exceeded with this probability.
    let distribution = samples();
    for (p, x) in [(0.0, 1e3), (0.1, 1e3), (0.25, 2e3), (0.5, 4e3), (0.6, 5e3), (0.99, 9e3), (1.0, 9e3)] {
        assert_eq!(distribution.quantile(p), x, "{p}");
    }
    assert_eq!((distribution.cdf(999.0), distribution.cdf(1_000.0)), (0.0, 2.0 / 11.0));
    assert_eq!(distribution.mean(), 4_000.0);
}

#[test]
fn so_are_they_with_correlation() {
    let shares = SHARES.map(|(x, count)| (x, count / 11.0));
    let stream = stream(2);
    let mut correlated = Correlated::per_packet(samples(), 0.6).unwrap();
    let values = (0..DRAWS).map(|n| correlated.next(Time::ZERO, &mut stream.nth(n)).nanos());
    // ρ is 0.62, and 0.62¹² = 0.003.
    check(&values.step_by(12).collect::<Vec<_>>(), &shares);
    let mut correlated = Correlated::in_time(samples(), micros(10)).unwrap();
    let gap = 60_000;
    let next = |n| correlated.next(Time::from_nanos(n * gap), &mut stream.nth(n)).nanos();
    check(&(0..DRAWS / 10).map(next).collect::<Vec<_>>(), &shares);
}

#[test]
fn the_tables_of_netem_are_those_that_its_programs_make() {
    // Entries, sums and FNV-1a hashes (little-endian) of what iproute2's normal.c, pareto.c and paretonormal.c print.
    for (name, first, last, sum, hash) in [
        (
            "normal",
            [-32768, -28307, -26871, -25967],
            [25450, 26164, 27159, 28858],
            -26_163,
            0x3f19_8b60_14c3_b3b8,
        ),
        ("pareto", [-5461, -5460, -5460, -5459], [32767; 4], -1_123_786, 0x209e_1d3c_8618_19fa),
        (
            "paretonormal",
            [-12305, -11171, -10812, -10586],
            [30937, 31116, 31365, 31789],
            -848_968,
            0x468c_e9c9_62a5_ecf9,
        ),
    ] {
        let table = builtin_table(name).unwrap();
        assert_eq!((table.len(), &table[..4], &table[4092..]), (4096, &first[..], &last[..]), "{name}");
        assert_eq!(table.iter().map(|&t| i64::from(t)).sum::<i64>(), sum, "{name}");
        let fnv = |h: u64, b: u8| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
        let found = table.iter().flat_map(|t| t.to_le_bytes()).fold(0xcbf2_9ce4_8422_2325, fnv);
        assert_eq!(found, hash, "{name}");
    }
    assert_eq!(builtin_table("uniform"), None);
}

#[test]
fn a_table_gives_its_entries_and_nothing_else() {
    let table = builtin_table("pareto").unwrap();
    let (mean, sd) = (10e6, 1e6);
    let distribution = Distribution::table(&table, mean, sd).unwrap();
    let mut shares: BTreeMap<u64, f64> = BTreeMap::new();
    for t in table {
        let x = mean + sd * f64::from(t) / 8192.0;
        *shares.entry((x + 0.5) as u64).or_default() += 1.0 / 4096.0;
    }
    check(&draws(&distribution, 3), &shares.into_iter().collect::<Vec<_>>());
    // Cut off at 4 sd, Pareto's own standard deviation of 1.155 becomes this.
    assert!((distribution.sd() / 1e6 - 0.82).abs() < 0.005, "{}", distribution.sd());
}

#[test]
fn jumps_of_a_distribution_function_and_bins_of_no_width() {
    // A fifth at 1 ms, three tenths at 2 ms, half spread up to 3 ms.
    let points = [(1000, 0.2), (2000, 0.2), (2000, 0.5), (3000, 1.0)].map(|(x, p)| (micros(x), p));
    let bins =
        [(1000, 1000, 2.0), (2000, 2000, 3.0), (2000, 3000, 5.0)].map(|(a, b, w)| (micros(a), micros(b), w));
    let half = Distribution::uniform(2e6, 3e6).unwrap();
    let parts = vec![
        (2.0, Distribution::constant(1e6).unwrap()),
        (3.0, Distribution::constant(2e6).unwrap()),
        (5.0, half),
    ];
    for distribution in [
        Distribution::points(points.to_vec()).unwrap(),
        Distribution::histogram(bins.to_vec()).unwrap(),
        Distribution::mixture(parts).unwrap(),
    ] {
        let classes = |x: u64| match x {
            1_000_000 => 0,
            2_000_000 => 1,
            2_000_001..=3_000_000 => 2 + ((x - 2_000_001) / 100_000).min(9) as usize,
            _ => panic!("{x} is not in {distribution}"),
        };
        let mut counts = [0; 12];
        draws(&distribution, 4).into_iter().for_each(|x| counts[classes(x)] += 1);
        let probabilities = [[0.2, 0.3].as_slice(), &[0.05; 10]].concat();
        let (chi, limit) = chi_square(&counts, &probabilities);
        assert!(chi < limit, "{distribution}: χ² is {chi}, not below {limit}");
        for (found, wanted) in distribution.atoms().iter().zip([(1e6, 0.2), (2e6, 0.3)]) {
            assert!(
                (found.0, (found.1 - wanted.1).abs() < 1e-15) == (wanted.0, true),
                "{distribution}: {found:?}"
            );
        }
        assert!((distribution.mean() - 2.05e6).abs() < 1e-6, "{distribution}");
        assert!(
            (distribution.cdf(2e6) - 0.5).abs() < 1e-15 && (distribution.cdf(2e6 - 1.0) - 0.2).abs() < 1e-15
        );
        assert!((distribution.quantile(0.5) - 2e6).abs() < 1e-6 && distribution.quantile(0.1) == 1e6);
    }
}

#[test]
fn what_is_below_zero_is_clamped_or_truncated_as_it_says() {
    let normal = Distribution::normal(1e6, 1e6).unwrap();
    assert_eq!(normal.to_string(), "normal, mean 1ms, sd 1ms, below zero clamped");
    // Φ(−1), and the mean and sd of the clamped: from scipy.
    let below = 0.158_655_253_931_457_05;
    assert!((normal.share_below_zero() - below).abs() < 1e-15);
    assert!((normal.mean() / 1_083_315.470_587_686_4 - 1.0).abs() < 1e-12);
    assert!((normal.sd() / 866_653.222_368_444_7 - 1.0).abs() < 1e-12);
    assert_eq!(normal.atoms().len(), 1);
    assert!((normal.atoms()[0].1 - below).abs() < 1e-15 && normal.atoms()[0].0 == 0.0);
    let values = draws(&normal, 5);
    let zeros = values.iter().filter(|&&x| x == 0).count() as u64;
    let (chi, limit) = chi_square(&[zeros, DRAWS - zeros], &[below, 1.0 - below]);
    assert!(chi < limit, "{zeros} are zero, χ² {chi}");
    let positive: Vec<f64> = values.iter().filter(|&&x| x > 0).map(|&x| x as f64).collect();
    let places = (1..200).map(|i| f64::from(i) * 2e4);
    let places: Vec<_> = places.map(|x| (x, (normal.cdf(x) - below) / (1.0 - below))).collect();
    assert!(distance(&positive, &places) < critical(positive.len()));

    let truncated = normal.clone().below_zero(BelowZero::Truncate).unwrap();
    assert_eq!(truncated.to_string(), "normal, mean 1ms, sd 1ms, below zero truncated");
    assert!(truncated.atoms().is_empty() && draws(&truncated, 5).iter().filter(|&&x| x == 0).count() < 10);
    // A shift counts whether it comes before or after.
    let shifted = Distribution::normal(0.0, 1e6).unwrap().below_zero(BelowZero::Truncate).unwrap();
    assert_eq!(shifted.shifted(1_000_000).unwrap().mean(), truncated.mean());
}
