//! Every named distribution against scipy's numbers: its functions to 10 digits and more, its draws by the test of
//! Kolmogorov and Smirnov with a million of them.

use narrows_core::Duration;
use narrows_core::model::{BelowZero, Distribution, Sampler};

use crate::reference::{self, LOWER, Table};
use crate::statistics::{critical, distance, stream};

const DRAWS: u64 = 1_000_000;

/// The probabilities of the reference's columns: (below, above).
fn levels() -> Vec<(f64, f64)> {
    let lower = LOWER.map(|p| (p, 1.0 - p));
    let middle = (1..64).map(|i| (f64::from(i) / 64.0, 1.0 - f64::from(i) / 64.0));
    let upper = lower.iter().rev().map(|&(p, q)| (q, p));
    lower.into_iter().chain(middle).chain(upper).collect()
}

fn check(seed: u64, distribution: &Distribution, table: &Table, mean: f64, sd: f64) {
    let name = distribution.to_string();
    for (&x, (below, above)) in table.iter().zip(levels()).filter(|(x, _)| **x > 0.0) {
        let found = (distribution.cdf(x), distribution.survival(x));
        // x is rounded to 53 bits, which shifts a probability by up to x·2⁻⁵³ times the density.
        let rounding = 2e-16 * (1.0 + x / sd);
        for (found, wanted) in [(found.0, below), (found.1, above)] {
            let off = (found - wanted).abs();
            assert!(off <= 1e-12 * wanted + rounding, "{name}: F({x}) is {found}, not {wanted}: {off}");
        }
        let quantile = distribution.quantile(below);
        // 1 − 10⁻⁹ has 7 digits less.
        let tolerance = if above < 1e-5 { 1e-7 } else { 1e-11 };
        assert!(
            (quantile - x).abs() < tolerance * x + 1e-14 * sd,
            "{name}: Q({below}) is {quantile}, not {x}"
        );
    }
    assert!(
        (distribution.mean() / mean - 1.0).abs() < 1e-9,
        "{name}: mean {}, not {mean}",
        distribution.mean()
    );
    assert!((distribution.sd() / sd - 1.0).abs() < 1e-9, "{name}: sd {}, not {sd}", distribution.sd());

    let sampler = Sampler::new(distribution);
    let stream = stream(seed);
    let samples: Vec<f64> = (0..DRAWS).map(|n| sampler.sample(&mut stream.nth(n)).nanos() as f64).collect();
    // Draws are whole nanoseconds, which a distribution that crowds at zero tells from its own.
    let is_smooth = |x: f64| x >= 1_000.0;
    let wanted = table.iter().copied().zip(levels().into_iter().map(|(p, _)| p));
    // Finer steps, of the function that was just found to be scipy's.
    let finer = (1..1024).map(|i| f64::from(i) / 1024.0).map(|p| (distribution.quantile(p), p));
    let mut places: Vec<_> = wanted.chain(finer).filter(|&(x, _)| is_smooth(x)).collect();
    places.sort_unstable_by(|(a, _), (b, _)| a.total_cmp(b));
    let (apart, critical) = (distance(&samples, &places), critical(samples.len()));
    assert!(apart < critical, "{name}: {apart}, not below {critical}");
}

fn is(made: Result<Distribution, narrows_core::model::DistributionError>) -> Distribution {
    made.expect("in range")
}

fn mixture() -> Distribution {
    let late = is(is(Distribution::exponential(5e6)).shifted(12_000_000));
    is(Distribution::mixture(vec![(9.0, is(Distribution::normal(10e6, 1e6))), (1.0, late)]))
}

const fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

#[test]
fn uniform_and_points() {
    check(1, &is(Distribution::uniform(1e6, 3e6)), &reference::UNIFORM, 2e6, 2e6 / 12f64.sqrt());
    let bins = vec![(micros(3000), micros(3500), 70.0), (micros(1000), micros(2000), 30.0)];
    let histogram = is(Distribution::histogram(bins));
    check(2, &histogram, &reference::HISTOGRAM, 2_725_000.0, (682_708_333_333.333_3_f64).sqrt());
    let points = vec![(micros(1000), 0.0), (micros(2000), 0.5), (micros(9000), 1.0)];
    check(3, &is(Distribution::points(points)), &reference::POINTS, 3.5e6, (73e12 / 12.0_f64).sqrt());
}

