//! Resolves names to numbers, when the network is built and when links are added.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use super::Hop;
use super::config::BuildError;
use crate::id::PortId;
use crate::link::Target;
use crate::random;

/// The numbers behind names, and facts about links: the number of lanes, and the instances of each.
#[derive(Debug, Default)]
pub(super) struct Names<'a> {
    ports: BTreeMap<&'a str, PortId>,
    pub(super) links: BTreeMap<&'a str, Named>,
    rules: BTreeMap<&'a str, u32>,
    routers: BTreeMap<&'a str, u32>,
    /// Each with its number of ports.
    switches: BTreeMap<&'a str, (u32, usize)>,
}

/// A link found by name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    pub(super) element: u32,
    pub(super) lanes: usize,
    /// The number of the `Made` that creates its instances.
    pub(super) made: Option<u32>,
}

/// Element numbers stay below this, so that [`Element::number`](super::Element::number) has room for the
/// kind.
pub(super) const MOST_ELEMENTS: usize = 1 << 30;

impl<'a> Names<'a> {
    pub(super) fn new(
        ports: impl IntoIterator<Item = &'a str>,
        links: impl IntoIterator<Item = (&'a str, Named)>,
        rules: impl IntoIterator<Item = &'a str>,
        routers: impl IntoIterator<Item = &'a str>,
        switches: impl IntoIterator<Item = (&'a str, usize)>,
    ) -> Result<Self, BuildError> {
        let mut names = Self::default();
        for (name, number) in ports.into_iter().zip(0usize..) {
            let number = u16::try_from(number).ok().filter(|number| *number < u16::MAX);
            let number = number.ok_or(BuildError::TooMany("ports"))?;
            if names.ports.insert(name, PortId::new(number)).is_some() {
                return Err(BuildError::NameTaken(name.into()));
            }
        }
        for (name, link) in links {
            names.check_new(name)?;
            if !(1..=usize::from(u8::MAX)).contains(&link.lanes) {
                return Err(BuildError::TooMany("lanes"));
            }
            names.links.insert(name, link);
        }
        for (name, number) in rules.into_iter().zip(0..) {
            names.check_new(name)?;
            names.rules.insert(name, number);
        }
        for (name, number) in routers.into_iter().zip(0..) {
            names.check_new(name)?;
            names.routers.insert(name, number);
        }
        for ((name, ports), number) in switches.into_iter().zip(0..) {
            names.check_new(name)?;
            if ports > usize::from(u16::MAX) {
                return Err(BuildError::TooMany("switch ports"));
            }
            names.switches.insert(name, (number, ports));
        }
        let elements = names.links.len() + names.rules.len() + names.routers.len() + names.switches.len();
        if elements >= MOST_ELEMENTS {
            return Err(BuildError::TooMany("links"));
        }
        Ok(names)
    }

    pub(super) fn check_new(&self, name: &str) -> Result<(), BuildError> {
        let taken = self.links.contains_key(name)
            || self.rules.contains_key(name)
            || self.routers.contains_key(name)
            || self.switches.contains_key(name);
        if taken { Err(BuildError::NameTaken(name.into())) } else { Ok(()) }
    }

    pub(super) fn hop(&self, from: &str, target: &Target) -> Result<Hop, BuildError> {
        let hop = match target {
            Target::Port(name) => self.ports.get(name.as_str()).map(|&port| Hop::Port(port)),
            Target::Link { name, lane } => {
                let named = self.links.get(name.as_str()).filter(|named| usize::from(*lane) < named.lanes);
                named.map(|named| named.hop(*lane))
            }
            Target::Rules { name, incoming } => {
                self.rules.get(name.as_str()).map(|&rules| Hop::Rules { rules, incoming: *incoming })
            }
            Target::FromPipe { rules, incoming } => {
                self.rules.get(rules.as_str()).map(|&rules| Hop::FromPipe { rules, incoming: *incoming })
            }
            Target::Router(name) => self.routers.get(name.as_str()).map(|&router| Hop::Router(router)),
            Target::Switch { name, port } => {
                let found = self.switches.get(name.as_str()).filter(|(_, ports)| usize::from(*port) < *ports);
                found.map(|&(switch, _)| Hop::Switch { switch, port: *port })
            }
        };
        hop.ok_or_else(|| BuildError::NoSuchTarget { from: from.into(), target: target.clone() })
    }
}

impl Named {
    pub(super) const fn hop(self, lane: u8) -> Hop {
        match self.made {
            None => Hop::Link { link: self.element, lane },
            Some(made) => Hop::Instance { made, lane },
        }
    }
}

/// The key of each port in draws.
pub(super) fn origins<'a>(ports: impl IntoIterator<Item = &'a str>) -> Result<Vec<u32>, BuildError> {
    let mut seen = BTreeMap::new();
    let mut all = Vec::new();
    for port in ports {
        let origin = random::origin(port);
        if let Some(other) = seen.insert(origin, port) {
            return Err(BuildError::NamesCollide(String::from(other), port.into()));
        }
        all.push(origin);
    }
    Ok(all)
}
