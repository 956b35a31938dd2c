//! Where packets go that arrive at a gateway: its own addresses, and its routes.

use std::net::IpAddr;

use narrows_io::address::IpPrefix;

/// The side of the gateway that has the interface.
pub(crate) type Side = usize;

/// Where a packet to some address goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// To the host itself.
    Own,
    /// To this neighbour, by the interface of this side.
    By(Side, IpAddr),
    /// By another interface of the host.
    Elsewhere,
    /// No route leads there.
    Nowhere,
}

/// A route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// Its destination.
    pub(crate) destination: IpPrefix,
    /// The next router; `None` if the destination is on the link itself.
    pub(crate) gateway: Option<IpAddr>,
    /// The interface's side; `None` for another interface.
    pub(crate) side: Option<Side>,
}

/// The addresses and routes of the host, as they were when it was made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    own: Vec<IpAddr>,
    /// The longest prefixes first.
    routes: Vec<Route>,
}

impl Table {
    /// From the host's addresses, each with its network, and its routes, in the kernel's order: of routes to the same
    /// network the first counts.
    pub(crate) fn new(own: &[IpPrefix], mut routes: Vec<Route>) -> Self {
        routes.sort_by_key(|route| std::cmp::Reverse(route.destination.length));
        let broadcast = own.iter().filter_map(broadcast);
        let own = own.iter().map(|prefix| prefix.address).chain(broadcast).collect();
        Self { own, routes }
    }

    pub(crate) fn way_to(&self, address: IpAddr) -> Way {
        if self.own.contains(&address) {
            return Way::Own;
        }
        let host = IpPrefix::new(address, if address.is_ipv4() { 32 } else { 128 });
        let leads = |route: &&Route| route.destination.overlaps(&host);
        match self.routes.iter().find(leads) {
            Some(Route { side: Some(side), gateway, .. }) => Way::By(*side, gateway.unwrap_or(address)),
            Some(Route { side: None, .. }) => Way::Elsewhere,
            None => Way::Nowhere,
        }
    }

    /// The routes, the longest prefixes first.
    pub(crate) fn routes(&self) -> &[Route] {
        &self.routes
    }

    /// The host's addresses, and the broadcast addresses of its networks.
    pub(crate) fn own(&self) -> &[IpAddr] {
        &self.own
    }
}

/// The broadcast address of an IPv4 network.
fn broadcast(prefix: &IpPrefix) -> Option<IpAddr> {
    let IpAddr::V4(address) = prefix.address else { return None };
    let host = u32::MAX.checked_shr(prefix.length.into()).filter(|_| prefix.length < 31)?;
    Some(IpAddr::V4((address.to_bits() | host).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> IpPrefix {
        let (address, length) = text.split_once('/').unwrap();
        IpPrefix::new(address.parse::<IpAddr>().unwrap(), length.parse().unwrap())
    }

    #[test]
    fn the_longest_prefix_decides() {
        let route = |destination, gateway: Option<&str>, side| Route {
            destination: prefix(destination),
            gateway: gateway.map(|gateway| gateway.parse().unwrap()),
            side,
        };
        let table = Table::new(
            &[prefix("10.0.0.2/24"), prefix("fd00::2/64")],
            vec![
                route("10.0.0.0/24", None, Some(0)),
                route("10.0.0.0/8", Some("10.1.0.9"), Some(1)),
                route("10.7.0.0/16", None, None),
                route("fd00::/64", None, Some(0)),
                route("::/0", Some("fe80::9"), Some(1)),
            ],
        );
        let way = |address: &str| table.way_to(address.parse().unwrap());
        let by = |side, next: &str| Way::By(side, next.parse().unwrap());
        assert_eq!(way("10.0.0.2"), Way::Own);
        assert_eq!(way("10.0.0.255"), Way::Own, "the broadcast address of its network");
        assert_eq!(way("10.0.0.7"), by(0, "10.0.0.7"));
        assert_eq!(way("10.3.0.7"), by(1, "10.1.0.9"));
        assert_eq!(way("10.7.0.7"), Way::Elsewhere);
        assert_eq!(way("11.0.0.1"), Way::Nowhere);
        assert_eq!(way("fd00::7"), by(0, "fd00::7"));
        assert_eq!(way("2001:db8::1"), by(1, "fe80::9"));
    }
}
