//! The ways that packets take from one host to another, hop by hop, and what becomes of them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use narrows_core::Spread;

use super::segments::Owner;
use super::{Hop, Port, Topology};

/// One way of several.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WayThrough {
    /// The share of packets that take it, as far as weights go.
    pub(crate) share: f64,
    /// The names of the host and routers, and of the links between them, in turn.
    pub(crate) names: Vec<String>,
    pub(crate) hops: Vec<Hop>,
    /// The routers that it passes.
    pub(crate) routers: u32,
    /// Whether a router chooses among several ways by flow, or one by packet.
    pub(crate) by_flow: bool,
    pub(crate) by_packet: bool,
    pub(crate) outcome: Outcome,
}

/// Where a way ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// At this port.
    Port(String),
    /// At a router that it is for.
    Router(String),
    /// At a router that has no route.
    NoRoute(String),
    /// At a router where it has been before: it goes round until its hop limit is used up.
    Loop(String),
}

/// The most ways from one host to another that are told apart.
pub(crate) const MOST_WAYS: usize = 64;

impl Topology {
    /// Whether packets get from one port to another, as far as links go.
    pub(crate) fn joins(&self, from: &Port, to: &Port) -> bool {
        let [a, b] = [from, to].map(|port| &self.ends[port.end]);
        from.peer == to.name || (from.end != to.end && self.routing.joins(a, b, &self.ends))
    }

    /// Whether a router is at the other end of the segment. Other ports get to their peer and nowhere else.
    pub(crate) fn is_routed(&self, port: &Port) -> bool {
        matches!(self.ends[self.ends[port.end].peer].owner, Owner::Router(_))
    }

    /// The indices of the ports behind a port in their order that packets get to from there, as far as links go.
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

    /// The ways from one port to another on which packets get there.
    pub(crate) fn arriving(&self, from: &Port, to: &Port) -> Vec<WayThrough> {
        let address = match self.joins(from, to) {
            true => to.addresses.first(),
            false => None,
        };
        let mut ways = address.map_or(Vec::new(), |address| self.ways(from, address.ip));
        ways.retain(|way| way.outcome == Outcome::Port(to.name.clone()));
        ways
    }

    /// The ways of packets from a port to an address, up to [`MOST_WAYS`].
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
            // The first is taken up next.
            for &(next, weight) in entry.ways.iter().rev() {
                let share = way.share * f64::from(weight.get()) / sum;
                open.push((WayThrough { share, ..way.clone() }, next, passed.clone()));
            }
        }
        all
    }
}
