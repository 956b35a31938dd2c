//! The network around the devices of a script: a link between two hosts for one or two of them, and a router with a host behind
//! each device for more; or the network that the script itself makes of namespaces ([`super::cabling`]).

use std::collections::BTreeSet;

use super::cabling;
use super::command::{Command, Parent};
use super::place::{Place, unique};
use super::script::is_loopback;
use super::{Device, Keys, Script};
use crate::link::Way;
use crate::problem::{Found, Problem, one_of};
use crate::two_hosts;
use crate::{Scenario, ScenarioError};

/// More devices than a machine has, whose settings are still computed within a second.
const MOST: usize = 256;
/// The machine whose script it is, and, for a device in each namespace, what joins them.
const ROUTER: &str = "router";

/// A device of a script, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The device's settings from the commands.
    pub device: Device,
    /// Its link, and the direction of packets that leave by it.
    pub place: Place,
}

impl Placed {
    /// The keys of the link, each with its direction.
    pub fn keys(&self) -> impl Iterator<Item = (Way, &'static str, &str)> {
        let way = self.place.way;
        let back = match way {
            Way::Up => Way::Down,
            Way::Down => Way::Up,
        };
        // What one program sends to another leaves by it, and so do the answers.
        let count = if self.is_both_ways() { 2 } else { 1 };
        let put = |first, second, keys| in_ways([first, second].into_iter().take(count), keys);
        put(way, back, &self.device.egress).chain(put(back, way, &self.device.ingress))
    }

    /// Whether it is the loopback device as a link, whose both directions have what leaves there.
    fn is_both_ways(&self) -> bool {
        is_loopback(&self.device.name) && self.place.beyond != ROUTER
    }

    /// Describes how the device is mapped, for people.
    pub fn words(&self) -> String {
        let Place { link, way, at, beyond } = &self.place;
        if self.is_both_ways() {
            return format!(
                "{} is the link {link}, both ways, as packets and their answers leave by it; in the kernel they share one queue and its rate, here each direction has its own",
                self.device.name
            );
        }
        let shares = match is_loopback(&self.device.name) {
            true => "; in the kernel both directions share its queues and their rates, here each has its own",
            false => "",
        };
        format!(
            "{} is {}: what leaves there goes to {}, along {link}.{}{shares}",
            self.device.name,
            match at.as_str() {
                "client" | "server" | ROUTER => format!("the {at}'s device"),
                _ => format!("a device of {at}"),
            },
            match beyond.as_str() {
                "client" | "server" | ROUTER => format!("the {beyond}"),
                _ => beyond.clone(),
            },
            way.name()
        )
    }
}

impl Script {
    /// Whether its network is another than a link between a client and a server: it makes one itself, or configures more devices
    /// than a link has ends, or two between which a machine forwards.
    pub fn has_own_network(&self) -> bool {
        let is_own = || self.own_network().is_some() || self.names().len() > 2 || self.forwards();
        self.known.is_empty() && (is_own() || self.has_vlans_of_one())
    }

    /// The network that the script makes itself of namespaces.
    fn own_network(&self) -> Option<Result<cabling::Network, Problem>> {
        let names = self.names();
        if !self.known.is_empty() || names.len() > MOST {
            return None;
        }
        self.cabling.network(&names)
    }

    /// What is not as in the script about that network, for people.
    pub(super) fn notes_of_network(&self) -> Vec<String> {
        self.own_network().and_then(Result::ok).map(|network| network.notes).unwrap_or_default()
    }

