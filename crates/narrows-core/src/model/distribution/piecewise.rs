//! A piecewise linear cumulative distribution function, given by its corners.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::level::Level;
use super::moments::Moments;

/// Corners in order: both coordinates are non-decreasing, and the last probability is 1. Two corners at one
/// place are an atom, two at one probability are a gap; the first corner is an atom if its probability is not
/// zero.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Piecewise {
    corners: Arc<[Corner]>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Corner {
    pub(crate) x: f64,
    pub(crate) p: f64,
}

impl Piecewise {
    /// From corners that meet the conditions above.
    pub(crate) fn new(corners: Vec<Corner>) -> Self {
        Self { corners: corners.into() }
    }

    pub(crate) fn corners(&self) -> usize {
        self.corners.len()
    }

    pub(crate) fn level(&self, x: f64) -> Level {
        // The last corner at x or left of it, and the next one, which is right of x.
        self.level_at(x, self.corners.partition_point(|corner| corner.x <= x))
    }

    pub(crate) fn level_before(&self, x: f64) -> Level {
        self.level_at(x, self.corners.partition_point(|corner| corner.x < x))
    }

    fn level_at(&self, x: f64, next: usize) -> Level {
        let Some(before) = next.checked_sub(1).map(|before| self.corners[before]) else {
            return Level::NONE;
        };
        let Some(after) = self.corners.get(next) else {
            return Level::ALL;
        };
        let width = after.x - before.x;
        Level::at(before.p + (after.p - before.p) * if width > 0.0 { (x - before.x) / width } else { 1.0 })
    }

    #[inline]
    pub(crate) fn quantile(&self, level: Level) -> f64 {
        let next = self.corners.partition_point(|corner| corner.p < level.below);
        let after = self.corners[next.min(self.corners.len() - 1)];
        match next {
            // At level 0, the distribution begins where it leaves zero.
            0 => self.corners[self.corners.partition_point(|corner| corner.p <= 0.0).saturating_sub(1)].x,
            _ => {
                let before = self.corners[next - 1];
                let share = (level.below - before.p) / (after.p - before.p);
                if share < 1.0 { before.x + (after.x - before.x) * share } else { after.x }
            }
        }
    }

    pub(crate) fn moments(&self, low: f64, high: f64) -> Moments {
        let mut all = Moments::NOTHING;
        for (x, p) in self.atoms() {
            if low <= x && x <= high {
                all = all.and(Moments::atom(p, x));
            }
        }
        for pair in self.corners.windows(2) {
            let (width, p) = (pair[1].x - pair[0].x, pair[1].p - pair[0].p);
            let (from, to) = (low.max(pair[0].x), high.min(pair[1].x));
            if width > 0.0 && from < to {
                let part = to - from;
                let mean = from + 0.5 * part;
                all = all.and(Moments { mass: p * part / width, mean, variance: part * part / 12.0 });
            }
        }
        all
    }

    pub(crate) fn atoms(&self) -> Vec<(f64, f64)> {
        let first = (self.corners[0].x, self.corners[0].p);
        let steps = self.corners.windows(2).filter(|pair| pair[0].x == pair[1].x);
        let steps = steps.map(|pair| (pair[0].x, pair[1].p - pair[0].p));
        core::iter::once(first).chain(steps).filter(|&(_, p)| p > 0.0).collect()
    }
}
