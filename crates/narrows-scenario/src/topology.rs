//! How links are connected: ports at the hosts, interfaces at the routers, and the links between them.
//!
//! A junction connects exactly two links, so that packets pass straight through. The links between two ends
//! at hosts, routers or switches form a *segment*: one link, or several in series. Every link belongs to exactly
//! one segment. Ends at hosts and routers that reach each other without a router form a *domain*, a network of
//! its own: the two ends of a segment, or all those that a VLAN of switches connects.

mod addresses;
mod bounds;
mod longest;
mod loops;
mod routes;
mod segments;
mod switching;
mod ways;
mod wiring;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use narrows_core::classify::Prefix;
use narrows_core::{LinkAddress, RouterConfig, SwitchConfig, Target};

use crate::host::{Address, Host};
use crate::link::{Link, Medium, Way, lane_of};
use crate::problem::Problem;
use crate::router::Router;
use crate::switch::{PortVlans, Switch};

pub(crate) use loops::Circle;
use routes::Routing;
use segments::{End, Owner};
pub(crate) use ways::{MOST_WAYS, Outcome, WayThrough};
use wiring::Wiring;

/// Where packets enter and leave the network: the end of a link at a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// `HOST.LINK`.
    pub name: String,
    /// The host.
    pub host: String,
    /// The link.
    pub link: String,
    /// The other end of the segment: a port, where packets that enter here leave, an [`Interface`] of a
    /// router, or `SWITCH.LINK`.
    pub peer: String,
    /// The host's addresses here: the configured ones, or else one IPv4 and one IPv6 address in a network
    /// shared only with what it reaches without a router.
    pub addresses: Vec<Address>,
    /// The link address of the host's interface: locally administered, and the same in every run.
    pub link_address: LinkAddress,
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
    /// The other end of the segment: a port, an interface or `SWITCH.LINK`.
    pub peer: String,
    /// The router's addresses here, as for a [`Port`].
    pub addresses: Vec<Address>,
    /// Its link address, as for a [`Port`].
    pub link_address: LinkAddress,
    /// The path to the peer, in order.
    pub path: Vec<Target>,
}

/// What a host reaches without a router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// The host or router.
    pub name: String,
    /// Whether it is a router.
    pub is_router: bool,
    /// Its end: a port or an interface.
    pub end: String,
    /// Its link address there.
    pub link_address: LinkAddress,
    /// Its addresses there.
    pub addresses: Vec<Address>,
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
    wiring: Wiring,
    routing: Arc<Routing>,
}

/// An error in how links are connected, and the link, junction or router concerned.
pub(crate) enum Fault {
    Junction(String, Problem),
    Router(String, Problem),
    Link(usize, Problem),
}

impl Fault {
    /// What is wrong.
    pub(crate) fn problem(self) -> Problem {
        match self {
            Self::Junction(_, problem) | Self::Router(_, problem) | Self::Link(_, problem) => problem,
        }
    }
}

impl Topology {
    /// Connects the links. Every end of a link must be a host, junction, router or switch; routes must use
    /// existing objects and links.
    pub(crate) fn new(
        hosts: &[Host],
        junctions: &[String],
        routers: &[Router],
        switches: &[Switch],
        links: &[Link],
    ) -> Result<Self, Vec<Fault>> {
        let ends = segments::join(hosts, junctions, routers, switches, links)?;
        let wiring = Wiring::new(ends, switches)?;
        let mut topology = Self { wiring, ..Self::default() };
        routes::check_size(&topology.wiring, routers)?;
        topology.check_queues(links)?;
        topology.number(hosts, routers, links, &|_| true);
        topology.routing.check_size(routers)?;
        let mut faults = addresses::check(&topology.wiring, routers);
        faults.extend(addresses::untranslatable(&topology.wiring, links));
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
        addresses::give(&mut self.wiring, hosts, routers, is_free);
        addresses::give_outer(&mut self.wiring, links);
        self.routing = Arc::new(Routing::new(&self.wiring, routers));
        let ends = &self.wiring.ends;
        let path = |end: &End| end.hops.iter().map(|hop| entry(&links[hop.link], hop.way)).collect();
        let peer = |end: &End| ends[end.peer].name.clone();
        self.ports = Vec::new();
        self.interfaces = Vec::new();
        for (index, end) in ends.iter().enumerate() {
            match end.owner {
                Owner::Host(host) => self.ports.push(Port {
                    name: end.name.clone(),
                    host: hosts[host].name.clone(),
                    link: end.link.clone(),
                    peer: peer(end),
                    addresses: end.addresses.clone(),
                    link_address: host_address(index),
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
                    link_address: router_address(index - self.ports.len()),
                    path: path(end),
                }),
                Owner::Switch(_) => {}
            }
        }
    }

    /// The target of packets that leave this link in this direction.
    pub(crate) fn exits(
        &self,
        links: &[Link],
        routers: &[Router],
        switches: &[Switch],
    ) -> BTreeMap<(usize, Way), Target> {
        let Wiring { ends, switching, .. } = &self.wiring;
        let mut exits = BTreeMap::new();
        for end in ends {
            for (at, hop) in end.hops.iter().enumerate() {
                let target = match end.hops.get(at + 1) {
                    Some(next) => entry(&links[next.link], next.way),
                    None => {
                        let peer = &ends[end.peer];
                        match peer.owner {
                            Owner::Host(_) => Target::Port(peer.name.clone()),
                            Owner::Router(router) => Target::Router(routers[router].name.clone()),
                            Owner::Switch(_) => {
                                switching.target(end.peer, switches, ends).expect("a switch is there")
                            }
                        }
                    }
                };
                exits.insert((hop.link, hop.way), target);
            }
        }
        exits
    }

