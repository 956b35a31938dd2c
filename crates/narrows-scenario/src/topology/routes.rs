//! Routes: the shortest paths to every broadcast domain, and configured routes.
//!
//! The length of a path is the sum of the costs of its links. A router at an end of a domain sends there
//! directly; others send towards the nearer end, over the link with the shortest remaining path. If several
//! links tie, the one whose name sorts first is used, or all of them with equal weight if the router uses
//! multipath. Every hop reduces the distance, so shortest paths have no loops; configured routes may.
//! Routes are fixed when the scenario is read: an outage does not change them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::net::IpAddr;

use narrows_core::classify::Prefix;
use narrows_core::sched::Weight;
use narrows_core::{LinkAddress, Route, RouterConfig, Spread, Target};

use super::addresses::are_neighbours;
use super::segments::Owner;
use super::wiring::Wiring;
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
    domains: Vec<Domain>,
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
    /// Empty if packets are for the router itself.
    pub(super) ways: Vec<RouteWay>,
    pub(super) spread: Spread,
}

/// One of the next hops of a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RouteWay {
    /// The router's end by which packets leave.
    pub(super) end: usize,
    /// The end where they arrive.
    pub(super) to: usize,
    pub(super) weight: Weight,
}

/// A broadcast domain with a router.
#[derive(Clone, Debug, PartialEq)]
struct Domain {
    ends: Vec<usize>,
    /// The routers at its ends.
    routers: Vec<usize>,
    networks: BTreeSet<Address>,
}

/// The way from a router to another over one domain.
#[derive(Clone, Copy, Debug)]
struct Edge {
    end: usize,
    to: usize,
    router: usize,
    cost: u64,
}

/// Maximum number of routes of all routers together.
const MOST_ROUTES: usize = 1_000_000;
/// Maximum number of host ends of links to routers: every pair of them is a path to examine.
const MOST_PORTS: usize = 1000;

/// Rejects networks whose paths would take too long to compute.
pub(super) fn check_size(wiring: &Wiring, routers: &[Router]) -> Result<(), Vec<Fault>> {
    let ends = &wiring.ends;
    let peer = |end: usize| ends[end].peer;
    let has_many_ways = |end: &usize| wiring.is_switched(*end) || wiring.router(peer(*end)).is_some();
    let is_host = |end: &usize| matches!(ends[*end].owner, Owner::Host(_));
    let mut ports = (0..ends.len()).filter(is_host).filter(has_many_ways);
    let Some(first) = ports.next() else { return Ok(()) };
    let ports = 1 + ports.count();
    let routes = routers.len().saturating_mul(ends.len());
    let problem = if ports > MOST_PORTS {
        Problem::new(format!("{ports} links from hosts to routers and switches"))
            .help(format!("at most {MOST_PORTS}: each pair has its own path"))
    } else if routes > MOST_ROUTES {
        Problem::new(format!("{} routers and {} links between them and hosts", routers.len(), ends.len() / 2))
            .help(format!("at most {MOST_ROUTES} routes in all: each router has two for each link"))
    } else {
        return Ok(());
    };
    Err(vec![match routers.first() {
        Some(router) => Fault::Router(router.name.clone(), problem),
        None => Fault::Link(ends[first].hops[0].link, problem),
    }])
}

