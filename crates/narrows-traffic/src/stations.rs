//! Link addresses of packets at ports on switches. Elsewhere, packets of sources have none.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use narrows_core::{FlowKey, Headers, LinkAddress, PortId};
use narrows_scenario::{Port, Scenario};

/// The link addresses, destination and source, of packets at some ports.
#[derive(Debug, Default)]
pub(crate) struct Stations {
    known: BTreeMap<(PortId, [u8; 16]), [LinkAddress; 2]>,
    /// For other destinations, by port: those of a router.
    others: BTreeMap<PortId, [LinkAddress; 2]>,
}

impl Stations {
    /// Adds what packets of a flow need at a port.
    pub(crate) fn add_flow(&mut self, scenario: &Scenario, id: PortId, port: &Port, destination: [u8; 16]) {
        let found = scenario.link_addresses(port, address(destination));
        self.known.extend(found.map(|found| ((id, destination), found)));
    }

    /// Adds what packets to any destination need at a port.
    pub(crate) fn add_port(&mut self, scenario: &Scenario, id: PortId, port: &Port) {
        if !scenario.is_switched(port) {
            return;
        }
        let of_hosts = scenario.ports().iter().map(|port| &port.addresses);
        let of_routers = scenario.interfaces().iter().map(|interface| &interface.addresses);
        for address in of_hosts.chain(of_routers).flatten() {
            self.add_flow(scenario, id, port, octets(address.ip));
        }
        let other = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        self.others.extend(scenario.link_addresses(port, other).map(|found| (id, found)));
    }

    /// Sets the link addresses of a packet that enters at a port; returns whether a switch is there.
    pub(crate) fn write(&self, port: PortId, key: &FlowKey, headers: &mut Headers) -> bool {
        let known = self.known.get(&(port, key.destination));
        let found = known.or_else(|| self.others.get(&port));
        if let Some(&[destination, source]) = found {
            (headers.link_destination, headers.link_source) = (destination, source);
        }
        found.is_some()
    }
}

/// In a key, IPv4 addresses are mapped into IPv6.
fn address(octets: [u8; 16]) -> IpAddr {
    IpAddr::V6(Ipv6Addr::from_octets(octets)).to_canonical()
}

fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    }
}
