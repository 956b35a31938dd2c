//! What is refused, and what is said then.

use narrows_core::Duration;
use narrows_core::model::{BelowZero, Distribution, DistributionError};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn normal() -> Distribution {
    Distribution::normal(10e6, 1e6).expect("in range")
}

#[test]
fn each_refusal_says_what_is_wrong() {
    let cases: Vec<(Result<Distribution, DistributionError>, &str)> = vec![
        (Distribution::normal(1e6, -1.0), "sd must be from zero to 104 days, not -1ns"),
        (Distribution::normal(f64::NAN, 1.0), "mean must be within 104 days of zero, not NaN"),
        (Distribution::constant(1e17), "value must be within 104 days of zero, not 100000000s"),
        (Distribution::uniform(3e6, 2e6), "the low end, 3ms, is above the high end, 2ms"),
        (Distribution::log_normal(0.0, 1.0), "mean must be more than zero and at most 104 days, not 0s"),
        (Distribution::log_normal_median(1e6, 21.0), "sigma must be from 0 to 20, not 21"),
        (Distribution::exponential(-1.0), "mean must be more than zero and at most 104 days, not -1ns"),
        (Distribution::gamma(0.0, 1e6), "shape must be from 0.01 to 1e9, not 0"),
        (Distribution::weibull(1e4, 1e6), "shape must be from 0.05 to 1000, not 10000"),
        (Distribution::pareto(f64::INFINITY, 1e6), "shape must be from 0.05 to 1000, not inf"),
        (Distribution::samples(vec![]), "there are no samples"),
        (Distribution::table(&[], 1e6, 1e5), "there are no entries in the table"),
        (Distribution::histogram(vec![]), "there are no bins"),
        (Distribution::points(vec![]), "there are no points"),
        (Distribution::mixture(vec![]), "there are no parts in the mixture"),
        (Distribution::mixture(vec![(0.0, normal())]), "all weights are zero"),
        (
            Distribution::mixture(vec![(1.0, normal()), (-1.0, normal())]),
            "the weight of entry 2 must be zero or more, not -1",
        ),
        (
            Distribution::histogram(vec![(ms(1), ms(2), 1.0), (ms(2), ms(3), f64::NAN)]),
            "the weight of entry 2 must be zero or more, not NaN",
        ),
        (
            Distribution::histogram(vec![(ms(4), ms(6), 1.0), (ms(1), ms(5), 1.0)]),
            "bin 2 starts before the one below it ends",
        ),
        (Distribution::histogram(vec![(ms(2), ms(1), 1.0)]), "the low end, 2ms, is above the high end, 1ms"),
        (
            Distribution::points(vec![(ms(1), 0.0), (ms(2), 0.6), (ms(3), 0.5), (ms(4), 1.0)]),
            "a cumulative distribution never goes down: point 3 has 0.5 after 0.6",
        ),
        (
            Distribution::points(vec![(ms(2), 0.0), (ms(1), 1.0)]),
            "point 2 is at a shorter delay than the one before it",
        ),
        (
            Distribution::points(vec![(ms(1), 0.0), (ms(2), 0.9)]),
            "a cumulative distribution ends at 1: the last point has 0.9",
        ),
        (
            Distribution::points(vec![(ms(1), 0.0), (ms(2), 1.1)]),
            "a cumulative probability must be from 0 to 1, not 1.1",
        ),
        (
            Distribution::uniform(1e6, 2e6).unwrap().truncated(Some(ms(3)), None),
            "no delay is left: none is 3ms or more",
        ),
        (
            Distribution::uniform(5e6, 6e6).unwrap().truncated(None, Some(ms(3))),
            "no delay is left: none is 3ms or less",
        ),
        (
            Distribution::samples(vec![ms(1), ms(9)]).unwrap().truncated(Some(ms(2)), Some(ms(8))),
            "no delay is left: none is between 2ms and 8ms",
        ),
        (normal().truncated(Some(ms(8)), Some(ms(2))), "the low end, 8ms, is above the high end, 2ms"),
        (
            Distribution::uniform(-3e6, -1e6).unwrap().below_zero(BelowZero::Truncate),
            "no delay is left: none is 0s or more",
        ),
        (
            normal().below_zero(BelowZero::Truncate).unwrap().shifted(-1_000_000_000),
            "no delay is left: none is 0s or more",
        ),
        (normal().shifted(i64::MIN), "shift must be within 104 days of zero, not -9223372036.854775808s"),
    ];
    for (made, says) in cases {
        assert_eq!(made.unwrap_err().to_string(), says);
    }
}

