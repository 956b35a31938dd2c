use alloc::vec;
use alloc::vec::Vec;

use super::interpolation::Interpolation;
use super::level::Level;
use super::root::root;
use super::shape::Shape;
use super::special;
use crate::model::Distribution;

/// (a, x, P, Q) as mpmath has them with 50 digits.
#[test]
#[rustfmt::skip]
fn the_incomplete_gamma_functions_have_twelve_digits_in_either_tail() {
    for (a, x, p, q) in [
        (0.01, 1e-05, 0.8963367982671973, 0.1036632017328028),
        (0.01, 0.003, 0.948919981204975, 0.051080018795025),
        (0.01, 0.01, 0.9603474235215091, 0.039652576478490804),
        (0.01, 0.03, 0.9707657166823968, 0.029234283317603294),
        (0.01, 20.03, 0.9999999999990118, 9.881722077455659e-13),
        (0.5, 0.0005, 0.025227120630039613, 0.9747728793699604),
        (0.5, 0.15, 0.4161175792296348, 0.5838824207703652),
        (0.5, 0.5, 0.6826894921370859, 0.3173105078629141),
        (0.5, 1.5, 0.9167354833364496, 0.0832645166635504),
        (0.5, 21.5, 0.9999999999452601, 5.4739864780051676e-11),
        (4.5, 0.0045, 5.236012236178926e-13, 0.9999999999994764),
        (4.5, 1.35, 0.024987590017269707, 0.9750124099827303),
        (4.5, 4.5, 0.562725811086133, 0.43727418891386705),
        (4.5, 13.5, 0.9986012323202036, 0.0013987676797964593),
        (4.5, 33.5, 0.9999999999411837, 5.881629791490588e-11),
        (9.5, 0.0095, 5.374089880030896e-26, 1.0),
        (9.5, 2.85, 0.0014516614980072946, 0.9985483385019928),
        (9.5, 9.5, 0.5431638744080376, 0.4568361255919624),
        (9.5, 28.5, 0.9999885738065064, 1.1426193493546637e-05),
        (9.5, 48.5, 0.9999999999981362, 1.8638750983955975e-12),
        (10.0, 0.01, 2.7307942836962466e-27, 1.0),
        (10.0, 3.0, 0.0011024881301154798, 0.9988975118698845),
        (10.0, 10.0, 0.5420702855281478, 0.4579297144718522),
        (10.0, 30.0, 0.9999928782491372, 7.121750862815577e-06),
        (10.0, 50.0, 0.9999999999987403, 1.2596084591660908e-12),
        (100.0, 40.0, 1.2062542053086514e-15, 0.9999999999999988),
        (100.0, 90.0, 0.15822098918643016, 0.8417790108135699),
        (100.0, 100.0, 0.5132987982791487, 0.48670120172085135),
        (100.0, 120.0, 0.9721362601094793, 0.027863739890520663),
        (100.0, 180.0, 0.999999999970517, 2.948294557648285e-11),
        (499.0, 364.97, 1.7257202425318132e-11, 0.9999999999827428),
        (499.0, 476.662, 0.1585752116481707, 0.8414247883518293),
        (499.0, 499.0, 0.5059531023839139, 0.49404689761608617),
        (499.0, 543.677, 0.9748895758315616, 0.025110424168438436),
        (499.0, 677.706, 0.9999999999997398, 2.6022873813087004e-13),
        (501.0, 366.702, 1.7436295906215572e-11, 0.9999999999825637),
        (501.0, 478.617, 0.1585724391591274, 0.8414275608408727),
        (501.0, 501.0, 0.5059412077998809, 0.49405879220011906),
        (501.0, 545.766, 0.974893081668034, 0.025106918331965957),
        (501.0, 680.064, 0.9999999999997423, 2.577343356394723e-13),
        (200000.0, 197317.0, 8.420874210507146e-10, 0.9999999991579126),
        (200000.0, 199553.0, 0.15877082073197676, 0.8412291792680232),
        (200000.0, 200000.0, 0.5002973540276185, 0.49970264597238145),
        (200000.0, 200894.0, 0.9770775764972183, 0.022922423502781782),
        (200000.0, 203578.0, 0.9999999999999991, 9.016329371878934e-16),
        (1000000000.0, 999810000.0, 9.350979994367392e-10, 0.999999999064902),
        (1000000000.0, 999968000.0, 0.15578597613165154, 0.8442140238683484),
        (1000000000.0, 1000000000.0, 0.5000042052208701, 0.4999957947791299),
        (1000000000.0, 1000060000.0, 0.9711084071676511, 0.0288915928323489),
        (1000000000.0, 1000250000.0, 0.9999999999999987, 1.3391736028927876e-15),
    ] {
        let found = special::gamma(a, x);
        assert!((found.below / p - 1.0).abs() < 2e-12, "P({a}, {x}) is {}, not {p}", found.below);
        assert!((found.above / q - 1.0).abs() < 2e-12, "Q({a}, {x}) is {}, not {q}", found.above);
        let inverse = special::gamma_quantile(a, Level { below: p, above: q });
        // A relative error of ε in the smaller tail is one of ε·tail/(x·density) in x.
        assert!((inverse / x - 1.0).abs() < 1e-11 * (1.0 + 1.0 / a), "inverse of P({a}, {x}): {inverse}");
    }
}

