//! The hosts of a run and the cables between them and the engine.
//!
//! ```text
//! client's namespace         our namespace          server's namespace
//!   access ────────────── p0 │ engine │ p1 ────────────── access
//!            veth pair                        veth pair
//! ```
//!
//! With `--backend tap`, `access` is a TAP device whose descriptor is ours, and there is no `p0`.
//!
//! A router has no namespace: it is in the engine, and shows itself to a host as the neighbour at the other end of the cable.
//!
//! Namespaces that we make have no name in the file system and end with the processes in them; cables end with our
//! namespace. So even a killed run leaves nothing of these behind. A host that names an existing namespace gets an
//! interface there, which goes when we do.

mod cable;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::thread;

use narrows_io::address::IpPrefix;
use narrows_io::cable_end::{CableEnd, CableEndError};
use narrows_io::clock::MonotonicTime;
use narrows_io::link::{InterfaceIndex, MacAddress};
use narrows_io::namespace::{Namespace, NamespaceError};
use narrows_io::offload::OffloadError;
use narrows_io::route_socket::{NetlinkError, RouteSocket};
use narrows_io::stack::StackError;
use narrows_scenario::{Address, HostRoute, Place, Port, Scenario};

use self::cable::{End, lay_cable};
use crate::cabling::{Cabling, FarEnd};
use crate::neighbor_proxy::NeighborProxy;

/// Our ends are numbered from here, which hosts' interfaces never reach: the two ends of a cable must differ.
const FIRST_END: u32 = 1 << 20;
/// The longest MTU of a TAP device, which counts its Ethernet header: enough for any other interface, too.
const MOST_MTU: u32 = 65_521;
/// More networks than these, and hosts have a default route instead of one to each.
const MOST_NETWORKS: usize = 64;

/// What a host calls its interface to a link: as much of the link's name as the kernel takes.
pub(crate) fn interface_name(link: &str) -> String {
    link.chars().take(15).collect()
}

/// Why a testbed could not be created.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// A namespace.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// An interface, address or route.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// The end of a cable.
    #[error(transparent)]
    CableEnd(#[from] CableEndError),
    /// What the kernel's stack does on an interface.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// Offloads of an interface.
    #[error(transparent)]
    Offload(#[from] OffloadError),
    /// A host in a place that live runs do not know.
    #[error("a live run cannot put a host into {0}")]
    NotHere(String),
    /// A host that could not be prepared.
    #[error("host `{host}`: {cause}")]
    Host {
        /// Its name in the scenario.
        host: String,
        /// What is wrong.
        cause: Box<TestbedError>,
    },
}

/// A host with its interfaces.
#[derive(Debug)]
pub struct Host {
    /// As in the scenario.
    pub name: String,
    /// Where its programs run.
    pub namespace: Namespace,
    /// Whether we made its namespace.
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
    /// Who is at the other end.
    pub peer: Peer,
    /// What lies behind the router at the other end, and is reached by that.
    pub behind: Vec<Behind>,
}

/// A network behind a router.
#[derive(Clone, Copy, Debug)]
pub struct Behind {
    /// The network.
    pub network: IpPrefix,
    /// The router's address.
    pub gateway: IpAddr,
}

/// The host or router at the other end of a link.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its name.
    pub name: String,
    /// Whether it is a router, which there is no namespace for: the engine is all of it.
    pub is_router: bool,
    /// Its link address.
    pub mac: MacAddress,
    /// Its addresses.
    pub addresses: Vec<IpPrefix>,
}

/// Our end of a cable.
#[derive(Debug)]
pub struct Cable {
    /// The engine's port.
    pub name: String,
    /// Where its packets come from and go to.
    pub end: CableEnd,
    /// Before it was opened: whatever comes from it came later than that.
    pub laid: MonotonicTime,
    /// Whose addresses are asked for here, and what the answer is.
    pub neighbours: NeighborProxy,
    /// The interface that its frames come from, where that may drop some on the way.
    pub far: Option<FarEnd>,
    /// The stations of frames that leave here, where they come from a router: it, and the host.
    pub stations: Option<(narrows_frame::MacAddress, narrows_frame::MacAddress)>,
}

/// Ends of cables closed at a time.
const CLOSERS: usize = 64;

