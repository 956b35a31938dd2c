//! The Wasserstein-1 distance: how far mass has to be moved, on average, to turn one distribution into the other, `W
//! = ∫₀¹ |F⁻¹(u) − G⁻¹(u)| du`. It is in the unit of the values.

use super::Sample;

/// The four Gauss-Legendre points in (0, 1), and their weights.
const NODES: [(f64, f64); 4] = [
    (0.069_431_844_202_973_71, 0.173_927_422_568_726_93),
    (0.330_009_478_207_571_9, 0.326_072_577_431_273_07),
    (0.669_990_521_792_428_1, 0.326_072_577_431_273_07),
    (0.930_568_155_797_026_3, 0.173_927_422_568_726_93),
];

/// The minimum number of panels for integrating over 0 to 1.
const PANELS: usize = 4096;
/// The outermost panels are halved towards the ends, where a quantile function may be unbounded, down to this width.
/// Well above the spacing of numbers next to 1.
const NARROWEST: f64 = 1e-13;

impl Sample {
    /// The distance to another sample, exactly.
    pub fn wasserstein_to(&self, other: &Self) -> f64 {
        let (a, b) = (self.values(), other.values());
        let (mut i, mut j, mut at, mut distance) = (0, 0, 0.0, 0.0);
        while i < a.len() && j < b.len() {
            let (end_a, end_b) = ((i + 1) as f64 / a.len() as f64, (j + 1) as f64 / b.len() as f64);
            let end = end_a.min(end_b);
            distance += (end - at) * (a[i] - b[j]).abs();
            at = end;
            // If both end at the same point, both advance: the products are exact.
            let (left, right) = ((i + 1) as u128 * b.len() as u128, (j + 1) as u128 * a.len() as u128);
            i += usize::from(left <= right);
            j += usize::from(right <= left);
        }
        distance
    }

    /// The distance to a distribution with this quantile function, which must be finite inside (0, 1) and have a
    /// mean. By quadrature, with a relative error of about 10⁻⁵ if the tails fall off as fast as those of a Pareto
    /// distribution of shape 3.
    pub fn wasserstein(&self, quantile: impl Fn(f64) -> f64) -> f64 {
        let (values, count) = (self.values(), self.len() as f64);
        let panels = PANELS.div_ceil(values.len());
        let panel = |value: f64, from: f64, to: f64| -> f64 {
            let wide = to - from;
            NODES
                .iter()
                .map(|(node, weight)| weight * (value - quantile(from + node * wide)).abs())
                .sum::<f64>()
                * wide
        };
        let mut distance = 0.0;
        for (index, &value) in values.iter().enumerate() {
            for part in 0..panels {
                let edge = |part: usize| (index as f64 + part as f64 / panels as f64) / count;
                let (mut from, mut to) = (edge(part), edge(part + 1));
                if index == 0 && part == 0 {
                    while to > NARROWEST {
                        let middle = to / 2.0;
                        distance += panel(value, middle, to);
                        to = middle;
                    }
                    from = 0.0;
                }
                if index + 1 == values.len() && part + 1 == panels {
                    while 1.0 - from > NARROWEST {
                        let middle = (from + 1.0) / 2.0;
                        distance += panel(value, from, middle);
                        from = middle;
                    }
                    to = 1.0;
                }
                distance += panel(value, from, to);
            }
        }
        distance
    }
}
