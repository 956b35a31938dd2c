//! How a script joins network namespaces: veth pairs and bridges, addresses and routes, as its commands of `ip`, `brctl` and the
//! like make them.

mod network;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

pub(super) use network::Network;

use crate::dialect::shell::raises_rights;
use crate::host::Address;

/// A network namespace; `None` is that of the script.
type Namespace = Option<String>;

/// The devices that a script makes, and what it gives them.
#[derive(Clone, Debug, Default)]
pub(super) struct Cabling {
    devices: Vec<Made>,
    /// Those that are there, by their names.
    known: BTreeMap<(Namespace, String), usize>,
    /// The gateways of the route to each network, each with its weight.
    routes: BTreeMap<(Namespace, Address), Vec<(IpAddr, u32)>>,
    /// The namespaces that it adds.
    added: BTreeSet<String>,
    /// Where packets are forwarded.
    forwarding: BTreeSet<Namespace>,
}

/// A device that the script makes.
#[derive(Clone, Debug)]
struct Made {
    namespace: Namespace,
    name: String,
    kind: Kind,
    /// The bridge of which it is a port.
    bridge: Option<usize>,
    addresses: Vec<Address>,
    is_there: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// One end of a veth pair; `peer` is the other.
    Cable {
        peer: usize,
    },
    Bridge,
}

impl Cabling {
    /// Takes in a command of any program. `deletes` says whether what is deleted is gone: a script that tidies up at its end has
    /// used it before.
    pub(super) fn take(&mut self, words: &[&str], deletes: bool) {
        let Some((namespace, program, words)) = entered(words) else { return };
        match program {
            "ip" => self.ip(namespace, words, deletes),
            "brctl" => match words {
                ["addbr", name, ..] => drop(self.bridge(&namespace, name)),
                ["addif", bridge, ports @ ..] => self.enslave(&namespace, bridge, ports),
                _ => {}
            },
            "ovs-vsctl" => {
                let named: Vec<&str> = words.iter().copied().filter(|word| !word.starts_with('-')).collect();
                match &named[..] {
                    ["add-br", name, ..] => drop(self.bridge(&namespace, name)),
                    ["add-port", bridge, port, ..] => self.enslave(&namespace, bridge, &[port]),
                    _ => {}
                }
            }
            "sysctl" if words.iter().any(|word| forwards(word)) => drop(self.forwarding.insert(namespace)),
            "ifconfig" => self.ifconfig(namespace, words),
            "route" => self.old_route(namespace, words),
            _ => {}
        }
    }

    fn ip(&mut self, namespace: Namespace, words: &[&str], deletes: bool) {
        let [object, verb, words @ ..] = words else { return };
        let is_deletion = is(verb, "delete") && deletes;
        match () {
            () if is(object, "link") => match () {
                () if is(verb, "add") => self.link_added(&namespace, words),
                () if is(verb, "set") => self.link_set(&namespace, words),
                () if is_deletion => {
                    let said = Said::of(words);
                    let found = said.name.and_then(|name| self.find(&namespace, name));
                    self.delete(found.into_iter().collect());
                }
                () => {}
            },
            () if is(object, "address") => self.address(&namespace, verb, words),
            () if is(object, "route") && (is(verb, "add") || is(verb, "replace") || is(verb, "append")) => {
                self.route(namespace, words);
            }
            () if object.len() > 3 && is(object, "netns") && is(verb, "add") => {
                self.added.extend(words.first().map(|name| (*name).to_owned()));
            }
            () if object.len() > 3 && is(object, "netns") && is_deletion => {
                let names: Vec<Namespace> = words.iter().map(|name| Some((*name).to_owned())).collect();
                for name in names {
                    let inside = self.known.range((name.clone(), String::new())..);
                    let inside = inside.take_while(|((namespace, _), _)| *namespace == name);
                    self.delete(inside.map(|(_, number)| *number).collect());
                    self.forwarding.remove(&name);
                }
            }
            () => {}
        }
    }