/// Closes ends of cables. For each the kernel waits some milliseconds until nobody can be using it any more
/// (`synchronize_net` in `packet_release`), but for all that are being closed meanwhile it waits only once.
pub(crate) fn close(mut cables: Vec<Cable>) {
    let each = cables.len().div_ceil(CLOSERS).max(1);
    thread::scope(|scope| {
        while !cables.is_empty() {
            let some = cables.split_off(cables.len().saturating_sub(each));
            // Without a thread they are closed here.
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
    /// What our ends of the cables to existing namespaces are called in our namespace.
    ends: Vec<String>,
    /// Our namespace.
    wire: Namespace,
    /// Why frames do not come by the best way.
    cabling_note: Option<String>,
}

impl Testbed {
    /// Creates the hosts and cables of a scenario.
    ///
    /// # Errors
    /// When a privilege is missing, a named namespace does not exist, or an interface of the wanted name exists there.
    pub fn create(scenario: &Scenario, cabling: Cabling) -> Result<Self, TestbedError> {
        let wire = Namespace::create()?.labelled("the namespace of narrows");
        let mut hosts = Vec::new();
        for host in &scenario.hosts {
            let existing = existing(host)?;
            let is_ours = existing.is_none();
            let namespace = match existing {
                Some(existing) => existing,
                None => Namespace::create().map_err(|cause| of_host(&host.name, cause.into()))?,
            };
            let namespace = namespace.labelled(format!("host `{}`", host.name));
            hosts.push(Host { name: host.name.clone(), namespace, is_ours, interfaces: Vec::new() });
        }
        let mut testbed = Self { hosts, cables: Vec::new(), ends: Vec::new(), wire, cabling_note: None };
        testbed.lay_cables(scenario, cabling)?;
        Ok(testbed)
    }

    fn lay_cables(&mut self, scenario: &Scenario, cabling: Cabling) -> Result<(), TestbedError> {
        let ports = scenario.ports();
        let mtu = |port| scenario.interface_mtu(port).min(MOST_MTU);
        let mut laying = cabling.lay(ports.len(), ports.iter().map(mtu).max().unwrap_or_default());
        for (number, port) in ports.iter().enumerate() {
            let Some(peer) = peer(scenario, port) else { continue };
            let behind = |route: HostRoute| Behind { network: prefix(route.to), gateway: route.via };
            let interface = Interface {
                port: port.name.clone(),
                name: interface_name(&port.link),
                mac: mac(number),
                addresses: prefixes(&port.addresses),
                mtu: mtu(port),
                peer,
                behind: scenario.routes(port).into_iter().map(behind).collect(),
            };
            let Some(host) = self.hosts.iter_mut().find(|host| host.name == port.host) else { continue };
            let end = End { name: format!("p{number}"), number: InterfaceIndex(FIRST_END + number as u32) };
            let laid = self.wire.run(|| lay_cable(&self.wire, host, &interface, &end, &mut laying));
            let cable =
                laid.map_err(TestbedError::from).flatten().map_err(|cause| of_host(&host.name, cause))?;
            host.interfaces.push(interface);
            self.cables.push(cable);
            if !host.is_ours {
                self.ends.push(end.name);
            }
        }
        self.cabling_note = laying.note();
        Ok(())
    }

    /// Leads hosts to networks that they are not on. A host of our own has a default route over its first link where that leads
    /// to a router, which answers for what is nowhere, or to the outside; all but the one that has another way out. Where
    /// nothing leads outside, and a host is at the other end, there are routes to the scenario's networks over it, as it may be
    /// made to forward: what lies outside is unreachable at once. In an existing namespace there are routes to the networks
    /// behind routers, and to nothing else.
    ///
    /// # Errors
    /// When a route is refused.
    pub fn add_routes(&self, outside: Option<&str>) -> Result<(), TestbedError> {
        let networks = self.networks();
        for host in &self.hosts {
            let way = match host.interfaces.first() {
                Some(_) if !host.is_ours || outside == Some(host.name.as_str()) => FirstWay::Known,
                Some(first) if first.peer.is_router || outside.is_some() => FirstWay::Default,
                // In a scenario of many links this would be many routes for each of many hosts.
                _ if networks.len() > MOST_NETWORKS => FirstWay::Default,
                _ => FirstWay::Scenario(&networks),
            };
            add_routes(host, way).map_err(|cause| of_host(&host.name, cause))?;
        }
        Ok(())
    }

    /// The networks of the scenario that hosts are on.
    fn networks(&self) -> BTreeSet<IpPrefix> {
        let interfaces = self.hosts.iter().flat_map(|host| &host.interfaces);
        interfaces.flat_map(|interface| &interface.addresses).map(IpPrefix::network).collect()
    }

    /// Why frames do not come by the best way, where none was named.
    pub fn cabling_note(&self) -> Option<&str> {
        self.cabling_note.as_deref()
    }

    /// Gives our ends of the cables away.
    pub fn take_cables(&mut self) -> Vec<Cable> {
        std::mem::take(&mut self.cables)
    }

    /// The host that programs of this one find as their server, and its interface there: the one at the other end of the first
    /// link, or the first other host where a router is there.
    pub fn server_of(&self, host: &Host) -> Option<(&Host, &Interface)> {
        let first = host.interfaces.first()?;
        if first.peer.is_router {
            let other = self.hosts.iter().find(|other| other.name != host.name)?;
            return Some((other, other.interfaces.first()?));
        }
        let peer = self.host(&first.peer.name)?;
        let interface = peer.interfaces.iter().find(|other| other.mac == first.peer.mac)?;
        Some((peer, interface))
    }

    /// The host of this name.
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name == name)
    }
}

impl Drop for Testbed {
    /// The kernel removes the cables with our namespace, some time later and all at once; in an existing namespace a next run
    /// may want the names before that.
    fn drop(&mut self) {
        if self.ends.is_empty() {
            return;
        }
        let Ok(mut sockets) = RouteSocket::open(&self.wire) else { return };
        for end in &self.ends {
            // Fails only for a cable that is gone already.
            let _ = sockets.delete_interface(end);
        }
    }
}

/// Where a host's first link leads.
#[derive(Clone, Copy)]
enum FirstWay<'a> {
    /// Everywhere.
    Default,
    /// To these networks, but for those that are known otherwise.
    Scenario(&'a BTreeSet<IpPrefix>),
    /// Like any other link.
    Known,
}

fn add_routes(host: &Host, way: FirstWay<'_>) -> Result<(), TestbedError> {
    let mut sockets = RouteSocket::open(&host.namespace)?;
    for (number, interface) in host.interfaces.iter().enumerate() {
        let gateways = one_of_each(&interface.peer.addresses);
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
            FirstWay::Default | FirstWay::Scenario(_) | FirstWay::Known => {}
        }
        for &Behind { network, gateway } in &interface.behind {
            sockets.add_route(network, Some(gateway), &interface.name)?;
        }
    }
    Ok(())
}

