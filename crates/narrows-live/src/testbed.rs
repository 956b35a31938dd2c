//! The hosts of a run and the cables between them and the engine.
//!
//! ```text
//! client's namespace         our namespace          server's namespace
//!   access ────────────── p0 │ engine │ p1 ────────────── access
//!            veth pair                        veth pair
//! ```
//!
//! With many hosts, one packet socket serves all cables of a packet thread: all interfaces of a namespace that only
//! these are in.
//!
//! With `--backend tap`, `access` is a TAP device whose descriptor is ours, and there is no `p0`.
//!
//! A router has no namespace: it is in the engine, and appears to a host as the neighbour at the other end of the
//! cable.
//!
//! Namespaces that we create have no name in the file system and end with the processes in them; cables end with our
//! namespace. So even a killed run leaves none of these behind. A host that names an existing namespace gets an
//! interface there, which is removed with us.

mod cable;
mod kernel_cable;

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::thread;

use narrows_io::address::IpPrefix;
use narrows_io::cable_end::{Backend, CableEnd, CableEndError};
use narrows_io::clock::MonotonicTime;
use narrows_io::link::{InterfaceIndex, MacAddress};
use narrows_io::namespace::{Namespace, NamespaceError};
use narrows_io::offload::OffloadError;
use narrows_io::route_socket::{NetlinkError, RouteSocket};
use narrows_io::stack::StackError;
use narrows_kernel::KernelLinks;
use narrows_scenario::{Address, HostRoute, Neighbour, Place, Scenario};

use self::cable::{End, lay_cable, lay_lane};
use crate::cabling::{Cabling, FarEnd};
use crate::neighbor_proxy::NeighborProxy;

/// The numbers of our ends start here, beyond those of hosts' interfaces: the two ends of a cable must differ.
const FIRST_END: u32 = 1 << 20;
/// The maximum MTU of a TAP device, including its Ethernet header: enough for any other interface, too.
const MOST_MTU: u32 = 65_521;
/// With more networks than this, hosts have a default route instead of one for each.
const MOST_NETWORKS: usize = 64;

