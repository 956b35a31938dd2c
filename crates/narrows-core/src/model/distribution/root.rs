//! The root of a non-decreasing function.

/// The minimum x from `low` to `high` at which `f` is not below zero, or `high`: to 13 digits of the wider
/// end. `f` is non-decreasing; it may have jumps and be infinite.
///
/// Uses the method of false position in its Illinois form, with a bisection whenever three steps have not
/// halved the bracket, so a jump costs at most three times as much as with plain bisection.
pub(crate) fn root(low: f64, high: f64, f: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (low, high);
    let within = 1e-13 * low.abs().max(high.abs());
    let mut at_low = f(low);
    if at_low >= 0.0 {
        return low;
    }
    let mut at_high = f(high);
    let (mut width, mut steps) = (high - low, 0);
    // −1 after the low end moved, 1 after the high end did.
    let mut moved = 0;
    while high - low > within {
        let straight = low - at_low * (high - low) / (at_high - at_low);
        let bisect = steps == 3 || !(straight > low && straight < high);
        let x = if bisect { 0.5 * (low + high) } else { straight };
        if x <= low || x >= high {
            break;
        }
        let here = f(x);
        if here < 0.0 {
            (low, at_low) = (x, here);
            if moved < 0 {
                at_high *= 0.5;
            }
            moved = -1;
        } else {
            (high, at_high) = (x, here);
            if moved > 0 {
                at_low *= 0.5;
            }
            moved = 1;
        }
        steps += 1;
        if high - low <= 0.5 * width {
            (width, steps) = (high - low, 0);
        } else if bisect {
            steps = 0;
        }
    }
    high
}
