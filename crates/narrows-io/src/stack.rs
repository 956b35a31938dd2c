//! What the kernel's own IP stack does on an interface: nothing at our end of a cable, no surprises at a host's.
//!
//! What comes out of our end of a veth pair belongs to the packet socket alone, yet the kernel hands the
//! stack a copy. With no address, no IPv6, no ARP, and a link address that nobody sends to, that copy is
//! dropped at the first line of `ip_rcv` (it is another host's). That was 4 % of the sender's time with 64-byte
//! datagrams at 600,000 a second, or 0.07 µs each, so nothing is done to drop it earlier still.

use crate::namespace::{Namespace, NamespaceError, on_helper_thread};
use crate::route_socket::{NetlinkError, RouteSocket};
use crate::sysctl::{SysctlError, write_sysctl, write_sysctls};

/// What hosts of a run rely on, as a kernel sets it that nobody has configured.
///
/// A new namespace inherits the settings of the initial one, of the one it was made in, or neither, by
/// `net.core.devconf_inherit_init_net` (devinet_init_net in `net/ipv4/devinet.c`, addrconf_init_net in
/// `net/ipv6/addrconf.c`). So on a host with Docker it would forward packets. `all` comes before `default`, which it may
/// change.
const DEFAULTS: [(&str, &str); 14] = [
    // Hosts do not forward packets.
    ("net/ipv4/conf/all/forwarding", "0"),
    ("net/ipv4/conf/default/forwarding", "0"),
    ("net/ipv6/conf/all/forwarding", "0"),
    ("net/ipv6/conf/default/forwarding", "0"),
    // With several links, an answer may take another link than what it answers.
    ("net/ipv4/conf/all/rp_filter", "0"),
    ("net/ipv4/conf/default/rp_filter", "0"),
    // They answer questions for any of their addresses, where the network carries address resolution.
    ("net/ipv4/conf/all/arp_ignore", "0"),
    ("net/ipv4/conf/default/arp_ignore", "0"),
    ("net/ipv4/conf/all/arp_filter", "0"),
    ("net/ipv4/conf/default/arp_filter", "0"),
    // They have IPv6 addresses, usable at once.
    ("net/ipv6/conf/all/disable_ipv6", "0"),
    ("net/ipv6/conf/default/disable_ipv6", "0"),
    ("net/ipv6/conf/all/accept_dad", "0"),
    // The link's own address follows from the hardware address.
    ("net/ipv6/conf/default/addr_gen_mode", "0"),
];

/// Why an interface's stack could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum StackError {
    /// A setting was refused.
    #[error(transparent)]
    Sysctl(#[from] SysctlError),
    /// An interface flag was refused.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
}

/// Gives a new namespace the settings that hosts rely on, whatever it inherited. To be called before it has interfaces.
pub(crate) fn reset(namespace: &Namespace) -> Result<(), SysctlError> {
    write_sysctls(namespace, &DEFAULTS)
}

/// Keeps the stack silent on our own end of a cable: no IPv6, no address resolution, no forwarding.
///
/// To be called before the interface comes up, else IPv6 has sent its first greetings.
pub fn silence(namespace: &Namespace, interface: &str) -> Result<(), StackError> {
    write_sysctls(namespace, &[(format!("net/ipv6/conf/{interface}/disable_ipv6"), "1")])?;
    write_sysctl(namespace, &format!("net/ipv4/conf/{interface}/forwarding"), "0")?;
    RouteSocket::open(namespace)?.set_arp_off(interface)?;
    Ok(())
}

/// Makes a host's end predictable: it has IPv6, whether or not the namespace has that elsewhere; its IPv6 addresses are
/// usable at once; it sends no router solicitations and believes no router's advertisements.
///
/// To be called before the interface comes up.
pub fn settle(namespace: &Namespace, interface: &str) -> Result<(), StackError> {
    let settings =
        [("disable_ipv6", "0"), ("accept_dad", "0"), ("router_solicitations", "0"), ("accept_ra", "0")];
    let settings = settings.map(|(setting, value)| (format!("net/ipv6/conf/{interface}/{setting}"), value));
    Ok(write_sysctls(namespace, &settings)?)
}

impl Namespace {
    /// Makes a new namespace without a name, its loopback interface up and its settings as hosts need them, whatever this
    /// host's are.
    pub fn create() -> Result<Self, NamespaceError> {
        on_helper_thread(|| {
            let namespace = Self::unshare()?;
            namespace.prepare().map_err(|error| NamespaceError::Unprepared(Box::new(error)))?;
            Ok(namespace)
        })?
    }

    fn prepare(&self) -> Result<(), StackError> {
        reset(self)?;
        Ok(RouteSocket::open(self)?.set_up("lo")?)
    }
}
