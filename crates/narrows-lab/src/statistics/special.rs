//! Functions that statistics need, on the pinned libm: logarithm, derivatives and tails of the gamma function.
//!
//! Series and continued fraction of the incomplete gamma function as in Abramowitz and Stegun 6.5.29 and 6.5.31 (the
//! latter by Lentz's algorithm); ψ and ψ′ by recurrence up to 10, then their asymptotic series, 6.3.18 and 6.4.12.

/// ln Γ(x), x > 0.
pub fn ln_gamma(x: f64) -> f64 {
    libm::lgamma(x)
}

/// Where the asymptotic series of ψ and ψ′ are good to the last digit or two.
const FAR: f64 = 10.0;

/// ψ(x) = (ln Γ)′(x), x > 0.
pub fn digamma(mut x: f64) -> f64 {
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
pub fn trigamma(mut x: f64) -> f64 {
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

/// Q(a, x) = Γ(a, x)/Γ(a): the probability that a gamma variate of shape `a` > 0 and scale 1 exceeds `x`.
pub fn upper_gamma(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 1.0;
    }
    let front = libm::exp(a * libm::log(x) - x - ln_gamma(a));
    let result = if x < a + 1.0 { 1.0 - front * lower_series(a, x) } else { front * upper_fraction(a, x) };
    result.clamp(0.0, 1.0)
}

/// As far as series and fractions are taken: they need about √a terms.
const MOST_TERMS: u32 = 100_000;

/// Σ xⁿ/(a·(a + 1)…(a + n)).
fn lower_series(a: f64, x: f64) -> f64 {
    let (mut term, mut sum, mut n) = (1.0 / a, 1.0 / a, a);
    for _ in 0..MOST_TERMS {
        n += 1.0;
        term *= x / n;
        sum += term;
        if term < sum * f64::EPSILON {
            break;
        }
    }
    sum
}

/// 1/(x + 1 − a − 1·(1 − a)/(x + 3 − a − …)).
fn upper_fraction(a: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut b = x + 1.0 - a;
    let (mut c, mut d) = (1.0 / TINY, 1.0 / away(b));
    let mut value = d;
    for i in (1..MOST_TERMS).map(f64::from) {
        let factor = i * (a - i);
        b += 2.0;
        d = 1.0 / away(factor * d + b);
        c = away(b + factor / c);
        value *= c * d;
        if (c * d - 1.0).abs() < f64::EPSILON {
            break;
        }
    }
    value
}
