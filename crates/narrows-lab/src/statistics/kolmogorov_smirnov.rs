//! Kolmogorov-Smirnov tests.
//!
//! The distance is the maximum difference between two distribution functions, `D = sup |F(x) − G(x)|`. Its p-value is
//! the probability that n independent values from F are at least that far from it. It is computed, following Simard
//! and L'Ecuyer (2011, Computing the Two-Sided Kolmogorov-Smirnov Distribution, doi:10.18637/jss.v039.i11), by
//!
//! - twice Smirnov's one-sided probability if n·D² ≥ 4: there, the probability of exceeding D on both sides is 10⁻¹⁰
//!   of it;
//! - otherwise, up to n = 140, and up to 10⁵ if n·D^1.5 < 1.4, by the matrix of Marsaglia, Tsang and Wang (2003,
//!   doi:10.18637/jss.v008.i18), exact to rounding;
//! - otherwise by Pelz and Good's four terms (1976, doi:10.1111/j.2517-6161.1976.tb01570.x), accurate to 10⁻⁵ in this
//!   range.

use std::f64::consts::PI;

use super::Sample;

/// The result of a Kolmogorov-Smirnov test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KolmogorovSmirnov {
    /// The maximum difference between the two distribution functions, 0 to 1.
    pub distance: f64,
    /// The probability of a difference at least this large if both distributions are the same and the values are
    /// independent.
    pub p_value: f64,
}

impl Sample {
    /// Tests against a distribution function. Steps in it are taken into account for the distance; the p-value is
    /// then too large.
    pub fn kolmogorov_smirnov(&self, cdf: impl Fn(f64) -> f64) -> KolmogorovSmirnov {
        let (values, count) = (self.values(), self.len() as f64);
        let mut distance = 0.0_f64;
        let mut index = 0;
        while index < values.len() {
            let value = values[index];
            let next = index + values[index..].partition_point(|other| *other <= value);
            // Just below the value, the sample's function has not stepped yet.
            let below = cdf(value.next_down()) - index as f64 / count;
            let at = next as f64 / count - cdf(value);
            distance = distance.max(below.abs()).max(at.abs());
            index = next;
        }
        KolmogorovSmirnov { distance, p_value: exceeded(self.len() as f64, distance) }
    }
}

/// Up to this many values the exact matrix is cheap.
const MATRIX: f64 = 140.0;
/// From this n·D² on, the probability that both sides exceed D is negligible compared with one side.
const ONE_SIDED: f64 = 4.0;
/// Below this n·D^1.5 the four terms are not accurate enough, and the matrix is small even for many values.
const SHORT: f64 = 1.4;
/// Up to this many values the one-sided sum is computed term by term.
const MOST_TERMS: f64 = 1e5;

/// The probability that the distance of `n` values from their own distribution is at least `d`.
fn exceeded(n: f64, d: f64) -> f64 {
    let p = if d <= 0.5 / n {
        1.0
    } else if d >= 1.0 {
        0.0
    } else if n * d * d >= ONE_SIDED {
        2.0 * one_sided(n, d)
    } else if n <= MATRIX || (n <= MOST_TERMS && n * d * libm::sqrt(d) < SHORT) {
        1.0 - matrix(n, d)
    } else {
        1.0 - pelz_good(n, d)
    };
    p.clamp(0.0, 1.0)
}

/// Smirnov's probability that the sample's function exceeds the other by at least `d` somewhere: `d·Σ C(n,j)·(d +
/// j/n)^(j−1)·(1 − d − j/n)^(n−j)`, j from 0 to n·(1 − d). For many values Maag and Dicaire's approximation
/// `exp(−(6nd + 1)²/(18n))` (1971), with an error of O(1/n).
fn one_sided(n: f64, d: f64) -> f64 {
    if n > MOST_TERMS {
        let root = 6.0 * n * d + 1.0;
        return libm::exp(-root * root / (18.0 * n));
    }
    let whole = libm::lgamma(n + 1.0);
    let term = |j: f64| {
        let (up, down) = (d + j / n, 1.0 - d - j / n);
        if down <= 0.0 {
            return 0.0;
        }
        let choose = whole - libm::lgamma(j + 1.0) - libm::lgamma(n - j + 1.0);
        libm::exp(choose + (j - 1.0) * libm::log(up) + (n - j) * libm::log(down))
    };
    let last = (n * (1.0 - d)).floor() as u64;
    d * (0..=last).map(|j| term(j as f64)).sum::<f64>()
}

