//! Special functions on the pinned libm. Derivatives of the log-gamma function: by recurrence up to 10, then by the
//! asymptotic series of Abramowitz and Stegun, 6.3.18 and 6.4.12.

/// From here on the asymptotic series of ψ and ψ′ are accurate to the last digit or two.
const FAR: f64 = 10.0;

/// ψ(x) = (ln Γ)′(x), x > 0.
pub(crate) fn digamma(mut x: f64) -> f64 {
    let mut sum = 0.0;
    while x < FAR {
        sum -= 1.0 / x;
        x += 1.0;
    }
    let f = 1.0 / (x * x);
    let series = f
        * (1.0 / 12.0
            - f * (1.0 / 120.0
                - f * (1.0 / 252.0 - f * (1.0 / 240.0 - f * (1.0 / 132.0 - f * 691.0 / 32760.0)))));
    sum + libm::log(x) - 0.5 / x - series
}

/// ψ′(x), x > 0.
pub(crate) fn trigamma(mut x: f64) -> f64 {
    let mut sum = 0.0;
    while x < FAR {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    let f = 1.0 / (x * x);
    let series = f
        * (1.0 / 6.0
            - f * (1.0 / 30.0 - f * (1.0 / 42.0 - f * (1.0 / 30.0 - f * (5.0 / 66.0 - f * 691.0 / 2730.0)))));
    sum + 1.0 / x + 0.5 * f + series / x
}

/// The regularised incomplete beta function I(a, b; x), by its continued fraction (DLMF 8.17.22) and Lentz's method.
pub(crate) fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    /// In place of a zero to divide by.
    const TINY: f64 = 1e-300;
    /// Far more than the some √max(a, b) that it takes.
    const MOST_TERMS: u32 = 100_000;
    if x <= 0.0 || x >= 1.0 {
        return if x >= 1.0 { 1.0 } else { 0.0 };
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let apart = |value: f64| if value == 0.0 { TINY } else { value };
    let front = libm::exp(
        libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b) + a * libm::log(x) + b * libm::log1p(-x),
    );
    let (mut c, mut d) = (1.0, 1.0 / apart(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for m in (1..MOST_TERMS).map(f64::from) {
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        for step in [even, odd] {
            d = 1.0 / apart(1.0 + step * d);
            c = apart(1.0 + step / c);
            fraction *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    front * fraction / a
}
