//! The paths that packets take from one host to another, hop by hop, and their outcome.

use std::collections::BTreeMap;
use std::net::IpAddr;

use narrows_core::Spread;

use super::{Hop, Port, Topology};

/// One of several paths.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WayThrough {
    /// Share of packets that take it, according to weights.
    pub(crate) share: f64,
    /// The names of the host and routers, alternating with those of the links between them.
    pub(crate) names: Vec<String>,
    pub(crate) hops: Vec<Hop>,
    /// Number of routers on it.
    pub(crate) routers: u32,
    /// Whether a router chooses by flow rather than by packet.
    pub(crate) by_flow: bool,
    pub(crate) by_packet: bool,
    pub(crate) outcome: Outcome,
}

/// Outcome of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Arrives at this port.
    Port(String),
    /// Arrives at a router that is the destination.
    Router(String),
    /// Ends at a router without a route.
    NoRoute(String),
    /// Returns to a router: loops until the hop limit is used up.
    Loop(String),
}

/// Maximum number of paths from one host to another that are enumerated.
pub(crate) const MOST_WAYS: usize = 64;

impl Topology {
    /// Whether the links connect one port to another.
    pub(crate) fn joins(&self, from: &Port, to: &Port) -> bool {
        from.end != to.end
            && (self.are_neighbours(from, to) || self.routing.joins(from.end, to.end, &self.wiring))
    }

    /// Whether a port reaches another without a router.
    pub(crate) fn are_neighbours(&self, from: &Port, to: &Port) -> bool {
        self.wiring.neighbours(from.end).any(|end| end == to.end)
    }

    /// Whether a router or a switch is at the other end of the segment. Other ports reach only their peer.
    pub(crate) fn is_routed(&self, port: &Port) -> bool {
        let peer = self.wiring.ends[port.end].peer;
        self.wiring.is_switched(port.end) || self.wiring.router(peer).is_some()
    }

    /// Pairs of port indices that links connect, each pair once, with the smaller index first.
    pub(crate) fn joined_behind(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let numbers: BTreeMap<&str, usize> =
            self.ports.iter().enumerate().map(|(number, port)| (port.name.as_str(), number)).collect();
        let routed: Vec<usize> =
            (0..self.ports.len()).filter(|&port| self.is_routed(&self.ports[port])).collect();
        (0..self.ports.len()).flat_map(move |from| {
            let port = &self.ports[from];
            let others: Vec<usize> = match numbers.get(port.peer.as_str()) {
                Some(&peer) => vec![peer],
                None => routed.iter().copied().filter(|&to| self.joins(port, &self.ports[to])).collect(),
            };
            others.into_iter().filter(move |&to| to > from).map(move |to| (from, to))
        })
    }

    /// How many of these pairs there are, without those of one host that are not each other's peers. Counted by the parts
    /// of the network, unless ports also reach each other through switches.
    pub(crate) fn count_joined_behind(&self) -> usize {
        let ports = &self.ports;
        let of_two = |(from, to): &(usize, usize)| {
            ports[*from].peer == ports[*to].name || ports[*from].host != ports[*to].host
        };
        if ports.iter().any(|port| self.is_switched(port)) {
            return self.joined_behind().filter(of_two).count();
        }
        let pairs = |of: usize| of * of.saturating_sub(1) / 2;
        let mut parts: BTreeMap<usize, BTreeMap<&str, usize>> = BTreeMap::new();
        let mut direct = 0;
        for port in ports {
            match self.routing.part(port.end, &self.wiring) {
                Some(part) => *parts.entry(part).or_default().entry(&port.host).or_default() += 1,
                // Each of the two ports counts.
                None => direct += 1,
            }
        }
        let in_part = |hosts: &BTreeMap<&str, usize>| {
            pairs(hosts.values().sum()) - hosts.values().map(|&own| pairs(own)).sum::<usize>()
        };
        direct / 2 + parts.values().map(in_part).sum::<usize>()
    }

    /// The paths on which packets from one port arrive at another.
    pub(crate) fn arriving(&self, from: &Port, to: &Port) -> Vec<WayThrough> {
        let address = match self.joins(from, to) {
            true => to.addresses.first(),
            false => None,
        };
        let mut ways = address.map_or(Vec::new(), |address| self.ways(from, address.ip));
        ways.retain(|way| way.outcome == Outcome::Port(to.name.clone()));
        ways
    }

    /// The paths of packets from a port to an address, up to [`MOST_WAYS`].
    pub(crate) fn ways(&self, from: &Port, destination: IpAddr) -> Vec<WayThrough> {
        let way = WayThrough {
            share: 1.0,
            names: vec![from.host.clone()],
            hops: Vec::new(),
            routers: 0,
            by_flow: false,
            by_packet: false,
            outcome: Outcome::NoRoute(String::new()),
        };
        let mut all = Vec::new();
        let first = self.routing.first(from.end, destination, &self.wiring);
        let mut open = match first {
            Some(first) => vec![(way, from.end, first, Vec::new())],
            None => {
                return vec![WayThrough { outcome: Outcome::NoRoute(from.host.clone()), ..way }];
            }
        };
        while let Some((mut way, leaves, arrives, mut passed)) = open.pop() {
            if all.len() == MOST_WAYS {
                break;
            }
            let ends = &self.wiring.ends;
            let peer = &ends[arrives];
            for leg in self.wiring.legs(leaves, arrives) {
                let leg = &ends[leg];
                way.hops.extend(&leg.hops);
                way.names.extend([leg.link.clone(), ends[leg.peer].owner_name.clone()]);
            }
            let Some(router) = self.wiring.router(arrives) else {
                way.outcome = Outcome::Port(peer.name.clone());
                all.push(way);
                continue;
            };
            let here = || peer.owner_name.clone();
            let entry = self.routing.find(router, destination);
            let done = match entry {
                None => Some(Outcome::NoRoute(here())),
                Some(entry) if entry.ways.is_empty() => Some(Outcome::Router(here())),
                Some(_) if passed.contains(&router) => Some(Outcome::Loop(here())),
                Some(_) => None,
            };
            if let Some(outcome) = done {
                way.outcome = outcome;
                all.push(way);
                continue;
            }
            passed.push(router);
            way.routers += 1;
            let Some(entry) = entry else { continue };
            let sum: f64 = entry.ways.iter().map(|way| f64::from(way.weight.get())).sum();
            let several = entry.ways.len() > 1;
            way.by_flow |= several && entry.spread == Spread::Flow;
            way.by_packet |= several && entry.spread == Spread::Packet;
            // The first one is continued next.
            for next in entry.ways.iter().rev() {
                let share = way.share * f64::from(next.weight.get()) / sum;
                open.push((WayThrough { share, ..way.clone() }, next.end, next.to, passed.clone()));
            }
        }
        all
    }
}
