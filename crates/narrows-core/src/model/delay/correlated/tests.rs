use super::*;

/// (a, Q₁₁, Q₁₂, Q₂₂) as mpmath has them with 50 digits.
const NOISE: [(f64, f64, f64, f64); 9] = [
    (1e-9, 1.333_333_331_333_333_6e-27, 1.999_999_996_000_000_4e-18, 3.999_999_992e-9),
    (1e-4, 1.333_133_349_332_444_8e-12, 1.999_600_039_997_333_8e-8, 0.000_399_920_009_332_600_1),
    (0.01, 1.313_492_448_240_674_4e-6, 0.000_196_039_734_661_351_08, 0.039_209_260_424_718_45),
    (0.2, 0.007_926_331_867_253_836, 0.053_625_603_682_851_15, 0.544_182_368_695_765_3),
    (0.249, 0.014_236_500_098_291_126, 0.075_361_587_417_778_58, 0.619_550_455_261_171_4),
    (0.251, 0.014_539_765_630_325_665, 0.076_271_380_779_045_55, 0.622_279_851_519_134_8),
    (1.0, 0.323_323_583_816_936_54, 0.270_670_566_473_225_4, 0.864_664_716_763_387_3),
    (5.0, 0.997_230_604_284_488_4, 0.002_269_996_488_124_242_7, 0.998_138_602_879_738_1),
    (40.0, 1.0, 5.775_524_441_105_329e-32, 1.0),
];

#[test]
fn the_noise_of_a_gap_keeps_its_digits() {
    for (a, q11, q12, q22) in NOISE {
        // A gap of 2³⁰ ns and λ = a/2³⁰: the product is exact.
        let gap = Duration::from_nanos(1 << 30);
        let [l11, l21, l22] = Transition::over(gap, a / f64::from(1 << 30)).l;
        for (found, wanted) in [(l11 * l11, q11), (l11 * l21, q12), (l21 * l21 + l22 * l22, q22)] {
            assert!((found / wanted - 1.0).abs() < 1e-13, "{a}: {found}, not {wanted}");
        }
    }
}

/// Two gaps are as one of both together: A = A₂·A₁ and Q = A₂·Q₁·A₂ᵀ + Q₂.
#[test]
fn gaps_add_up() {
    type Matrix = [[f64; 2]; 2];
    let times = |a: Matrix, b: Matrix| -> Matrix {
        [0, 1].map(|i| [0, 1].map(|j| a[i][0] * b[0][j] + a[i][1] * b[1][j]))
    };
    let transposed = |a: Matrix| -> Matrix { [[a[0][0], a[1][0]], [a[0][1], a[1][1]]] };
    let noise = |t: &Transition| -> Matrix {
        let l = [[t.l[0], 0.0], [t.l[1], t.l[2]]];
        times(l, transposed(l))
    };
    let lambda = 1e-6;
    for (first, second) in [(1, 1), (1_000, 7), (200_000, 100_000), (3_000_000, 250_000), (10, 5_000_000)] {
        let over = |gap| Transition::over(Duration::from_nanos(gap), lambda);
        let (one, two, both) = (over(first), over(second), over(first + second));
        let matrix = times(two.a, one.a);
        let carried = times(times(two.a, noise(&one)), transposed(two.a));
        let (own, wanted) = (noise(&two), noise(&both));
        for i in 0..2 {
            for j in 0..2 {
                assert!((matrix[i][j] - both.a[i][j]).abs() < 1e-15, "{first}, {second}");
                let found = carried[i][j] + own[i][j];
                assert!((found / wanted[i][j] - 1.0).abs() < 1e-12, "{first}, {second}: {found}");
            }
        }
        // The stationary law stays: A·Aᵀ + Q = 1.
        let kept = times(both.a, transposed(both.a));
        for (i, j, one) in [(0, 0, 1.0), (0, 1, 0.0), (1, 1, 1.0)] {
            assert!((kept[i][j] + wanted[i][j] - one).abs() < 1e-15);
        }
    }
}
