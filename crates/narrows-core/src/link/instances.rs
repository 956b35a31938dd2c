//! Link instances: links created on first use, one for each flow that a mask distinguishes.
//!
//! Which instance a packet goes to, and when instances are created and removed, follows from packet times
//! alone: an instance that went idle at t is removed by the first packet, of any flow, that arrives at t +
//! idle or later. If its flow comes back after that, it gets a new instance. So an instance's behaviour does
//! not depend on other flows as long as the maximum number is not reached. Among instances with an event at
//! the same time, the order of creation decides; an instance that replaces a removed one takes over its
//! place.

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

/// The instances of one configured link. An instance's number is its index in `elements`.
#[derive(Debug)]
pub(crate) struct Made {
    /// The element of the configured link.
    pub(crate) of: u32,
    mask: FlowMask,
    idle: Duration,
    pub(crate) template: Box<dyn LinkTemplate>,
    known: Known,
    /// The elements of the instances; those of removed instances are reused.
    elements: Vec<u32>,
    /// The counters of removed instances, summed up.
    pub(crate) gone: Box<[Counters]>,
    /// Instances created and removed, and packets that arrived while the maximum number existed.
    pub(crate) counts: InstanceCounts,
}

/// Counters of link instances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InstanceCounts {
    /// Instances created.
    pub made: u64,
    /// Instances removed because they were idle.
    pub expired: u64,
    /// Packets that shared the configured link because the maximum number of instances existed.
    pub overflowed: u64,
}

/// What to do with a packet of a flow.
pub(crate) enum Found {
    /// Its instance is this element.
    Element(u32),
    /// Create an instance for it.
    New(Flow),
    /// The maximum number of instances exists.
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

    /// An instance that has been idle since this time or longer is expired at `now`; `None` if none can be
    /// yet.
    fn since(&self, now: Time) -> Option<Time> {
        now.nanos().checked_sub(self.idle.nanos()).map(Time::from_nanos)
    }

    /// The configuration of a new instance for a flow.
    pub(crate) fn config(&self, name: &str, lanes: usize, flow: &Flow) -> LinkConfig {
        let Flow { source, destination, flow_label, queue, source_port, destination_port, protocol } = flow;
        let mut config = self.template.link();
        // A flow has the same draws whenever its instance is created.
        config.name = format!(
            "{name} {source:x} {destination:x} {flow_label:x} {queue} {source_port} {destination_port} {protocol}"
        );
        // The network decides where packets go from there.
        config.lanes = (0..lanes).map(|_| Target::Port(String::new())).collect();
        config.instances = None;
        config
    }

    /// Records the instance of a new flow and returns its element: that of a removed instance, or `next`.
    pub(crate) fn insert(&mut self, flow: Flow, next: u32) -> Option<u32> {
        let place = self.known.insert(flow)? as usize;
        self.counts.made += 1;
        if place == self.elements.len() {
            self.elements.push(next);
        }
        Some(self.elements[place])
    }

    /// The instance at this place is empty at `now`.
    pub(crate) fn idle(&mut self, place: u32, now: Time) {
        // A change does not count as use of an instance that was already idle.
        if self.known.idle_since(place).is_none() {
            self.known.idle(place, now);
        }
    }

    /// The flows that have an instance at `now`, sorted, and their elements.
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

    /// The counters of instances that have not been removed; `gone` has those of the others.
    pub(crate) fn present_counters<'a>(&'a self, links: &'a [Link]) -> impl Iterator<Item = &'a [Counters]> {
        self.known.iter().map(|(place, _)| links[self.elements[place as usize] as usize].counters())
    }

    /// The elements that may have packets inside, including those of removed instances, in order of creation.
    pub(crate) fn elements(&self) -> &[u32] {
        &self.elements
    }
}
