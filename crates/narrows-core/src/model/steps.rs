//! Delays and losses that follow a trace.

use super::{DelayModel, Propagation, Selector};
use crate::pool::PacketState;
use crate::random::Draw;
use crate::steps::{Segment, Steps};
use crate::time::{Duration, Time};
use crate::units::Probability;

/// Every packet gets the delay that applies when it enters the delay line.
#[derive(Clone, Debug)]
pub struct DelaySteps {
    steps: Steps<Duration>,
    segment: Segment,
}

impl DelaySteps {
    /// A model with these delays.
    pub const fn new(steps: Steps<Duration>) -> Self {
        Self { steps, segment: Segment::NOWHERE }
    }
}

impl DelayModel for DelaySteps {
    fn delay(&mut self, now: Time, _: &PacketState, _: &mut Draw) -> Propagation {
        self.steps.seek(&mut self.segment, now);
        Propagation::After(*self.steps.value(&self.segment))
    }

    /// The mean over time: see [`Steps::mean`].
    fn mean(&self) -> Option<Duration> {
        Some(Duration::from_nanos(self.steps.mean(|delay| delay.nanos() as f64) as u64))
    }
}

/// Every packet is selected with the probability that applies at that time, independently of the others.
#[derive(Clone, Debug)]
pub struct LossSteps {
    steps: Steps<Probability>,
    segment: Segment,
}

impl LossSteps {
    /// A selector with these probabilities.
    pub const fn new(steps: Steps<Probability>) -> Self {
        Self { steps, segment: Segment::NOWHERE }
    }
}

impl Selector for LossSteps {
    fn selects(&mut self, now: Time, _: &PacketState, draw: &mut Draw) -> bool {
        self.steps.seek(&mut self.segment, now);
        draw.chance(*self.steps.value(&self.segment))
    }

    /// The mean over time, which equals the share of packets if these are evenly spaced: see [`Steps::mean`].
    fn mean(&self) -> f64 {
        self.steps.mean(|probability| probability.as_f64())
    }
}
