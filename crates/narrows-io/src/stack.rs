//! Settings of the kernel's own IP stack on an interface: silent at our end of a cable, predictable at a host's.
//!
//! Frames from our end of a veth pair are for the packet socket only, but the kernel passes the stack a copy. With no
//! address, no IPv6, no ARP, and a link address that nobody sends to, that copy is dropped at the first line of
//! `ip_rcv` (as addressed to another host). This cost 4 % of the sender's time with 64-byte datagrams at 600,000 a
//! second, or 0.07 µs each, so nothing is done to drop it earlier.

use crate::namespace::{Namespace, NamespaceError, on_helper_thread};
use crate::route_socket::{NetlinkError, RouteSocket};
use crate::sysctl::{SysctlError, write_sysctl, write_sysctls};

/// Settings that hosts of a run rely on, as on an unconfigured kernel.
///
/// A new namespace inherits the settings of the initial one, of the one in which it was created, or neither,
/// depending on `net.core.devconf_inherit_init_net` (devinet_init_net in `net/ipv4/devinet.c`, addrconf_init_net in
/// `net/ipv6/addrconf.c`). So on a host with Docker it would forward packets. `all` comes before `default`, which it
/// may change.
const DEFAULTS: [(&str, &str); 14] = [
    // Hosts do not forward packets.
    ("net/ipv4/conf/all/forwarding", "0"),
    ("net/ipv4/conf/default/forwarding", "0"),
    ("net/ipv6/conf/all/forwarding", "0"),
    ("net/ipv6/conf/default/forwarding", "0"),
    // With several links, a reply may take another link than the packet that it answers.
    ("net/ipv4/conf/all/rp_filter", "0"),
    ("net/ipv4/conf/default/rp_filter", "0"),
    // They answer ARP for any of their addresses, if the network carries address resolution.
    ("net/ipv4/conf/all/arp_ignore", "0"),
    ("net/ipv4/conf/default/arp_ignore", "0"),
    ("net/ipv4/conf/all/arp_filter", "0"),
    ("net/ipv4/conf/default/arp_filter", "0"),
    // They have IPv6 addresses, usable at once.
    ("net/ipv6/conf/all/disable_ipv6", "0"),
    ("net/ipv6/conf/default/disable_ipv6", "0"),
    ("net/ipv6/conf/all/accept_dad", "0"),
    // The link-local address is derived from the hardware address.
    ("net/ipv6/conf/default/addr_gen_mode", "0"),
];

/// Why an interface's stack could not be configured.
#[derive(Debug, thiserror::Error)]
pub enum StackError {
    /// A setting was refused.
    #[error(transparent)]
    Sysctl(#[from] SysctlError),
    /// An interface flag was refused.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
}

/// Gives a new namespace the settings that hosts rely on, whatever it inherited. Call it before the namespace has
/// interfaces.
pub(crate) fn reset(namespace: &Namespace) -> Result<(), SysctlError> {
    write_sysctls(namespace, &DEFAULTS)
}

/// Silences the stack on our own end of a cable: no IPv6, no address resolution, no forwarding.
///
/// Call it before the interface comes up; otherwise IPv6 will have sent its first packets.
pub fn silence(namespace: &Namespace, interface: &str) -> Result<(), StackError> {
    write_sysctls(namespace, &[(format!("net/ipv6/conf/{interface}/disable_ipv6"), "1")])?;
    write_sysctl(namespace, &format!("net/ipv4/conf/{interface}/forwarding"), "0")?;
    RouteSocket::open(namespace)?.set_arp_off(interface)?;
    Ok(())
}

/// Makes a host's end predictable: IPv6 is enabled, whatever the namespace's other interfaces have; IPv6 addresses
/// are usable at once; no router solicitations are sent and router advertisements are ignored.
///
/// Call it before the interface comes up.
pub fn settle(namespace: &Namespace, interface: &str) -> Result<(), StackError> {
    let settings =
        [("disable_ipv6", "0"), ("accept_dad", "0"), ("router_solicitations", "0"), ("accept_ra", "0")];
    let settings = settings.map(|(setting, value)| (format!("net/ipv6/conf/{interface}/{setting}"), value));
    Ok(write_sysctls(namespace, &settings)?)
}

impl Namespace {
    /// Creates a new anonymous namespace, with its loopback interface up and the settings that hosts need, whatever
    /// this host's are.
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
