//! What the kernel's own IP stack does on an interface: nothing at our end of a cable, no surprises at a host's.
//!
//! What comes out of our end of a veth pair belongs to the packet socket alone, yet the kernel hands the
//! stack a copy. With no address, no IPv6, no ARP, and a link address that nobody sends to, that copy is
//! dropped at the first line of `ip_rcv` (it is another host's). That was 4 % of the sender's time with 64-byte
//! datagrams at 600,000 a second, or 0.07 µs each, so nothing is done to drop it earlier still.

use crate::namespace::Namespace;
use crate::route_socket::{NetlinkError, RouteSocket};
use crate::sysctl::{SysctlError, write_sysctl};

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

/// Keeps the stack silent on our own end of a cable: no IPv6, no address resolution, no forwarding.
///
/// To be called before the interface comes up, else IPv6 has sent its first greetings.
pub fn silence(namespace: &Namespace, interface: &str) -> Result<(), StackError> {
    disable_ipv6(namespace, interface)?;
    write_sysctl(namespace, &format!("net/ipv4/conf/{interface}/forwarding"), "0")?;
    RouteSocket::open(namespace)?.set_arp_off(interface)?;
    Ok(())
}

/// Makes a host's end predictable: its IPv6 addresses are usable at once, and it sends no router
/// solicitations and believes no router's advertisements.
///
/// To be called before the interface comes up.
pub fn settle(namespace: &Namespace, interface: &str) -> Result<(), StackError> {
    for (setting, value) in [("accept_dad", "0"), ("router_solicitations", "0"), ("accept_ra", "0")] {
        match write_sysctl(namespace, &format!("net/ipv6/conf/{interface}/{setting}"), value) {
            Ok(_) => {}
            Err(error) if is_missing(&error) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn disable_ipv6(namespace: &Namespace, interface: &str) -> Result<(), SysctlError> {
    match write_sysctl(namespace, &format!("net/ipv6/conf/{interface}/disable_ipv6"), "1") {
        // A kernel without IPv6 has nothing to switch off.
        Err(error) if is_missing(&error) => Ok(()),
        result => result.map(drop),
    }
}

fn is_missing(error: &SysctlError) -> bool {
    matches!(error, SysctlError::Refused { cause, .. } if cause.kind() == std::io::ErrorKind::NotFound)
}
