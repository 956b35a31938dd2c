//! Propagation delays.

mod cell;
mod composed;
mod correlated;
mod fed;
mod lost_with_delay;
mod sampled;

pub use cell::{Cell, CellConfig, LightTrace, Train};
pub use composed::{ByClass, PerByte};
pub use correlated::{Correlated, CorrelatedPlan};
pub use fed::Fed;
pub use lost_with_delay::LostWithDelay;
pub use sampled::Sampled;

use core::fmt;

use super::feed::{Feed, FeedConfig};
use super::normal;
use super::propagation::Propagation;
use crate::pool::PacketState;
use crate::random::Draw;
use crate::time::{Duration, Time};

/// A model of propagation delay. A model with state advances once for each packet that it sees.
pub trait DelayModel: fmt::Debug + Send {
    /// The fate of a packet that enters the delay line at `now`. `draw` supplies the random numbers of this
    /// packet at this link. If a model returned [`Propagation::Asked`], it is called again for the same
    /// packet, with the same `now` and the same draws, when the answer has arrived or has timed out. A model
    /// that wraps another must return `Asked` unchanged, without having advanced its own state.
    fn delay(&mut self, now: Time, packet: &PacketState, draw: &mut Draw) -> Propagation;

    /// The mean, if known, for bounds and estimates.
    fn mean(&self) -> Option<Duration>;

    /// The delay, if the model is [`Constant`]: then a link needs no other method.
    fn constant(&self) -> Option<Duration> {
        None
    }

    /// The delay of a packet with these draws, if it depends on nothing else: neither on time, nor on the packet, nor
    /// on packets before it. Then it can be drawn ahead of the packet.
    fn drawn(&self, _draw: &mut Draw) -> Option<Duration> {
        None
    }

    /// The process, if it is one from packet to packet with normal delays: then all but its state can be drawn ahead.
    fn correlated(&self) -> Option<CorrelatedPlan> {
        None
    }

    /// The feed, if the delays are its values and nothing else.
    fn fed(&self) -> Option<&FeedConfig> {
        None
    }

    /// Visits the feeds that the delays come from, always in the same order. A model that wraps others visits
    /// theirs.
    fn each_feed(&mut self, _visit: &mut dyn FnMut(&mut Feed)) {}

    /// As [`DelayModel::each_feed`], read-only.
    fn view_feeds<'a>(&'a self, _visit: &mut dyn FnMut(&'a Feed)) {}
}

/// A constant delay.
#[derive(Clone, Copy, Debug)]
pub struct Constant(pub Duration);

impl DelayModel for Constant {
    fn delay(&mut self, _: Time, _: &PacketState, _: &mut Draw) -> Propagation {
        Propagation::After(self.0)
    }

    fn mean(&self) -> Option<Duration> {
        Some(self.0)
    }

    fn constant(&self) -> Option<Duration> {
        Some(self.0)
    }

    fn drawn(&self, _: &mut Draw) -> Option<Duration> {
        Some(self.0)
    }
}

/// Uniform between two delays, both included: every nanosecond is equally likely.
#[derive(Clone, Copy, Debug)]
pub struct Uniform {
    low: Duration,
    high: Duration,
}

impl Uniform {
    /// Uniform on [`low`, `high`]; `None` if `low` is above `high`.
    pub fn new(low: Duration, high: Duration) -> Option<Self> {
        (low <= high).then_some(Self { low, high })
    }

    fn draw(&self, draw: &mut Draw) -> Duration {
        let width = (self.high - self.low).nanos().saturating_add(1);
        self.low + Duration::from_nanos(draw.below(width))
    }
}

impl DelayModel for Uniform {
    fn delay(&mut self, _: Time, _: &PacketState, draw: &mut Draw) -> Propagation {
        Propagation::After(self.draw(draw))
    }

    fn drawn(&self, draw: &mut Draw) -> Option<Duration> {
        Some(self.draw(draw))
    }

    fn mean(&self) -> Option<Duration> {
        Some(self.low + Duration::from_nanos((self.high - self.low).nanos() / 2))
    }
}

/// Normal with a mean and a standard deviation, by inversion, rounded to nanoseconds. A draw below zero
/// becomes zero, so zero has an atom of probability Φ(−mean/sd), and the mean rises accordingly.
#[derive(Clone, Copy, Debug)]
pub struct Normal {
    /// The mean before clamping.
    pub mean: Duration,
    /// The standard deviation before clamping.
    pub sd: Duration,
}

impl Normal {
    fn draw(&self, draw: &mut Draw) -> Duration {
        let z = normal::quantile(draw.uniform());
        let nanos = self.mean.nanos() as f64 + z * self.sd.nanos() as f64;
        // A cast from a float saturates: negative values become zero.
        Duration::from_nanos((nanos + 0.5) as u64)
    }
}

impl DelayModel for Normal {
    fn delay(&mut self, _: Time, _: &PacketState, draw: &mut Draw) -> Propagation {
        Propagation::After(self.draw(draw))
    }

    fn drawn(&self, draw: &mut Draw) -> Option<Duration> {
        Some(self.draw(draw))
    }

    /// The mean before clamping. If it is 3 standard deviations or more, it is within 0.04 % of a standard
    /// deviation of the mean after clamping.
    fn mean(&self) -> Option<Duration> {
        Some(self.mean)
    }
}