/// Marsaglia, Tsang and Wang: `P(D < d) = n!/nⁿ · (Hⁿ)[k,k]`, with a matrix H of 2k − 1 rows, k = ⌈n·d⌉.
fn matrix(n: f64, d: f64) -> f64 {
    let k = (n * d).floor() as usize + 1;
    let size = 2 * k - 1;
    let h = k as f64 - n * d;
    let mut base: Vec<f64> = vec![0.0; size * size];
    for row in 0..size {
        for column in 0..size.min(row + 2) {
            base[row * size + column] = 1.0;
        }
    }
    for edge in 0..size {
        base[edge * size] -= libm::pow(h, (edge + 1) as f64);
        base[(size - 1) * size + edge] -= libm::pow(h, (size - edge) as f64);
    }
    if 2.0 * h > 1.0 {
        base[(size - 1) * size] += libm::pow(2.0 * h - 1.0, size as f64);
    }
    for row in 0..size {
        let mut factorial = 1.0;
        // Entry (row, column) is divided by (row − column + 1)!.
        for back in 1..=row + 1 {
            factorial *= back as f64;
            base[row * size + (row + 1 - back)] /= factorial;
        }
    }
    // Entries shrink and grow by many orders of magnitude: a power of two is kept with each matrix.
    let (mut power, mut scale) = (identity(size), 0_i32);
    let (mut square, mut square_scale) = (base, 0_i32);
    let mut left = n as u64;
    while left > 0 {
        if left & 1 == 1 {
            power = product(&power, &square, size);
            scale += square_scale + normalise(&mut power);
        }
        square = product(&square, &square, size);
        square_scale = 2 * square_scale + normalise(&mut square);
        left >>= 1;
    }
    let mut result = power[(k - 1) * size + k - 1];
    for i in 1..=n as u64 {
        result *= i as f64 / n;
        // n!/nⁿ alone is 10⁻⁶⁰ for 140; powers of two are taken from the scale to keep the result in range.
        if result < 1e-100 {
            result = libm::scalbn(result, 300);
            scale -= 300;
        }
    }
    libm::scalbn(result, scale)
}

fn identity(size: usize) -> Vec<f64> {
    (0..size * size).map(|at| if at.is_multiple_of(size + 1) { 1.0 } else { 0.0 }).collect()
}

fn product(a: &[f64], b: &[f64], size: usize) -> Vec<f64> {
    let mut out = vec![0.0; size * size];
    for (row, line) in out.chunks_mut(size).enumerate() {
        for (inner, factor) in a[row * size..][..size].iter().enumerate() {
            for (value, other) in line.iter_mut().zip(&b[inner * size..][..size]) {
                *value += factor * other;
            }
        }
    }
    out
}

/// Scales the largest entry to near 1; returns the power of two that was factored out.
fn normalise(matrix: &mut [f64]) -> i32 {
    let greatest = matrix.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    let exponent = libm::ilogb(greatest);
    matrix.iter_mut().for_each(|value| *value = libm::scalbn(*value, -exponent));
    exponent
}