/// Why a testbed could not be created.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// A namespace failed.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// An interface, address or route failed.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// The end of a cable failed.
    #[error(transparent)]
    CableEnd(#[from] CableEndError),
    /// The kernel does not take the link.
    #[error(transparent)]
    Kernel(#[from] narrows_kernel::LoadError),
    /// The scenario does not fit into the kernel.
    #[error(transparent)]
    Misfits(#[from] narrows_kernel::Misfits),
    /// The kernel's stack on an interface could not be configured.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// The offloads of an interface could not be changed.
    #[error(transparent)]
    Offload(#[from] OffloadError),
    /// A host in a kind of place that live runs do not support.
    #[error("a live run cannot put a host into {0}")]
    NotHere(String),
    /// A host that could not be prepared.
    #[error("host `{host}`: {cause}")]
    Host {
        /// Its name in the scenario.
        host: String,
        /// The error.
        cause: Box<TestbedError>,
    },
}

/// A host with its interfaces.
#[derive(Debug)]
pub struct Host {
    /// Its name in the scenario.
    pub name: String,
    /// The namespace of its programs.
    pub namespace: Namespace,
    /// Whether we created its namespace.
    pub is_ours: bool,
    /// Its interfaces, one for each link that ends at it.
    pub interfaces: Vec<Interface>,
}

/// An interface of a host.
#[derive(Clone, Debug)]
pub struct Interface {
    /// The port that it leads to.
    pub port: String,
    /// Its name in the host's namespace.
    pub name: String,
    /// Its link address.
    pub mac: MacAddress,
    /// Its addresses.
    pub addresses: Vec<IpPrefix>,
    /// Its MTU.
    pub mtu: u32,
    /// The host, router or switch at the other end of the link.
    pub joined_to: String,
    /// Whether that is a switch.
    pub is_switched: bool,
    /// What it reaches without a router: the host or router at the other end, or all on the switch; hosts first.
    pub neighbours: Vec<Peer>,
    /// The port that measurements go to, if a host is among them.
    pub opposite: Option<String>,
    /// The networks reached through these routers.
    pub behind: Vec<Behind>,
}

impl Interface {
    /// The first router that it reaches directly.
    fn router(&self) -> Option<&Peer> {
        self.neighbours.iter().find(|peer| peer.is_router)
    }

    /// Where packets to other networks go: a router, or else a host that may forward.
    fn gateway(&self) -> Option<&Peer> {
        self.router().or(self.neighbours.first())
    }
}

/// A network behind a router.
#[derive(Clone, Copy, Debug)]
pub struct Behind {
    /// The network.
    pub network: IpPrefix,
    /// The router's address.
    pub gateway: IpAddr,
}

/// A host or router that an interface reaches without another router.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its name.
    pub name: String,
    /// Its port or interface in the scenario.
    pub end: String,
    /// Whether it is a router, which has no namespace: it only exists in the engine.
    pub is_router: bool,
    /// Its link address.
    pub mac: MacAddress,
    /// Its addresses.
    pub addresses: Vec<IpPrefix>,
}

/// A cable: our end of it, and the ports of the engine there.
#[derive(Debug)]
pub struct Cable {
    /// The source and destination of its frames.
    pub end: CableEnd,
    /// The time before it was opened: everything received from it is later.
    pub laid: MonotonicTime,
    /// The interface at its other end, if it may drop frames on the way to us.
    pub far: Option<FarEnd>,
    /// The ports.
    pub plugs: Vec<Plug>,
}

impl Cable {
    /// A cable with one port.
    pub fn of_one(port: Plug, end: CableEnd, laid: MonotonicTime, far: Option<FarEnd>) -> Self {
        Self { end, laid, far, plugs: vec![port] }
    }
}

/// A port of the engine at a cable.
#[derive(Debug)]
pub struct Plug {
    /// Its name.
    pub port: String,
    /// The hosts whose addresses are resolved here, and the answers.
    pub neighbours: NeighborProxy,
    /// The link addresses of frames that leave here from a router: the router's and the host's.
    pub stations: Option<(narrows_frame::MacAddress, narrows_frame::MacAddress)>,
    /// Its part of a cable with several ports.
    pub lane: Option<Lane>,
}

/// A port's part of the cables that share a socket, which to the packet thread are one.
#[derive(Debug)]
pub struct Lane {
    /// Our end of its own.
    pub interface: InterfaceIndex,
    /// The host's end.
    pub far: FarEnd,
}

impl Plug {
    /// A port at which every frame crosses the network.
    pub fn transparent(port: &str) -> Self {
        Self { port: port.to_owned(), neighbours: NeighborProxy::transparent(), stations: None, lane: None }
    }
}

/// The number of cable ends closed in parallel.
const CLOSERS: usize = 64;

/// Closes ends of cables. For each the kernel waits some milliseconds until nobody can be using it any more
/// (`synchronize_net` in `packet_release`), but only once for all that are being closed at the same time.
pub(crate) fn close(mut ends: Vec<CableEnd>) {
    let each = ends.len().div_ceil(CLOSERS).max(1);
    thread::scope(|scope| {
        while !ends.is_empty() {
            let some = ends.split_off(ends.len().saturating_sub(each));
            // If no thread can be started, they are closed here.
            let _ = thread::Builder::new().spawn_scoped(scope, move || drop(some));
        }
    });
}

/// All of it.
#[derive(Debug)]
pub struct Testbed {
    /// The hosts, in the scenario's order.
    pub hosts: Vec<Host>,
    /// Our ends, until they are taken.
    cables: Vec<Cable>,
    /// The names, in our namespace, of our ends of cables to existing namespaces.
    ends: Vec<String>,
    /// The networks of the scenario that hosts are connected to, also those on other machines.
    networks: BTreeSet<IpPrefix>,
    /// Our namespace.
    wire: Namespace,
    /// Why the best packet I/O backend is not used.
    cabling_note: Option<String>,
    /// How cables share sockets, if they do.
    sharing_note: Option<String>,
    /// The namespaces of cables that share a socket.
    _shared_wires: Vec<Namespace>,
    /// The links, if they are inside the kernel: as long as the hosts.
    _kernel_links: Option<KernelLinks>,
}

impl Testbed {
    /// Creates the hosts and cables of a scenario; `thread_of` is the number of the packet thread that serves a port.
    ///
    /// # Errors
    /// If a privilege is missing, a named namespace does not exist, or an interface with the required name exists
    /// there.
    pub fn create(
        scenario: &Scenario,
        cabling: Cabling,
        thread_of: impl Fn(&str) -> usize,
    ) -> Result<Self, TestbedError> {
        let wire = wire()?;
        let mut hosts = Vec::new();
        for host in scenario.hosts.iter().filter(|host| scenario.is_here(&host.name)) {
            let existing = existing(host)?;
            let is_ours = existing.is_none();
            let namespace = match existing {
                Some(existing) => existing,
                None => Namespace::create().map_err(|cause| of_host(&host.name, cause.into()))?,
            };
            let namespace = namespace.labelled(format!("host `{}`", host.name));
            hosts.push(Host { name: host.name.clone(), namespace, is_ours, interfaces: Vec::new() });
        }
        let addresses = scenario.ports().iter().flat_map(|port| prefixes(&port.addresses));
        let networks = addresses.map(|address| address.network()).collect();
        let mut testbed = Self {
            hosts,
            cables: Vec::new(),
            ends: Vec::new(),
            networks,
            wire,
            cabling_note: None,
            sharing_note: None,
            _shared_wires: Vec::new(),
            _kernel_links: None,
        };
        match cabling.backend {
            Some(Backend::Kernel) => testbed.lay_kernel_cables(scenario)?,
            _ => testbed.lay_cables(scenario, cabling, thread_of)?,
        }
        Ok(testbed)
    }

    fn lay_cables(
        &mut self,
        scenario: &Scenario,
        cabling: Cabling,
        thread_of: impl Fn(&str) -> usize,
    ) -> Result<(), TestbedError> {
        let ports = scenario.ports();
        let mtu = |port| scenario.interface_mtu(port).min(MOST_MTU);
        // Of a scenario on several machines, only some hosts are here.
        let place = |port: &narrows_scenario::Port| self.hosts.iter().position(|host| host.name == port.host);
        let here: Vec<_> = ports
            .iter()
            .enumerate()
            .filter_map(|(number, port)| Some((number, port, place(port)?)))
            .collect();
        // Cables to existing namespaces may vanish, which ends a run; only their own sockets notice.
        let shares = |place: usize| self.hosts[place].is_ours;
        let sharers: Vec<usize> = here
            .iter()
            .filter(|(_, _, place)| shares(*place))
            .map(|(_, port, _)| thread_of(&port.name))
            .collect();
        let threads = match cabling.may_share(sharers.len()) {
            true => sharers.iter().max().map_or(0, |last| last + 1),
            false => 0,
        };
        let wires: Vec<Namespace> = (0..threads).map(|_| wire()).collect::<Result<_, _>>()?;
        let sockets = cabling.shared_sockets(&wires).map_err(CableEndError::from)?;
        let own = here.len() - sockets.as_ref().map_or(0, |_| sharers.len());
        let mut laying =
            cabling.lay(own, here.iter().map(|&(_, port, _)| mtu(port)).max().unwrap_or_default());
        let mut plugs: Vec<Vec<Plug>> = wires.iter().map(|_| Vec::new()).collect();
        for (number, port, place) in here {
            let interface = interface_at(scenario, port);
            let host = &mut self.hosts[place];
            let end = End { name: format!("p{number}"), number: InterfaceIndex(FIRST_END + number as u32) };
            let shared = sockets.is_some() && host.is_ours;
            if shared {
                let thread = thread_of(&port.name);
                let wire = &wires[thread];
                let plug = wire.run(|| lay_lane(wire, host, &interface, &end, cabling));
                let plug = plug.map_err(TestbedError::from).flatten();
                plugs[thread].push(plug.map_err(|cause| of_host(&host.name, cause))?);
            } else {
                let laid = self.wire.run(|| lay_cable(&self.wire, host, &interface, &end, &mut laying));
                let cable = laid.map_err(TestbedError::from).flatten();
                self.cables.push(cable.map_err(|cause| of_host(&host.name, cause))?);
            }
            host.interfaces.push(interface);
            if !host.is_ours {
                self.ends.push(end.name);
            }
        }
        self.cabling_note = laying.note();
        if let Some(sockets) = sockets {
            self.sharing_note = Some(match sockets.len() {
                1 => format!("one packet socket served {} cables", sharers.len()),
                count => format!("{count} packet sockets served {} cables", sharers.len()),
            });
            let laid = laying.began();
            let cables = sockets.into_iter().zip(plugs).filter(|(_, plugs)| !plugs.is_empty());
            let cable =
                |(socket, plugs)| Cable { end: CableEnd::PacketSocket(socket), laid, far: None, plugs };
            self.cables.extend(cables.map(cable));
            self._shared_wires = wires;
        }
        Ok(())
    }

    /// Adds routes to networks that hosts are not connected to. A host of ours gets a default route over its first
    /// link if that leads to a router, which answers for unreachable destinations, or if there is an uplink; the host
    /// that is the uplink gets none. If there is no uplink, and a host is at the other end, it gets routes to the scenario's
    /// networks over that host, which may be configured to forward: outside destinations are unreachable at once. In
    /// an existing namespace there are only routes to the networks behind routers.
    ///
    /// # Errors
    /// If a route is rejected.
    pub fn add_routes(&self, outside: Option<&str>) -> Result<(), TestbedError> {
        let networks = &self.networks;
        for host in &self.hosts {
            let way = match host.interfaces.first() {
                Some(_) if !host.is_ours || outside == Some(host.name.as_str()) => FirstWay::Known,
                Some(first) if first.router().is_some() => FirstWay::Default,
                Some(_) if outside.is_some() => FirstWay::Default,
                // No host on a switch is known to forward.
                Some(first) if first.is_switched => FirstWay::Groups,
                // In a scenario with many links this would be many routes for each of many hosts.
                _ if networks.len() > MOST_NETWORKS => FirstWay::Default,
                _ => FirstWay::Scenario(networks),
            };
            add_routes(host, way, outside).map_err(|cause| of_host(&host.name, cause))?;
        }
        Ok(())
    }

    /// The networks of the scenario that hosts are connected to; none if there are very many.
    pub(crate) fn networks(&self) -> impl Iterator<Item = &IpPrefix> {
        self.networks.iter().filter(|_| self.networks.len() <= MOST_NETWORKS)
    }

    /// Why the best packet I/O backend is not used, if none was requested.
    pub fn cabling_note(&self) -> Option<&str> {
        self.cabling_note.as_deref()
    }

    /// How cables share packet sockets, if they do.
    pub fn sharing_note(&self) -> Option<&str> {
        self.sharing_note.as_deref()
    }

    /// Hands over our ends of the cables.
    pub fn take_cables(&mut self) -> Vec<Cable> {
        std::mem::take(&mut self.cables)
    }

    /// The host that programs of this one use as their server, and its interface: the first host that its first link
    /// reaches without a router, or else the first other host.
    pub fn server_of(&self, host: &Host) -> Option<(&Host, &Interface)> {
        let first = host.interfaces.first()?;
        let Some(peer) = first.neighbours.iter().find(|peer| !peer.is_router) else {
            let other = self.hosts.iter().find(|other| other.name != host.name)?;
            return Some((other, other.interfaces.first()?));
        };
        self.interface(&peer.end)
    }

    /// The host and the interface at a port.
    pub fn interface(&self, port: &str) -> Option<(&Host, &Interface)> {
        let at = |host: &'_ Host| host.interfaces.iter().position(|interface| interface.port == port);
        self.hosts.iter().find_map(|host| Some((host, &host.interfaces[at(host)?])))
    }

    /// The host of this name.
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name == name)
    }
}

