//! The network that veth pairs and bridges make of namespaces.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use super::super::place::{Place, unique};
use super::{Cabling, Kind, Made, Namespace};
use crate::Scenario;
use crate::host::Address;
use crate::link::Way;
use crate::problem::Problem;

/// More devices than a machine has, whose network is still made within a second.
const MOST: usize = 1024;
/// The namespace of the script itself.
const OWN: &str = "host";

/// A network of hosts, routers and switches.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Network {
    /// The hosts, routers and switches, as a scenario has them.
    pub(in super::super) nodes: String,
    /// The links: their names, and what they join.
    pub(in super::super) links: Vec<(String, [String; 2])>,
    /// The place of each configured device.
    pub(in super::super) places: BTreeMap<String, Place>,
    /// What is not as in the script, for people.
    pub(in super::super) notes: Vec<String>,
}

/// What a link ends at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Spot {
    Machine(Namespace),
    Bridge(usize),
}

/// A link: where its ends are, and the device there. A bridge has none at the machine's own link to it.
struct Edge {
    spots: [Spot; 2],
    devices: [Option<usize>; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Host,
    Router,
    Switch,
}

impl Cabling {
    /// The network, if the script makes all of these devices and joins them.
    pub(in super::super) fn network(&self, configured: &[&str]) -> Option<Result<Network, Problem>> {
        let find = |name: &&str| match name.split_once('/') {
            Some((namespace, name)) => self.find(&Some(namespace.to_owned()), name),
            None => self.find(&None, name),
        };
        let devices: Option<Vec<usize>> = configured.iter().map(find).collect();
        let devices = devices.filter(|devices| !devices.is_empty())?;
        if self.known.len() > MOST {
            let title = format!(
                "a network of {} devices, the most that a script may join is {MOST}",
                self.known.len()
            );
            return Some(Err(Problem::new(title)));
        }
        let mut edges = self.edges(&devices);
        if edges.iter().any(|edge| edge.spots[0] == edge.spots[1]) {
            return None;
        }
        keep_joined(&mut edges, &devices);
        let laid = Laid { cabling: self, roles: self.roles(&edges), edges };
        Some(Ok(laid.network(&devices)))
    }

    fn edges(&self, configured: &[usize]) -> Vec<Edge> {
        let spot = |number: usize| match self.devices[number].bridge {
            Some(bridge) => Spot::Bridge(bridge),
            None => Spot::Machine(self.devices[number].namespace.clone()),
        };
        let mut edges = Vec::new();
        for (number, device) in self.devices.iter().enumerate().filter(|(_, device)| device.is_there) {
            match device.kind {
                Kind::Cable { peer } if number < peer => {
                    // From the machine to its bridge.
                    let ends = if device.bridge.is_some() { [peer, number] } else { [number, peer] };
                    edges.push(Edge { spots: ends.map(spot), devices: ends.map(Some) });
                }
                Kind::Cable { .. } => {}
                Kind::Bridge if !device.addresses.is_empty() || configured.contains(&number) => {
                    let spots = [Spot::Machine(device.namespace.clone()), Spot::Bridge(number)];
                    edges.push(Edge { spots, devices: [Some(number), None] });
                }
                Kind::Bridge => {}
            }
        }
        edges
    }

