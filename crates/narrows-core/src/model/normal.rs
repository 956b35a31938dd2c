//! The standard normal distribution.
//!
//! `quantile` is Wichura's algorithm AS 241 (PPND16, Applied Statistics 37, 1988), accurate to about 1 part
//! in 10¹⁶. `cumulative` uses the complementary error function of the pinned libm. Both use only + − × ÷ √
//! and that libm, so every machine gets the same bits.

/// Φ⁻¹(p) for 0 < p < 1.
pub fn quantile(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * ratio(r, &CENTRE);
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    let r = libm::sqrt(-libm::log(tail));
    let z = if r <= 5.0 { ratio(r - 1.6, &MIDDLE) } else { ratio(r - 5.0, &FAR) };
    if q < 0.0 { -z } else { z }
}

/// Φ(z).
pub fn cumulative(z: f64) -> f64 {
    0.5 * libm::erfc(-z * core::f64::consts::FRAC_1_SQRT_2)
}

/// φ(z) = Φ′(z).
pub fn density(z: f64) -> f64 {
    const ROOT_OF_TAU: f64 = 2.506_628_274_631_000_5;
    libm::exp(-0.5 * z * z) / ROOT_OF_TAU
}

/// Numerator and denominator coefficients, lowest power first.
type Rational = ([f64; 8], [f64; 8]);

/// By Estrin's scheme, whose steps depend on each other less than Horner's. All coefficients of each
/// polynomial have the same sign and x is not negative, so nothing cancels.
fn ratio(x: f64, (numerator, denominator): &Rational) -> f64 {
    let (x2, x4) = (x * x, (x * x) * (x * x));
    let polynomial = |c: &[f64; 8]| {
        let low = (c[0] + c[1] * x) + (c[2] + c[3] * x) * x2;
        let high = (c[4] + c[5] * x) + (c[6] + c[7] * x) * x2;
        low + high * x4
    };
    polynomial(numerator) / polynomial(denominator)
}

#[expect(clippy::excessive_precision, reason = "as published")]
const CENTRE: Rational = (
    [
        3.387_132_872_796_366_608_0,
        1.331_416_678_917_843_774_5e+2,
        1.971_590_950_306_551_442_7e+3,
        1.373_169_376_550_946_112_5e+4,
        4.592_195_393_154_987_145_7e+4,
        6.726_577_092_700_870_085_3e+4,
        3.343_057_558_358_812_810_5e+4,
        2.509_080_928_730_122_672_7e+3,
    ],
    [
        1.0,
        4.231_333_070_160_091_125_2e+1,
        6.871_870_074_920_579_083_0e+2,
        5.394_196_021_424_751_107_7e+3,
        2.121_379_430_158_659_586_7e+4,
        3.930_789_580_009_271_061_0e+4,
        2.872_908_573_572_194_267_4e+4,
        5.226_495_278_852_854_561_0e+3,
    ],
);

#[expect(clippy::excessive_precision, reason = "as published")]
const MIDDLE: Rational = (
    [
        1.423_437_110_749_683_577_34,
        4.630_337_846_156_545_295_90,
        5.769_497_221_460_691_405_50,
        3.647_848_324_763_204_605_04,
        1.270_458_252_452_368_382_58,
        2.417_807_251_774_506_117_70e-1,
        2.272_384_498_926_918_458_33e-2,
        7.745_450_142_783_414_076_40e-4,
    ],
    [
        1.0,
        2.053_191_626_637_758_821_87,
        1.676_384_830_183_803_849_40,
        6.897_673_349_851_000_045_50e-1,
        1.481_039_764_274_800_745_90e-1,
        1.519_866_656_361_645_719_66e-2,
        5.475_938_084_995_344_946_00e-4,
        1.050_750_071_644_416_843_24e-9,
    ],
);

#[expect(clippy::excessive_precision, reason = "as published")]
const FAR: Rational = (
    [
        6.657_904_643_501_103_777_20,
        5.463_784_911_164_114_369_90,
        1.784_826_539_917_291_335_80,
        2.965_605_718_285_048_912_30e-1,
        2.653_218_952_657_612_309_30e-2,
        1.242_660_947_388_078_438_60e-3,
        2.711_555_568_743_487_578_15e-5,
        2.010_334_399_292_288_132_65e-7,
    ],
    [
        1.0,
        5.998_322_065_558_879_376_90e-1,
        1.369_298_809_227_358_053_10e-1,
        1.487_536_129_085_061_485_25e-2,
        7.868_691_311_456_132_591_00e-4,
        1.846_318_317_510_054_681_80e-5,
        1.421_511_758_316_445_888_70e-7,
        2.044_263_103_389_939_785_64e-15,
    ],
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_values_and_the_inverse() {
        // The test values of the published algorithm, then points where the three branches meet.
        for (p, z) in [
            (0.25, -0.674_489_750_196_081_7),
            (0.001, -3.090_232_306_167_813),
            (1e-20, -9.262_340_089_798_408),
        ] {
            assert!((quantile(p) - z).abs() < 1e-14 * z.abs().max(1.0), "{p}");
        }
        for p in [1e-12, 1e-11, 0.01, 0.074_999, 0.075_001, 0.3, 0.5, 0.924_999, 0.925_001, 0.999] {
            assert!((cumulative(quantile(p)) / p - 1.0).abs() < 1e-12, "{p}");
        }
    }
}