/// A namespace for our ends of cables.
fn wire() -> Result<Namespace, NamespaceError> {
    Ok(Namespace::create()?.labelled("the namespace of narrows"))
}

/// The interface at a port.
fn interface_at(scenario: &Scenario, port: &narrows_scenario::Port) -> Interface {
    let behind = |route: HostRoute| Behind { network: prefix(route.to), gateway: route.via };
    Interface {
        port: port.name.clone(),
        name: scenario.interface_name(port),
        mac: MacAddress(port.link_address),
        addresses: prefixes(&port.addresses),
        mtu: scenario.interface_mtu(port).min(MOST_MTU),
        joined_to: port.peer.split('.').next().unwrap_or_default().to_owned(),
        is_switched: scenario.is_switched(port),
        opposite: scenario.opposite(port).map(|port| port.name.clone()),
        neighbours: scenario.neighbours(port).into_iter().map(peer).collect(),
        behind: scenario.routes(port).into_iter().map(behind).collect(),
    }
}

impl Drop for Testbed {
    /// The kernel removes the cables with our namespace, some time later and all at once; in an existing namespace a
    /// following run may need the names before that.
    fn drop(&mut self) {
        if self.ends.is_empty() {
            return;
        }
        let Ok(mut sockets) = RouteSocket::open(&self.wire) else { return };
        for end in &self.ends {
            // Only fails for a cable that is already gone.
            let _ = sockets.delete_interface(end);
        }
    }
}

