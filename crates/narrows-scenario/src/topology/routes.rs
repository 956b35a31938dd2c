//! Routes: the shortest paths to every segment, and configured routes.
//!
//! The length of a path is the sum of the costs of its links. A router at an end of a segment sends there
//! directly; others send towards the nearer end, over the link with the shortest remaining path. If several
//! links tie, the one whose name sorts first is used, or all of them with equal weight if the router uses
//! multipath. Every hop reduces the distance, so shortest paths have no loops; configured routes may.
//! Routes are fixed when the scenario is read: an outage does not change them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::net::IpAddr;

use narrows_core::classify::Prefix;
use narrows_core::sched::Weight;
use narrows_core::{Route, RouterConfig, Spread, Target};

use super::addresses::are_neighbours;
use super::segments::{End, Owner};
use super::{Fault, HostRoute, entry};
use crate::host::Address;
use crate::link::Link;
use crate::problem::Problem;
use crate::router::{Destination, Router};

/// All routes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Routing {
    /// The table of each router.
    tables: Vec<Table>,
    /// The distance from each router to each other; `None` if unreachable.
    distances: Vec<Vec<Option<u64>>>,
    segments: Vec<Segment>,
}

/// The routing table of one router.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Table {
    routes: BTreeMap<Prefix, Entry>,
    /// The prefix lengths, longest first.
    lengths: Vec<u8>,
}

/// The next hops of one prefix.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    /// The router's ends by which packets leave; empty if they are for the router itself.
    pub(super) ways: Vec<(usize, Weight)>,
    pub(super) spread: Spread,
}

/// A segment with a router at one or both ends.
#[derive(Clone, Debug, PartialEq)]
struct Segment {
    ends: [usize; 2],
    /// The routers at its ends.
    routers: Vec<usize>,
    networks: BTreeSet<Address>,
}

/// Maximum number of routes of all routers together.
const MOST_ROUTES: usize = 1_000_000;
/// Maximum number of host ends of links to routers: every pair of them is a path to examine.
const MOST_PORTS: usize = 1000;

/// Rejects networks whose routes would take too long to compute.
pub(super) fn check_size(ends: &[End], routers: &[Router]) -> Result<(), Vec<Fault>> {
    let Some(first) = routers.first() else { return Ok(()) };
    let is_router = |end: &End| matches!(end.owner, Owner::Router(_));
    let ports = ends.iter().filter(|end| !is_router(end) && is_router(&ends[end.peer])).count();
    let routes = routers.len().saturating_mul(ends.len());
    let problem = if ports > MOST_PORTS {
        Problem::new(format!("{ports} links from hosts to routers"))
            .help(format!("at most {MOST_PORTS}: each pair has its own path"))
    } else if routes > MOST_ROUTES {
        Problem::new(format!("{} routers and {} links between them and hosts", routers.len(), ends.len() / 2))
            .help(format!("at most {MOST_ROUTES} routes in all: each router has two for each link"))
    } else {
        return Ok(());
    };
    Err(vec![Fault::Router(first.name.clone(), problem)])
}

impl Routing {
    pub(super) fn new(ends: &[End], routers: &[Router]) -> Self {
        if routers.is_empty() {
            return Self::default();
        }
        // By router: the ends that lead to other routers, in the order of the links' names.
        let mut edges: Vec<Vec<(usize, usize)>> = vec![Vec::new(); routers.len()];
        for (index, end) in ends.iter().enumerate() {
            if let (Owner::Router(from), Owner::Router(to)) = (end.owner, ends[end.peer].owner) {
                edges[from].push((index, to));
            }
        }
        edges.iter_mut().for_each(|edges| edges.sort_by(|a, b| ends[a.0].link.cmp(&ends[b.0].link)));
        let distances: Vec<_> = (0..routers.len()).map(|from| distances(from, &edges, ends)).collect();
        let segments = segments(ends);
        let mut routing = Self { tables: Vec::new(), distances, segments };
        routing.tables = (0..routers.len())
            .map(|number| {
                let mut routes = routing.shortest(number, routers[number].multipath, &edges[number], ends);
                given(&mut routes, number, &routers[number], ends);
                let lengths: BTreeSet<u8> = routes.keys().map(Prefix::bits).collect();
                Table { routes, lengths: lengths.into_iter().rev().collect() }
            })
            .collect();
        routing
    }