#[test]
fn what_is_at_the_end_of_its_range_is_taken() {
    for distribution in [
        Distribution::normal(0.0, 0.0),
        Distribution::uniform(2e6, 2e6),
        Distribution::log_normal(1e6, 0.0),
        Distribution::gamma(0.01, 1e6),
        Distribution::gamma(1e9, 1e-3),
        Distribution::weibull(0.05, 1e6),
        Distribution::pareto(0.05, 1e6),
        Distribution::samples(vec![ms(5)]),
        Distribution::points(vec![(ms(5), 1.0)]),
        Distribution::histogram(vec![(ms(5), ms(5), 0.1)]),
        // A tail of 10⁻²³⁰.
        normal().truncated(Some(Duration::from_nanos(42_400_000)), None),
        Distribution::samples(vec![ms(1), ms(9)]).unwrap().truncated(Some(ms(9)), Some(ms(9))),
    ] {
        let distribution = distribution.unwrap();
        let quantiles = [0.0, 1e-9, 0.01, 0.5, 0.99, 1.0].map(|p| distribution.quantile(p));
        assert!(
            quantiles.is_sorted() && quantiles[0] >= 0.0 && quantiles[4].is_finite(),
            "{distribution}: {quantiles:?}"
        );
        assert!(!distribution.to_string().contains("NaN") && !distribution.mean().is_nan(), "{distribution}");
    }
    let far = normal().truncated(Some(Duration::from_nanos(42_400_000)), None).unwrap();
    // Far out the tail of a normal distribution is exponential, with a mean of sd/32.4.
    assert!(
        (far.quantile(0.632_120_6) - 42_400_000.0 - 1e6 / 32.4).abs() < 100.0,
        "{}",
        far.quantile(0.632_120_6)
    );
}

#[test]
fn distributions_are_said_in_words() {
    let mixture =
        Distribution::mixture(vec![(3.0, normal()), (1.0, Distribution::exponential(2e6).unwrap())]);
    for (distribution, says) in [
        (Distribution::constant(1.5e6), "constant 1.5ms"),
        (Distribution::uniform(1e6, 2e6), "uniform from 1ms to 2ms"),
        (Distribution::log_normal_median(5e6, 0.5), "log-normal, median 5ms, sigma 0.5"),
        (Distribution::gamma(4.0, 5e5), "gamma, shape 4, scale 500us"),
        (Distribution::weibull(2.0, 5e5), "Weibull, shape 2, scale 500us"),
        (Distribution::pareto(3.0, 5e5), "Pareto, shape 3, minimum 500us"),
        (Distribution::pareto_normal(9e6, 1e6), "Pareto-normal, mean 9ms, sd 1ms, below zero clamped"),
        (Distribution::samples(vec![ms(1), ms(3)]), "one of 2 values, mean 2ms, sd 1ms"),
        (
            Distribution::points(vec![(ms(0), 0.0), (ms(12), 1.0)]),
            "straight between 2 points, mean 6ms, sd 3.464102ms",
        ),
        (
            Distribution::exponential(2e6).unwrap().shifted(-500_000),
            "exponential, mean 2ms, shifted by -500us, below zero clamped",
        ),
        (
            Distribution::exponential(2e6).unwrap().truncated(Some(ms(1)), Some(ms(5))),
            "exponential, mean 2ms, of which 1ms to 5ms",
        ),
        (
            mixture,
            "mixture of 75% (normal, mean 10ms, sd 1ms), 25% (exponential, mean 2ms), below zero clamped",
        ),
    ] {
        assert_eq!(distribution.unwrap().to_string(), says);
    }
}