/// The use of a host's first link.
#[derive(Clone, Copy)]
enum FirstWay<'a> {
    /// As default route.
    Default,
    /// To these networks, except those with other routes.
    Scenario(&'a BTreeSet<IpPrefix>),
    /// To broadcast and multicast addresses, which need a route as any other does.
    Groups,
    /// Like any other link.
    Known,
}

/// Limited broadcast (RFC 919) and IPv4 multicast (RFC 5771). The kernel adds the routes of IPv6 multicast.
const GROUPS: [IpPrefix; 2] = [
    IpPrefix { address: IpAddr::V4(Ipv4Addr::BROADCAST), length: 32 },
    IpPrefix { address: IpAddr::V4(Ipv4Addr::new(224, 0, 0, 0)), length: 4 },
];

fn add_routes(host: &Host, way: FirstWay<'_>, outside: Option<&str>) -> Result<(), TestbedError> {
    let mut sockets = RouteSocket::open(&host.namespace)?;
    for (number, interface) in host.interfaces.iter().enumerate() {
        let outside = interface.neighbours.iter().find(|peer| outside == Some(peer.name.as_str()));
        let gateway = outside.or(interface.gateway());
        let gateways = gateway.map_or([None; 2], |peer| one_of_each(&peer.addresses));
        match way {
            FirstWay::Default if number == 0 => {
                for gateway in gateways.into_iter().flatten() {
                    sockets.add_default_route(gateway, &interface.name)?;
                }
                continue;
            }
            FirstWay::Scenario(networks) if number == 0 => {
                for network in networks.iter().filter(|network| !knows(host, network)) {
                    let of_family = |gateway: &&IpAddr| gateway.is_ipv4() == network.address.is_ipv4();
                    if let Some(gateway) = gateways.iter().flatten().find(of_family) {
                        sockets.add_route(*network, Some(*gateway), &interface.name)?;
                    }
                }
            }
            FirstWay::Groups if number == 0 => {
                for network in GROUPS {
                    sockets.add_route(network, None, &interface.name)?;
                }
            }
            FirstWay::Default | FirstWay::Scenario(_) | FirstWay::Groups | FirstWay::Known => {}
        }
        for &Behind { network, gateway } in &interface.behind {
            sockets.add_route(network, Some(gateway), &interface.name)?;
        }
    }
    Ok(())
}

