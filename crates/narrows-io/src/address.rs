//! IP addresses of interfaces.
//!
//! IPv6 addresses are added without duplicate address detection: the kernel would otherwise delay them for a second
//! or two, and these networks have no other hosts.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use crate::link::InterfaceIndex;
use crate::netlink::{Message, Request, u32_at};
use crate::route_socket::{NetlinkError, RouteSocket};

/// An address with its prefix length: `10.0.0.1/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IpPrefix {
    /// The address; host bits may be set or not.
    pub address: IpAddr,
    /// The prefix length in bits.
    pub length: u8,
}

impl IpPrefix {
    /// Puts the two together.
    pub fn new(address: impl Into<IpAddr>, length: u8) -> Self {
        Self { address: address.into(), length }
    }

    /// The network: the same address with host bits cleared.
    pub fn network(&self) -> Self {
        let address = match self.address {
            IpAddr::V4(address) => {
                let host = u32::MAX.checked_shr(u32::from(self.length)).unwrap_or(0);
                Ipv4Addr::from_bits(address.to_bits() & !host).into()
            }
            IpAddr::V6(address) => {
                let host = u128::MAX.checked_shr(u32::from(self.length)).unwrap_or(0);
                Ipv6Addr::from_bits(address.to_bits() & !host).into()
            }
        };
        Self { address, length: self.length }
    }

    /// Whether the two networks share an address.
    pub fn overlaps(&self, other: &Self) -> bool {
        let shorter = self.length.min(other.length);
        match (self.address, other.address) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(shorter.min(32))).unwrap_or(0);
                a.to_bits() & mask == b.to_bits() & mask
            }
            (IpAddr::V6(a), IpAddr::V6(b)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(shorter.min(128))).unwrap_or(0);
                a.to_bits() & mask == b.to_bits() & mask
            }
            _ => false,
        }
    }
}

impl fmt::Display for IpPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// An address of an interface, as listed by the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// The interface.
    pub interface: InterfaceIndex,
    /// The address and its network.
    pub prefix: IpPrefix,
}

impl RouteSocket {
    /// Adds an address to an interface. Programs can bind to it at once; whether the kernel already takes packets for an
    /// IPv6 address, [`Self::wait_for_address`] says.
    pub fn add_address(&mut self, name: &str, prefix: IpPrefix) -> Result<(), NetlinkError> {
        let index = self.interface_index(name)?;
        let flags = (libc::NLM_F_CREATE | libc::NLM_F_EXCL) as u16;
        let local = octets(prefix.address);
        let mut request = Request::new(libc::RTM_NEWADDR, flags)
            .fixed(&header(prefix, index))
            .attribute(libc::IFA_LOCAL, &local)
            .attribute(libc::IFA_ADDRESS, &local);
        match prefix.address {
            IpAddr::V4(address) if prefix.length < 31 => {
                let host = u32::MAX >> prefix.length;
                request = request.attribute(libc::IFA_BROADCAST, &(address.to_bits() | host).to_be_bytes());
            }
            IpAddr::V4(_) => {}
            IpAddr::V6(_) => request = request.u32(libc::IFA_FLAGS, libc::IFA_F_NODAD),
        }
        self.execute(request, || format!("give the address {prefix} to `{name}`"))
    }

    /// Waits until the namespace takes packets for its own `address`. Linux gives an IPv6 address its local route and its
    /// multicast group in a later work item of the kernel, normally within a millisecond, but after seconds where many
    /// namespaces are just being removed; until then packets for it are dropped and nobody can resolve it.
    pub fn wait_for_address(&mut self, address: IpAddr, patience: Duration) -> Result<(), NetlinkError> {
        if address.is_ipv4() || self.wait_until(patience, |sockets| sockets.is_local(address))? {
            return Ok(());
        }
        Err(NetlinkError::NoLocalAddress { address, namespace: self.label().into() })
    }

    /// The addresses of all interfaces of the namespace.
    pub fn addresses(&mut self) -> Result<Vec<InterfaceAddress>, NetlinkError> {
        let request = Request::new(libc::RTM_GETADDR, 0).fixed(&[0; 8]);
        Ok(self.list(request, "addresses")?.iter().filter_map(parse).collect())
    }
}

/// `struct ifaddrmsg`.
fn header(prefix: IpPrefix, index: InterfaceIndex) -> [u8; 8] {
    let mut bytes = [family(prefix.address), prefix.length, 0, 0, 0, 0, 0, 0];
    bytes[4..8].copy_from_slice(&index.0.to_ne_bytes());
    bytes
}

fn parse(message: &Message) -> Option<InterfaceAddress> {
    if message.kind != libc::RTM_NEWADDR || message.payload.len() < 8 {
        return None;
    }
    let attributes = message.attributes(8);
    // On a point-to-point interface IFA_ADDRESS is the peer's address; IFA_LOCAL, if present, is ours.
    let bytes = attributes.get(libc::IFA_LOCAL).or_else(|| attributes.get(libc::IFA_ADDRESS))?;
    Some(InterfaceAddress {
        interface: InterfaceIndex(u32_at(&message.payload, 4)),
        prefix: IpPrefix { address: from_octets(bytes)?, length: message.payload[1] },
    })
}

/// The kernel's number for the address family.
pub(crate) fn family(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => libc::AF_INET as u8,
        IpAddr::V6(_) => libc::AF_INET6 as u8,
    }
}

pub(crate) fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

pub(crate) fn from_octets(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
        return Some(Ipv4Addr::from(bytes).into());
    }
    <[u8; 16]>::try_from(bytes).ok().map(|bytes| Ipv6Addr::from(bytes).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str, length: u8) -> IpPrefix {
        IpPrefix::new(text.parse::<IpAddr>().unwrap(), length)
    }

    #[test]
    fn overlap_is_containment_either_way() {
        assert!(prefix("10.1.2.3", 24).overlaps(&prefix("10.1.0.0", 16)));
        assert!(prefix("10.1.0.0", 16).overlaps(&prefix("10.1.2.3", 24)));
        assert!(!prefix("10.1.2.0", 24).overlaps(&prefix("10.1.3.0", 24)));
        assert!(prefix("0.0.0.0", 0).overlaps(&prefix("10.1.3.0", 24)));
        assert!(prefix("fd00::1", 64).overlaps(&prefix("fd00::", 8)));
        assert!(!prefix("fd00::1", 64).overlaps(&prefix("fd00:1::", 64)));
        assert!(!prefix("::", 0).overlaps(&prefix("0.0.0.0", 0)), "another family");
    }
}