    fn link_added(&mut self, namespace: &Namespace, words: &[&str]) {
        let mut ends = words.split(|word| *word == "peer").map(Said::of);
        let Some(own) = ends.next() else { return };
        match (own.kind, own.name, ends.next()) {
            (Some("veth"), Some(name), Some(Said { name: Some(peer), namespace: other, .. })) => {
                let first = self.devices.len();
                let place =
                    |said: Option<&str>| said.map_or_else(|| namespace.clone(), |name| self.named(name));
                let (place, peers) = (place(own.namespace), place(other));
                self.add(place, name, Kind::Cable { peer: first + 1 });
                self.add(peers, peer, Kind::Cable { peer: first });
                if let Some(bridge) = own.bridge {
                    self.enslave(namespace, bridge, &[name]);
                }
            }
            (Some("bridge"), Some(name), _) => drop(self.bridge(namespace, name)),
            _ => {}
        }
    }

    fn link_set(&mut self, namespace: &Namespace, words: &[&str]) {
        let (said, renamed) = match words.iter().position(|word| *word == "name") {
            Some(at) if at > 0 => {
                let rest = [&words[..at], words.get(at + 2..).unwrap_or_default()].concat();
                (Said::of(&rest), words.get(at + 1))
            }
            _ => (Said::of(words), None),
        };
        let Some(found) = said.name.and_then(|name| self.find(namespace, name)) else { return };
        if let Some(bridge) = said.bridge {
            self.enslave(namespace, bridge, said.name.as_slice());
        }
        let moved = said.namespace.map(|name| self.named(name));
        let device = &mut self.devices[found];
        self.known.remove(&(device.namespace.clone(), device.name.clone()));
        if words.contains(&"nomaster") {
            device.bridge = None;
        }
        if let Some(other) = moved {
            // Addresses, and the bridge, are of the old namespace.
            (device.namespace, device.bridge) = (other, None);
            device.addresses.clear();
        }
        if let Some(name) = renamed {
            device.name = (*name).to_owned();
        }
        let there = (device.namespace.clone(), device.name.clone());
        if let Some(before) = self.known.insert(there, found) {
            self.devices[before].is_there = false;
        }
    }

    fn address(&mut self, namespace: &Namespace, verb: &str, words: &[&str]) {
        let device = behind(words, "dev").and_then(|name| self.find(namespace, name));
        let Some(device) = device.map(|number| &mut self.devices[number]) else { return };
        let said = words.iter().find_map(|word| address(word));
        match said {
            Some(said) if is(verb, "add") || is(verb, "replace") || is(verb, "change") => {
                device.addresses.push(said);
            }
            Some(said) if is(verb, "delete") => device.addresses.retain(|known| *known != said),
            None if is(verb, "flush") => device.addresses.clear(),
            _ => {}
        }
    }

    fn route(&mut self, namespace: Namespace, words: &[&str]) {
        // Which packets another table is for, rules say.
        if words.contains(&"table") {
            return;
        }
        let to = words.iter().find(|word| !matches!(**word, "unicast" | "to"));
        let next = |words: &[&str]| {
            let gateway = behind(words, "via").filter(|word| *word != "inet" && *word != "inet6");
            let weight = behind(words, "weight").and_then(|weight| weight.parse().ok()).unwrap_or(1);
            gateway.and_then(|gateway| gateway.parse::<IpAddr>().ok()).map(|gateway| (gateway, weight))
        };
        let via: Vec<_> = words.split(|word| *word == "nexthop").filter_map(next).collect();
        self.add_route(namespace, to.copied(), via);
    }

