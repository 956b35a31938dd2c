//! Fits as a whole: what a sample was drawn from is found again, and the scenario's words for it mean the same.

use narrows_core::model::Distribution;
use narrows_core::{Seed, Stream};

use crate::dist::shape::Value;
use crate::dist::{Fit, Fits, Source, by_quantiles, cdf_entry, fit, histogram_entry, read_entry};
use crate::statistics::Sample;
use crate::statistics::special::trigamma;

const COUNT: u64 = 1000;

fn drawn(distribution: &Distribution) -> Sample {
    let stream = Stream::new(Seed(11), "fits", "test");
    let value = |number| distribution.quantile(stream.nth(number).uniform());
    Sample::new((0..COUNT).map(value).collect()).unwrap()
}

fn named<'a>(fits: &'a Fits, name: &str) -> &'a Fit {
    fits.fits.iter().find(|fit| fit.name == name).unwrap_or_else(|| panic!("{name}: {:?}", fits.left_out))
}

/// Parameters within four standard errors of those that the sample was drawn with. The errors are those of maximum
/// likelihood for n values: the roots of the inverse Fisher information.
#[test]
fn known_parameters_are_found_again() {
    let root = libm::sqrt(COUNT as f64);
    let gamma = |shape: f64| {
        let left = shape * trigamma(shape) - 1.0;
        (libm::sqrt(shape / left), libm::sqrt(trigamma(shape) / left))
    };
    let (of_shape, of_scale) = gamma(2.5);
    for (name, distribution, expected) in [
        ("normal", Distribution::normal(10e6, 2e6), &[(10e6, 2e6), (2e6, 2e6 / libm::sqrt(2.0))][..]),
        (
            "log-normal",
            Distribution::log_normal_median(10e6, 0.5),
            &[(10e6, 5e6), (0.5, 0.5 / libm::sqrt(2.0))],
        ),
        ("exponential", Distribution::exponential(3e6), &[(3e6, 3e6)]),
        ("gamma", Distribution::gamma(2.5, 1e6), &[(2.5, of_shape), (1e6, 1e6 * of_scale)]),
        // Johnson, Kotz and Balakrishnan, volume 1, chapter 21: 0.608·k²/n and 1.109·θ²/(k²·n).
        ("Weibull", Distribution::weibull(1.7, 5e6), &[(1.7, 0.7797 * 1.7), (5e6, 1.0529 * 5e6 / 1.7)]),
        ("Pareto", Distribution::pareto(3.0, 2e6), &[(3.0, 3.0), (2e6, 2e6 / 3.0 / root)]),
        ("uniform", Distribution::uniform(1e6, 9e6), &[(1e6, 8e6 / root), (9e6, 8e6 / root)]),
    ] {
        let distribution = distribution.unwrap();
        let fits = fit(&drawn(&distribution));
        let found = named(&fits, name);
        let parameters = found.parts[0].1.parameters();
        for ((parameter, value), (expected, error)) in parameters.iter().zip(expected) {
            let off = (value.raw() - expected).abs();
            assert!(off < 4.0 * error / root, "{name}: {parameter} {value:?}, {off} off {expected}");
        }
        // Nothing else describes it much better, and its p-value is not that of a wrong one.
        let best = fits.best().unwrap();
        assert!(found.aic() - best.aic() < 6.0, "{name}: {} is better", best.name);
        assert!(found.kolmogorov_smirnov.p_value > 0.01, "{name}: {:?}", found.kolmogorov_smirnov);
    }
}

