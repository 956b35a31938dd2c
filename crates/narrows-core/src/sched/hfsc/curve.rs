//! Service curves of two linear pieces, with exact arithmetic.
//!
//! The x axis is time in nanoseconds, the y axis is work in billionths of a bit. So the work of a rate in a time is a
//! product, without rounding. Only the inverse rounds, up to the next nanosecond, and intersections of two curves, down.

use super::HfscCurve;
use crate::service::Work;
use crate::time::{Duration, Time};
use crate::units::Rate;

/// A service curve that starts at (x, y), and whose first piece may have become longer or shorter than configured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    x: u64,
    y: u128,
    /// The first piece: its length in time, its slope, and the work in it.
    dx: u64,
    m1: u64,
    dy: u128,
    /// The slope of the second piece.
    m2: u64,
}

impl Path {
    /// The curve as configured, from the origin.
    pub(super) fn new(curve: &HfscCurve) -> Self {
        let (m1, m2) = (curve.m1.bits_per_second(), curve.m2.bits_per_second());
        let dy = Work::done(curve.m1, curve.d).0;
        Self { x: 0, y: 0, dx: curve.d.nanos(), m1, dy, m2 }
    }

    /// The straight line with the slope of the second piece that starts where this curve does.
    pub(super) const fn without_first_piece(self) -> Self {
        Self { dx: 0, dy: 0, ..self }
    }

    /// The first instant at which the curve has done this work.
    pub(super) fn when(&self, work: Work) -> u64 {
        let Some(above) = work.0.checked_sub(self.y) else { return self.x };
        match above.checked_sub(self.dy) {
            // A first piece without slope ends where its work does.
            Some(0) if self.dy == 0 => self.x.saturating_add(self.dx),
            None | Some(0) => self.x.saturating_add(time_of(above, self.m1)),
            Some(rest) => self.x.saturating_add(self.dx).saturating_add(time_of(rest, self.m2)),
        }
    }

    /// The work that the curve has done by `x`.
    fn at(&self, x: u64) -> u128 {
        let in_first = x.saturating_sub(self.x);
        let in_second = in_first.saturating_sub(self.dx);
        let work = if in_second == 0 { work_of(in_first, self.m1) } else { self.dy };
        self.y.saturating_add(work).saturating_add(work_of(in_second, self.m2))
    }

    /// Takes the minimum of this curve and the configured one when that starts at (x, y).
    ///
    /// Two concave curves may cross once: the result starts at (x, y), and its first piece ends where they cross. Of
    /// two convex curves, the one that is lower at x is taken, which is the minimum if they do not cross later.
    pub(super) fn lower(&mut self, curve: &HfscCurve, x: u64, work: Work) {
        let y = work.0;
        let here = self.at(x);
        if curve.is_convex() {
            if here >= y {
                (self.x, self.y) = (x, y);
            }
            return;
        }
        if here <= y {
            return;
        }
        let whole = Self { x, y, ..Self::new(curve) };
        let end = x.saturating_add(whole.dx);
        if self.at(end) >= y.saturating_add(whole.dy) {
            *self = whole;
            return;
        }
        // Concave: m1 is above m2. As long as this curve is in its first piece, the two are parallel.
        let parallel = self.x.saturating_add(self.dx).saturating_sub(x);
        let apart = (here - y) / u128::from(self.m1 - self.m2);
        let dx = parallel.saturating_add(u64::try_from(apart).unwrap_or(u64::MAX));
        *self = Self { x, y, dx, dy: work_of(dx, self.m1), ..*self };
    }
}

fn work_of(span: u64, slope: u64) -> u128 {
    Work::done(Rate::from_bits_per_second(slope), Duration::from_nanos(span)).0
}

/// The time that this work takes, rounded up.
fn time_of(work: u128, slope: u64) -> u64 {
    match slope {
        0 => Time::NEVER.nanos(),
        _ => u64::try_from(work.div_ceil(slope.into())).unwrap_or(Time::NEVER.nanos()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn curve(m1: u64, d: u64, m2: u64) -> HfscCurve {
        let rate = Rate::from_bits_per_second;
        HfscCurve { m1: rate(m1), d: Duration::from_nanos(d), m2: rate(m2) }
    }

    #[test]
    fn a_curve_and_its_inverse_are_exact() {
        // 1000 bits in 1 ms, then 100 bits in each further ms.
        let concave = Path::new(&curve(1_000_000, 1_000_000, 100_000));
        for (bits, at) in [(0, 0), (1, 1_000), (1_000, 1_000_000), (1_001, 1_010_000), (1_100, 2_000_000)] {
            assert_eq!(concave.when(Work::bits(bits)), at, "{bits} bits");
            assert_eq!(concave.at(at), Work::bits(bits).0);
        }
        // Nothing for 1 ms.
        let convex = Path::new(&curve(0, 1_000_000, 100_000));
        assert_eq!((convex.when(Work::bits(0)), convex.when(Work::bits(1))), (1_000_000, 1_010_000));
        assert_eq!(convex.without_first_piece().when(Work::bits(0)), 0);
        // A third of a nanosecond rounds up.
        assert_eq!(Path::new(&curve(0, 0, 3_000_000_000)).when(Work::bits(1)), 1);
        let ends = Path::new(&curve(1_000_000, 1_000, 0));
        assert_eq!((ends.when(Work::bits(1)), ends.when(Work::bits(2))), (1_000, u64::MAX));
    }

    proptest! {
        /// At every activation the minimum with a fresh curve is what the minimum of all fresh curves so far is, within
        /// the rounding of their intersections; a convex curve is exact where it starts.
        #[test]
        fn the_minimum_of_concave_curves_is_that_of_all_of_them(
            (m2, more) in (1u64..1_000_000, 1u64..1_000_000),
            d in 1u64..100_000_000,
            starts in proptest::collection::vec((0u64..50_000_000, 0u64..1_000), 1..20),
        ) {
            let curve = curve(m2 + more, d, m2);
            let mut path = Path::new(&curve);
            let mut all = Vec::from([Path::new(&curve)]);
            let (mut x, mut bits) = (0, 0);
            for (wait, sent) in starts {
                (x, bits) = (x + wait, bits + sent);
                path.lower(&curve, x, Work::bits(bits));
                all.push(Path { x, y: Work::bits(bits).0, ..Path::new(&curve) });
                for later in [0, 1, d / 2, d, 2 * d, 10 * d] {
                    let least = all.iter().map(|one| one.at(x + later)).min().expect("there is one");
                    let found = path.at(x + later);
                    // The past does not matter: the curve is used for more work than there is.
                    let (least, found) = (least.max(Work::bits(bits).0), found.max(Work::bits(bits).0));
                    let rounding = u128::from(more) * all.len() as u128;
                    prop_assert!(found <= least && least - found <= rounding, "{} for {}", found, least);
                }
            }
        }

        /// The inverse is the first nanosecond with that work.
        #[test]
        fn the_inverse_is_the_first_instant(
            (m1, m2) in (0u64..10_000_000_000, 1u64..10_000_000_000),
            d in 0u64..1_000_000_000,
            bits in 1u64..1_000_000_000,
        ) {
            let path = Path::new(&curve(m1, d, m2));
            let at = path.when(Work::bits(bits));
            prop_assert!(path.at(at) >= Work::bits(bits).0);
            prop_assert!(at == 0 || path.at(at - 1) < Work::bits(bits).0);
        }
    }
}
