//! A link from outside.

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

/// A link, to look at. One that has instances counts what these do.
#[derive(Clone, Copy, Debug)]
pub struct LinkView<'a> {
    pub(super) link: &'a Link,
    made: Option<&'a Made>,
    /// All elements, to find the instances by.
    links: &'a [Link],
}

/// A link that was made on first use.
#[derive(Clone, Copy, Debug)]
pub struct Instance<'a> {
    /// What its packets agree in.
    pub flow: Flow,
    /// Itself.
    pub link: LinkView<'a>,
}

impl<'a> LinkView<'a> {
    pub(crate) const fn new(link: &'a Link, made: Option<&'a Made>, links: &'a [Link]) -> Self {
        Self { link, made, links }
    }

    /// All that have been made on first use, given up or not.
    fn all_made(&self) -> impl Iterator<Item = &'a Link> + use<'a> {
        let (made, links) = (self.made, self.links);
        made.into_iter().flat_map(|made| made.elements()).map(move |&element| &links[element as usize])
    }

    /// The links that were made on first use and are not given up, in the order of their flows.
    pub fn instances(&self, now: Time) -> Vec<Instance<'a>> {
        let present = self.made.map_or(Vec::new(), |made| made.present(now));
        let view = |(flow, element): (Flow, u32)| Instance {
            flow,
            link: Self { link: &self.links[element as usize], made: None, links: &[] },
        };
        present.into_iter().map(view).collect()
    }

    /// What has become of links that are made on first use, if this one has any.
    pub fn instance_counts(&self) -> Option<InstanceCounts> {
        self.made.map(|made| made.counts)
    }

    /// Its name.
    pub fn name(&self) -> &'a str {
        &self.link.name
    }

    /// The counters of each lane: one for a link of one direction, more for a shared medium.
    pub fn counters(&self) -> Cow<'a, [Counters]> {
        let Some(made) = self.made else { return Cow::Borrowed(&self.link.counters) };
        let mut sums = self.link.counters.to_vec();
        let mut add =
            |counters: &[Counters]| sums.iter_mut().zip(counters).for_each(|(sum, own)| sum.absorb(own));
        made.present_counters(self.links).for_each(&mut add);
        add(&made.gone);
        Cow::Owned(sums)
    }

    /// What waits in the queue.
    pub fn backlog(&self) -> Backlog {
        let mut sum = self.link.queue.backlog();
        for link in self.all_made() {
            let own = link.queue.backlog();
            sum.packets += own.packets;
            sum.bytes += own.bytes;
        }
        sum
    }

    /// What each class of the queue has counted, where it has classes.
    pub fn classes(&self) -> &'a [ClassCounters] {
        self.link.queue.classes()
    }

    /// Where the classes of the queue's scheduler stand, if it tells more of them than what all count.
    pub fn class_states(&self, now: Time) -> Vec<ClassState> {
        self.link.queue.class_states(now)
    }

    /// What the policer has counted, where there is one.
    pub fn policer(&self) -> Option<PolicerCounts> {
        let own = |link: &Link| Some(link.impairments.as_ref()?.policer.as_ref()?.counts());
        let all = core::iter::once(self.link).chain(self.all_made());
        all.filter_map(own).reduce(|mut sum, own| {
            sum.absorb(own);
            sum
        })
    }

    /// The flows of the queue that masks have made and that are there at `now`, by set and in their order.
    pub fn masked_flows(&self, now: Time) -> Vec<MaskedFlow> {
        self.link.queue.masked_flows(now)
    }

    /// What has become of the flows of each set of the queue, where masks make flows.
    pub fn flow_sets(&self) -> Vec<FlowSetCounts> {
        self.link.queue.flow_sets()
    }

    /// The bound of the queue.
    pub fn bound(&self) -> Bound {
        self.link.queue.bound()
    }

    /// Packets in the delay line, those included that wait for an answer of a feed or for a slot.
    pub fn in_flight(&self) -> u64 {
        self.link.in_flight() + self.all_made().map(Link::in_flight).sum::<u64>()
    }

    /// The feeds that the delays come from.
    pub fn feeds(&self) -> Vec<FeedView<'a>> {
        self.link.view_feeds()
    }

    /// The longest packet that it takes.
    pub fn mtu(&self) -> Option<Mtu> {
        self.link.settings.mtu
    }

    /// Whether a packet is on the wire.
    pub fn is_transmitting(&self) -> bool {
        self.link.transmission.is_some() || self.all_made().any(|link| link.transmission.is_some())
    }

    /// How many packets are on the wire: at most one for each link, which of those made on first use are several.
    pub fn transmitting(&self) -> u64 {
        let one = |link: &Link| u64::from(link.transmission.is_some());
        one(self.link) + self.all_made().map(one).sum::<u64>()
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
