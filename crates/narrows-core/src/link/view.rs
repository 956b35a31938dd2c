//! A link from outside.

use alloc::vec::Vec;

use super::{FeedView, Link, Mtu};
use crate::counters::Counters;
use crate::queue::{Backlog, Bound, ClassCounters};
use crate::time::{Duration, Time};
use crate::units::Rate;

/// A link, to look at.
#[derive(Clone, Copy, Debug)]
pub struct LinkView<'a> {
    pub(super) link: &'a Link,
}

impl<'a> LinkView<'a> {
    /// Its name.
    pub fn name(&self) -> &'a str {
        &self.link.name
    }

    /// The counters of each lane: one for a link of one direction, more for a shared medium.
    pub fn counters(&self) -> &'a [Counters] {
        &self.link.counters
    }

    /// What waits in the queue.
    pub fn backlog(&self) -> Backlog {
        self.link.queue.backlog()
    }

    /// What each class of the queue has counted, where it has classes.
    pub fn classes(&self) -> &'a [ClassCounters] {
        self.link.queue.classes()
    }

    /// The bound of the queue.
    pub fn bound(&self) -> Bound {
        self.link.queue.bound()
    }

    /// Packets in the delay line, those included that wait for an answer of a feed or for a slot.
    pub fn in_flight(&self) -> u64 {
        self.link.in_flight()
    }

    /// The feeds that the delays come from.
    pub fn feeds(&self) -> Vec<FeedView<'a>> {
        self.link.view_feeds()
    }

    /// The longest packet that it takes.
    pub fn mtu(&self) -> Option<Mtu> {
        self.link.mtu
    }

    /// Whether a packet is on the wire.
    pub fn is_transmitting(&self) -> bool {
        self.link.transmission.is_some()
    }

    /// The rate at an instant.
    pub fn rate(&self, at: Time) -> Rate {
        self.link.service.rate(at)
    }

    /// The mean propagation delay, where it is known.
    pub fn mean_delay(&self) -> Option<Duration> {
        self.link.delay.mean()
    }
}
