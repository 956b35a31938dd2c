//! Loss that depends on delay.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{DelayModel, Propagation};
use crate::model::feed::Feed;
use crate::pool::PacketState;
use crate::random::Draw;
use crate::time::{Duration, Time};
use crate::units::Probability;

/// Wraps another model. Each packet is lost with a probability that depends on its drawn delay: linear
/// between points of (delay, probability), and constant outside the first and the last point.
///
/// Example: a path whose full buffers show as delay, with points (20 ms, 0 %) and (100 ms, 10 %): a packet
/// that draws 60 ms is lost with a probability of 5 %.
#[derive(Debug)]
pub struct LostWithDelay {
    model: Box<dyn DelayModel>,
    points: Vec<(Duration, Probability)>,
}

impl LostWithDelay {
    /// Requires at least one point, and strictly increasing delays; otherwise `None`.
    pub fn new(model: Box<dyn DelayModel>, points: Vec<(Duration, Probability)>) -> Option<Self> {
        let grows = points.windows(2).all(|pair| pair[0].0 < pair[1].0);
        (!points.is_empty() && grows).then_some(Self { model, points })
    }

    /// The probability that a packet with this delay is lost, exact to the resolution of [`Probability`].
    pub fn probability(&self, delay: Duration) -> Probability {
        let next = self.points.partition_point(|(at, _)| *at <= delay);
        let Some(before) = next.checked_sub(1) else {
            return self.points[0].1;
        };
        let ((from, low), Some(&(to, high))) = (self.points[before], self.points.get(next)) else {
            return self.points[before].1;
        };
        low.towards(high, (delay - from).nanos(), (to - from).nanos())
    }
}

impl DelayModel for LostWithDelay {
    fn delay(&mut self, now: Time, packet: &PacketState, draw: &mut Draw) -> Propagation {
        match self.model.delay(now, packet, draw) {
            Propagation::After(delay) if draw.chance(self.probability(delay)) => Propagation::Lost,
            other => other,
        }
    }

    /// The mean of all drawn delays, including those of lost packets.
    fn mean(&self) -> Option<Duration> {
        self.model.mean()
    }

    fn each_feed(&mut self, visit: &mut dyn FnMut(&mut Feed)) {
        self.model.each_feed(visit);
    }

    fn view_feeds<'a>(&'a self, visit: &mut dyn FnMut(&'a Feed)) {
        self.model.view_feeds(visit);
    }
}
