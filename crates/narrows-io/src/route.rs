//! Routes and permanent neighbours.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::address::{IpPrefix, family, from_octets, octets};
use crate::link::{InterfaceIndex, MacAddress};
use crate::netlink::{Message, Request};
use crate::route_socket::{NetlinkError, RouteSocket};

/// A route of a namespace's main table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Its destination; a prefix of length 0 is the default route.
    pub destination: IpPrefix,
    /// The next hop, if the destination is not on the link itself.
    pub gateway: Option<IpAddr>,
    /// The outgoing interface.
    pub interface: Option<InterfaceIndex>,
}

impl RouteSocket {
    /// Adds the default route of the gateway's family, through `gateway` on interface `name`.
    pub fn add_default_route(&mut self, gateway: IpAddr, name: &str) -> Result<(), NetlinkError> {
        let everything: IpAddr = match gateway {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        self.add_route(IpPrefix::new(everything, 0), Some(gateway), name)
    }

    /// Adds a route out of interface `name`, through a gateway or directly.
    pub fn add_route(
        &mut self,
        destination: IpPrefix,
        gateway: Option<IpAddr>,
        name: &str,
    ) -> Result<(), NetlinkError> {
        let index = self.interface_index(name)?;
        let flags = (libc::NLM_F_CREATE | libc::NLM_F_EXCL) as u16;
        let mut request = Request::new(libc::RTM_NEWROUTE, flags)
            .fixed(&route_header(destination, gateway.is_some()))
            .u32(libc::RTA_OIF, index.0);
        if destination.length > 0 {
            request = request.attribute(libc::RTA_DST, &octets(destination.address));
        }
        if let Some(gateway) = gateway {
            request = request.attribute(libc::RTA_GATEWAY, &octets(gateway));
        }
        self.execute(request, || match gateway {
            Some(gateway) => format!("add the route to {destination} through {gateway} on `{name}`"),
            None => format!("add the route to {destination} on `{name}`"),
        })
    }

    /// The routes of the namespace's main table.
    pub fn routes(&mut self) -> Result<Vec<Route>, NetlinkError> {
        let request = Request::new(libc::RTM_GETROUTE, 0).fixed(&[0; 12]);
        Ok(self.list(request, "routes")?.iter().filter_map(parse).collect())
    }

    /// Whether packets to `address` would be delivered to the namespace itself.
    pub(crate) fn is_local(&mut self, address: IpAddr) -> Result<bool, NetlinkError> {
        let destination = octets(address);
        // struct rtmsg: family, length of the destination in bits.
        let mut header = [0; 12];
        header[0] = family(address);
        header[1] = destination.len() as u8 * 8;
        let request =
            Request::new(libc::RTM_GETROUTE, 0).fixed(&header).attribute(libc::RTA_DST, &destination);
        match self.get(request, || format!("look up the route to {address}")) {
            Ok(messages) => {
                Ok(messages.iter().any(|message| message.payload.get(7) == Some(&libc::RTN_LOCAL)))
            }
            // Without any route the kernel answers with an error.
            Err(NetlinkError::Refused { cause, .. }) if cause.raw_os_error() == Some(libc::ENETUNREACH) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Sets a neighbour's link address permanently, so that it is not resolved.
    pub fn add_neighbour(
        &mut self,
        name: &str,
        neighbour: IpAddr,
        mac: MacAddress,
    ) -> Result<(), NetlinkError> {
        /// `NUD_PERMANENT`.
        const PERMANENT: u16 = 0x80;
        let index = self.interface_index(name)?;
        // struct ndmsg: family, padding, index, state, flags, type.
        let mut header = [0; 12];
        header[0] = family(neighbour);
        header[4..8].copy_from_slice(&index.0.to_ne_bytes());
        header[8..10].copy_from_slice(&PERMANENT.to_ne_bytes());
        let flags = (libc::NLM_F_CREATE | libc::NLM_F_REPLACE) as u16;
        let request = Request::new(libc::RTM_NEWNEIGH, flags)
            .fixed(&header)
            .attribute(libc::NDA_DST, &octets(neighbour))
            .attribute(libc::NDA_LLADDR, &mac.0);
        self.execute(request, || format!("make {neighbour} a neighbour at {mac} on `{name}`"))
    }
}

/// `struct rtmsg` for a unicast route in the main table.
fn route_header(destination: IpPrefix, through_gateway: bool) -> [u8; 12] {
    let scope = match (destination.address, through_gateway) {
        (IpAddr::V4(_), false) => libc::RT_SCOPE_LINK,
        _ => libc::RT_SCOPE_UNIVERSE,
    };
    let mut bytes = [0; 12];
    bytes[0] = family(destination.address);
    bytes[1] = destination.length;
    bytes[4] = libc::RT_TABLE_MAIN;
    bytes[5] = libc::RTPROT_STATIC;
    bytes[6] = scope;
    bytes[7] = libc::RTN_UNICAST;
    bytes
}

fn parse(message: &Message) -> Option<Route> {
    let header = message.payload.get(..12)?;
    if message.kind != libc::RTM_NEWROUTE || header[4] != libc::RT_TABLE_MAIN {
        return None;
    }
    let attributes = message.attributes(12);
    let nowhere: IpAddr = match i32::from(header[0]) {
        libc::AF_INET => Ipv4Addr::UNSPECIFIED.into(),
        libc::AF_INET6 => Ipv6Addr::UNSPECIFIED.into(),
        _ => return None,
    };
    let destination = attributes.get(libc::RTA_DST).and_then(from_octets).unwrap_or(nowhere);
    Some(Route {
        destination: IpPrefix { address: destination, length: header[1] },
        gateway: attributes.get(libc::RTA_GATEWAY).and_then(from_octets),
        interface: attributes.u32(libc::RTA_OIF).map(InterfaceIndex),
    })
}
