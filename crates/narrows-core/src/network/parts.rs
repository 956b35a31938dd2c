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
    pub(super) rules: Vec<usize>,
    pub(super) routers: Vec<usize>,
    pub(super) switches: Vec<usize>,
    pub(super) ports: Vec<usize>,
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
        let ways = self.ways();
        let (rules, routers) = (self.links.len(), self.links.len() + self.rules.len());
        let switches = routers + self.routers.len();
        let ports = switches + self.switches.len();
        let mut groups = Groups::new(ways.len());
        for from in 0..ways.len() {
            ways.of(from).iter().for_each(|&to| groups.join(from, to));
        }
        for (number, port) in self.ports.iter().enumerate() {
            groups.join(ports + number, self.place(&port.entry));
        }
        let mut numbers = BTreeMap::new();
        for number in 0..self.ports.len() {
            let next = numbers.len();
            numbers.entry(groups.first(ports + number)).or_insert(next);
        }
        let mut part = |place| numbers.get(&groups.first(place)).copied().unwrap_or(0);
        Parts {
            count: numbers.len(),
            links: self.links().map(|link| part(self.element(link))).collect(),
            rules: (rules..routers).map(&mut part).collect(),
            routers: (routers..switches).map(&mut part).collect(),
            switches: (switches..ports).map(&mut part).collect(),
            ports: (ports..ways.len()).map(&mut part).collect(),
        }
    }
}

/// A union-find forest: each number leads to an earlier one of its group, the first one to itself.
pub(super) struct Groups(Vec<usize>);

impl Groups {
    /// Each number on its own.
    pub(super) fn new(count: usize) -> Self {
        Self((0..count).collect())
    }

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