impl Routing {
    pub(super) fn new(wiring: &Wiring, routers: &[Router]) -> Self {
        if routers.is_empty() {
            return Self::default();
        }
        // By router: the ways to other routers, in the order of the links' names.
        let mut edges: Vec<Vec<Edge>> = vec![Vec::new(); routers.len()];
        for end in 0..wiring.ends.len() {
            let Some(from) = wiring.router(end) else { continue };
            for to in wiring.neighbours(end) {
                let Some(router) = wiring.router(to).filter(|&router| router != from) else { continue };
                edges[from].push(Edge { end, to, router, cost: wiring.cost(end, to) });
            }
        }
        let link = |edge: &Edge| &wiring.ends[edge.end].link;
        edges.iter_mut().for_each(|edges| edges.sort_by(|a, b| link(a).cmp(link(b))));
        let distances: Vec<_> = (0..routers.len()).map(|from| distances(from, &edges)).collect();
        let mut routing = Self { tables: Vec::new(), distances, domains: domains(wiring) };
        routing.tables = (0..routers.len())
            .map(|number| {
                let mut routes = routing.shortest(number, routers[number].multipath, &edges[number], wiring);
                routing.given(&mut routes, number, &routers[number], wiring);
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

    /// The distance of a router from a domain.
    fn distance(&self, router: usize, domain: &Domain) -> Option<u64> {
        domain.routers.iter().filter_map(|&end| self.distances[router][end]).min()
    }

    /// The shortest paths of a router to every domain.
    fn shortest(
        &self,
        router: usize,
        multipath: Option<Spread>,
        edges: &[Edge],
        wiring: &Wiring,
    ) -> BTreeMap<Prefix, Entry> {
        let ends = &wiring.ends;
        let mut routes = BTreeMap::new();
        let spread = multipath.unwrap_or_default();
        for domain in &self.domains {
            let own = |end: &&usize| wiring.router(**end) == Some(router);
            if let Some(&own) = domain.ends.iter().find(own) {
                for to in wiring.neighbours(own).filter(|&to| wiring.router(to) != Some(router)) {
                    let ways = vec![RouteWay { end: own, to, weight: Weight::ONE }];
                    let entry = Entry { ways, spread };
                    if wiring.router(to).is_none() && !wiring.is_switched(own) {
                        // Whatever the host at the other end has to do with addresses besides its own.
                        let networks = domain.networks.iter().map(|network| network.prefix());
                        routes.extend(networks.map(|prefix| (prefix, entry.clone())));
                    } else {
                        // Only the addresses there: between two routers, packets to others would bounce.
                        let addresses = ends[to].addresses.iter().map(|address| Address::host(address.ip));
                        routes.extend(addresses.map(|address| (address.prefix(), entry.clone())));
                    }
                }
                continue;
            }
            let Some(distance) = self.distance(router, domain) else { continue };
            let is_shortest = |edge: &&Edge| {
                self.distance(edge.router, domain).is_some_and(|rest| edge.cost + rest == distance)
            };
            let most = if multipath.is_some() { usize::MAX } else { 1 };
            let way = |&Edge { end, to, .. }: &Edge| RouteWay { end, to, weight: Weight::ONE };
            let ways: Vec<_> = edges.iter().filter(is_shortest).take(most).map(way).collect();
            for network in &domain.networks {
                routes.insert(network.prefix(), Entry { ways: ways.clone(), spread });
            }
        }
        routes
    }

    /// Where packets of a host go first: each pair is an end of the host and that of a router.
    fn first_routers(&self, host: usize, wiring: &Wiring) -> Vec<(usize, usize)> {
        let owner = wiring.ends[host].owner;
        let own = (0..wiring.ends.len()).filter(|&end| wiring.ends[end].owner == owner);
        own.flat_map(|end| wiring.neighbours(end).map(move |to| (end, to)))
            .filter(|&(_, to)| wiring.router(to).is_some())
            .collect()
    }

    /// The best of these for packets to a domain.
    fn best(&self, routers: &[(usize, usize)], domain: &Domain, wiring: &Wiring) -> Option<(usize, usize)> {
        let length = |&(end, to): &(usize, usize)| {
            let distance = self.distance(wiring.router(to)?, domain)?;
            Some((wiring.cost(end, to) + distance, &wiring.ends[end].link, end, to))
        };
        routers.iter().filter_map(length).min().map(|(.., end, to)| (end, to))
    }

    /// The networks that a host reaches best through this end.
    pub(super) fn host_routes(&self, end: usize, wiring: &Wiring) -> Vec<HostRoute> {
        let ends = &wiring.ends;
        let here = &ends[end];
        let all = self.first_routers(end, wiring);
        let mut routes = Vec::new();
        for domain in &self.domains {
            if domain.ends.iter().any(|&at| ends[at].owner == here.owner) {
                continue;
            }
            let Some((_, router)) = self.best(&all, domain, wiring).filter(|(own, _)| *own == end) else {
                continue;
            };
            for &to in &domain.networks {
                let gateway = |address: &&Address| {
                    address.ip.is_ipv4() == to.ip.is_ipv4()
                        && here.addresses.iter().any(|own| are_neighbours(own, address))
                };
                let gateway = ends[router].addresses.iter().find(gateway);
                routes.extend(gateway.map(|gateway| HostRoute { to, via: gateway.ip }));
            }
        }
        routes
    }

    /// The end where packets from an end of a host arrive first.
    pub(super) fn first(&self, from: usize, destination: IpAddr, wiring: &Wiring) -> Option<usize> {
        if !wiring.is_switched(from) {
            return Some(wiring.ends[from].peer);
        }
        let has = |end: &usize| wiring.ends[*end].addresses.iter().any(|address| address.ip == destination);
        if let Some(end) = wiring.neighbours(from).find(has) {
            return Some(end);
        }
        let mut routers = self.first_routers(from, wiring);
        routers.retain(|(end, _)| *end == from);
        let is_there = |network: &Address| Address { ip: destination, ..*network }.network() == *network;
        let holds = |domain: &&Domain| {
            domain
                .networks
                .iter()
                .any(|network| network.ip.is_ipv4() == destination.is_ipv4() && is_there(network))
        };
        let best = self.domains.iter().find(holds).and_then(|domain| self.best(&routers, domain, wiring));
        // Other destinations take the default route.
        best.or(routers.first().copied()).map(|(_, to)| to)
    }

    /// Whether routers connect one end to another.
    pub(super) fn joins(&self, from: usize, to: usize, wiring: &Wiring) -> bool {
        let routers = |end| wiring.neighbours(end).filter_map(|end| wiring.router(end)).collect::<Vec<_>>();
        let back = routers(to);
        routers(from).iter().any(|&a| back.iter().any(|&b| self.distances[a][b].is_some()))
    }

    /// Finds the route of a router to this address.
    pub(super) fn find(&self, router: usize, destination: IpAddr) -> Option<&Entry> {
        let Table { routes, lengths } = &self.tables[router];
        let whole = Address::host(destination).prefix();
        lengths.iter().find_map(|&bits| routes.get(&Prefix::new(whole.address(), bits)))
    }

    /// The engine's routers.
    pub(super) fn configs(
        &self,
        wiring: &Wiring,
        links: &[Link],
        routers: &[Router],
        address: &dyn Fn(usize) -> LinkAddress,
    ) -> Vec<RouterConfig> {
        let target = |way: &RouteWay| {
            let hop = wiring.ends[way.end].hops[0];
            (entry(&links[hop.link], hop.way), way.weight)
        };
        let route = |router: &Router, Entry { ways, spread }: &Entry| {
            let local = ways.is_empty();
            let link_addresses = match ways.iter().any(|way| wiring.is_switched(way.end)) {
                true => ways.iter().map(|way| [address(way.to), address(way.end)]).collect(),
                false => Vec::new(),
            };
            let ways = match local {
                true => vec![(Target::Port(router.name.clone()), Weight::ONE)],
                false => ways.iter().map(target).collect(),
            };
            Route { ways, link_addresses, spread: *spread, local }
        };
        let config = |(number, (router, table)): (usize, (&Router, &Table))| {
            let own: Vec<usize> =
                (0..wiring.ends.len()).filter(|&end| wiring.router(end) == Some(number)).collect();
            let looks = own.iter().any(|&end| wiring.is_switched(end));
            RouterConfig {
                name: router.name.clone(),
                routes: (table.routes.iter())
                    .map(|(prefix, entry)| (*prefix, route(router, entry)))
                    .collect(),
                link_addresses: own.into_iter().filter(|_| looks).map(address).collect(),
            }
        };
        routers.iter().zip(&self.tables).enumerate().map(config).collect()
    }

    /// Adds the configured routes, and the router's own addresses, which take precedence over everything.
    fn given(&self, routes: &mut BTreeMap<Prefix, Entry>, number: usize, router: &Router, wiring: &Wiring) {
        let ends = &wiring.ends;
        let own: Vec<usize> = (0..ends.len()).filter(|&end| wiring.router(end) == Some(number)).collect();
        let addresses = |end: usize| {
            ends[end].addresses.clone().into_iter().map(|address| Address::host(address.ip).prefix())
        };
        // A network takes precedence over a name, even if it is a single address.
        let names_first = |network: bool| {
            router.routes.iter().filter(move |route| matches!(route.to, Destination::Network(_)) == network)
        };
        for route in names_first(false).chain(names_first(true)) {
            let ways = |destination: &Address| {
                let way = |(link, weight): &(String, Weight)| {
                    let &end = own.iter().find(|&&end| ends[end].link == *link)?;
                    let to = self.next(end, destination, wiring)?;
                    Some(RouteWay { end, to, weight: *weight })
                };
                Entry { ways: route.via.iter().filter_map(way).collect(), spread: route.spread }
            };
            match &route.to {
                Destination::Network(network) => {
                    routes.insert(network.prefix(), ways(network));
                }
                Destination::Node(name) => {
                    let all = ends.iter().filter(|end| end.owner_name == *name);
                    for address in all.flat_map(|end| &end.addresses) {
                        routes.insert(Address::host(address.ip).prefix(), ways(address));
                    }
                }
            }
        }
        let local = Entry { ways: Vec::new(), spread: Spread::Flow };
        routes.extend(own.iter().flat_map(|&end| addresses(end)).map(|prefix| (prefix, local.clone())));
    }

    /// The end where packets for a destination arrive that leave a router by this end. Behind a switch this is
    /// the destination itself or the router that is nearest to it.
    fn next(&self, end: usize, destination: &Address, wiring: &Wiring) -> Option<usize> {
        if !wiring.is_switched(end) {
            return Some(wiring.ends[end].peer);
        }
        let has = |to: &usize| wiring.ends[*to].addresses.iter().any(|own| own.ip == destination.ip);
        if let Some(to) = wiring.neighbours(end).find(has) {
            return Some(to);
        }
        let routers: Vec<_> = wiring.neighbours(end).filter(|&to| wiring.router(to).is_some()).collect();
        let holds = |domain: &&Domain| domain.networks.contains(&destination.network());
        let pairs: Vec<_> = routers.iter().map(|&to| (end, to)).collect();
        let best = self.domains.iter().find(holds).and_then(|domain| self.best(&pairs, domain, wiring));
        best.map(|(_, to)| to).or(routers.first().copied())
    }
}

/// The distance from a router to each other (Dijkstra).
fn distances(from: usize, edges: &[Vec<Edge>]) -> Vec<Option<u64>> {
    let mut all = vec![None; edges.len()];
    let mut open = BinaryHeap::from([Reverse((0u64, from))]);
    while let Some(Reverse((distance, router))) = open.pop() {
        if all[router].is_some() {
            continue;
        }
        all[router] = Some(distance);
        // The cost of a link is at most 65,535, so no sum approaches 2⁶⁴.
        open.extend(edges[router].iter().map(|edge| Reverse((distance + edge.cost, edge.router))));
    }
    all
}

/// The domains with a router.
fn domains(wiring: &Wiring) -> Vec<Domain> {
    let domain = |ends: &Vec<usize>| {
        let routers: Vec<usize> = ends.iter().filter_map(|&end| wiring.router(end)).collect();
        let addresses = ends.iter().flat_map(|&end| &wiring.ends[end].addresses);
        let networks = addresses.map(|address| address.network()).collect();
        (!routers.is_empty()).then_some(Domain { ends: ends.clone(), routers, networks })
    };
    wiring.domains.iter().filter_map(domain).collect()
}
