//! How often a delay that is correlated in time falls faster than time goes on.

use crate::model::distribution::Transform;
use crate::model::normal;

/// The share of packets held back: see [`super::Correlated::held_back`].
///
/// The delay D(t) = T(Z(t)), T = Q∘Φ, has the slope T′(Z)·λ·V, where V is standard normal and independent of Z. A packet
/// would overtake where it is below −1.
pub(super) fn share(transform: &Transform, lambda: f64) -> f64 {
    const REACH: i32 = 8;
    const PER_UNIT: i32 = 256;
    let step = 1.0 / f64::from(PER_UNIT);
    let mut share = 0.0;
    let mut before = transform.nanos(f64::from(-REACH)).max(0.0);
    for i in -REACH * PER_UNIT..REACH * PER_UNIT {
        let z = f64::from(i) * step;
        let here = transform.nanos(z + step).max(0.0);
        // The standard deviation of the slope around this z.
        let slope = (here - before) / step * lambda;
        before = here;
        if slope > 0.0 {
            let level = 1.0 / slope;
            let falls = normal::cumulative(-level);
            let weight = normal::density(z + 0.5 * step) * step;
            share += weight * falls;
        }
    }
    share.min(1.0)
}