    fn add_route(&mut self, namespace: Namespace, to: Option<&str>, via: Vec<(IpAddr, u32)>) {
        let Some((gateway, _)) = via.first() else { return };
        let all = if gateway.is_ipv4() { "0.0.0.0/0" } else { "::/0" };
        let to = to.map(|to| if to == "default" { all } else { to }).and_then(address);
        let Some(to) = to.map(Address::network) else { return };
        self.routes.insert((namespace, to), via);
    }

    /// `ifconfig X 10.0.0.1 netmask 255.255.255.0`.
    fn ifconfig(&mut self, namespace: Namespace, words: &[&str]) {
        let [name, said, ..] = words else { return };
        let Some(mut said) = address(said) else { return };
        if let (IpAddr::V4(ip), false) = (said.ip, words[1].contains('/')) {
            let mask = behind(words, "netmask").and_then(|mask| mask.parse::<std::net::Ipv4Addr>().ok());
            said.prefix = match (mask, ip.octets()[0]) {
                (Some(mask), _) => mask.to_bits().leading_ones() as u8, // at most 32
                (None, 0..128) => 8,
                (None, 128..192) => 16,
                (None, _) => 24,
            };
        }
        if let Some(found) = self.find(&namespace, name) {
            self.devices[found].addresses = vec![said];
        }
    }

    /// `route add default gw 10.0.0.1`, `route add -net 10.1.0.0 netmask 255.255.0.0 gw 10.0.0.1`.
    fn old_route(&mut self, namespace: Namespace, words: &[&str]) {
        let Some(gateway) = behind(words, "gw").and_then(|gateway| gateway.parse().ok()) else { return };
        let mut named = words.iter().filter(|word| !word.starts_with('-'));
        if named.next() != Some(&"add") {
            return;
        }
        let Some(to) = named.next() else { return };
        let mask = behind(words, "netmask").and_then(|mask| mask.parse::<std::net::Ipv4Addr>().ok());
        let to = match mask {
            Some(mask) => format!("{to}/{}", mask.to_bits().leading_ones()),
            None => (*to).to_owned(),
        };
        self.add_route(namespace, Some(&to), vec![(gateway, 1)]);
    }

    /// Makes a device; one of the same name is no longer there.
    fn add(&mut self, namespace: Namespace, name: &str, kind: Kind) -> usize {
        let number = self.devices.len();
        let name = name.to_owned();
        if let Some(before) = self.known.insert((namespace.clone(), name.clone()), number) {
            self.devices[before].is_there = false;
        }
        self.devices.push(Made {
            namespace,
            name,
            kind,
            bridge: None,
            addresses: Vec::new(),
            is_there: true,
        });
        number
    }

    /// The bridge of this name, which is made if it is not there.
    fn bridge(&mut self, namespace: &Namespace, name: &str) -> usize {
        self.find(namespace, name).unwrap_or_else(|| self.add(namespace.clone(), name, Kind::Bridge))
    }

    fn enslave(&mut self, namespace: &Namespace, bridge: &str, ports: &[&str]) {
        for port in ports {
            if let Some(port) = self.find(namespace, port) {
                let bridge = self.bridge(namespace, bridge);
                self.devices[port].bridge = Some(bridge);
            }
        }
    }

    /// Deletes devices, those at the other ends with them.
    fn delete(&mut self, numbers: Vec<usize>) {
        for number in numbers {
            let peer = match self.devices[number].kind {
                Kind::Cable { peer } => peer,
                Kind::Bridge => number,
            };
            for number in [number, peer] {
                let device = &mut self.devices[number];
                if std::mem::take(&mut device.is_there) {
                    self.known.remove(&(device.namespace.clone(), device.name.clone()));
                }
            }
        }
    }

    /// The namespace of this name, or of this process: the first one is in that of the script.
    fn named(&self, name: &str) -> Namespace {
        (name != "1" || self.added.contains(name)).then(|| name.to_owned())
    }

    fn find(&self, namespace: &Namespace, name: &str) -> Option<usize> {
        self.known.get(&(namespace.clone(), name.to_owned())).copied()
    }
}

