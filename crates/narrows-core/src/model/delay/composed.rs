//! Delay models that wrap others.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{DelayModel, Propagation};
use crate::classify::Condition;
use crate::model::feed::Feed;
use crate::pool::PacketState;
use crate::random::Draw;
use crate::time::{Duration, Time};

/// Another model's delay plus a part proportional to the length of the packet, from the network header on,
/// rounded to nanoseconds per packet.
#[derive(Debug)]
pub struct PerByte {
    model: Box<dyn DelayModel>,
    picoseconds: u64,
}

impl PerByte {
    /// Wraps `model`, which gives the part independent of the length, and adds `picoseconds` per byte.
    pub fn new(model: Box<dyn DelayModel>, picoseconds: u64) -> Self {
        Self { model, picoseconds }
    }
}

impl DelayModel for PerByte {
    fn delay(&mut self, now: Time, packet: &PacketState, draw: &mut Draw) -> Propagation {
        match self.model.delay(now, packet, draw) {
            Propagation::After(delay) => {
                // Less than 2⁶⁴ · 2³² picoseconds.
                let more = (u128::from(self.picoseconds) * u128::from(packet.length) + 500) / 1_000;
                let more = Duration::from_nanos(u64::try_from(more).unwrap_or(u64::MAX));
                Propagation::After(delay + more)
            }
            other => other,
        }
    }

    /// The mean of the part independent of the length.
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

/// Each packet uses the model of the first condition that it matches. A model sees, and advances for, only
/// its own packets. A condition on headers that are not in a flow key matches none.
#[derive(Debug)]
pub struct ByClass {
    classes: Vec<(Condition, Box<dyn DelayModel>)>,
    default: Box<dyn DelayModel>,
}

impl ByClass {
    /// The conditions in order of evaluation, and the model for packets that match none.
    pub fn new(classes: Vec<(Condition, Box<dyn DelayModel>)>, default: Box<dyn DelayModel>) -> Self {
        Self { classes, default }
    }
}

impl DelayModel for ByClass {
    fn delay(&mut self, now: Time, packet: &PacketState, draw: &mut Draw) -> Propagation {
        let of_class = self.classes.iter_mut().find(|(condition, _)| condition.holds_by_key(packet));
        let model = of_class.map_or(&mut self.default, |(_, model)| model);
        model.delay(now, packet, draw)
    }

    /// Unknown unless all models have the same mean: it depends on the traffic.
    fn mean(&self) -> Option<Duration> {
        let mean = self.default.mean()?;
        self.classes.iter().all(|(_, model)| model.mean() == Some(mean)).then_some(mean)
    }

    fn each_feed(&mut self, visit: &mut dyn FnMut(&mut Feed)) {
        self.classes.iter_mut().for_each(|(_, model)| model.each_feed(visit));
        self.default.each_feed(visit);
    }

    fn view_feeds<'a>(&'a self, visit: &mut dyn FnMut(&'a Feed)) {
        self.classes.iter().for_each(|(_, model)| model.view_feeds(visit));
        self.default.view_feeds(visit);
    }
}
