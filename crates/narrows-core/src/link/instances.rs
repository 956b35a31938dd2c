//! Links that are made on first use, one for each flow that a mask tells apart.
//!
//! Which link a packet goes to, when one is made and when one is given up follows from the instants of packets alone: a link
//! that went idle at t is given up by the first packet that comes at t + idle or later, of whatever flow, and a flow that comes
//! back then has a new one. So what a flow's link does depends on no other flow, as long as there are fewer than there may be.
//! Of several that have an event at one instant, that comes first which was made first, or in the place of one that was.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::config::{Instances, LinkConfig, LinkTemplate};
use super::{Link, Target};
use crate::classify::{Flow, FlowMask, Known};
use crate::counters::Counters;
use crate::pool::{PacketRef, Pool};
use crate::random::Seed;
use crate::time::{Duration, Time};

/// The links of one configured link. A link's number among them is its place in `elements`.
#[derive(Debug)]
pub(crate) struct Made {
    /// The configured link's element.
    pub(crate) of: u32,
    mask: FlowMask,
    idle: Duration,
    pub(crate) template: Box<dyn LinkTemplate>,
    known: Known,
    /// Which elements they are; given up ones are used again.
    elements: Vec<u32>,
    /// What those have counted that were given up.
    pub(crate) gone: Box<[Counters]>,
    /// Links that were made and given up, and packets that came when there were as many as there may be.
    pub(crate) counts: InstanceCounts,
}

/// What has become of links that are made on first use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InstanceCounts {
    /// Links that were made.
    pub made: u64,
    /// Those of them that were given up, idle.
    pub expired: u64,
    /// Packets that shared the configured link, because there were as many links as there may be.
    pub overflowed: u64,
}

/// What is to be done for a packet of a flow.
pub(crate) enum Found {
    /// Its link is this element.
    Element(u32),
    /// A link is to be made for it.
    New(Flow),
    /// There are as many as there may be.
    Overflow,
}

impl Made {
    pub(crate) fn new(of: u32, instances: Instances, lanes: usize, seed: Seed, name: &str) -> Self {
        let Instances { mask, most, idle, template } = instances;
        Self {
            of,
            mask,
            idle,
            template,
            known: Known::new(seed, name, most),
            elements: Vec::new(),
            gone: (0..lanes).map(|_| Counters::default()).collect(),
            counts: InstanceCounts::default(),
        }
    }

    pub(crate) fn find(&mut self, now: Time, packet: PacketRef, pool: &Pool, links: &[Link]) -> Found {
        while let Some(place) = self.since(now).and_then(|before| self.known.expired(before)) {
            self.counts.expired += 1;
            self.known.remove(place);
            let link = &links[self.elements[place as usize] as usize];
            self.gone.iter_mut().zip(link.counters()).for_each(|(sum, own)| sum.absorb(own));
        }
        let flow = self.mask.flow(&pool.get(packet).seen_key(), pool.flow_label(packet));
        if let Some(place) = self.known.find(&flow) {
            self.known.busy(place);
            return Found::Element(self.elements[place as usize]);
        }
        if self.known.len() >= self.known.most() {
            self.counts.overflowed += 1;
            return Found::Overflow;
        }
        Found::New(flow)
    }

    /// A link that has been idle since then or longer is expired at `now`; early on, none can have been.
    fn since(&self, now: Time) -> Option<Time> {
        now.nanos().checked_sub(self.idle.nanos()).map(Time::from_nanos)
    }

    /// What the new link of a flow is like.
    pub(crate) fn config(&self, name: &str, lanes: usize, flow: &Flow) -> LinkConfig {
        let Flow { source, destination, flow_label, queue, source_port, destination_port, protocol } = flow;
        let mut config = self.template.link();
        // A flow has the same draws whenever its link is made.
        config.name = format!(
            "{name} {source:x} {destination:x} {flow_label:x} {queue} {source_port} {destination_port} {protocol}"
        );
        // Where packets go from there is the network's business.
        config.lanes = (0..lanes).map(|_| Target::Port(String::new())).collect();
        config.instances = None;
        config
    }

    /// Notes the link of a new flow, and says which element it is to be: one that was given up, or the next one.
    pub(crate) fn insert(&mut self, flow: Flow, next: u32) -> Option<u32> {
        let place = self.known.insert(flow)? as usize;
        self.counts.made += 1;
        if place == self.elements.len() {
            self.elements.push(next);
        }
        Some(self.elements[place])
    }

    /// The link at this place has nothing inside at `now`.
    pub(crate) fn idle(&mut self, place: u32, now: Time) {
        // A change is no use of a link that was idle before.
        if self.known.idle_since(place).is_none() {
            self.known.idle(place, now);
        }
    }

    /// The flows whose links there are at `now`, in their order, and their elements.
    pub(crate) fn present(&self, now: Time) -> Vec<(Flow, u32)> {
        let mut all: Vec<_> = self
            .known
            .iter()
            .filter(|(place, _)| self.known.idle_since(*place).is_none_or(|since| since + self.idle > now))
            .map(|(place, flow)| (*flow, self.elements[place as usize]))
            .collect();
        all.sort_unstable();
        all
    }

    /// The counters of those links that have not been given up: what the others counted is in `gone`.
    pub(crate) fn present_counters<'a>(&'a self, links: &'a [Link]) -> impl Iterator<Item = &'a [Counters]> {
        self.known.iter().map(|(place, _)| links[self.elements[place as usize] as usize].counters())
    }

    /// The elements that may have packets inside, those included that were given up, in the order in which they were made.
    pub(crate) fn elements(&self) -> &[u32] {
        &self.elements
    }
}
