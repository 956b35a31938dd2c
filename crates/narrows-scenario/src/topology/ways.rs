//! The paths that packets take from one host to another, hop by hop, and their outcome.

use std::collections::BTreeMap;
use std::net::IpAddr;

use narrows_core::Spread;

use super::segments::Owner;
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
        let [a, b] = [from, to].map(|port| &self.ends[port.end]);
        from.peer == to.name || (from.end != to.end && self.routing.joins(a, b, &self.ends))
    }

    /// Whether a router is at the other end of the segment. Other ports reach only their peer.
    pub(crate) fn is_routed(&self, port: &Port) -> bool {
        matches!(self.ends[self.ends[port.end].peer].owner, Owner::Router(_))
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
        let mut open = vec![(way, from.end, Vec::new())];
        while let Some((mut way, leaves, mut passed)) = open.pop() {
            if all.len() == MOST_WAYS {
                break;
            }
            let end = &self.ends[leaves];
            let peer = &self.ends[end.peer];
            way.hops.extend(&end.hops);
            way.names.extend([end.link.clone(), peer.owner_name.clone()]);
            let Owner::Router(router) = peer.owner else {
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
            let sum: f64 = entry.ways.iter().map(|(_, weight)| f64::from(weight.get())).sum();
            let several = entry.ways.len() > 1;
            way.by_flow |= several && entry.spread == Spread::Flow;
            way.by_packet |= several && entry.spread == Spread::Packet;
            // The first one is continued next.
            for &(next, weight) in entry.ways.iter().rev() {
                let share = way.share * f64::from(weight.get()) / sum;
                open.push((WayThrough { share, ..way.clone() }, next, passed.clone()));
            }
        }
        all
    }
}
