//! Routes: the shortest paths to every broadcast domain, and configured routes.
//!
//! The length of a path is the sum of the costs of its links. A router at an end of a domain sends there
//! directly; others send towards the nearer end, over the link with the shortest remaining path. If several
//! links tie, the one whose name sorts first is used, or all of them with equal weight if the router uses
//! multipath. Every hop reduces the distance, so shortest paths have no loops; configured routes may.
//! Routes are fixed when the scenario is read: an outage does not change them.
//!
//! Networks with the same routers at their ends form a group: all other routers send packets to them the same way. So a
//! table has two bytes for each group, and only its own networks, and configured routes, take more.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use narrows_core::classify::Prefix;
use narrows_core::sched::Weight;
use narrows_core::{LinkAddress, Route, RouterConfig, Spread, Target};

use super::addresses::are_neighbours;
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
    /// The networks of all domains, each with the number of its group.
    networks: Prefixes<u32>,
    /// The distance from each router to each other; [`UNREACHABLE`] if there is no path.
    distances: Vec<Vec<u32>>,
    domains: Vec<Domain>,
    /// By router: the number of the first router that it reaches.
    parts: Vec<usize>,
    /// The router at which there are too many sets of next hops.
    too_large: Option<usize>,
}

/// The routing table of one router.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Table {
    /// To networks and addresses at its own links, and configured routes.
    own: Prefixes<Entry>,
    /// To groups.
    ways: Vec<Entry>,
    /// Which of `ways` leads to each group; [`NO_WAY`] if none does.
    groups: Arc<[u16]>,
}

/// Values by prefix.
#[derive(Clone, Debug, PartialEq)]
struct Prefixes<T> {
    values: BTreeMap<Prefix, T>,
    /// The lengths, longest first.
    lengths: Vec<u8>,
}

impl<T> Default for Prefixes<T> {
    fn default() -> Self {
        Self::new(BTreeMap::new())
    }
}

impl<T> Prefixes<T> {
    fn new(values: BTreeMap<Prefix, T>) -> Self {
        let lengths: BTreeSet<u8> = values.keys().map(Prefix::bits).collect();
        Self { values, lengths: lengths.into_iter().rev().collect() }
    }

    /// The longest prefix that contains an address: its length and its value.
    fn find(&self, address: [u8; 16]) -> Option<(u8, &T)> {
        let of = |&bits: &u8| Some((bits, self.values.get(&Prefix::new(address, bits))?));
        self.lengths.iter().find_map(of)
    }
}

/// No number of ways is as high.
const NO_WAY: u16 = u16::MAX;
/// No distance is as long.
const UNREACHABLE: u32 = u32::MAX;

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

/// Maximum number of routes to groups of all routers together, of two bytes each.
const MOST_ROUTES: usize = 1 << 29;
/// Maximum number of different sets of next hops of all routers together, of some hundred bytes each.
const MOST_SETS: usize = 1 << 20;

/// Rejects networks whose routes would take too much memory.
pub(super) fn check_size(wiring: &Wiring, routers: &[Router]) -> Result<(), Vec<Fault>> {
    // Each router has a distance from each other one, too.
    let groups = groups(&domains(wiring)).0.len().max(routers.len());
    match routers.first() {
        Some(first) if routers.len().saturating_mul(groups) > MOST_ROUTES => {
            let problem = Problem::new(format!("{} routers with {groups} routes each", routers.len())).help(
                format!("at most {MOST_ROUTES} routes in all; links to hosts of one router count as one"),
            );
            Err(vec![Fault::Router(first.name.clone(), problem)])
        }
        _ => Ok(()),
    }
}