    /// The first IPv4 address of a host or router at a link.
    pub(crate) fn first_address(&self, link: &str, owner: &str) -> Option<Ipv4Addr> {
        let is_here = |end: &&End| end.link == link && end.owner_name == owner;
        let addresses = self.wiring.ends.iter().filter(is_here).flat_map(|end| &end.addresses);
        addresses.into_iter().find_map(|address| match address.ip {
            IpAddr::V4(ip) => Some(ip),
            IpAddr::V6(_) => None,
        })
    }

    /// The networks behind routers that a host reaches without another router from this port, if the port is
    /// on the host's shortest path to them.
    pub(crate) fn host_routes(&self, port: &Port) -> Vec<HostRoute> {
        let mut routes = self.routing.host_routes(port.end, &self.wiring);
        routes.extend(addresses::outer_routes(&self.wiring, port.end));
        routes
    }

    /// The address of the interface by which a router sends packets to this address.
    pub(crate) fn address_towards(&self, router: usize, destination: IpAddr) -> Option<IpAddr> {
        let way = self.routing.find(router, destination)?.ways.first()?;
        let addresses = self.wiring.ends[way.end].addresses.iter().map(|address| address.ip);
        addresses.into_iter().find(|ip| ip.is_ipv4() == destination.is_ipv4())
    }

    /// Whether the queues of links do not depend on paths that are not computed.
    pub(crate) fn check_queues(&self, links: &[Link]) -> Result<(), Vec<Fault>> {
        longest::check_size(&self.wiring, links)
    }

    /// The prefixes of all networks behind routers, with their groups.
    pub(crate) fn destinations(&self) -> Vec<(Prefix, u32)> {
        self.routing.destinations()
    }

    /// The engine's routers.
    pub(crate) fn routers(&self, links: &[Link], routers: &[Router]) -> Vec<RouterConfig> {
        self.routing.configs(&self.wiring, links, routers, &|end| self.link_address(end))
    }

    /// The engine's switches.
    pub(crate) fn switches(&self, links: &[Link], switches: &[Switch]) -> Vec<SwitchConfig> {
        let exit = |end: &End| entry(&links[end.hops[0].link], end.hops[0].way);
        let Wiring { ends, switching, .. } = &self.wiring;
        switching.configs(ends, switches, &exit, &|end| self.link_address(end))
    }

    /// What a port reaches without a router: hosts first, then routers.
    pub(crate) fn neighbours(&self, port: &Port) -> Vec<Neighbour> {
        let neighbour = |index: usize| {
            let end = &self.wiring.ends[index];
            Neighbour {
                name: end.owner_name.clone(),
                is_router: self.wiring.router(index).is_some(),
                end: end.name.clone(),
                link_address: self.link_address(index),
                addresses: end.addresses.clone(),
            }
        };
        self.wiring.neighbours(port.end).map(neighbour).collect()
    }

    /// Whether a switch is at the other end of a port's segment.
    pub(crate) fn is_switched(&self, port: &Port) -> bool {
        self.wiring.is_switched(port.end)
    }

    /// The link address that a host's packets to this address get at a port on a switch: that of the
    /// destination or of a router.
    pub(crate) fn first_link_address(&self, port: &Port, destination: IpAddr) -> Option<LinkAddress> {
        let first = self.routing.first(port.end, destination, &self.wiring)?;
        Some(self.link_address(first))
    }

    /// The VLANs of the ports of a switch, each with the link there.
    pub(crate) fn ports_of(&self, switch: usize) -> impl Iterator<Item = (&str, &PortVlans)> {
        let Wiring { ends, switching, .. } = &self.wiring;
        let is_here = move |end: &&End| end.owner == Owner::Switch(switch);
        let all = ends.iter().enumerate().filter(move |(_, end)| is_here(end));
        all.filter_map(|(index, end)| Some((end.link.as_str(), switching.vlans(index)?)))
    }

    /// The link address of an end at a host or a router.
    fn link_address(&self, end: usize) -> LinkAddress {
        match end.checked_sub(self.ports.len()) {
            None => host_address(end),
            Some(interface) => router_address(interface),
        }
    }
}

/// The link address of a host's port with this number: "nar" in a locally administered address.
fn host_address(port: usize) -> LinkAddress {
    let [.., high, low] = port.to_be_bytes();
    [0x02, b'n', b'a', b'r', high, low]
}

/// The same for a router's interface.
fn router_address(interface: usize) -> LinkAddress {
    let [.., high, middle, low] = interface.to_be_bytes();
    [0x06, b'n', b'a', high, middle, low]
}

/// The entry to a link in this direction.
pub(crate) fn entry(link: &Link, way: Way) -> Target {
    let name = link.core_name(way);
    match (&link.medium, way) {
        (Medium::Rules(_), way) => Target::Rules { name, incoming: way == Way::Down },
        (Medium::Shared(_), Way::Down) => Target::Link { name, lane: 1 },
        (Medium::Joined(joined), way) => Target::Link { name, lane: lane_of(joined.station, way) },
        _ => Target::Link { name, lane: 0 },
    }
}