/// Whether a host is connected to a network, or has a route to it through a router.
fn knows(host: &Host, network: &IpPrefix) -> bool {
    host.interfaces.iter().any(|interface| {
        interface.addresses.iter().any(|address| address.network() == *network)
            || interface.behind.iter().any(|behind| behind.network.network() == *network)
    })
}

/// The existing namespace that a host is to be in, if any.
///
/// # Errors
/// If it does not exist, or may not be opened.
pub fn existing(host: &narrows_scenario::Host) -> Result<Option<Namespace>, TestbedError> {
    let opened = match &host.place {
        Place::New => return Ok(None),
        Place::Namespace(name) => Namespace::open(name),
        Place::Process(number) => Namespace::open(&format!("pid:{number}")),
        other => return Err(of_host(&host.name, TestbedError::NotHere(format!("{other:?}")))),
    };
    opened.map(Some).map_err(|cause| of_host(&host.name, cause.into()))
}

pub(crate) fn of_host(host: &str, cause: TestbedError) -> TestbedError {
    TestbedError::Host { host: host.to_owned(), cause: Box::new(cause) }
}

fn peer(neighbour: Neighbour) -> Peer {
    let Neighbour { name, is_router, end, link_address, addresses } = neighbour;
    Peer { name, end, is_router, mac: MacAddress(link_address), addresses: prefixes(&addresses) }
}

fn prefixes(addresses: &[Address]) -> Vec<IpPrefix> {
    addresses.iter().copied().map(prefix).collect()
}

fn prefix(address: Address) -> IpPrefix {
    IpPrefix::new(address.ip, address.prefix)
}

/// The first address of each family, IPv4 first.
pub fn one_of_each(addresses: &[IpPrefix]) -> [Option<IpAddr>; 2] {
    let mut all = addresses.iter().map(|prefix| prefix.address);
    [all.clone().find(IpAddr::is_ipv4), all.find(IpAddr::is_ipv6)]
}