    /// The number of routers.
    pub(super) fn routers(&self) -> usize {
        self.tables.len()
    }

    /// The distance of a router from a segment.
    fn distance(&self, router: usize, segment: &Segment) -> Option<u64> {
        segment.routers.iter().filter_map(|&end| self.distances[router][end]).min()
    }

    /// The shortest paths of a router to every segment.
    fn shortest(
        &self,
        router: usize,
        multipath: Option<Spread>,
        edges: &[(usize, usize)],
        ends: &[End],
    ) -> BTreeMap<Prefix, Entry> {
        let mut routes = BTreeMap::new();
        let spread = multipath.unwrap_or_default();
        for segment in &self.segments {
            let own = |end: &&usize| ends[**end].owner == Owner::Router(router);
            if let Some(&own) = segment.ends.iter().find(own) {
                let entry = Entry { ways: vec![(own, Weight::ONE)], spread };
                let peer = &ends[ends[own].peer];
                match peer.owner {
                    Owner::Host(_) => {
                        let networks = segment.networks.iter().map(|network| network.prefix());
                        routes.extend(networks.map(|prefix| (prefix, entry.clone())));
                    }
                    // Only the router's own segments are behind that end, so packets cannot bounce between
                    // the two.
                    Owner::Router(_) => {
                        let addresses =
                            peer.addresses.iter().map(|address| Address::host(address.ip).prefix());
                        routes.extend(addresses.map(|prefix| (prefix, entry.clone())));
                    }
                }
                continue;
            }
            let Some(distance) = self.distance(router, segment) else { continue };
            let is_shortest = |&&(end, next): &&(usize, usize)| {
                self.distance(next, segment).is_some_and(|rest| ends[end].cost + rest == distance)
            };
            let most = if multipath.is_some() { usize::MAX } else { 1 };
            let ways: Vec<_> =
                edges.iter().filter(is_shortest).take(most).map(|&(end, _)| (end, Weight::ONE)).collect();
            for network in &segment.networks {
                routes.insert(network.prefix(), Entry { ways: ways.clone(), spread });
            }
        }
        routes
    }

    /// The networks that a host reaches best through this end.
    pub(super) fn host_routes(&self, end: usize, ends: &[End]) -> Vec<HostRoute> {
        let here = &ends[end];
        let via = |index: usize| match (ends[index].owner, ends[ends[index].peer].owner) {
            (owner, Owner::Router(router)) if owner == here.owner => Some((index, router)),
            _ => None,
        };
        let all: Vec<(usize, usize)> = (0..ends.len()).filter_map(via).collect();
        let mut routes = Vec::new();
        for segment in &self.segments {
            if segment.ends.iter().any(|&at| ends[at].owner == here.owner) {
                continue;
            }
            let length = |&(index, router): &(usize, usize)| {
                let distance = self.distance(router, segment)?;
                Some((ends[index].cost + distance, &ends[index].link, index))
            };
            let best = all.iter().filter_map(length).min();
            if best.is_none_or(|(.., index)| index != end) {
                continue;
            }
            for &to in &segment.networks {
                let gateway = |address: &&Address| {
                    address.ip.is_ipv4() == to.ip.is_ipv4()
                        && here.addresses.iter().any(|own| are_neighbours(own, address))
                };
                let gateway = ends[here.peer].addresses.iter().find(gateway);
                routes.extend(gateway.map(|gateway| HostRoute { to, via: gateway.ip }));
            }
        }
        routes
    }

    /// Whether the links connect one end to the other.
    pub(super) fn joins(&self, from: &End, to: &End, ends: &[End]) -> bool {
        match (ends[from.peer].owner, ends[to.peer].owner) {
            (Owner::Router(a), Owner::Router(b)) => self.distances[a][b].is_some(),
            _ => false,
        }
    }