#[test]
fn normal() {
    // Below zero lie 2.9·10⁻⁷ of it; clamped, that raises the mean by 2·(φ(5) − 5·Φ(−5)) ms.
    check(4, &is(Distribution::normal(10e6, 2e6)), &reference::NORMAL, 10_000_000.107, 1_999_999.446);
    let positive = is(is(Distribution::normal(1e6, 1e6)).below_zero(BelowZero::Truncate));
    check(5, &positive, &reference::NEVER_BELOW_ZERO, 1_287_599.970_939_178_5, 793_527.747_326_207_5);
}

#[test]
fn log_normal() {
    check(6, &is(Distribution::log_normal(5e6, 3e6)), &reference::LOG_NORMAL, 5e6, 3e6);
    let (mean, sd) = (3_297_442.541_400_256, 4_322_394.831_790_175);
    check(7, &is(Distribution::log_normal_median(2e6, 1.0)), &reference::LOG_NORMAL_MEDIAN, mean, sd);
}

#[test]
fn exponential_and_weibull() {
    check(8, &is(Distribution::exponential(4e6)), &reference::EXPONENTIAL, 4e6, 4e6);
    let (mean, sd) = (2_531_647.012_114_567, 3_702_342.800_796_897);
    check(9, &is(Distribution::weibull(0.7, 2e6)), &reference::WEIBULL_BELOW_ONE, mean, sd);
    let (mean, sd) = (892_979.511_569_249, 324_550.280_955_785_25);
    check(10, &is(Distribution::weibull(3.0, 1e6)), &reference::WEIBULL, mean, sd);
}

#[test]
fn gamma() {
    let (mean, sd) = (300_000.0, 547_722.557_505_166_2);
    check(11, &is(Distribution::gamma(0.3, 1e6)), &reference::GAMMA_BELOW_ONE, mean, sd);
    let (mean, sd) = (2_250_000.0, 1_060_660.171_779_821_4);
    check(12, &is(Distribution::gamma(4.5, 5e5)), &reference::GAMMA, mean, sd);
    let later = is(is(Distribution::gamma_mean(mean, sd)).shifted(12_000_000));
    check(13, &later, &reference::SHIFTED, 14_250_000.0, sd);
    let (mean, sd) = (20_000_000.0, 44_721.359_549_995_796);
    check(14, &is(Distribution::gamma(2e5, 100.0)), &reference::GAMMA_LARGE, mean, sd);
}

#[test]
fn pareto() {
    let (mean, sd) = (1_666_666.666_666_666_7, 1_490_711.984_999_86);
    check(15, &is(Distribution::pareto(2.5, 1e6)), &reference::PARETO, mean, sd);
    check(16, &is(Distribution::pareto_normal(20e6, 3e6)), &reference::PARETO_NORMAL, 20e6, 3e6);
    let pareto = is(Distribution::pareto(1.5, 1e6));
    assert_eq!((pareto.mean(), pareto.sd()), (3e6, f64::INFINITY));
    assert_eq!(is(Distribution::pareto(0.9, 1e6)).mean(), f64::INFINITY);
}

#[test]
fn mixtures_and_truncations() {
    check(17, &mixture(), &reference::MIXTURE, 10.7e6, (7.81e12_f64).sqrt());
    let part = |made: Distribution, low, high| is(made.truncated(low, high));
    let normal = part(is(Distribution::normal(10e6, 2e6)), Some(micros(9_000)), Some(micros(15_000)));
    let (mean, sd) = (10_976_390.109_602_712, 1_327_900.751_271_892);
    check(18, &normal, &reference::TRUNCATED_NORMAL, mean, sd);
    let gamma = part(is(Distribution::gamma(4.5, 5e5)), None, Some(micros(3_000)));
    check(19, &gamma, &reference::TRUNCATED_GAMMA, 1_820_032.654_624_141, 634_561.975_058_869_6);
    let mixture = part(mixture(), Some(micros(9_500)), Some(micros(20_000)));
    let (mean, sd) = (11_016_930.642_378_876, 1_725_456.432_772);
    check(20, &mixture, &reference::TRUNCATED_MIXTURE, mean, sd);
}
