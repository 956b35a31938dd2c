//! Name resolution inside a run: its hosts and routers by their names, and outside names at once or not at all.
//!
//! Programs see an `/etc/hosts` with the run's hosts added to those of the host system, and an `/etc/resolv.conf`
//! that fits what they can reach ([`narrows_io::etc_files`]). Without an uplink it names no server: resolvers then
//! ask 127.0.0.1, where nobody listens, and fail at once. With an uplink it is the host system's own, except for
//! servers at a loopback address, which would be local to another host: they are replaced by the run's [`Forwarder`].
//!
//! A host in an existing namespace keeps its resolver, and only gets the names.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use narrows_io::etc_files::EtcFiles;
use narrows_scenario::Scenario;

use crate::dns::Forwarder;
use crate::testbed::Host;

/// What programs of the run's hosts see in `/etc`.
#[derive(Debug, Default)]
pub(crate) struct Names {
    of_ours: Option<Arc<EtcFiles>>,
    of_existing: Option<Arc<EtcFiles>>,
}

/// How outside names are resolved.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Resolver<'a> {
    /// Not at all: there is no uplink.
    Absent,
    /// As on this host; servers at its loopback addresses are reached through this forwarder.
    Ours(Option<&'a Forwarder>),
}

impl Names {
    /// The files for a scenario; or none, with the reason, if files cannot be mounted there.
    pub(crate) fn new(scenario: &Scenario, resolver: Resolver<'_>) -> (Self, Option<String>) {
        let hosts = hosts_file(&own("hosts"), &addresses(scenario)).into_bytes();
        let servers = match resolver {
            Resolver::Absent => NO_SERVER.to_owned(),
            Resolver::Ours(forwarder) => resolv_conf(&own("resolv.conf"), forwarder.map(Forwarder::address)),
        };
        let of_existing = EtcFiles::new([("hosts", hosts.clone())], false);
        let of_ours = EtcFiles::new([("hosts", hosts), ("resolv.conf", servers.into_bytes())], true);
        let tried = of_ours.and_then(|files| files.try_out().map(|()| files).map_err(io::Error::other));
        match (tried, of_existing) {
            (Ok(ours), Ok(existing)) => {
                (Self { of_ours: Some(Arc::new(ours)), of_existing: Some(Arc::new(existing)) }, None)
            }
            (Err(error), _) | (_, Err(error)) => {
                let note = "host names are not known inside the run, and resolvers are those of this host";
                (Self::default(), Some(format!("{note}: {error}")))
            }
        }
    }

    /// The files for programs of this host.
    pub(crate) fn of(&self, host: &Host) -> Option<&Arc<EtcFiles>> {
        if host.is_ours { self.of_ours.as_ref() } else { self.of_existing.as_ref() }
    }
}

/// The loopback server that this host resolves names with; 127.0.0.1 if none is configured.
pub(crate) fn local_server() -> Option<IpAddr> {
    local_server_of(&own("resolv.conf"))
}

fn local_server_of(resolv_conf: &str) -> Option<IpAddr> {
    let mut servers = resolv_conf.lines().filter_map(server).peekable();
    if servers.peek().is_none() {
        return Some(Ipv4Addr::LOCALHOST.into());
    }
    servers.find(IpAddr::is_loopback)
}