    /// Whether packets that arrive at one of two devices, and leave by the other, have the same twice: a rate here and a rate
    /// there; or those that pass the loopback device have, which leave and arrive there. A link cannot have both.
    fn forwards(&self) -> bool {
        let arrives = |command: &Command| command.parent == Some(Parent::Ingress);
        let names = self.names();
        let is_end = |name: &&str| end_of_the_link(name).is_some() || is_loopback(name);
        let may_be = self.passes_twice() || names.len() == 2 && !names.iter().any(is_end);
        if !may_be || !self.commands.iter().any(arrives) {
            return false;
        }
        let twice = |arriving: &Device, leaving: &Device| {
            let has = |key: &str| leaving.egress.keys.iter().any(|(other, _)| *other == key);
            arriving.ingress.keys.iter().any(|(key, _)| has(key))
        };
        self.at_some_moment(|devices| match devices {
            [one] => twice(one, one),
            [one, other] => twice(one, other) || twice(other, one),
            _ => false,
        })
    }

    /// Whether its two devices are VLANs of one: what leaves by one does not arrive at the other.
    fn has_vlans_of_one(&self) -> bool {
        let names = self.names();
        let [one, other] = names[..] else { return false };
        let lowest = |name| self.below(name).pop();
        lowest(one).is_some_and(|device| lowest(other) == Some(device))
    }

    /// Whether its only device is the loopback device, where packets leave and arrive.
    fn passes_twice(&self) -> bool {
        matches!(self.names()[..], [one] if is_loopback(one))
    }

    /// The place of each device that commands change, in the order in which they are named.
    pub(super) fn places(&self) -> Result<Vec<(&str, Place)>, ScenarioError> {
        if let Some(own) = self.own_network() {
            let mut own = own.map_err(|problem| self.error(problem))?;
            let place = |name| own.places.remove(name).map(|place| (name, place));
            return Ok(self.names().into_iter().filter_map(place).collect());
        }
        if self.has_own_network() { self.around_a_router() } else { self.at_two_hosts() }
    }

    fn at_two_hosts(&self) -> Result<Vec<(&str, Place)>, ScenarioError> {
        let mut ways: Vec<(&str, Way)> = Vec::new();
        for name in self.names() {
            let known = self.known.iter().find(|(known, _)| known == name).map(|(_, way)| *way);
            let free = [Way::Up, Way::Down].into_iter().find(|way| ways.iter().all(|other| other.1 != *way));
            match known.or(end_of_the_link(name)).or(free) {
                Some(way) if ways.iter().all(|other| other.1 != way) => ways.push((name, way)),
                _ => {
                    let names: Vec<&str> = ways.iter().map(|(name, _)| *name).collect();
                    return Err(self.error(
                        Problem::new(format!("too many devices, {}: a link has two ends", Found(name)))
                            .help(format!("its ends are {}", one_of(&names)))
                            .help(
                                "for more links write a scenario file, and configure each with `narrows tc`",
                            ),
                    ));
                }
            }
        }
        Ok(ways.into_iter().map(|(name, way)| (name, Place::of_two_hosts(way))).collect())
    }

    /// Devices in one namespace are those of a router; with a namespace for each, they are those of hosts.
    fn around_a_router(&self) -> Result<Vec<(&str, Place)>, ScenarioError> {
        let names = self.names();
        let at = |device: &str, problem: Problem| {
            let command = self.commands.iter().find(|command| command.device.as_deref() == Some(device));
            self.error(problem.put_at(&command.map_or(0..0, |command| command.span.clone())))
        };
        if let Some(name) = names.iter().find(|name| end_of_the_link(name).is_some()) {
            let title = format!(
                "{} is an end of a link of two hosts, and there are {} devices",
                Found(name),
                names.len()
            );
            return Err(at(
                name,
                Problem::new(title).help("give it another name: each device has a link of its own here"),
            ));
        }
        if let Some(name) = names.get(MOST) {
            let title = format!("{} devices, the most that a script may configure is {MOST}", names.len());
            return Err(at(name, Problem::new(title)));
        }
        let in_namespace: Vec<(Option<&str>, &str)> = names
            .iter()
            .map(|name| {
                name.split_once('/').map_or((None, *name), |(namespace, device)| (Some(namespace), device))
            })
            .collect();
        let of_one = in_namespace.iter().all(|(namespace, _)| *namespace == in_namespace[0].0);
        let mut seen = BTreeSet::new();
        let again = in_namespace.iter().position(|(namespace, _)| !seen.insert(*namespace));
        if let Some(number) = again.filter(|_| !of_one) {
            return Err(at(
                names[number],
                Problem::new(format!(
                    "{} and another device are in one network namespace, and others in others",
                    Found(names[number])
                ))
                .help(
                    "a script configures the devices of one machine, or one device in each network namespace",
                )
                .help("for other networks write a scenario file, and configure each link with `narrows tc`"),
            ));
        }
        if self.passes_twice() {
            // Both hosts have one: packets leave by that of one, and arrive at that of the other.
            let place =
                |at: &str| Place { link: at.into(), way: Way::Up, at: at.into(), beyond: ROUTER.into() };
            return Ok(["client", "server"].map(|at| (names[0], place(at))).into());
        }
        let mut taken: Vec<String> = vec![ROUTER.into()];
        let places = names.iter().zip(&in_namespace).map(|(name, (namespace, device))| {
            let place = if of_one {
                let link = unique(device, &mut taken);
                Place { way: Way::Up, at: ROUTER.into(), beyond: format!("behind-{link}"), link }
            } else {
                let host = unique(namespace.unwrap_or(device), &mut taken);
                Place { link: host.clone(), way: Way::Up, at: host, beyond: ROUTER.into() }
            };
            (*name, place)
        });
        Ok(places.collect())
    }

