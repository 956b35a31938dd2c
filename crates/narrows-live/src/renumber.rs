//! Chooses addresses that do not collide with those in use around a run.

use std::net::IpAddr;

use narrows_io::address::IpPrefix;
use narrows_io::namespace::Namespace;
use narrows_io::route_socket::RouteSocket;
use narrows_scenario::{Address, HostAddress, Scenario};

use crate::testbed::{self, TestbedError};

/// The environment variable with the networks of a run and of those around it, separated by commas.
pub(crate) const NETWORKS_ENVIRONMENT: &str = "NARROWS_NETWORKS";

/// The networks of the runs around this one.
pub(crate) fn networks_around() -> Vec<IpPrefix> {
    let text = std::env::var(NETWORKS_ENVIRONMENT).unwrap_or_default();
    let prefix = |text: &str| {
        let (address, length) = text.split_once('/')?;
        Some(IpPrefix::new(address.parse::<IpAddr>().ok()?, length.parse().ok()?))
    };
    text.split(',').filter_map(prefix).collect()
}

/// Avoids networks of the runs around this one, and those in use where narrows was started, which may be a host of
/// another run, and in existing namespaces that become hosts.
pub(crate) fn step_aside(scenario: &mut Scenario) -> Result<(), TestbedError> {
    let mut taken = networks_around();
    taken.extend(in_use(&Namespace::current()?)?);
    for host in &scenario.hosts {
        if let Some(existing) = testbed::existing(host)? {
            taken.extend(in_use(&existing).map_err(|cause| testbed::of_host(&host.name, cause))?);
        }
    }
    // A default route overlaps everything but occupies nothing.
    taken.retain(|prefix| prefix.length > 0);
    let numbers = numbers(scenario);
    scenario.renumber(|address| {
        let network = IpPrefix::new(address.ip, address.prefix);
        !taken.iter().any(|other| other.overlaps(&network))
    });
    if self::numbers(scenario) != numbers {
        pin(scenario);
    }
    Ok(())
}

/// The addresses of all link ends.
fn numbers(scenario: &Scenario) -> Vec<Vec<Address>> {
    let ports = scenario.ports().iter().map(|port| &port.addresses);
    ports.chain(scenario.interfaces().iter().map(|interface| &interface.addresses)).cloned().collect()
}

/// Fixes automatic addresses, so that the scenario's text contains them: classes and routes depend on addresses, and
/// a replay elsewhere must use the same.
fn pin(scenario: &mut Scenario) {
    let (ports, interfaces) = (scenario.ports().to_vec(), scenario.interfaces().to_vec());
    for port in ports {
        if let Some(host) = scenario.hosts.iter_mut().find(|host| host.name == port.host) {
            pin_end(&mut host.addresses, &port.link, &port.addresses);
        }
    }
    for end in interfaces {
        if let Some(router) = scenario.routers.iter_mut().find(|router| router.name == end.router) {
            pin_end(&mut router.addresses, &end.link, &end.addresses);
        }
    }
}

fn pin_end(given: &mut Vec<HostAddress>, link: &str, addresses: &[Address]) {
    let is_here = |other: &HostAddress| other.link.as_ref().is_none_or(|other| other == link);
    if !given.iter().any(is_here) {
        let address = |&address: &Address| HostAddress { link: Some(link.to_owned()), address };
        given.extend(addresses.iter().map(address));
    }
}

/// The addresses and routes of a namespace.
fn in_use(namespace: &Namespace) -> Result<Vec<IpPrefix>, TestbedError> {
    let mut sockets = RouteSocket::open(namespace)?;
    let addresses = sockets.addresses()?.into_iter().map(|address| address.prefix);
    Ok(addresses.chain(sockets.routes()?.into_iter().map(|route| route.destination)).collect())
}
