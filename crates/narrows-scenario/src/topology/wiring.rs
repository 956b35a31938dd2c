//! The ends of all links at hosts, routers and switches, and what connects them at the link layer.

use super::segments::{End, Owner};
use super::switching::Switching;
use super::{Fault, Hop};
use crate::problem::Problem;
use crate::switch::Switch;

/// All ends. Those at hosts come first, then those at routers, then those at switches.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Wiring {
    pub(super) ends: Vec<End>,
    /// The broadcast domains: ends at hosts and routers that reach each other without a router, in order.
    /// Without a switch these are the two ends of a segment.
    pub(super) domains: Vec<Vec<usize>>,
    pub(super) switching: Switching,
}

impl Wiring {
    pub(super) fn new(mut ends: Vec<End>, switches: &[Switch]) -> Result<Self, Vec<Fault>> {
        let switching = Switching::new(&ends, switches)?;
        let mut domains: Vec<Vec<usize>> = Vec::new();
        let mut known: Vec<Option<usize>> = vec![None; ends.len()];
        for index in 0..ends.len() {
            let peer = ends[index].peer;
            if known[index].is_some() || matches!(ends[index].owner, Owner::Switch(_)) {
                continue;
            }
            let mut members = match ends[peer].owner {
                Owner::Switch(_) => switching.flood(index, &ends).ends,
                _ => vec![peer],
            };
            members.push(index);
            members.sort_unstable();
            members.iter().for_each(|&member| known[member] = Some(domains.len()));
            domains.push(members);
        }
        for (end, domain) in ends.iter_mut().zip(known) {
            end.domain = domain.unwrap_or_default();
        }
        let wiring = Self { ends, domains, switching };
        let faults = wiring.routers_without_vlan();
        if faults.is_empty() { Ok(wiring) } else { Err(faults) }
    }

    /// Routers use no tags, so the port at a router must take frames without one.
    fn routers_without_vlan(&self) -> Vec<Fault> {
        let fault = |end: &End| {
            let Owner::Router(_) = end.owner else { return None };
            self.switching.vlans(end.peer)?.untagged.is_none().then(|| {
                let problem = Problem::new(format!("`{}` takes only tagged frames to the router", end.link))
                    .help("a router uses no tags: give its port one VLAN, with one link for each VLAN");
                Fault::Link(end.hops[0].link, problem)
            })
        };
        self.ends.iter().filter_map(fault).collect()
    }

    /// The ends that an end at a host or a router reaches without a router.
    pub(super) fn neighbours(&self, end: usize) -> impl Iterator<Item = usize> + '_ {
        self.domains[self.ends[end].domain].iter().copied().filter(move |&other| other != end)
    }

    /// Whether a switch is at the other end of the segment.
    pub(super) fn is_switched(&self, end: usize) -> bool {
        matches!(self.ends[self.ends[end].peer].owner, Owner::Switch(_))
    }

    /// The router at an end, if one is there.
    pub(super) fn router(&self, end: usize) -> Option<usize> {
        match self.ends[end].owner {
            Owner::Router(router) => Some(router),
            _ => None,
        }
    }

    /// The ends by which packets leave on their way from one end to a neighbour, the first one among them.
    pub(super) fn legs(&self, from: usize, to: usize) -> Vec<usize> {
        match self.ends[from].peer == to {
            true => vec![from],
            false => self.switching.legs(from, to, &self.ends),
        }
    }

    /// The links on the way from one end to a neighbour.
    pub(super) fn hops(&self, from: usize, to: usize) -> Vec<Hop> {
        self.legs(from, to).into_iter().flat_map(|leg| self.ends[leg].hops.iter().copied()).collect()
    }

    /// Total cost of these links.
    pub(super) fn cost(&self, from: usize, to: usize) -> u64 {
        self.legs(from, to).into_iter().map(|leg| self.ends[leg].cost).sum()
    }
}