/// Far out the larger tail is 1 but for its last bits, in which it may be anything: the smaller one decides. (x, Q) of
/// a = 0.255 as mpmath has them with 50 digits.
#[test]
fn a_gamma_quantile_goes_by_the_smaller_tail() {
    for (x, q) in [
        (20.0, 6.016676805259604e-11),
        (24.0, 9.673792747426982e-13),
        (27.0, 4.4254988457576836e-14),
        (28.54, 9.115742078362907e-15),
        (29.0, 5.688633745173318e-15),
        (31.0, 7.336729393371575e-16),
        (36.0, 4.436003528520269e-18),
        (45.0, 4.654025668318353e-22),
    ] {
        for ulps in -3..=3 {
            let below = (1.0 - q + f64::from(ulps) * f64::EPSILON).min(1.0);
            let inverse = special::gamma_quantile(0.255, Level { below, above: q });
            assert!((inverse / x - 1.0).abs() < 1e-11, "{ulps} off: {inverse}, not {x}");
        }
    }
}

#[test]
fn a_root_is_found_at_jumps_and_infinities() {
    assert!((root(0.0, 10.0, |x| x * x - 2.0) - core::f64::consts::SQRT_2).abs() < 2e-12);
    let jump = root(-5.0, 1e9, |x| if x < 1e6 { f64::NEG_INFINITY } else { 1.0 });
    assert!((jump - 1e6).abs() <= 1e-4, "{jump}");
    assert_eq!(root(3.0, 4.0, |_| 1.0), 3.0);
    assert_eq!(root(3.0, 4.0, |_| -1.0), 4.0);
}

/// What the interpolation promises, at many more places than it looked at itself.
#[test]
fn the_interpolation_is_as_close_as_it_says() {
    let of = |made: Result<Distribution, _>| made.map(|made: Distribution| made.shape).unwrap();
    let exponential = Distribution::exponential(2e6).unwrap().shifted(5_000_000).unwrap();
    let parts = vec![
        (4.0, Distribution::normal(1e6, 1e4).unwrap()),
        (1.0, exponential),
        (1.0, Distribution::constant(3e6).unwrap()),
    ];
    let shapes: Vec<Shape> = [
        of(Distribution::gamma(0.3, 1e6)),
        of(Distribution::gamma(4.5, 1e9)),
        of(Distribution::gamma(1e5, 1e3)),
        of(Distribution::pareto(2.5, 1e6)),
        of(Distribution::mixture(parts)),
    ]
    .into();
    for shape in shapes {
        let table = Interpolation::new(|level| shape.quantile(level));
        assert!(table.nodes() < 3_000, "{shape}: {} nodes", table.nodes());
        let mut last = f64::NEG_INFINITY;
        // No multiple of what cells are.
        for i in 0..5_557 {
            let z = -8.4 + f64::from(i) * (16.8 / 5_557.0);
            let (level, found) = (Level::of_normal(z), table.at(z));
            let exact = shape.quantile(level);
            let close = (found - exact).abs() <= (2e-9 * exact.abs()).max(0.2);
            let off = |p: f64| {
                let below = (level.below + p).clamp(0.0, 1.0);
                shape.quantile(Level { below, above: (level.above - p).clamp(0.0, 1.0) })
            };
            let within = off(-1e-6) <= found && found <= off(1e-6);
            assert!(close || within, "{shape} at {z}: {found}, not {exact}");
            // At a jump what is found by search is a few of its last digits off.
            assert!(found >= last - 1e-12 * last.abs(), "{shape} at {z}: {found} after {last}");
            last = found;
        }
    }
}

#[test]
fn far_ends_are_finite() {
    for z in [-40.0, -9.0, 9.0, 40.0] {
        let table = Interpolation::new(|level| Shape::Gamma { shape: 2.0, scale: 1e6 }.quantile(level));
        assert!(table.at(z).is_finite() && table.at(z) >= 0.0);
    }
    let wild = Distribution::log_normal_median(1e6, 20.0).unwrap();
    assert!(Interpolation::new(|level| wild.shape.quantile(level)).at(8.0) <= super::LONGEST);
}

/// Where nearly nothing is left of a distribution its moments cancel, but they lie within what is left.
#[test]
fn moments_of_a_sliver_lie_within_it() {
    let sources = [
        Distribution::gamma(4.5, 1e9).unwrap(),
        Distribution::normal(4e9, 1e9).unwrap(),
        Distribution::log_normal_median(4e9, 1.5).unwrap(),
        Distribution::exponential(4e9).unwrap(),
        Distribution::pareto(2.5, 1e8).unwrap(),
    ];
    for source in sources {
        for width in [1, 30, 1_000, 1_000_000] {
            let (low, high) = (4_000_000_000, 4_000_000_000 + width);
            let [from, to] = [low, high].map(crate::Duration::from_nanos);
            let sliver = source.clone().truncated(Some(from), Some(to)).unwrap();
            let (mean, sd) = (sliver.mean(), sliver.sd());
            assert!(mean >= low as f64 && mean <= high as f64, "{sliver}: mean {mean}");
            assert!(sd >= 0.0 && sd <= 0.5 * width as f64, "{sliver}: sd {sd}");
        }
    }
}
