//! Independent components of a network: no packet that enters one can reach another.
//!
//! One engine per component, each built from the whole configuration, gives the same verdicts as one engine
//! for all: draws for a packet are keyed by its port, its number there, and the element.

use crate::id::{Element, PortId};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::Network;

/// The independent components of a network, numbered in order of their first ports. Elements that no port can
/// reach count as part of the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    pub(super) count: usize,
    pub(super) links: Vec<usize>,
    rules: Vec<usize>,
    routers: Vec<usize>,
    switches: Vec<usize>,
    ports: Vec<usize>,
}

impl Parts {
    /// The number of components.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// The component of a port.
    pub fn of_port(&self, port: PortId) -> usize {
        self.ports[usize::from(port.index())]
    }

    /// The component of an element.
    pub fn of_element(&self, element: Element) -> usize {
        match element {
            Element::Link(link) => self.links[link.index() as usize],
            Element::Rules(rules) => self.rules[rules.index() as usize],
            Element::Router(router) => self.routers[router.index() as usize],
            Element::Switch(switch) => self.switches[switch.index() as usize],
        }
    }
}

impl Network {
    pub(crate) fn parts(&self) -> Parts {
        let mut groups = self.groups(|_| false);
        let first_port = self.first_port();
        let mut numbers = BTreeMap::new();
        for number in 0..self.ports.len() {
            let next = numbers.len();
            numbers.entry(groups.first(first_port + number)).or_insert(next);
        }
        let mut parts = self.by_place(|place| numbers.get(&groups.first(place)).copied().unwrap_or(0));
        parts.count = numbers.len();
        parts
    }

    /// The index of the first port: see [`Network::place`].
    pub(super) fn first_port(&self) -> usize {
        self.links.len() + self.rules.len() + self.routers.len() + self.switches.len()
    }

    /// Elements and ports, by index, together with all that they lead to, except for places that divide the network.
    pub(super) fn groups(&self, divides: impl Fn(usize) -> bool) -> Groups {
        let ways = self.ways();
        let mut groups = Groups((0..ways.len()).collect());
        for from in (0..ways.len()).filter(|&from| !divides(from)) {
            ways.of(from).iter().for_each(|&to| groups.join(from, to));
        }
        for (number, port) in self.ports.iter().enumerate() {
            groups.join(self.first_port() + number, self.place(&port.entry));
        }
        groups
    }

    /// The parts that a function gives for each index, ports first. Their count is still to be set.
    pub(super) fn by_place(&self, mut part: impl FnMut(usize) -> usize) -> Parts {
        let (rules, routers) = (self.links.len(), self.links.len() + self.rules.len());
        let (switches, ports) = (routers + self.routers.len(), self.first_port());
        Parts {
            count: 0,
            ports: (ports..ports + self.ports.len()).map(&mut part).collect(),
            links: self.links().map(|link| part(self.element(link))).collect(),
            rules: (rules..routers).map(&mut part).collect(),
            routers: (routers..switches).map(&mut part).collect(),
            switches: (switches..ports).map(&mut part).collect(),
        }
    }
}

/// A union-find forest: each number leads to an earlier one of its group, the first one to itself.
pub(super) struct Groups(Vec<usize>);

impl Groups {
    pub(super) fn first(&mut self, mut number: usize) -> usize {
        while self.0[number] != number {
            // Path halving for later searches.
            self.0[number] = self.0[self.0[number]];
            number = self.0[number];
        }
        number
    }

    pub(super) fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.first(one), self.first(other));
        self.0[one.max(other)] = one.min(other);
    }
}
