//! Estimates and likelihoods against scipy 1.17.1, and against the parameters that samples were drawn with.

use narrows_scenario::tables::{SampleColumn, read_samples};

use crate::dist::estimate::{Kind, ln_likelihood};
use crate::dist::mixture;
use crate::dist::shape::Shape;
use crate::statistics::Sample;

/// 400 values, written with four digits: quantiles of a gamma distribution of shape 2.2 and scale 1.5, shifted by 3, at
/// the multiples of the golden ratio modulo 1.
const GAMMA: &[u8] = include_bytes!("gamma.txt");
/// 400 values: 280 such quantiles of a normal distribution of 10 ± 1, and 120 of one of 16 ± 0.7.
const TWO_NORMALS: &[u8] = include_bytes!("two-normals.txt");

fn values(file: &[u8]) -> Vec<f64> {
    let column = SampleColumn { plain: true, ..SampleColumn::default() };
    read_samples("test", file, &column).unwrap().values
}

fn close(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() <= tolerance * b.abs(), "{found:?} is not {expected:?}");
    }
}

fn numbers(shape: &Shape) -> Vec<f64> {
    shape.parameters().iter().map(|(_, value)| value.raw()).collect()
}

/// scipy's `fit` with `floc=0`, and the sum of its `logpdf`; for Weibull, whose `fit` there stops at six digits, the
/// root of the equation by `brentq`.
#[test]
fn estimates_and_likelihoods_are_those_of_scipy() {
    let values = values(GAMMA);
    for (kind, parameters, likelihood) in [
        (Kind::Normal, &[6.30739375, 2.225059821305022][..], -887.488933776496),
        (Kind::LogNormal, &[5.970191776940113, 0.32473613131277074], -832.3901013824402),
        (Kind::Exponential, &[6.30739375], -1136.6890225461734),
        (Kind::Gamma, &[9.26379128331859, 0.6808652696394178], -844.2552699865215),
        (Kind::Weibull, &[2.894434080009106, 7.062192279133991], -884.0745086178943),
        (Kind::Pareto, &[1.5518957347981934, 3.1343], -938.9207248046321),
        (Kind::Uniform, &[3.1343, 17.1868], -1057.1201263576372),
    ] {
        let shape = kind.best(&values).unwrap();
        close(&numbers(&shape), parameters, 1e-9);
        close(&[ln_likelihood(&values, |x| shape.ln_density(x))], &[likelihood], 1e-12);
    }
}

/// scipy's minimisation of −Σ logpdf over all three parameters (Nelder and Mead's method, from near the maximum). The
/// likelihood is flat at its maximum, so parameters are compared to what the flatness leaves, and likelihoods closely.
#[test]
fn estimates_with_a_shift_are_the_local_maxima_that_scipy_finds() {
    let sample = Sample::new(values(GAMMA)).unwrap();
    for (kind, shift, parameters, likelihood) in [
        (Kind::Gamma, 3.0568210602358663, [2.1093193837609183, 1.5410528711257485], -818.8492801963391),
        (Kind::Weibull, 3.11915064692127, [1.4857940558500862, 3.533447258436678], -820.1717164401241),
        (Kind::LogNormal, 2.299251943668523, [3.4670695182672207, 0.5449616177634266], -822.083331900653),
    ] {
        let (found, shape) = kind.best_shifted(&sample).unwrap();
        close(&[found], &[shift], 1e-5);
        close(&numbers(&shape), &parameters, 1e-4);
        let sum = ln_likelihood(sample.values(), |x| shape.ln_density(x - found));
        assert!((sum - likelihood).abs() < 1e-6, "{kind:?}: {sum} {likelihood}");
    }
    let (shift, exponential) = Kind::Exponential.best_shifted(&sample).unwrap();
    close(&[shift, numbers(&exponential)[0]], &[3.1343, 3.17309375], 1e-12);
    let sum = ln_likelihood(sample.values(), |x| exponential.ln_density(x - shift));
    close(&[sum], &[-861.882823334158], 1e-12);
}

/// scipy's minimisation over all five parameters.
#[test]
fn a_mixture_is_the_one_that_scipy_finds() {
    let sample = Sample::new(values(TWO_NORMALS)).unwrap();
    let [(weight, first), (rest, second)] = mixture::best(sample.values(), false).unwrap();
    let found = [&[weight], &numbers(&first)[..], &numbers(&second)[..]].concat();
    close(
        &found,
        &[0.7000137247092744, 9.990453060419831, 0.9910834576881566, 16.053082649766502, 0.7036597489467766],
        1e-4,
    );
    assert!((weight + rest - 1.0).abs() < 1e-12);
    let density = |x: f64| weight * libm::exp(first.ln_density(x)) + rest * libm::exp(second.ln_density(x));
    let sum = ln_likelihood(sample.values(), |x| libm::log(density(x)));
    assert!((sum + 767.1899584629025).abs() < 1e-6, "{sum}");
}

#[test]
fn what_cannot_be_fitted_says_why() {
    for kind in [Kind::LogNormal, Kind::Gamma, Kind::Weibull, Kind::Pareto] {
        assert_eq!(kind.best(&[0.0, 1.0, 2.0]), Err("a value is 0, which it does not have"));
    }
    // A normal sample is no better with a gamma distribution's shift, or the shift runs to zero.
    let normal = Sample::new(values(TWO_NORMALS)[..280].to_vec()).unwrap();
    assert!(Kind::Weibull.best_shifted(&normal).is_ok_and(|(shift, _)| shift > 0.0));
    assert!(mixture::best(&[1.0; 4], false).is_err());
    assert!(Kind::Exponential.best_shifted(&Sample::new(vec![0.0, 1.0]).unwrap()).is_err());
}
