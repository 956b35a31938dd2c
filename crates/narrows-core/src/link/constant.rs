//! The rate and the delay of a link. Both are nearly always a constant, which is then stored in the link
//! itself: packets need no virtual call and no draw for it.

use alloc::boxed::Box;
use core::ops::{Deref, DerefMut};

use crate::model::{self, DelayModel};
use crate::service::{ConstantRate, ServiceCurve};

#[derive(Debug)]
pub(super) enum Service {
    Constant(ConstantRate),
    Any(Box<dyn ServiceCurve>),
}

impl From<Box<dyn ServiceCurve>> for Service {
    fn from(curve: Box<dyn ServiceCurve>) -> Self {
        curve.constant().map_or(Self::Any(curve), |rate| Self::Constant(ConstantRate(rate)))
    }
}

impl Deref for Service {
    type Target = dyn ServiceCurve;

    #[inline(always)]
    fn deref(&self) -> &Self::Target {
        match self {
            Self::Constant(rate) => rate,
            Self::Any(curve) => &**curve,
        }
    }
}

#[derive(Debug)]
pub(super) enum Delay {
    Constant(model::Constant),
    Any(Box<dyn DelayModel>),
}

impl From<Box<dyn DelayModel>> for Delay {
    fn from(delay: Box<dyn DelayModel>) -> Self {
        delay.constant().map_or(Self::Any(delay), |delay| Self::Constant(model::Constant(delay)))
    }
}

impl Deref for Delay {
    type Target = dyn DelayModel;

    #[inline(always)]
    fn deref(&self) -> &Self::Target {
        match self {
            Self::Constant(delay) => delay,
            Self::Any(delay) => &**delay,
        }
    }
}

impl DerefMut for Delay {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::Constant(delay) => delay,
            Self::Any(delay) => &mut **delay,
        }
    }
}
