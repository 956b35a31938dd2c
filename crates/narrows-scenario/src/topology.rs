//! How links are connected: ports at the hosts, interfaces at the routers, and the links between them.
//!
//! A junction connects exactly two links, so that packets pass straight through. The links between two ends
//! at hosts or routers form a *segment*: one link, or several in series. Each segment is a network of its
//! own, and every link belongs to exactly one segment.

mod addresses;
mod bounds;
mod longest;
mod loops;
mod routes;
mod segments;
mod ways;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use narrows_core::{RouterConfig, Target};

use crate::host::{Address, Host};
use crate::link::{Link, Medium, Way};
use crate::problem::Problem;
use crate::router::Router;

pub(crate) use loops::Circle;
use routes::Routing;
use segments::{End, Owner};
pub(crate) use ways::{MOST_WAYS, Outcome, WayThrough};

/// Where packets enter and leave the network: the end of a link at a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// `HOST.LINK`.
    pub name: String,
    /// The host.
    pub host: String,
    /// The link.
    pub link: String,
    /// The other end of the segment: a port, where packets that enter here leave, or an [`Interface`] of a
    /// router.
    pub peer: String,
    /// The host's addresses here: the configured ones, or else one IPv4 and one IPv6 address in a network
    /// shared only by the two ends of this segment.
    pub addresses: Vec<Address>,
    /// The path to the peer, in order: the engine's names, and lanes or directions.
    pub path: Vec<Target>,
    pub(crate) hops: Vec<Hop>,
    /// Its index among the ends.
    end: usize,
}

/// A network that a host reaches through a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRoute {
    /// The network.
    pub to: Address,
    /// The router's address on the port's segment.
    pub via: IpAddr,
}

/// The end of a link at a router. Packets pass through interfaces; packets to or from the router itself use
/// its own engine port, which has the router's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// `ROUTER.LINK`.
    pub name: String,
    /// The router.
    pub router: String,
    /// The link.
    pub link: String,
    /// The other end of the segment: a port or an interface.
    pub peer: String,
    /// The router's addresses here, as for a [`Port`].
    pub addresses: Vec<Address>,
    /// The path to the peer, in order.
    pub path: Vec<Target>,
}

/// One link on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Hop {
    /// Its index among the scenario's links.
    pub(crate) link: usize,
    pub(crate) way: Way,
}

impl Hop {
    /// The same link in the other direction.
    pub(crate) const fn back(self) -> Self {
        let way = match self.way {
            Way::Up => Way::Down,
            Way::Down => Way::Up,
        };
        Self { way, ..self }
    }
}

/// All segments, and the routes between them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Topology {
    pub(crate) ports: Vec<Port>,
    pub(crate) interfaces: Vec<Interface>,
    ends: Vec<End>,
    routing: Arc<Routing>,
}

/// An error in how links are connected, and the link, junction or router concerned.
pub(crate) enum Fault {
    Junction(String, Problem),
    Router(String, Problem),
    Link(usize, Problem),
}

impl Topology {
    /// Connects the links. Every end of a link must be a host, junction or router; routes must use existing
    /// objects and links.
    pub(crate) fn new(
        hosts: &[Host],
        junctions: &[String],
        routers: &[Router],
        links: &[Link],
    ) -> Result<Self, Vec<Fault>> {
        let ends = segments::join(hosts, junctions, routers, links)?;
        let mut topology = Self { ends, ..Self::default() };
        routes::check_size(&topology.ends, routers)?;
        topology.number(hosts, routers, links, &|_| true);
        let faults = addresses::check(&topology.ends, routers);
        if faults.is_empty() { Ok(topology) } else { Err(faults) }
    }

    /// Assigns the addresses of all ends, and computes the routes.
    pub(crate) fn number(
        &mut self,
        hosts: &[Host],
        routers: &[Router],
        links: &[Link],
        is_free: &dyn Fn(Address) -> bool,
    ) {
        addresses::give(&mut self.ends, hosts, routers, is_free);
        self.routing = Arc::new(Routing::new(&self.ends, routers));
        let path = |end: &End| end.hops.iter().map(|hop| entry(&links[hop.link], hop.way)).collect();
        let peer = |end: &End| self.ends[end.peer].name.clone();
        self.ports = Vec::new();
        self.interfaces = Vec::new();
        for (index, end) in self.ends.iter().enumerate() {
            match end.owner {
                Owner::Host(host) => self.ports.push(Port {
                    name: end.name.clone(),
                    host: hosts[host].name.clone(),
                    link: end.link.clone(),
                    peer: peer(end),
                    addresses: end.addresses.clone(),
                    path: path(end),
                    hops: end.hops.clone(),
                    end: index,
                }),
                Owner::Router(router) => self.interfaces.push(Interface {
                    name: end.name.clone(),
                    router: routers[router].name.clone(),
                    link: end.link.clone(),
                    peer: peer(end),
                    addresses: end.addresses.clone(),
                    path: path(end),
                }),
            }
        }
    }

    /// The target of packets that leave this link in this direction.
    pub(crate) fn exits(&self, links: &[Link], routers: &[Router]) -> BTreeMap<(usize, Way), Target> {
        let mut exits = BTreeMap::new();
        for end in &self.ends {
            for (at, hop) in end.hops.iter().enumerate() {
                let target = match end.hops.get(at + 1) {
                    Some(next) => entry(&links[next.link], next.way),
                    None => {
                        let peer = &self.ends[end.peer];
                        match peer.owner {
                            Owner::Host(_) => Target::Port(peer.name.clone()),
                            Owner::Router(router) => Target::Router(routers[router].name.clone()),
                        }
                    }
                };
                exits.insert((hop.link, hop.way), target);
            }
        }
        exits
    }

    /// The networks behind a router at the other end of a port, if the port is on the host's shortest path
    /// to them.
    pub(crate) fn host_routes(&self, port: &Port) -> Vec<HostRoute> {
        self.routing.host_routes(port.end, &self.ends)
    }

    /// The address of the interface by which a router sends packets to this address.
    pub(crate) fn address_towards(&self, router: usize, destination: IpAddr) -> Option<IpAddr> {
        let (end, _) = self.routing.find(router, destination)?.ways.first()?;
        let addresses = self.ends[*end].addresses.iter().map(|address| address.ip);
        addresses.into_iter().find(|ip| ip.is_ipv4() == destination.is_ipv4())
    }

    /// The engine's routers.
    pub(crate) fn routers(&self, links: &[Link], routers: &[Router]) -> Vec<RouterConfig> {
        self.routing.configs(&self.ends, links, routers)
    }
}

/// The entry to a link in this direction.
pub(crate) fn entry(link: &Link, way: Way) -> Target {
    let name = link.core_name(way);
    match (&link.medium, way) {
        (Medium::Rules(_), way) => Target::Rules { name, incoming: way == Way::Down },
        (Medium::Shared(_), Way::Down) => Target::Link { name, lane: 1 },
        _ => Target::Link { name, lane: 0 },
    }
}