/// A file in this host's `/etc`; an unreadable one counts as empty.
fn own(name: &str) -> String {
    let bytes = fs::read(format!("/etc/{name}")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The names of hosts and routers with their addresses, in the scenario's order.
fn addresses(scenario: &Scenario) -> Vec<(&str, Vec<IpAddr>)> {
    let hosts = scenario.ports().iter().map(|port| (port.host.as_str(), &port.addresses));
    let routers = scenario.interfaces().iter().map(|end| (end.router.as_str(), &end.addresses));
    let mut all: Vec<(&str, Vec<IpAddr>)> = Vec::new();
    let mut places = BTreeMap::new();
    for (name, addresses) in hosts.chain(routers) {
        let place = *places.entry(name).or_insert_with(|| {
            all.push((name, Vec::new()));
            all.len() - 1
        });
        all[place].1.extend(addresses.iter().map(|address| address.ip));
    }
    all
}

/// `/etc/hosts`: the run's names, and this host's own entries, except for names of the run. A scenario host cannot
/// take over `localhost`.
fn hosts_file(own: &str, names: &[(&str, Vec<IpAddr>)]) -> String {
    let mut text = String::from("# the hosts and routers of this run of narrows\n");
    let mut taken = std::collections::BTreeSet::new();
    for (name, addresses) in names.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("localhost")) {
        taken.insert(name.to_ascii_lowercase());
        for address in addresses {
            text += &format!("{address}\t{name}\n");
        }
    }
    text += "\n# as on the host\n";
    for line in own.lines() {
        let (entry, _) = line.split_once('#').unwrap_or((line, ""));
        let mut words = entry.split_whitespace();
        let Some(address) = words.next() else { continue };
        let kept: Vec<_> = words.filter(|name| !taken.contains(&name.to_ascii_lowercase())).collect();
        if !kept.is_empty() {
            text += &format!("{address}\t{}\n", kept.join(" "));
        }
    }
    text
}

/// Resolvers then ask 127.0.0.1, and learn at once that nobody listens; those that do not notice give up after a
/// second.
const NO_SERVER: &str = "# narrows: no name server can be reached from this run; with --internet those of the host can\n\
                         options timeout:1 attempts:1\n";

/// This host's file, with the forwarder in place of servers at loopback addresses.
fn resolv_conf(own: &str, forwarder: Option<IpAddr>) -> String {
    let mut text = String::new();
    let mut is_named = false;
    for line in own.lines() {
        match (server(line), forwarder) {
            (Some(server), Some(_)) if server.is_loopback() => {}
            (found, _) => {
                is_named |= found.is_some();
                text += &format!("{line}\n");
                continue;
            }
        }
        // Several of them usually belong to one server.
        if let Some(forwarder) = forwarder.filter(|_| !text.contains(FORWARDED)) {
            text += &format!("{FORWARDED}\nnameserver {forwarder}\n");
            is_named = true;
        }
    }
    if let Some(forwarder) = forwarder.filter(|_| !is_named) {
        text += &format!("{FORWARDED}\nnameserver {forwarder}\n");
    }
    text
}

const FORWARDED: &str = "# narrows forwards to the name server of the host";

/// The server in a line of `/etc/resolv.conf`.
fn server(line: &str) -> Option<IpAddr> {
    let mut words = line.split_whitespace();
    (words.next() == Some("nameserver")).then_some(())?;
    words.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runs_names_are_first_and_the_hosts_own_stay() {
        let own = "127.0.0.1 localhost loop # here\n\n10.9.9.9 Server old-server\n10.9.9.8 server\n::1 ip6-localhost";
        let names = [
            ("server", vec!["10.213.0.2".parse().unwrap(), "fd6e::2".parse().unwrap()]),
            ("localhost", vec!["10.213.0.1".parse().unwrap()]),
        ];
        let text = hosts_file(own, &names);
        let entries: Vec<_> =
            text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
        let wanted = [
            "10.213.0.2\tserver",
            "fd6e::2\tserver",
            "127.0.0.1\tlocalhost loop",
            "10.9.9.9\told-server",
            "::1\tip6-localhost",
        ];
        assert_eq!(entries, wanted);
    }

    #[test]
    fn a_forwarder_stands_for_servers_at_loopback_addresses() {
        let inside: IpAddr = "100.64.0.6".parse().unwrap();
        let servers =
            |text: &str| text.lines().filter_map(server).map(|ip| ip.to_string()).collect::<Vec<_>>();
        let own =
            "nameserver 127.0.0.53\nnameserver 127.0.0.54\nnameserver 192.0.2.1\noptions edns0\nsearch lan\n";
        assert_eq!(local_server_of(own), Some("127.0.0.53".parse().unwrap()));
        let text = resolv_conf(own, Some(inside));
        assert_eq!(servers(&text), ["100.64.0.6", "192.0.2.1"]);
        assert!(text.contains("options edns0\nsearch lan\n"), "{text}");
        // Who names no server means 127.0.0.1.
        assert_eq!(local_server_of("search lan"), Some("127.0.0.1".parse().unwrap()));
        assert_eq!(servers(&resolv_conf("", Some(inside))), ["100.64.0.6"]);
        // Others are reached as they are.
        let other = "nameserver 192.0.2.1\n";
        assert_eq!((local_server_of(other), resolv_conf(other, None)), (None, other.to_owned()));
        assert_eq!(local_server_of("nameserver ::1"), Some("::1".parse().unwrap()));
    }
}
