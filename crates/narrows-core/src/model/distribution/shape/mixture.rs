//! Mixtures: each draw chooses one of several distributions.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::Shape;
use crate::model::distribution::level::Level;
use crate::model::distribution::moments::Moments;
use crate::model::distribution::root::root;

/// Shapes with their shares, which are above zero and sum to 1.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mixture {
    parts: Arc<[(f64, Shape)]>,
}

impl Mixture {
    /// From at least one shape with a weight; weights are above zero.
    pub(crate) fn new(mut parts: Vec<(f64, Shape)>) -> Self {
        let sum: f64 = parts.iter().map(|(weight, _)| weight).sum();
        parts.iter_mut().for_each(|(weight, _)| *weight /= sum);
        Self { parts: parts.into() }
    }

    pub(crate) fn parts(&self) -> &[(f64, Shape)] {
        &self.parts
    }

    /// The level of the mixture, from the levels of its parts.
    pub(crate) fn level(&self, of: impl Fn(&Shape) -> Level) -> Level {
        let (mut below, mut above) = (0.0, 0.0);
        for (share, shape) in self.parts.iter() {
            let level = of(shape);
            below += share * level.below;
            above += share * level.above;
        }
        Level { below: below.min(1.0), above: above.min(1.0) }
    }

    /// Lies between the minimum and the maximum of the parts' quantiles, and is found there by search.
    pub(crate) fn quantile(&self, level: Level) -> f64 {
        let ends = self.parts.iter().map(|(_, shape)| shape.quantile(level));
        let (low, high) =
            ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
        if level.below <= 0.0 {
            return low;
        }
        if level.above <= 0.0 {
            return high;
        }
        // In logarithms, because tails are straighter in them.
        let (wanted, left) = match level {
            Level { below, above } if below <= above => (libm::log(below), true),
            Level { above, .. } => (libm::log(above), false),
        };
        root(low, high, |x| {
            let here = self.level(|shape| shape.level(x));
            if left { libm::log(here.below) - wanted } else { wanted - libm::log(here.above) }
        })
    }

    pub(crate) fn moments(&self, low: f64, high: f64) -> Moments {
        self.parts.iter().fold(Moments::NOTHING, |sum, (share, shape)| {
            let part = shape.moments(low, high);
            sum.and(Moments { mass: part.mass * share, ..part })
        })
    }

    pub(crate) fn atoms(&self) -> Vec<(f64, f64)> {
        let of = |(share, shape): &(f64, Shape)| {
            let share = *share;
            shape.atoms().into_iter().map(move |(x, p)| (x, p * share))
        };
        self.parts.iter().flat_map(of).collect()
    }
}
