//! Derivatives of the log-gamma function, on the pinned libm: by recurrence up to 10, then by the asymptotic series
//! of Abramowitz and Stegun, 6.3.18 and 6.4.12.

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