/// Whether a host is on a network, or has a route to it by a router.
fn knows(host: &Host, network: &IpPrefix) -> bool {
    host.interfaces.iter().any(|interface| {
        interface.addresses.iter().any(|address| address.network() == *network)
            || interface.behind.iter().any(|behind| behind.network.network() == *network)
    })
}

/// The namespace that a host is to be in, if it is one that exists already.
///
/// # Errors
/// When there is none, or it may not be opened.
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

/// Who is at the other end of a port's link.
fn peer(scenario: &Scenario, port: &Port) -> Option<Peer> {
    if let Some((number, peer)) = scenario.ports().iter().enumerate().find(|(_, peer)| peer.name == port.peer)
    {
        let (name, addresses) = (peer.host.clone(), prefixes(&peer.addresses));
        return Some(Peer { name, is_router: false, mac: mac(number), addresses });
    }
    let mut interfaces = scenario.interfaces().iter().enumerate();
    let (number, peer) = interfaces.find(|(_, peer)| peer.name == port.peer)?;
    let (name, addresses) = (peer.router.clone(), prefixes(&peer.addresses));
    Some(Peer { name, is_router: true, mac: router_mac(number), addresses })
}

/// The link address of the port with this number: locally administered, and the same at every run.
fn mac(port: usize) -> MacAddress {
    let [.., high, low] = port.to_be_bytes();
    MacAddress([0x02, b'n', b'a', b'r', high, low])
}

/// The same of a router's interface.
fn router_mac(interface: usize) -> MacAddress {
    let [.., high, middle, low] = interface.to_be_bytes();
    MacAddress([0x06, b'n', b'a', high, middle, low])
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
