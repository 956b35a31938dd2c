//! The hosts of a run and the cables between them and the engine.
//!
//! ```text
//! client's namespace         our namespace          server's namespace
//!   access ────────────── p0 │ engine │ p1 ────────────── access
//!            veth pair                        veth pair
//! ```
//!
//! Namespaces that we make have no name in the file system and end with the processes in them; cables end with our
//! namespace. So even a killed run leaves nothing of these behind. A host that names an existing namespace gets an
//! interface there, which goes when we do.

use std::net::IpAddr;
use std::time::Duration;

use narrows_io::address::IpPrefix;
use narrows_io::link::{InterfaceIndex, MacAddress, VethEnd, create_numbered_veth};
use narrows_io::namespace::{Namespace, NamespaceError};
use narrows_io::offload::{self, OffloadError};
use narrows_io::packet_socket::{PacketSocket, PacketSocketError};
use narrows_io::route_socket::{NetlinkError, RouteSocket};
use narrows_io::stack::{self, StackError};
use narrows_scenario::{Place, Port, Scenario};

use crate::local::Neighbours;

/// The interfaces' MTU: that of Ethernet.
const MTU: u32 = 1500;
/// How long a cable may take until it carries; the kernel says so within microseconds.
const CARRIER: Duration = Duration::from_secs(5);
/// Our ends are numbered from here, which hosts' interfaces never reach: the two ends of a cable must differ.
const FIRST_END: u32 = 1 << 20;
/// The kernel's limit on an interface's name.
const LONGEST_INTERFACE_NAME: usize = 15;

/// Why the stage could not be set.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// A namespace.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// An interface, address or route.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// A packet socket.
    #[error(transparent)]
    PacketSocket(#[from] PacketSocketError),
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
        cause: Box<StageError>,
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
    /// Who is at the other end.
    pub peer: Peer,
}

/// The host at the other end of a link.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its name.
    pub host: String,
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
    pub socket: PacketSocket,
    /// Whose addresses are asked for here, and what the answer is.
    pub neighbours: Neighbours,
}

/// All of it.
#[derive(Debug)]
pub struct Stage {
    /// The hosts, in the scenario's order.
    pub hosts: Vec<Host>,
    /// Our ends, until they are taken.
    cables: Vec<Cable>,
    /// What our ends are called in our namespace.
    ends: Vec<String>,
    /// Our namespace.
    wire: Namespace,
}

impl Stage {
    /// Makes hosts and cables for a scenario.
    ///
    /// # Errors
    /// When a privilege is missing, a named namespace does not exist, or an interface of the wanted name exists there.
    pub fn set(scenario: &Scenario) -> Result<Self, StageError> {
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
        let mut stage = Self { hosts, cables: Vec::new(), ends: Vec::new(), wire };
        stage.lay_cables(scenario)?;
        Ok(stage)
    }

    fn lay_cables(&mut self, scenario: &Scenario) -> Result<(), StageError> {
        let ports = scenario.ports();
        for (number, port) in ports.iter().enumerate() {
            let Some(peer) = ports.iter().position(|other| other.name == port.peer) else { continue };
            let interface = Interface {
                port: port.name.clone(),
                name: port.link.chars().take(LONGEST_INTERFACE_NAME).collect(),
                mac: mac(number),
                addresses: prefixes(port),
                peer: Peer {
                    host: ports[peer].host.clone(),
                    mac: mac(peer),
                    addresses: prefixes(&ports[peer]),
                },
            };
            let Some(host) = self.hosts.iter_mut().find(|host| host.name == port.host) else { continue };
            let end = End { name: format!("p{number}"), number: InterfaceIndex(FIRST_END + number as u32) };
            let cable =
                lay_cable(&self.wire, host, &interface, &end).map_err(|cause| of_host(&host.name, cause))?;
            host.interfaces.push(interface);
            self.cables.push(cable);
            self.ends.push(end.name);
        }
        Ok(())
    }