    /// Its network without its settings, to which [`Script::assignments`] and [`Script::steps`] add them.
    ///
    /// # Errors
    /// If there are too many devices.
    pub fn network(&self) -> Result<Scenario, ScenarioError> {
        let places = self.places()?;
        let links = self.own_network().and_then(Result::ok).map_or(places.len(), |own| own.links.len());
        let plain: Vec<_> = places.into_iter().map(|(name, place)| Placed::empty(name, place)).collect();
        let name = match (self.has_own_network(), links) {
            (false, _) => "a plain wire".into(),
            (true, 1) => "a network of one link".into(),
            (true, links) => format!("a network of {links} links"),
        };
        Scenario::parse(&self.network_text(&plain), &name)
    }

    /// The scenario file of its network: hosts and links, with the keys of each device.
    pub(super) fn network_text(&self, placed: &[Placed]) -> String {
        if !self.has_own_network() {
            return two_hosts::text([], placed.iter().flat_map(Placed::keys));
        }
        if let Some(Ok(own)) = self.own_network() {
            return own.text(|link| {
                let mut text = String::new();
                let of_link = placed.iter().filter(|one| one.place.link == link);
                two_hosts::put_keys(&mut text, link, of_link.flat_map(Placed::keys));
                text
            });
        }
        let mut text = format!("[routers.{ROUTER}]\n");
        for Placed { place, .. } in placed {
            let host = if place.at == ROUTER { &place.beyond } else { &place.at };
            text += &format!("[hosts.{host}]\n");
        }
        for one in placed {
            let Place { link, at, beyond, .. } = &one.place;
            text += &format!("\n[links.{link}]\nbetween = [\"{at}\", \"{beyond}\"]\n");
            two_hosts::put_keys(&mut text, link, one.keys());
        }
        text
    }
}

impl Placed {
    /// A device without settings so far.
    pub(super) fn empty(name: &str, place: Place) -> Self {
        let device = Device { name: name.into(), ..Device::default() };
        Self { device, place }
    }
}

/// The keys, in each of these directions.
fn in_ways(ways: impl Iterator<Item = Way>, keys: &Keys) -> impl Iterator<Item = (Way, &'static str, &str)> {
    ways.flat_map(move |way| keys.keys.iter().map(move |(key, value)| (way, *key, value.as_str())))
}

/// The direction of packets that leave by this end of the link, if its name says so.
fn end_of_the_link(device: &str) -> Option<Way> {
    match device {
        "client" | "client.link" | "link.up" | "up" => Some(Way::Up),
        "server" | "server.link" | "link.down" | "down" => Some(Way::Down),
        _ => None,
    }
}