#[test]
fn a_shift_and_two_modes_are_found_again() {
    let shifted = Distribution::gamma(2.0, 1e6).unwrap().shifted(20_000_000).unwrap();
    let fits = fit(&drawn(&shifted));
    let found = named(&fits, "gamma, shifted");
    assert!((found.shift - 20e6).abs() < 0.1e6, "{}", found.words());
    assert!(named(&fits, "gamma").aic() > found.aic() + 50.0);

    let parts = [(0.7, Distribution::normal(10e6, 1e6)), (0.3, Distribution::normal(25e6, 3e6))];
    let two = Distribution::mixture(parts.map(|(weight, part)| (weight, part.unwrap())).to_vec()).unwrap();
    let fits = fit(&drawn(&two));
    let best = fits.best().unwrap();
    assert!(best.name.starts_with("mixture"), "{}", best.name);
    let found = named(&fits, "mixture of two normals");
    // Four standard errors of a share of 0.7, and of means of 700 and 300 values.
    assert!((found.parts[0].0 - 0.7).abs() < 4.0 * libm::sqrt(0.21 / COUNT as f64));
    for ((_, shape), (mean, error)) in found.parts.iter().zip([(10e6, 1e6 / 26.4), (25e6, 3e6 / 17.3)]) {
        let (_, Value::Time(found)) = shape.parameters()[0] else { panic!("{shape:?}") };
        assert!((found - mean).abs() < 4.0 * error, "{shape:?}");
    }
}

/// The line that is printed is read by the scenario's parser as the very distribution that was judged.
#[test]
fn a_scenario_reads_what_was_judged() {
    let fits = fit(&drawn(&Distribution::gamma(2.0, 1e6).unwrap().shifted(5_000_000).unwrap()));
    assert!(fits.fits.len() >= 11, "{:?}", fits.left_out);
    for fit in &fits.fits {
        let read =
            read_entry(&fit.entry(), "test").unwrap_or_else(|error| panic!("{}: {error}", fit.entry()));
        for p in [0.001, 0.1, 0.5, 0.9, 0.999] {
            let (found, expected) = (read.quantile(p), fit.distribution.quantile(p));
            assert!((found - expected).abs() < 1e-9 * expected, "{}: {found} {expected}", fit.entry());
        }
    }
    assert_eq!(read_entry("10ms", "test").unwrap().quantile(0.5), 10e6);
    assert!(read_entry("{ feed = \"x\" }", "test").is_err());
    assert!(read_entry("{ gama = { shape = 2 } }", "test").is_err());
}

#[test]
fn entries_of_points_and_bins_are_near_the_sample() {
    let sample = drawn(&Distribution::gamma(2.0, 1e6).unwrap());
    let range = sample.greatest() - sample.least();
    let points = read_entry(&cdf_entry(|p| sample.quantile(p)), "test").unwrap();
    // Straight lines between every fifth value.
    assert!(sample.kolmogorov_smirnov(|x| points.cdf(x)).distance < 1.0 / 200.0 + 1.0 / COUNT as f64);
    let bins = histogram_entry(sample.least(), sample.greatest(), |x| sample.cdf(x));
    let bins = read_entry(&bins, "test").unwrap();
    // No value moves by more than its bin is wide.
    assert!(sample.wasserstein(|p| bins.quantile(p)) < range / 100.0);
    assert!((bins.mean() - sample.mean()).abs() < range / 200.0);
    assert_eq!(histogram_entry(5e6, 5e6, |_| 1.0), "delay = \"5ms\"");
    assert!(by_quantiles(|p| points.quantile(p)).unwrap().judge(&sample).wasserstein < range / 200.0);
}

#[test]
fn the_table_has_the_best_first_and_says_what_was_left_out() {
    let mut values = drawn(&Distribution::exponential(2e6).unwrap()).values().to_vec();
    values[0] = 0.0;
    let sample = Sample::new(values).unwrap();
    let fits = fit(&sample);
    let text = fits.text(Source { sample: &sample, name: "rtt.txt", unit: ("ms", 1e6) });
    assert!(text.starts_with("1000 delays of rtt.txt: 0ns to "), "{text}");
    assert!(text.contains("gamma: left out, a value is 0, which it does not have"), "{text}");
    let rows: Vec<&str> = text.lines().skip(3).take(fits.fits.len()).collect();
    assert!(rows.iter().zip(&fits.fits).all(|(row, fit)| row.starts_with(fit.name)), "{text}");
    assert!(fits.fits.is_sorted_by(|a, b| a.aic() <= b.aic()));
    assert!(text.trim_end().ends_with(&fits.best().unwrap().entry()), "{text}");
    // A density for each millisecond is 10⁶ times that for each nanosecond.
    let expected = fits.fits[0].ln_likelihood + 1000.0 * libm::log(1e6);
    assert!(rows[0].contains(&format!("{expected:.1}")), "{expected} {}", rows[0]);
}