    /// Gives hosts of our own a default route each, over their first link, all but the one that has another way out.
    ///
    /// # Errors
    /// When a route is refused.
    pub fn add_default_routes(&self, except: Option<&str>) -> Result<(), StageError> {
        for host in self.hosts.iter().filter(|host| host.is_ours && Some(host.name.as_str()) != except) {
            let Some(interface) = host.interfaces.first() else { continue };
            let mut sockets = RouteSocket::open(&host.namespace)?;
            for gateway in one_of_each(&interface.peer.addresses).into_iter().flatten() {
                sockets.add_default_route(gateway, &interface.name)?;
            }
        }
        Ok(())
    }

    /// Gives our ends of the cables away.
    pub fn take_cables(&mut self) -> Vec<Cable> {
        std::mem::take(&mut self.cables)
    }

    /// The host of this name.
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name == name)
    }
}

impl Drop for Stage {
    /// The kernel would remove the cables with our namespace, some time later; a next run may want the names at once.
    fn drop(&mut self) {
        let Ok(mut sockets) = RouteSocket::open(&self.wire) else { return };
        for end in &self.ends {
            // Fails only for a cable that is gone already.
            let _ = sockets.delete_interface(end);
        }
    }
}

/// Our end of a cable to be laid.
struct End {
    name: String,
    number: InterfaceIndex,
}

/// The namespace that a host is to be in, if it is one that exists already.
///
/// # Errors
/// When there is none, or it may not be opened.
pub fn existing(host: &narrows_scenario::Host) -> Result<Option<Namespace>, StageError> {
    let opened = match &host.place {
        Place::New => return Ok(None),
        Place::Namespace(name) => Namespace::open(name),
        Place::Process(number) => Namespace::open(&format!("pid:{number}")),
        other => return Err(of_host(&host.name, StageError::NotHere(format!("{other:?}")))),
    };
    opened.map(Some).map_err(|cause| of_host(&host.name, cause.into()))
}

pub(crate) fn of_host(host: &str, cause: StageError) -> StageError {
    StageError::Host { host: host.to_owned(), cause: Box::new(cause) }
}

/// Lays the cable of one interface and gives the host its addresses.
fn lay_cable(wire: &Namespace, host: &Host, interface: &Interface, end: &End) -> Result<Cable, StageError> {
    let near = end.name.as_str();
    let far = VethEnd { namespace: &host.namespace, name: &interface.name, mac: Some(interface.mac) };
    create_numbered_veth(&VethEnd { namespace: wire, name: near, mac: None }, end.number, &far, MTU)?;
    offload::plain_packets(&host.namespace, &interface.name)?;
    offload::plain_packets(wire, near)?;
    stack::silence(wire, near)?;
    stack::settle(&host.namespace, &interface.name)?;
    RouteSocket::open(wire)?.set_up(near)?;
    let mut sockets = RouteSocket::open(&host.namespace)?;
    sockets.set_up(&interface.name)?;
    // A socket on an interface that is down would report that first of all.
    RouteSocket::open(wire)?.wait_for_carrier(near, CARRIER)?;
    sockets.wait_for_carrier(&interface.name, CARRIER)?;
    let socket = PacketSocket::open(wire, near)?;
    for address in &interface.addresses {
        sockets.add_address(&interface.name, *address)?;
    }
    let mut neighbours = Neighbours::default();
    for peer in &interface.peer.addresses {
        neighbours.add(peer.address, narrows_frame::MacAddress(interface.peer.mac.0));
        // While the kernel waits for an answer, it keeps some 90 packets of a first burst and drops the rest.
        sockets.add_neighbour(&interface.name, peer.address, interface.peer.mac)?;
    }
    Ok(Cable { name: interface.port.clone(), socket, neighbours })
}

/// The link address of the port with this number: locally administered, and the same at every run.
fn mac(port: usize) -> MacAddress {
    let [.., high, low] = port.to_be_bytes();
    MacAddress([0x02, b'n', b'a', b'r', high, low])
}

fn prefixes(port: &Port) -> Vec<IpPrefix> {
    port.addresses.iter().map(|address| IpPrefix::new(address.ip, address.prefix)).collect()
}

/// The first address of each family, IPv4 first.
pub fn one_of_each(addresses: &[IpPrefix]) -> [Option<IpAddr>; 2] {
    let mut all = addresses.iter().map(|prefix| prefix.address);
    [all.clone().find(IpAddr::is_ipv4), all.find(IpAddr::is_ipv6)]
}
