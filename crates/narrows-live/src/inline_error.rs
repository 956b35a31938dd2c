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
    #[error("both ends of the bridge are `{0}`: it joins two interfaces, such as narrows bridge eth1 eth2")]
    Same(String),
    /// An interface that is switched off.
    #[error("the interface `{0}` is down: bring it up first, as with: ip link set {0} up")]
    Down(String),
    /// The loopback interface.
    #[error(
        "`{0}` is the loopback interface, which leads nowhere: name one with a cable, or use `narrows run` for programs of this \
         host among themselves"
    )]
    Loopback(String),
    /// An interface of another kind.
    #[error(
        "`{0}` carries no Ethernet frames, as tunnels such as tun, WireGuard or PPP do not: name the Ethernet interface that \
         its packets go through"
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
        "rule {rule} says `me`, which is what {interfaces} of this host would have for addresses, and there are none: write \
         addresses in place of `me`"
    )]
    NoMe {
        /// Its number.
        rule: u16,
        /// Which.
        interfaces: String,
    },
    /// A scenario with other than two ends.
    #[error(
        "a network that stands at interfaces has two ends, and this scenario has {0} ports ({1}): it needs two hosts with one \
         link each, the first of which stands for IF1 of a bridge, or for the programs inside"
    )]
    Ports(usize, String),
    /// A scenario with routers.
    #[error(
        "a network that stands at interfaces is transparent at layer 2, and the router `{0}` of this scenario is not: leave it \
         out, or use a junction"
    )]
    Router(String),
    /// A scenario that names a place for its hosts.
    #[error(
        "host `{0}` of this scenario names a namespace or process, but here it stands for what is behind an interface: leave \
         that out"
    )]
    Host(String),
}
