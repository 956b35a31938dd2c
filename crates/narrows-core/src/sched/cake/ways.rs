//! The set-associative hash that gives each flow of a tin a queue, and each host a count of its bulk flows.
//!
//! A hash's home is its value modulo 1024, and its set the 8 places around it. A flow is looked for in the whole set,
//! from its home on; an unknown one gets the first idle place; in a full set, it shares its home. With F active flows,
//! the chance that a ninth flow falls into a set is that of 8 or more others in it: below 1 % up to F = 340, where a
//! plain hash would have each flow share with probability 28 %.

use alloc::boxed::Box;
use alloc::vec;

use super::config::{Isolation, QUEUES};
use super::flow::{CakeFlow, Set};
use crate::sched::{FlowId, Flows};

const WAYS: usize = 8;

/// The hash of one tin.
#[derive(Debug)]
pub(super) struct Ways {
    /// The hash of the flow for which a queue is or was reserved.
    tags: Box<[u32]>,
    sources: Hosts,
    destinations: Hosts,
}

#[derive(Debug)]
struct Hosts {
    tags: Box<[u32]>,
    bulk_flows: Box<[u16]>,
}

impl Default for Hosts {
    fn default() -> Self {
        Self { tags: vec![0; QUEUES].into(), bulk_flows: vec![0; QUEUES].into() }
    }
}

impl Default for Ways {
    fn default() -> Self {
        let (sources, destinations) = <(Hosts, Hosts)>::default();
        Self { tags: vec![0; QUEUES].into(), sources, destinations }
    }
}

/// A place in a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// That of this hash.
    Known(usize),
    /// A free one.
    Free(usize),
    /// That of another: the set is full.
    Taken(usize),
}

/// Looks for a place in the set of a hash.
fn look(hash: u32, is_known: impl Fn(usize) -> bool, is_free: impl Fn(usize) -> bool) -> Place {
    let home = hash as usize % QUEUES;
    let set = home - home % WAYS;
    let mut ways = (0..WAYS).map(|step| set + (home + step) % WAYS);
    match ways.clone().find(|&way| is_known(way)) {
        Some(way) => Place::Known(way),
        None => ways.find(|&way| is_free(way)).map_or(Place::Taken(home), Place::Free),
    }
}

impl Hosts {
    /// The place of a host. A host without bulk flows may lose its place.
    fn reserve(&mut self, hash: u32) -> u16 {
        let found = look(hash, |way| self.tags[way] == hash, |way| self.bulk_flows[way] == 0);
        let (Place::Known(way) | Place::Free(way) | Place::Taken(way)) = found;
        self.tags[way] = hash;
        way as u16
    }
}

impl Ways {
    /// The queue of a flow in this tin, from now on reserved for it. `hosts` are the hashes of its source and its
    /// destination.
    pub(super) fn reserve(
        &mut self,
        tin: usize,
        hash: u32,
        hosts: [u32; 2],
        isolation: Isolation,
        flows: &mut Flows<CakeFlow>,
    ) -> FlowId {
        let id = |way: usize| FlowId::new((tin * QUEUES + way) as u32);
        let is_idle = |way: usize| flows[id(way)].set == Set::Idle;
        let found = look(hash, |way| self.tags[way] == hash, is_idle);
        let (Place::Known(way) | Place::Free(way) | Place::Taken(way)) = found;
        self.tags[way] = hash;
        let flow = &mut flows[id(way)];
        if matches!(found, Place::Known(_)) && flow.set != Set::Idle {
            return id(way);
        }
        // The queue's hosts are now those of this flow, also if it shares the queue.
        let is_bulk = flow.set == Set::Bulk;
        if is_bulk {
            self.count(flow, isolation, false);
        }
        if isolation.counts_sources() {
            flow.source = self.sources.reserve(hosts[0]);
        }
        if isolation.counts_destinations() {
            flow.destination = self.destinations.reserve(hosts[1]);
        }
        if is_bulk {
            self.count(flow, isolation, true);
        }
        id(way)
    }

    /// A queue becomes one of its hosts' bulk flows, or ceases to be.
    pub(super) fn count(&mut self, flow: &CakeFlow, isolation: Isolation, more: bool) {
        let change = |count: &mut u16| {
            // At most the queues of a tin.
            *count = if more { *count + 1 } else { count.saturating_sub(1) };
        };
        if isolation.counts_sources() {
            change(&mut self.sources.bulk_flows[usize::from(flow.source)]);
        }
        if isolation.counts_destinations() {
            change(&mut self.destinations.bulk_flows[usize::from(flow.destination)]);
        }
    }

    /// Among how many bulk flows the busier of its hosts divides its turns.
    pub(super) fn load(&self, flow: &CakeFlow, isolation: Isolation) -> u64 {
        let of = |counts: bool, hosts: &Hosts, at: u16| {
            if counts { hosts.bulk_flows[usize::from(at)].into() } else { 0 }
        };
        let source = of(isolation.counts_sources(), &self.sources, flow.source);
        let destination = of(isolation.counts_destinations(), &self.destinations, flow.destination);
        source.max(destination).max(1)
    }
}