/// Pelz and Good: `P(D < d) = K₀ + K₁/√n + K₂/n + K₃/n^1.5` at z = √n·d, as in equations 10 to 13 of Simard and
/// L'Ecuyer.
fn pelz_good(n: f64, d: f64) -> f64 {
    let root = libm::sqrt(n);
    let z = root * d;
    let (z2, p2) = (z * z, PI * PI);
    let (z4, z6, z8) = (z2 * z2, z2 * z2 * z2, z2 * z2 * z2 * z2);
    let (p4, p6) = (p2 * p2, p2 * p2 * p2);
    // Each sum decreases as exp(−π²k²/(2z²)), and z is below 2.
    let terms = 0..40;
    let mut sums = [0.0; 4];
    for k in terms.map(f64::from) {
        let half = (k + 0.5) * (k + 0.5);
        let fall = libm::exp(-p2 * half / (2.0 * z2));
        // k and −1 − k give the same.
        sums[0] += fall;
        sums[1] += 2.0 * (p2 * half - z2) * fall;
        sums[2] += 2.0
            * (6.0 * z6 + 2.0 * z4 + p2 * (2.0 * z4 - 5.0 * z2) * half + p4 * (1.0 - 2.0 * z2) * half * half)
            * fall;
        sums[3] += 2.0
            * (p6 * half * half * half * (5.0 - 30.0 * z2)
                + p4 * half * half * (212.0 * z4 - 60.0 * z2)
                + p2 * half * (135.0 * z4 - 96.0 * z6)
                - (30.0 * z6 + 90.0 * z8))
            * fall;
    }
    let (mut second, mut third) = (0.0, 0.0);
    for k in (1..40).map(f64::from) {
        let (k2, fall) = (k * k, libm::exp(-p2 * k * k / (2.0 * z2)));
        second += 2.0 * p2 * k2 * fall;
        third += 2.0 * (3.0 * p2 * k2 * z2 - p4 * k2 * k2) * fall;
    }
    let half_root = libm::sqrt(PI / 2.0);
    let k0 = libm::sqrt(2.0 * PI) / z * sums[0];
    let k1 = half_root / (6.0 * z4) * sums[1];
    let k2 = half_root * (sums[2] / (72.0 * z6 * z) - second / (36.0 * z2 * z));
    let k3 = half_root * (sums[3] / (6480.0 * z8 * z2) + third / (216.0 * z6));
    k0 + k1 / root + k2 / n + k3 / (n * root)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// scipy 1.17.1, `scipy.stats.kstwo.sf(d, n)`.
    const EXCEEDED: [(f64, f64, f64); 18] = [
        (1000.0, 0.011, 9.996452227122e-01),
        (50_000.0, 0.0009, 9.999999999991e-01),
        (5.0, 0.3, 6.640000000000e-01),
        (20.0, 0.1, 9.762550945922e-01),
        (20.0, 0.25, 1.376256983672e-01),
        (100.0, 0.05, 9.532159710636e-01),
        (100.0, 0.15, 1.983924212564e-02),
        (140.0, 0.05, 8.576480297656e-01),
        (141.0, 0.05, 8.548456930097e-01),
        (141.0, 0.1, 1.112844551647e-01),
        (1000.0, 0.02, 8.108971656896e-01),
        (1000.0, 0.04, 7.933956059000e-02),
        (1000.0, 0.07, 1.049420628596e-04),
        (100_000.0, 0.003, 3.284563327727e-01),
        (100_000.0, 0.008, 5.491331159979e-06),
        (1_000_000.0, 0.001, 2.698210744259e-01),
        (1_000_000.0, 0.0008, 5.438713666611e-01),
        (1_000_000.0, 0.003, 3.039812751939e-08),
    ];

    #[test]
    fn the_distance_exceeds_a_value_as_often_as_scipy_says() {
        for (n, d, expected) in EXCEEDED {
            let found = exceeded(n, d);
            assert!(
                (found - expected).abs() < 2e-7 * expected + 1e-12,
                "{n} {d}: {found:e}, not {expected:e}"
            );
        }
        assert_eq!((exceeded(10.0, 0.04), exceeded(10.0, 1.0)), (1.0, 0.0));
    }

    /// At n = 140 the exact matrix ends and the four terms begin: both say the same there.
    #[test]
    fn the_ways_to_compute_it_meet() {
        for z in [0.6, 0.8, 1.2, 1.6, 1.9] {
            let d = z / libm::sqrt(140.0);
            let (exact, terms) = (matrix(140.0, d), pelz_good(140.0, d));
            assert!((exact - terms).abs() < 5e-6, "{z}: {exact} {terms}");
        }
    }
}
