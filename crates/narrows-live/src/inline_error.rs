//! Why a network cannot run on existing interfaces.

use narrows_io::cable_end::CableEndError;
use narrows_io::detour::DetourError;
use narrows_io::ledger::LedgerError;
use narrows_io::namespace::NamespaceError;
use narrows_io::nat::BarrierError;
use narrows_io::route_socket::NetlinkError;
use narrows_io::watch::WatchError;
use narrows_scenario::ScenarioError;

use crate::container::ContainerError;
use crate::sniffer::SnifferError;

/// Why a network cannot run on these interfaces.
#[derive(Debug, thiserror::Error)]
pub enum InlineError {
    /// The namespace cannot be used.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The interfaces cannot be listed.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// The end of a cable failed.
    #[error(transparent)]
    CableEnd(#[from] CableEndError),
    /// Changes cannot be recorded.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The interfaces cannot be monitored.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// Frames cannot be redirected.
    #[error(transparent)]
    Detour(#[from] DetourError),
    /// The kernel cannot be kept from handling routed packets.
    #[error(transparent)]
    Barrier(#[from] BarrierError),
    /// An interface of a router is not captured.
    #[error(transparent)]
    Sniffer(#[from] SnifferError),
    /// An interface of a router without an address.
    #[error(
        "`{0}` has no IP address, and hosts behind it need one as their gateway: give it one first, as with: ip address add \
         10.0.0.1/24 dev {0}"
    )]
    NoAddress(String),
    /// Rebinding the address with nothing to change to.
    #[error(
        "rebinding the address needs two outer addresses of one IP version: give them, as with: --nat-pool \
         203.0.113.1,203.0.113.2"
    )]
    OneAddress,
    /// A backend that takes frames away from the kernel.
    #[error(
        "a router shares its interfaces with the kernel, which only the backend af_packet does: leave --backend out"
    )]
    RouterBackend,
    /// The MTU of an interface is refused as that of a link.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The container cannot be found.
    #[error(transparent)]
    Container(#[from] ContainerError),
    /// The interface does not exist.
    #[error("no interface `{interface}` in {namespace}: there are {}", others.join(", "))]
    Missing {
        /// The requested one.
        interface: String,
        /// The namespace.
        namespace: String,
        /// The existing ones.
        others: Vec<String>,
    },
    /// Both ends are the same interface.
    #[error(
        "both ends of the {command} are `{interface}`: give two interfaces, as in narrows {command} eth1 eth2"
    )]
    Same {
        /// The command.
        command: &'static str,
        /// The interface.
        interface: String,
    },
    /// An interface that is down.
    #[error("the interface `{0}` is down: bring it up first, as with: ip link set {0} up")]
    Down(String),
    /// The loopback interface.
    #[error(
        "`{0}` is the loopback interface: name another one, or use `narrows run` between programs of this host"
    )]
    Loopback(String),
    /// An interface that is not Ethernet.
    #[error(
        "`{0}` carries no Ethernet frames (a tunnel such as tun, WireGuard or PPP): name the Ethernet interface below it"
    )]
    NotEthernet(String),
    /// An XDP program with which frames could not return.
    #[error(
        "`{0}` has an XDP program in generic mode, and with one the kernel drops frames that come back in: take it off first, \
         as with: ip link set {0} xdpgeneric off; or attach with --direction out"
    )]
    GenericXdp(String),
    /// The interface belongs to another bridge or bond.
    #[error(
        "the interface `{interface}` belongs to `{master}`, which takes its frames, too: take it out first, as with: ip link \
         set {interface} nomaster"
    )]
    Enslaved {
        /// The interface.
        interface: String,
        /// Its master.
        master: String,
    },
    /// A rule that needs addresses, but there are none.
    #[error(
        "{user} uses the addresses of {interfaces} of this host, which have none: write addresses instead"
    )]
    NoMe {
        /// The rule or the command.
        user: String,
        /// The interfaces.
        interfaces: String,
    },
    /// A scenario that does not have exactly two ends.
    #[error(
        "a network between interfaces has two ends, but this scenario has {0} ports ({1}): it needs two hosts with one link each; the first one stands for IF1 of a bridge, or for the programs inside"
    )]
    Ports(usize, String),
    /// A scenario with routers.
    #[error(
        "a network between interfaces is transparent at layer 2, unlike the router `{0}` of this scenario: remove it, or use a junction"
    )]
    Router(String),
    /// A scenario with switches.
    #[error(
        "a network between interfaces joins two of them, and the switch `{0}` of this scenario knows the hosts of the scenario, not those behind the interfaces: remove it, or use a junction"
    )]
    Switch(String),
    /// A scenario that places its hosts in a namespace or process.
    #[error(
        "host `{0}` of this scenario names a namespace or process, but here it stands for an interface's side: remove that"
    )]
    Host(String),
}
