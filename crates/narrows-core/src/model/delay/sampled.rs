//! Independent delays.

use super::{DelayModel, Propagation};
use crate::model::distribution::{Distribution, Sampler, whole};
use crate::pool::PacketState;
use crate::random::Draw;
use crate::time::{Duration, Time};

/// Each packet draws its delay from a distribution, independently of all others.
#[derive(Clone, Debug)]
pub struct Sampled {
    sampler: Sampler,
    mean: Duration,
}

impl Sampled {
    /// Draws from this distribution; see [`Sampler::new`].
    pub fn new(distribution: Distribution) -> Self {
        Self { sampler: Sampler::new(&distribution), mean: whole(distribution.mean()) }
    }
}

impl DelayModel for Sampled {
    fn delay(&mut self, _: Time, _: &PacketState, draw: &mut Draw) -> Propagation {
        Propagation::After(self.sampler.sample(draw))
    }

    fn drawn(&self, draw: &mut Draw) -> Option<Duration> {
        Some(self.sampler.sample(draw))
    }

    fn mean(&self) -> Option<Duration> {
        Some(self.mean)
    }
}
