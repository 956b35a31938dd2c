//! Why a network cannot stand at interfaces.

use narrows_io::cable_end::CableEndError;
use narrows_io::detour::DetourError;
use narrows_io::ledger::LedgerError;
use narrows_io::namespace::NamespaceError;
use narrows_io::route_socket::NetlinkError;
use narrows_io::watch::WatchError;

use crate::container::ContainerError;

/// Why a network cannot stand there.
#[derive(Debug, thiserror::Error)]
pub enum InlineError {
    /// The namespace.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The interfaces cannot be listed.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// The end of a cable.
    #[error(transparent)]
    CableEnd(#[from] CableEndError),
    /// Remembering what was changed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// Keeping the interfaces in view.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// The way that frames are led.
    #[error(transparent)]
    Detour(#[from] DetourError),
    /// The container.
    #[error(transparent)]
    Container(#[from] ContainerError),
    /// There is no such interface.
    #[error("no interface `{interface}` in {namespace}: there are {}", others.join(", "))]
    Missing {
        /// As asked for.
        interface: String,
        /// Where.
        namespace: String,
        /// Those that could be meant.
        others: Vec<String>,
    },
    /// Both ends are one.
    #[error("both ends of the bridge are `{0}`: give two interfaces, as in narrows bridge eth1 eth2")]
    Same(String),
    /// An interface that is switched off.
    #[error("the interface `{0}` is down: bring it up first, as with: ip link set {0} up")]
    Down(String),
    /// The loopback interface.
    #[error(
        "`{0}` is the loopback interface: name another one, or use `narrows run` between programs of this host"
    )]
    Loopback(String),
    /// An interface of another kind.
    #[error(
        "`{0}` carries no Ethernet frames (a tunnel such as tun, WireGuard or PPP): name the Ethernet interface below it"
    )]
    NotEthernet(String),
    /// A program before which frames could not come back.
    #[error(
        "`{0}` has an XDP program in generic mode, and with one the kernel drops frames that come back in: take it off first, \
         as with: ip link set {0} xdpgeneric off; or attach with --direction out"
    )]
    GenericXdp(String),
    /// Another bridge or bond has it.
    #[error(
        "the interface `{interface}` belongs to `{master}`, which takes its frames, too: take it out first, as with: ip link \
         set {interface} nomaster"
    )]
    Enslaved {
        /// Which.
        interface: String,
        /// Whose.
        master: String,
    },
    /// A rule for addresses that there are not.
    #[error(
        "rule {rule} uses `me`, but {interfaces} of this host have no addresses: write addresses instead of `me`"
    )]
    NoMe {
        /// Its number.
        rule: u16,
        /// Which.
        interfaces: String,
    },
    /// A scenario with other than two ends.
    #[error(
        "a network between interfaces has two ends, but this scenario has {0} ports ({1}): it needs two hosts with one link each; the first one stands for IF1 of a bridge, or for the programs inside"
    )]
    Ports(usize, String),
    /// A scenario with routers.
    #[error(
        "a network between interfaces is transparent at layer 2, unlike the router `{0}` of this scenario: remove it, or use a junction"
    )]
    Router(String),
    /// A scenario that names a place for its hosts.
    #[error(
        "host `{0}` of this scenario names a namespace or process, but here it stands for an interface's side: remove that"
    )]
    Host(String),
}