    /// What each end of a link is: a machine with several links forwards packets if the script says so, if routes lead by way of
    /// it, or if the script has no addresses.
    fn roles(&self, edges: &[Edge]) -> BTreeMap<Spot, Role> {
        let spots: BTreeSet<&Spot> = edges.iter().flat_map(|edge| &edge.spots).collect();
        let has_addresses = self.devices.iter().any(|device| !device.addresses.is_empty());
        let gateways: BTreeSet<IpAddr> =
            self.routes.values().flatten().map(|(gateway, _)| *gateway).collect();
        let is_gateway = |namespace: &Namespace| {
            let devices =
                self.devices.iter().filter(|device| device.is_there && device.namespace == *namespace);
            devices.flat_map(|device| &device.addresses).any(|own| gateways.contains(&own.ip))
        };
        let role = |spot: &Spot| match spot {
            Spot::Bridge(_) => Role::Switch,
            Spot::Machine(namespace) => {
                let links = edges.iter().filter(|edge| edge.spots.contains(spot)).count();
                let forwards = self.forwarding.contains(namespace) || is_gateway(namespace) || !has_addresses;
                if links > 1 && forwards { Role::Router } else { Role::Host }
            }
        };
        let mut roles: BTreeMap<Spot, Role> =
            spots.into_iter().map(|spot| (spot.clone(), role(spot))).collect();
        if !roles.values().any(|role| *role == Role::Host) {
            roles.values_mut().filter(|role| **role == Role::Router).for_each(|role| *role = Role::Host);
        }
        roles
    }
}

/// Keeps the links that configured devices are joined with.
fn keep_joined(edges: &mut Vec<Edge>, configured: &[usize]) {
    let is_configured = |edge: &Edge| edge.devices.iter().flatten().any(|device| configured.contains(device));
    let mut reached: BTreeSet<Spot> =
        edges.iter().filter(|edge| is_configured(edge)).flat_map(|edge| edge.spots.clone()).collect();
    let mut due: VecDeque<Spot> = reached.iter().cloned().collect();
    while let Some(spot) = due.pop_front() {
        for edge in edges.iter().filter(|edge| edge.spots.contains(&spot)) {
            due.extend(edge.spots.iter().filter(|other| reached.insert((*other).clone())).cloned());
        }
    }
    edges.retain(|edge| reached.contains(&edge.spots[0]));
}

/// Links with what they end at.
struct Laid<'a> {
    cabling: &'a Cabling,
    roles: BTreeMap<Spot, Role>,
    edges: Vec<Edge>,
}