/// The groups of domains, by the routers at their ends, and the group of each domain.
fn groups(domains: &[Domain]) -> (Vec<Vec<usize>>, Vec<u32>) {
    let mut all = BTreeMap::new();
    let mut groups = Vec::new();
    let of = domains.iter().map(|domain| {
        let routers: BTreeSet<usize> = domain.routers.iter().copied().collect();
        let routers: Vec<usize> = routers.into_iter().collect();
        *all.entry(routers).or_insert_with_key(|routers| {
            groups.push(routers.clone());
            groups.len() as u32 - 1
        })
    });
    let of = of.collect();
    (groups, of)
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
        let mut costs = edges.iter().flatten().map(|edge| edge.cost);
        let first = costs.next();
        let equal_costs = costs.all(|cost| Some(cost) == first);
        let distances: Vec<_> = (0..routers.len()).map(|from| distances(from, &edges, equal_costs)).collect();
        let domains = domains(wiring);
        let (groups, group_of) = groups(&domains);
        let networks = domains.iter().zip(group_of);
        let networks = networks
            .flat_map(|(domain, group)| domain.networks.iter().map(move |network| (network.prefix(), group)));
        let networks = Prefixes::new(networks.collect());
        let parts = parts(&distances);
        let mut routing = Self { tables: Vec::new(), networks, distances, domains, parts, too_large: None };
        // By router: its domains.
        let mut own: Vec<Vec<usize>> = vec![Vec::new(); routers.len()];
        for (number, domain) in routing.domains.iter().enumerate() {
            let here: BTreeSet<usize> = domain.routers.iter().copied().collect();
            here.into_iter().for_each(|router| own[router].push(number));
        }
        let ends = ends_by_router(wiring, routers.len());
        let mut sets = 0;
        for (number, router) in routers.iter().enumerate() {
            let mut routes = routing.connected(number, &own[number], router.multipath, wiring);
            routing.given(&mut routes, &ends[number], router, wiring);
            let (ways, groups) = routing.remote(number, router.multipath, &edges[number], &groups);
            sets += ways.len();
            if sets > MOST_SETS || ways.len() >= usize::from(NO_WAY) {
                routing.too_large = Some(number);
                break;
            }
            routing.tables.push(Table { own: Prefixes::new(routes), ways, groups });
        }
        routing
    }

    /// Rejects routers whose routes have too many different sets of next hops.
    pub(super) fn check_size(&self, routers: &[Router]) -> Result<(), Vec<Fault>> {
        let Some(number) = self.too_large else { return Ok(()) };
        let problem = Problem::new("the routes of all routers have too many different sets of next hops")
            .help(format!(
                "at most {MOST_SETS} in all, and {} at one router; with multipath = \"none\" there are fewer",
                NO_WAY - 1
            ));
        Err(vec![Fault::Router(routers[number].name.clone(), problem)])
    }

    /// The number of routers.
    pub(super) fn routers(&self) -> usize {
        self.tables.len()
    }

    /// The distance of a router from a domain.
    fn distance(&self, router: usize, domain: &Domain) -> Option<u64> {
        let nearest = domain.routers.iter().map(|&end| self.distances[router][end]).min()?;
        (nearest < UNREACHABLE).then_some(nearest.into())
    }

    /// The routes of a router to the domains at its own links.
    fn connected(
        &self,
        router: usize,
        domains: &[usize],
        multipath: Option<Spread>,
        wiring: &Wiring,
    ) -> BTreeMap<Prefix, Entry> {
        let ends = &wiring.ends;
        let mut routes = BTreeMap::new();
        let spread = multipath.unwrap_or_default();
        for domain in domains.iter().map(|&number| &self.domains[number]) {
            let own = |end: &&usize| wiring.router(**end) == Some(router);
            let Some(&own) = domain.ends.iter().find(own) else { continue };
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
        }
        routes
    }

    /// The shortest paths of a router to groups of domains that it is not at.
    fn remote(
        &self,
        router: usize,
        multipath: Option<Spread>,
        edges: &[Edge],
        groups: &[Vec<usize>],
    ) -> (Vec<Entry>, Arc<[u16]>) {
        let distances = &self.distances[router];
        // To each router: the edges on shortest paths.
        let towards = |to: usize| -> Vec<u32> {
            let is_shortest = |edge: &Edge| {
                let rest = self.distances[edge.router][to];
                rest < UNREACHABLE && edge.cost + u64::from(rest) == u64::from(distances[to])
            };
            (0u32..).zip(edges).filter(|(_, edge)| is_shortest(edge)).map(|(number, _)| number).collect()
        };
        let towards: Vec<Vec<u32>> = (0..distances.len()).map(towards).collect();
        let most = if multipath.is_some() { usize::MAX } else { 1 };
        let mut known = BTreeMap::new();
        let mut ways = Vec::new();
        let mut way = |group: &Vec<usize>| {
            let nearest =
                group.iter().map(|&to| distances[to]).min().filter(|&nearest| nearest < UNREACHABLE);
            let Some(nearest) = nearest.filter(|_| !group.contains(&router)) else { return NO_WAY };
            let ends = group.iter().filter(|&&to| distances[to] == nearest);
            let mut all: Vec<u32> = ends.flat_map(|&to| &towards[to]).copied().collect();
            all.sort_unstable();
            all.dedup();
            all.truncate(most);
            if all.is_empty() {
                return NO_WAY;
            }
            *known.entry(all).or_insert_with_key(|all| {
                let way = |&Edge { end, to, .. }: &Edge| RouteWay { end, to, weight: Weight::ONE };
                let all = all.iter().map(|&number| way(&edges[number as usize])).collect();
                ways.push(Entry { ways: all, spread: multipath.unwrap_or_default() });
                u16::try_from(ways.len() - 1).unwrap_or(NO_WAY)
            })
        };
        let groups = groups.iter().map(&mut way).collect();
        (ways, groups)
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

    /// Whether routers connect one end to another. All routers that an end reaches directly reach each other.
    pub(super) fn joins(&self, from: usize, to: usize, wiring: &Wiring) -> bool {
        self.part(from, wiring).is_some_and(|part| self.part(to, wiring) == Some(part))
    }

    /// The part of the network that an end reaches through routers.
    pub(super) fn part(&self, end: usize, wiring: &Wiring) -> Option<usize> {
        Some(self.parts[wiring.neighbours(end).find_map(|end| wiring.router(end))?])
    }

    /// Finds the route of a router to this address.
    pub(super) fn find(&self, router: usize, destination: IpAddr) -> Option<&Entry> {
        let Table { own, ways, groups } = &self.tables[router];
        let address = Address::host(destination).prefix().address();
        let own = own.find(address);
        let common = self.networks.find(address).filter(|(bits, _)| own.is_none_or(|(own, _)| *bits > own));
        let common = common.and_then(|(_, &group)| ways.get(usize::from(groups[group as usize])));
        common.or(own.map(|(_, entry)| entry))
    }

    /// The prefixes of all networks, with their groups.
    pub(super) fn destinations(&self) -> Vec<(Prefix, u32)> {
        self.networks.values.iter().map(|(&prefix, &group)| (prefix, group)).collect()
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
        let ends = ends_by_router(wiring, routers.len());
        let config = |(number, (router, table)): (usize, (&Router, &Table))| {
            let own = &ends[number];
            let looks = own.iter().any(|&end| wiring.is_switched(end));
            RouterConfig {
                name: router.name.clone(),
                routes: (table.own.values.iter())
                    .map(|(prefix, entry)| (*prefix, route(router, entry)))
                    .collect(),
                ways: table.ways.iter().map(|entry| route(router, entry)).collect(),
                groups: Arc::clone(&table.groups),
                link_addresses: own.iter().copied().filter(|_| looks).map(address).collect(),
            }
        };
        routers.iter().zip(&self.tables).enumerate().map(config).collect()
    }

    /// Adds the configured routes, and the router's own addresses, which take precedence over everything.
    fn given(&self, routes: &mut BTreeMap<Prefix, Entry>, own: &[usize], router: &Router, wiring: &Wiring) {
        let ends = &wiring.ends;
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

/// The distance from a router to each other (Dijkstra). Where all links cost the same, as in most networks, what is found
/// first is nearest, and a plain queue does instead of a heap.
fn distances(from: usize, edges: &[Vec<Edge>], equal_costs: bool) -> Vec<u32> {
    let mut all = vec![UNREACHABLE; edges.len()];
    // Each link costs at most 65,535, and a packet passes 255 routers.
    let least = |distance: u64| u32::try_from(distance).unwrap_or(UNREACHABLE).min(UNREACHABLE - 1);
    if equal_costs {
        all[from] = 0;
        let mut open = VecDeque::from([from]);
        while let Some(router) = open.pop_front() {
            let distance = u64::from(all[router]);
            for edge in &edges[router] {
                if all[edge.router] == UNREACHABLE {
                    all[edge.router] = least(distance + edge.cost);
                    open.push_back(edge.router);
                }
            }
        }
        return all;
    }
    let mut open = BinaryHeap::from([Reverse((0u64, from))]);
    while let Some(Reverse((distance, router))) = open.pop() {
        if all[router] < UNREACHABLE {
            continue;
        }
        all[router] = least(distance);
        let next = edges[router].iter().filter(|edge| all[edge.router] == UNREACHABLE);
        open.extend(next.map(|edge| Reverse((distance + edge.cost, edge.router))));
    }
    all
}

/// By router: the first router that it reaches, which is the same for all that reach each other.
fn parts(distances: &[Vec<u32>]) -> Vec<usize> {
    let first = |all: &Vec<u32>| all.iter().position(|&distance| distance < UNREACHABLE).unwrap_or_default();
    distances.iter().map(first).collect()
}

/// By router: its ends.
fn ends_by_router(wiring: &Wiring, routers: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new(); routers];
    for end in 0..wiring.ends.len() {
        if let Some(router) = wiring.router(end) {
            all[router].push(end);
        }
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

#[cfg(test)]
mod tests;
