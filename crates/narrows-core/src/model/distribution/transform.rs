//! From a standard normal number to a delay: Q(Φ(z)), the last step of the Gaussian copula.

use alloc::sync::Arc;

use super::interpolation::Interpolation;
use super::level::Level;
use super::shape::Shape;
use super::{Distribution, sampler};
use crate::time::Duration;

/// Transforms standard normal numbers into delays of a distribution, preserving their order.
#[derive(Clone, Debug)]
pub(crate) enum Transform {
    Constant(f64),
    Linear {
        mean: f64,
        sd: f64,
    },
    /// Stepped quantiles: a list lookup at Φ(z).
    Stepped(Shape),
    Interpolated(Arc<Interpolation>),
}

impl Transform {
    pub(crate) fn new(distribution: &Distribution) -> Self {
        match &distribution.shape {
            &Shape::Constant(value) => Self::Constant(value),
            &Shape::Normal { mean, sd } => Self::Linear { mean, sd },
            shape if shape.is_stepped() => Self::Stepped(shape.clone()),
            shape => Self::Interpolated(Arc::new(Interpolation::new(|level| shape.quantile(level)))),
        }
    }

    /// In nanoseconds, before clamping.
    #[inline]
    pub(crate) fn nanos(&self, z: f64) -> f64 {
        match self {
            Self::Constant(value) => *value,
            Self::Linear { mean, sd } => mean + sd * z,
            Self::Stepped(shape) => shape.quantile(Level::of_normal(z)),
            Self::Interpolated(quantiles) => quantiles.at(z),
        }
    }

    #[inline]
    pub(crate) fn at(&self, z: f64) -> Duration {
        sampler::whole(self.nanos(z))
    }
}