impl Made {
    /// As commands of tc have its name.
    fn key(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{namespace}/{}", self.name),
            None => self.name.clone(),
        }
    }
}

/// What the words of `ip link` say of a device.
#[derive(Default)]
struct Said<'a> {
    name: Option<&'a str>,
    namespace: Option<&'a str>,
    kind: Option<&'a str>,
    bridge: Option<&'a str>,
}

impl<'a> Said<'a> {
    fn of(words: &[&'a str]) -> Self {
        const WITH_A_VALUE: &[&str] = &[
            "link",
            "mtu",
            "address",
            "txqueuelen",
            "txqlen",
            "qlen",
            "numtxqueues",
            "numrxqueues",
            "index",
            "broadcast",
            "brd",
            "alias",
            "group",
            "promisc",
            "arp",
            "multicast",
            "dynamic",
            "state",
        ];
        let (mut said, mut words) = (Self::default(), words.iter().copied());
        while let Some(word) = words.next() {
            match word {
                "name" | "dev" => said.name = words.next(),
                "netns" => said.namespace = words.next(),
                "type" => said.kind = words.next(),
                "master" => said.bridge = words.next(),
                _ if WITH_A_VALUE.contains(&word) => drop(words.next()),
                _ if said.name.is_none() && said.kind.is_none() => said.name = Some(word),
                _ => {}
            }
        }
        said
    }
}

/// The namespace, the program and its further words of a command: `ip netns exec NAME ip …`, `ip -n NAME …`.
fn entered<'a>(mut words: &'a [&'a str]) -> Option<(Namespace, &'a str, &'a [&'a str])> {
    let mut namespace = None;
    loop {
        while let [first, rest @ ..] = words
            && (raises_rights(first) || matches!(*first, "#" | "$"))
        {
            words = rest;
            while let [flag, rest @ ..] = words
                && flag.starts_with('-')
            {
                words = rest;
            }
        }
        let (first, rest) = words.split_first()?;
        let program = first.rsplit('/').next()?;
        if program != "ip" {
            return Some((namespace, program, rest));
        }
        words = rest;
        while let [option, rest @ ..] = words
            && option.starts_with('-')
        {
            words = rest;
            if let ("-n" | "-net" | "-netns" | "-f" | "-family", [value, rest @ ..]) = (*option, words) {
                words = rest;
                if option.starts_with("-n") {
                    namespace = Some((*value).to_owned());
                }
            }
        }
        match words {
            [object, verb, name, rest @ ..]
                if object.len() > 3 && is(object, "netns") && is(verb, "exec") =>
            {
                namespace = Some((*name).to_owned());
                words = rest;
            }
            _ => return Some((namespace, "ip", words)),
        }
    }
}

/// Whether a word stands for this one, as `ip` lets one shorten words.
fn is(word: &str, whole: &str) -> bool {
    !word.is_empty() && whole.starts_with(word)
}

fn behind<'a>(words: &[&'a str], before: &str) -> Option<&'a str> {
    words.iter().position(|word| *word == before).and_then(|at| words.get(at + 1)).copied()
}

/// `net.ipv4.ip_forward=1`, and what else makes a host forward packets.
pub(super) fn forwards(word: &str) -> bool {
    let Some((key, value)) = word.split_once('=') else { return false };
    value.trim() == "1" && (key.trim().ends_with("ip_forward") || key.trim().ends_with("all.forwarding"))
}

/// An address, or a network, with its prefix.
fn address(word: &str) -> Option<Address> {
    let (ip, prefix) = word.split_once('/').map_or((word, None), |(ip, prefix)| (ip, Some(prefix)));
    let host = Address::host(ip.parse().ok()?);
    match prefix {
        None => Some(host),
        Some(prefix) => {
            let prefix = prefix.parse().ok().filter(|prefix| *prefix <= host.prefix)?;
            Some(Address { prefix, ..host })
        }
    }
}
