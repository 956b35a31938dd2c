//! Maps device names to links.

use std::env;
use std::net::{IpAddr, UdpSocket};

use narrows_live::control::{CurrentLink, CurrentScenario};
use narrows_live::feeds::capitals;

use crate::output::Failure;

/// The names of all devices: links, ports, and hosts with one link.
pub(super) fn devices(current: &CurrentScenario) -> Vec<String> {
    let links = current.links.iter().map(|link| link.link.clone());
    let ports = current.ports.iter().map(|port| port.port.clone());
    let hosts = current.ports.iter().map(|port| port.host.clone());
    let single = |host: &String| current.ports.iter().filter(|port| port.host == *host).count() == 1;
    links.chain(ports).chain(hosts.filter(single)).collect()
}

/// The direction of packets that leave by a device.
pub(super) fn link_of<'a>(current: &'a CurrentScenario, device: &str) -> Result<&'a CurrentLink, Failure> {
    let link = |name: &str| current.links.iter().find(|link| link.link == name);
    if let Some(link) = link(device) {
        return Ok(link);
    }
    let of_hosts: Vec<_> = current.ports.iter().filter(|port| port.interface == device).collect();
    // If several devices have this name, it is the one in the current host.
    let own = match of_hosts[..] {
        [port] => Some(port),
        _ => of_hosts.iter().find(|port| is_here(&port.host)).copied(),
    };
    if let Some(port) = own {
        return link(&port.link).ok_or_else(|| no_link(&port.link));
    }
    let at: Vec<&str> = current
        .ports
        .iter()
        .filter(|port| port.port == device || port.host == device)
        .map(|port| port.link.as_str())
        .collect();
    let ports = || -> Vec<&str> {
        current.ports.iter().filter(|port| port.host == device).map(|port| port.port.as_str()).collect()
    };
    match at[..] {
        [name] => link(name).ok_or_else(|| no_link(name)),
        [] => {
            let both = [format!("{device}.up"), format!("{device}.down")];
            Err(Failure::Other(if both.iter().all(|name| link(name).is_some()) {
                format!("`{device}` is a link with two directions: name one of {}", both.join(" and "))
            } else {
                format!("there is no device `{device}`; there are: {}", super::known(current))
            }))
        }
        _ => Err(Failure::Other(format!(
            "the host `{device}` is on several links: name one of {}",
            ports().join(", ")
        ))),
    }
}

fn no_link(name: &str) -> Failure {
    Failure::Other(format!("the run has no link `{name}`"))
}

/// Whether this program runs in that host: the address that the run tells its programs is a local one.
fn is_here(host: &str) -> bool {
    let name = capitals(host);
    ["", "6"].iter().any(|family| {
        let address = env::var(format!("NARROWS_HOST_{name}{family}")).unwrap_or_default();
        address.parse::<IpAddr>().is_ok_and(|address| UdpSocket::bind((address, 0)).is_ok())
    })
}