impl Laid<'_> {
    fn device(&self, number: usize) -> &Made {
        &self.cabling.devices[number]
    }

    fn network(&self, devices: &[usize]) -> Network {
        let names = self.names();
        // A link may have the name of a host.
        let is_host = |spot: &Spot| self.roles[spot] == Role::Host;
        let mut taken: Vec<String> =
            names.iter().filter(|(spot, _)| !is_host(spot)).map(|(_, name)| name.clone()).collect();
        let links: Vec<String> =
            self.edges.iter().map(|edge| self.link_name(edge, &names, &mut taken)).collect();
        let mut network = Network::default();
        for (edge, link) in self.edges.iter().zip(&links) {
            let ends = edge.spots.clone().map(|spot| names[&spot].clone());
            for (end, way) in [Way::Up, Way::Down].into_iter().enumerate() {
                let Some(number) = edge.devices[end].filter(|number| devices.contains(number)) else {
                    continue;
                };
                let (at, beyond) = (ends[end].clone(), ends[1 - end].clone());
                network
                    .places
                    .insert(self.device(number).key(), Place { link: link.clone(), way, at, beyond });
            }
            network.links.push((link.clone(), ends));
        }
        let several = |spot: &&Spot| self.roles[*spot] == Role::Host && self.links_of(spot).count() > 1;
        for spot in self.roles.keys().filter(several) {
            network.notes.push(format!(
                "{} is a host with several links: nothing in the script makes it forward packets.",
                names[spot]
            ));
        }
        network.nodes = self.nodes(&names, None);
        match self.addresses_fit() {
            Err(problem) => network.notes.push(problem),
            Ok(false) => {}
            Ok(true) => {
                let nodes = self.nodes(&names, Some(&links));
                let with = Network { nodes, ..network.clone() };
                match Scenario::parse(&with.text(|_| String::new()), "") {
                    Ok(_) => network = with,
                    Err(error) => network.notes.push(format!(
                        "The addresses are not those of the script: {}.",
                        error.without_place().title()
                    )),
                }
            }
        }
        network
    }

    fn names(&self) -> BTreeMap<Spot, String> {
        let (mut names, mut taken) = (BTreeMap::new(), Vec::new());
        for spot in self.edges.iter().flat_map(|edge| &edge.spots) {
            if !names.contains_key(spot) {
                let name = match spot {
                    Spot::Machine(namespace) => namespace.as_deref().unwrap_or(OWN),
                    Spot::Bridge(number) => &self.device(*number).name,
                };
                names.insert(spot.clone(), unique(name, &mut taken));
            }
        }
        names
    }

    /// The name of the first device, with that of its machine if others have it, too.
    fn link_name(&self, edge: &Edge, names: &BTreeMap<Spot, String>, taken: &mut Vec<String>) -> String {
        let Some(first) = edge.devices[0] else { return unique("link", taken) };
        let name = &self.device(first).name;
        let is_shared = self
            .edges
            .iter()
            .filter(|other| other.devices[0].is_some_and(|other| self.device(other).name == *name));
        match is_shared.count() > 1 || taken.contains(name) {
            true => unique(&format!("{}-{name}", names[&edge.spots[0]]), taken),
            false => unique(name, taken),
        }
    }

    /// The hosts, routers and switches; with the names of links, also their addresses and routes.
    fn nodes(&self, names: &BTreeMap<Spot, String>, links: Option<&[String]>) -> String {
        let mut text = String::new();
        for role in [Role::Host, Role::Router, Role::Switch] {
            let mut seen = BTreeSet::new();
            for spot in self.edges.iter().flat_map(|edge| &edge.spots) {
                if self.roles[spot] != role || !seen.insert(spot) {
                    continue;
                }
                let table = match role {
                    Role::Host => "hosts",
                    Role::Router => "routers",
                    Role::Switch => "switches",
                };
                text += &format!("[{table}.{}]\n", names[spot]);
                if let Some(links) = links {
                    text += &self.addresses(spot, links);
                    if role == Role::Router {
                        text += &self.routes(spot, links);
                    }
                }
            }
        }
        text
    }

    /// The links of a machine, each with its device there.
    fn links_of<'a>(&'a self, spot: &'a Spot) -> impl Iterator<Item = (usize, &'a Made)> {
        self.edges.iter().enumerate().flat_map(move |(number, edge)| {
            (0..2)
                .filter(|end| edge.spots[*end] == *spot)
                .filter_map(move |end| edge.devices[end].map(|device| (number, self.device(device))))
        })
    }

    fn addresses(&self, spot: &Spot, links: &[String]) -> String {
        let own: Vec<(usize, Vec<String>)> = match spot {
            Spot::Bridge(_) => Vec::new(),
            Spot::Machine(_) => self
                .links_of(spot)
                .map(|(link, device)| (link, known(device).map(|one| format!("\"{one}\"")).collect()))
                .filter(|(_, all): &(usize, Vec<String>)| !all.is_empty())
                .collect(),
        };
        match &own[..] {
            [] => String::new(),
            [(_, all)] if self.links_of(spot).count() == 1 => format!("addresses = [{}]\n", all.join(", ")),
            all => {
                let of_link =
                    |(link, all): &(usize, Vec<String>)| format!("{} = [{}]", links[*link], all.join(", "));
                let all: Vec<String> = all.iter().map(of_link).collect();
                format!("addresses = {{ {} }}\n", all.join(", "))
            }
        }
    }

    /// Whether the script's addresses can be those of the network: each link, or all links of a switch, is a network of its own.
    /// `false` if there are none.
    fn addresses_fit(&self) -> Result<bool, String> {
        let all = self.roles.keys().filter(|spot| matches!(spot, Spot::Machine(_)));
        let ends: Vec<(usize, &Made)> = all.flat_map(|spot| self.links_of(spot)).collect();
        if ends.iter().all(|(_, device)| known(device).next().is_none()) {
            return Ok(false);
        }
        let segments = self.segments();
        let mut firsts: BTreeMap<usize, (&Made, BTreeSet<Address>)> = BTreeMap::new();
        for (link, device) in ends {
            let networks: BTreeSet<Address> = known(device).map(Address::network).collect();
            match firsts.get(&segments[link]) {
                Some((first, same)) if *same != networks => {
                    return Err(format!(
                        "The addresses are not those of the script: {} and {}, which are joined, do not have addresses in the same networks.",
                        first.key(),
                        device.key()
                    ));
                }
                Some(_) => {}
                None => drop(firsts.insert(segments[link], (device, networks))),
            }
        }
        Ok(true)
    }

    /// The segment of each link: those that switches join have one number.
    fn segments(&self) -> Vec<usize> {
        let mut segments: Vec<Option<usize>> = vec![None; self.edges.len()];
        for first in 0..self.edges.len() {
            let mut due = vec![first];
            while let Some(link) = due.pop() {
                if segments[link].is_some() {
                    continue;
                }
                segments[link] = Some(first);
                let bridges = self.edges[link].spots.iter().filter(|spot| matches!(spot, Spot::Bridge(_)));
                for bridge in bridges {
                    let joined = |other: &usize| self.edges[*other].spots.contains(bridge);
                    due.extend(
                        (0..self.edges.len()).filter(joined).filter(|other| segments[*other].is_none()),
                    );
                }
            }
        }
        segments.into_iter().flatten().collect()
    }

    /// The routes of a router to networks beyond its own, where there is more than one way.
    fn routes(&self, spot: &Spot, links: &[String]) -> String {
        let Spot::Machine(namespace) = spot else { return String::new() };
        if self.edges.len() < self.roles.len() {
            return String::new();
        }
        let own: BTreeSet<Address> =
            self.links_of(spot).flat_map(|(_, device)| known(device).map(Address::network)).collect();
        let machines = self.roles.keys().filter(|spot| matches!(spot, Spot::Machine(_)));
        let networks: BTreeSet<Address> = machines
            .flat_map(|spot| self.links_of(spot))
            .flat_map(|(_, device)| known(device).map(Address::network))
            .collect();
        let mut text = Vec::new();
        for to in networks.difference(&own) {
            let routes = self.cabling.routes.iter().filter(|((at, _), _)| at == namespace);
            let longest = routes
                .filter(|((_, beyond), _)| contains(*beyond, *to))
                .max_by_key(|((_, beyond), _)| beyond.prefix);
            let Some((_, via)) = longest else { continue };
            let ways: Option<Vec<(usize, u32)>> = via
                .iter()
                .map(|(gateway, weight)| {
                    let is_way = |(_, device): &(usize, &Made)| {
                        known(device).any(|own| contains(own.network(), Address::host(*gateway)))
                    };
                    self.links_of(spot).find(is_way).map(|(link, _)| (link, *weight))
                })
                .collect();
            let Some(ways) = ways else { continue };
            let via: Vec<String> = ways.iter().map(|(link, _)| format!("\"{}\"", links[*link])).collect();
            let weights: Vec<String> = ways.iter().map(|(_, weight)| weight.to_string()).collect();
            let weights =
                if ways.len() > 1 { format!(", weights = [{}]", weights.join(", ")) } else { String::new() };
            text.push(format!("{{ to = \"{to}\", via = [{}]{weights} }}", via.join(", ")));
        }
        match text.is_empty() {
            true => String::new(),
            false => format!("routes = [\n    {},\n]\n", text.join(",\n    ")),
        }
    }
}

/// The addresses of a device that are not of its link alone.
fn known(device: &Made) -> impl Iterator<Item = Address> {
    let is_known = |own: &&Address| match own.ip {
        IpAddr::V4(_) => true,
        IpAddr::V6(ip) => !ip.is_unicast_link_local(),
    };
    device.addresses.iter().filter(is_known).copied()
}

/// Whether a network is a part of another.
fn contains(outer: Address, inner: Address) -> bool {
    outer.ip.is_ipv4() == inner.ip.is_ipv4()
        && outer.prefix <= inner.prefix
        && Address { prefix: outer.prefix, ..inner }.network().ip == outer.network().ip
}

impl Network {
    /// The scenario, with these settings of each link.
    pub(in super::super) fn text(&self, settings: impl Fn(&str) -> String) -> String {
        let mut text = self.nodes.clone();
        for (link, [one, other]) in &self.links {
            text += &format!("\n[links.{link}]\nbetween = [\"{one}\", \"{other}\"]\n{}", settings(link));
        }
        text
    }
}