    /// Finds the route of a router to this address.
    pub(super) fn find(&self, router: usize, destination: IpAddr) -> Option<&Entry> {
        let Table { routes, lengths } = &self.tables[router];
        let whole = Address::host(destination).prefix();
        lengths.iter().find_map(|&bits| routes.get(&Prefix::new(whole.address(), bits)))
    }

    /// The engine's routers.
    pub(super) fn configs(&self, ends: &[End], links: &[Link], routers: &[Router]) -> Vec<RouterConfig> {
        let target = |&(end, weight): &(usize, Weight)| {
            let hop = ends[end].hops[0];
            (entry(&links[hop.link], hop.way), weight)
        };
        let config = |(router, table): (&Router, &Table)| RouterConfig {
            name: router.name.clone(),
            routes: (table.routes.iter())
                .map(|(prefix, Entry { ways, spread })| {
                    let local = ways.is_empty();
                    let ways = match local {
                        true => vec![(Target::Port(router.name.clone()), Weight::ONE)],
                        false => ways.iter().map(target).collect(),
                    };
                    (*prefix, Route { ways, spread: *spread, local })
                })
                .collect(),
        };
        routers.iter().zip(&self.tables).map(config).collect()
    }
}

/// Adds the configured routes, and the router's own addresses, which take precedence over everything.
fn given(routes: &mut BTreeMap<Prefix, Entry>, number: usize, router: &Router, ends: &[End]) {
    let is_own = |end: &&(usize, &End)| end.1.owner == Owner::Router(number);
    let own: Vec<(usize, &End)> = ends.iter().enumerate().filter(|end| is_own(&end)).collect();
    let addresses =
        |end: &End| end.addresses.clone().into_iter().map(|address| Address::host(address.ip).prefix());
    // A network takes precedence over a name, even if it is a single address.
    let names_first = |network: bool| {
        router.routes.iter().filter(move |route| matches!(route.to, Destination::Network(_)) == network)
    };
    for route in names_first(false).chain(names_first(true)) {
        let way = |(link, weight): &(String, Weight)| {
            own.iter().find(|(_, end)| end.link == *link).map(|&(index, _)| (index, *weight))
        };
        let entry = Entry { ways: route.via.iter().filter_map(way).collect(), spread: route.spread };
        let prefixes: Vec<Prefix> = match &route.to {
            Destination::Network(network) => vec![network.prefix()],
            Destination::Node(name) => {
                ends.iter().filter(|end| end.owner_name == *name).flat_map(addresses).collect()
            }
        };
        routes.extend(prefixes.into_iter().map(|prefix| (prefix, entry.clone())));
    }
    let local = Entry { ways: Vec::new(), spread: Spread::Flow };
    routes.extend(own.iter().flat_map(|(_, end)| addresses(end)).map(|prefix| (prefix, local.clone())));
}

/// The distance from a router to each other (Dijkstra).
fn distances(from: usize, edges: &[Vec<(usize, usize)>], ends: &[End]) -> Vec<Option<u64>> {
    let mut all = vec![None; edges.len()];
    let mut open = BinaryHeap::from([Reverse((0u64, from))]);
    while let Some(Reverse((distance, router))) = open.pop() {
        if all[router].is_some() {
            continue;
        }
        all[router] = Some(distance);
        // The cost of a link is at most 65,535, so no sum approaches 2⁶⁴.
        open.extend(edges[router].iter().map(|&(end, next)| Reverse((distance + ends[end].cost, next))));
    }
    all
}

/// The segments with a router.
fn segments(ends: &[End]) -> Vec<Segment> {
    let segment = |(index, end): (usize, &End)| {
        let both = [index, end.peer];
        let router = |&end: &usize| match ends[end].owner {
            Owner::Router(router) => Some(router),
            Owner::Host(_) => None,
        };
        let routers: Vec<usize> = both.iter().filter_map(router).collect();
        let addresses = both.iter().flat_map(|&end| &ends[end].addresses);
        let networks = addresses.map(|address| address.network()).collect();
        (index < end.peer && !routers.is_empty()).then_some(Segment { ends: both, routers, networks })
    };
    ends.iter().enumerate().filter_map(segment).collect()
}
