//! A read-only view of a link.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use super::instances::{InstanceCounts, Made};
use super::{FeedView, Link, Mtu, PolicerCounts};
use crate::classify::Flow;
use crate::counters::Counters;
use crate::queue::{Backlog, Bound, ClassCounters};
use crate::sched::{ClassState, FlowSetCounts, MaskedFlow};
use crate::time::{Duration, Time};
use crate::units::Rate;

/// A link, for inspection. Counters of a link with instances include those of its instances.
#[derive(Clone, Copy, Debug)]
pub struct LinkView<'a> {
    pub(super) link: &'a Link,
    made: Option<&'a Made>,
    /// All elements, to look up the instances.
    links: &'a [Link],
}

/// A link instance, created on first use.
#[derive(Clone, Copy, Debug)]
pub struct Instance<'a> {
    /// The flow of its packets.
    pub flow: Flow,
    /// The instance as a link.
    pub link: LinkView<'a>,
}

impl<'a> LinkView<'a> {
    pub(crate) const fn new(link: &'a Link, made: Option<&'a Made>, links: &'a [Link]) -> Self {
        Self { link, made, links }
    }

    /// All instances ever created, removed or not.
    fn all_made(&self) -> impl Iterator<Item = &'a Link> + use<'a> {
        let (made, links) = (self.made, self.links);
        made.into_iter().flat_map(|made| made.elements()).map(move |&element| &links[element as usize])
    }

    /// The existing instances at `now`, in order of their flows.
    pub fn instances(&self, now: Time) -> Vec<Instance<'a>> {
        let present = self.made.map_or(Vec::new(), |made| made.present(now));
        let view = |(flow, element): (Flow, u32)| Instance {
            flow,
            link: Self { link: &self.links[element as usize], made: None, links: &[] },
        };
        present.into_iter().map(view).collect()
    }

    /// Counters of link instances, if this link has any.
    pub fn instance_counts(&self) -> Option<InstanceCounts> {
        self.made.map(|made| made.counts)
    }

    /// The link's name.
    pub fn name(&self) -> &'a str {
        &self.link.name
    }

    /// The counters of each lane: one lane for a link of one direction, more for a shared medium.
    pub fn counters(&self) -> Cow<'a, [Counters]> {
        let Some(made) = self.made else { return Cow::Borrowed(&self.link.counters) };
        let mut sums = self.link.counters.to_vec();
        let mut add =
            |counters: &[Counters]| sums.iter_mut().zip(counters).for_each(|(sum, own)| sum.absorb(own));
        made.present_counters(self.links).for_each(&mut add);
        add(&made.gone);
        Cow::Owned(sums)
    }

    /// The backlog of the queue.
    pub fn backlog(&self) -> Backlog {
        let mut sum = self.link.queue.backlog();
        for link in self.all_made() {
            let own = link.queue.backlog();
            sum.packets += own.packets;
            sum.bytes += own.bytes;
        }
        sum
    }

    /// The counters of each class of the queue, if it has classes.
    pub fn classes(&self) -> &'a [ClassCounters] {
        self.link.queue.classes()
    }

    /// The state of the classes of the queue's scheduler, if it reports more than the common counters.
    pub fn class_states(&self, now: Time) -> Vec<ClassState> {
        self.link.queue.class_states(now)
    }

    /// The policer's counters, if there is one.
    pub fn policer(&self) -> Option<PolicerCounts> {
        let own = |link: &Link| Some(link.impairments.as_ref()?.policer.as_ref()?.counts());
        let all = core::iter::once(self.link).chain(self.all_made());
        all.filter_map(own).reduce(|mut sum, own| {
            sum.absorb(own);
            sum
        })
    }

    /// The flows that masks have created in the queue and that exist at `now`, by set and sorted within a
    /// set.
    pub fn masked_flows(&self, now: Time) -> Vec<MaskedFlow> {
        self.link.queue.masked_flows(now)
    }

    /// Counters of the flows in each set of the queue, if masks create flows.
    pub fn flow_sets(&self) -> Vec<FlowSetCounts> {
        self.link.queue.flow_sets()
    }

    /// The bound of the queue.
    pub fn bound(&self) -> Bound {
        self.link.queue.bound()
    }

    /// Packets in the delay line, including those that wait for an answer of a feed or for a slot.
    pub fn in_flight(&self) -> u64 {
        self.link.in_flight() + self.all_made().map(Link::in_flight).sum::<u64>()
    }

    /// The feeds of the delay model.
    pub fn feeds(&self) -> Vec<FeedView<'a>> {
        self.link.view_feeds()
    }

    /// The MTU.
    pub fn mtu(&self) -> Option<Mtu> {
        self.link.settings.mtu
    }

    /// Whether a packet is on the wire.
    pub fn is_transmitting(&self) -> bool {
        self.link.transmission.is_some() || self.all_made().any(|link| link.transmission.is_some())
    }

    /// How many packets are on the wire: at most one per link, but several for a link with instances.
    pub fn transmitting(&self) -> u64 {
        let one = |link: &Link| u64::from(link.transmission.is_some());
        one(self.link) + self.all_made().map(one).sum::<u64>()
    }

    /// The rate at `at`.
    pub fn rate(&self, at: Time) -> Rate {
        self.link.service.rate(at)
    }

    /// The mean propagation delay, if known.
    pub fn mean_delay(&self) -> Option<Duration> {
        self.link.delay.mean()
    }
}
