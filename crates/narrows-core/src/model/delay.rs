//! Propagation delays.

mod composed;
mod correlated;
mod fed;
mod lost_with_delay;
mod sampled;

pub use composed::{ByClass, PerByte};
pub use correlated::Correlated;
pub use fed::Fed;
pub use lost_with_delay::LostWithDelay;
pub use sampled::Sampled;

use core::fmt;

use super::feed::Feed;
use super::normal;
use super::propagation::Propagation;
use crate::pool::PacketState;
use crate::random::Draw;
use crate::time::{Duration, Time};

/// How long a packet propagates. A model with state advances once for each packet that it sees.
pub trait DelayModel: fmt::Debug + Send {
    /// What becomes of a packet that enters the delay line at `now`. `draw` has the random numbers of this packet at
    /// this link. A model that answered [`Propagation::Asked`] is called again for the same packet, with the same instant
    /// and the same draws, when the answer is there or is waited for no longer; a model around another one has that pass,
    /// and must not have advanced.
    fn delay(&mut self, now: Time, packet: &PacketState, draw: &mut Draw) -> Propagation;

    /// The mean, where it is known, for bounds and estimates.
    fn mean(&self) -> Option<Duration>;

    /// The delay, of a model that is [`Constant`]: a link needs to ask nothing else then.
    fn constant(&self) -> Option<Duration> {
        None
    }

    /// Visits the feeds that the delays come from, always in the same order. A model around others visits theirs.
    fn each_feed(&mut self, _visit: &mut dyn FnMut(&mut Feed)) {}

    /// The same to look at.
    fn view_feeds<'a>(&'a self, _visit: &mut dyn FnMut(&'a Feed)) {}
}

/// Always the same.
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
}

/// Uniform between two delays, both included: every nanosecond is equally likely.
#[derive(Clone, Copy, Debug)]
pub struct Uniform {
    low: Duration,
    high: Duration,
}

impl Uniform {
    /// Uniform on [`low`, `high`]; nothing when `low` is above `high`.
    pub fn new(low: Duration, high: Duration) -> Option<Self> {
        (low <= high).then_some(Self { low, high })
    }
}

impl DelayModel for Uniform {
    fn delay(&mut self, _: Time, _: &PacketState, draw: &mut Draw) -> Propagation {
        let width = (self.high - self.low).nanos().saturating_add(1);
        Propagation::After(self.low + Duration::from_nanos(draw.below(width)))
    }

    fn mean(&self) -> Option<Duration> {
        Some(self.low + Duration::from_nanos((self.high - self.low).nanos() / 2))
    }
}

/// Normal with a mean and a standard deviation, by inversion, rounded to nanoseconds. A draw below zero becomes zero,
/// so there is an atom of probability Φ(−mean/sd) at zero and the mean rises accordingly.
#[derive(Clone, Copy, Debug)]
pub struct Normal {
    /// The mean before clamping.
    pub mean: Duration,
    /// The standard deviation before clamping.
    pub sd: Duration,
}

impl DelayModel for Normal {
    fn delay(&mut self, _: Time, _: &PacketState, draw: &mut Draw) -> Propagation {
        let z = normal::quantile(draw.uniform());
        let nanos = self.mean.nanos() as f64 + z * self.sd.nanos() as f64;
        // A cast from a float saturates: what is below zero becomes zero.
        Propagation::After(Duration::from_nanos((nanos + 0.5) as u64))
    }

    /// The mean before clamping, which for a mean of 3 standard deviations or more is within 0.04 % of a standard
    /// deviation of the mean after it.
    fn mean(&self) -> Option<Duration> {
        Some(self.mean)
    }
}
