//! Routing loops, which only configured routes can cause.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::Topology;
use crate::router::{Destination, Router};

/// Routers that form a loop for some destinations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Circle {
    /// The routers in order; the last one sends to the first.
    pub(crate) routers: Vec<String>,
    /// The destinations concerned: hosts, routers and networks.
    pub(crate) destinations: BTreeSet<String>,
}

impl Topology {
    /// All loops, one for each destination that has any.
    pub(crate) fn circles(&self, routers: &[Router]) -> Vec<Circle> {
        // Shortest paths have no loops.
        if routers.iter().all(|router| router.routes.is_empty()) {
            return Vec::new();
        }
        let hosts = self
            .wiring
            .ends
            .iter()
            .flat_map(|end| end.addresses.iter().map(|address| (end.owner_name.clone(), address.ip)));
        let networks = routers.iter().flat_map(|router| &router.routes).filter_map(|route| match &route.to {
            Destination::Network(network) => Some((network.to_string(), network.ip)),
            Destination::Node(_) => None,
        });
        let mut circles: BTreeMap<Vec<usize>, BTreeSet<String>> = BTreeMap::new();
        for (name, address) in hosts.chain(networks) {
            if let Some(circle) = self.circle(routers.len(), address) {
                circles.entry(circle).or_default().insert(name);
            }
        }
        let named =
            |numbers: Vec<usize>| numbers.iter().map(|&number| routers[number].name.clone()).collect();
        circles
            .into_iter()
            .map(|(numbers, destinations)| Circle { routers: named(numbers), destinations })
            .collect()
    }

    /// The next routers for packets to this address.
    fn next(&self, router: usize, destination: IpAddr) -> Vec<usize> {
        let entry = self.routing.find(router, destination);
        let ways = entry.map_or(&[][..], |entry| &entry.ways).iter();
        let next = ways.filter_map(|way| self.wiring.router(way.to));
        next.collect()
    }

    /// The first loop for this destination, starting at its router with the lowest number.
    fn circle(&self, routers: usize, destination: IpAddr) -> Option<Vec<usize>> {
        let mut done = vec![false; routers];
        for start in 0..routers {
            // The path so far, each router with the next routers still to be tried.
            let mut way = vec![(start, self.next(start, destination))];
            while let Some((router, open)) = way.last_mut() {
                let here = *router;
                match open.pop() {
                    None => {
                        done[here] = true;
                        way.pop();
                    }
                    Some(next) if done[next] => {}
                    Some(next) => {
                        if let Some(at) = way.iter().position(|(router, _)| *router == next) {
                            let mut circle: Vec<usize> =
                                way[at..].iter().map(|(router, _)| *router).collect();
                            let least = (0..circle.len()).min_by_key(|&at| circle[at])?;
                            circle.rotate_left(least);
                            return Some(circle);
                        }
                        way.push((next, self.next(next, destination)));
                    }
                }
            }
        }
        None
    }
}
