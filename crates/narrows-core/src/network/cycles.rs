//! Which elements a packet can return to, so that its draws must be keyed by the visit.

use alloc::vec;
use alloc::vec::Vec;

use super::{Hop, Later, Network};

impl Network {
    /// Finds the elements that a packet may visit again. Elements found earlier stay marked, because packets
    /// are inside.
    pub(super) fn find_cycles(&mut self) {
        let cyclic = cyclic(&self.ways());
        let (links, others) = cyclic.split_at(self.links.len());
        for ((link, number), _) in self.links.iter_mut().zip(0..).zip(links).filter(|(_, cyclic)| **cyclic) {
            link.tell_visits_apart(number);
        }
        for made in &self.made {
            let Some(number) = self.links[made.of as usize].cyclic() else { continue };
            made.elements().iter().for_each(|&one| self.links[one as usize].tell_visits_apart(number));
        }
        let revisited = self.rules.iter_mut().map(|rules| &mut rules.revisited);
        let revisited = revisited.chain(self.routers.iter_mut().map(|router| &mut router.revisited));
        let revisited = revisited.chain(self.switches.iter_mut().map(|switch| &mut switch.revisited));
        revisited.zip(others).for_each(|(revisited, cyclic)| *revisited |= cyclic);
    }

    /// The index of a hop's target: links first, then rule sets, routers, switches and ports.
    pub(super) fn place(&self, hop: &Hop) -> usize {
        let (links, rules, routers) = (self.links.len(), self.rules.len(), self.routers.len());
        let past_rules = match *hop {
            // With one-pass, a packet that leaves a pipe does not re-enter these rules, so most packets visit
            // a pipe once.
            Hop::FromPipe { rules, incoming } if self.rules[rules as usize].one_pass => {
                Some(self.rules[rules as usize].exits[usize::from(incoming)])
            }
            _ => None,
        };
        match past_rules.unwrap_or(*hop) {
            Hop::Port(port) => links + rules + routers + self.switches.len() + usize::from(port.index()),
            Hop::Link { link, .. } => link as usize,
            Hop::Instance { made, .. } => self.made[made as usize].of as usize,
            Hop::Rules { rules, .. } | Hop::FromPipe { rules, .. } => links + rules as usize,
            Hop::Router(router) | Hop::OfRouter(router) => links + rules + router as usize,
            Hop::Switch { switch, .. } => links + rules + routers + switch as usize,
        }
    }

    /// Which elements lead to which elements and ports, by index. Ports lead nowhere. Packets reach an
    /// instance only through its configured link, so the exits of instances do not count.
    pub(super) fn ways(&self) -> Ways {
        let mut ways = Ways::default();
        for element in 0..self.links.len() as u32 {
            let exits = if self.is_made(element) { &[][..] } else { self.exits.of(element) };
            ways.push(exits.iter().map(|hop| self.place(hop)));
        }
        for set in &self.rules {
            let pipes = set.pipes.values().chain(set.queues.values()).map(|pipe| pipe.link.element as usize);
            ways.push(set.exits.iter().map(|hop| self.place(hop)).chain(pipes));
        }
        for router in &self.routers {
            let hops = router.table.routes.iter().flat_map(|ways| &ways.hops);
            ways.push(hops.map(|(hop, _)| self.place(hop)));
        }
        for switch in &self.switches {
            ways.push(switch.ports.iter().map(|port| self.place(&port.exit)));
        }
        self.ports.iter().for_each(|_| ways.push([]));
        ways
    }

    /// Whether an element is a link instance.
    fn is_made(&self, element: u32) -> bool {
        let later = element.checked_sub(self.configured).map(|later| &self.later[later as usize]);
        matches!(later, Some(Later::Made { .. }))
    }
}

/// The targets of each index, in one array: there may be thousands.
#[derive(Debug, Default)]
pub(super) struct Ways {
    to: Vec<usize>,
    /// Where the targets of each index end in `to`.
    ends: Vec<usize>,
}

impl Ways {
    /// Adds the targets of the next index.
    fn push(&mut self, to: impl IntoIterator<Item = usize>) {
        self.to.extend(to);
        self.ends.push(self.to.len());
    }

    /// The number of indices.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The targets of an index.
    pub(super) fn of(&self, place: usize) -> &[usize] {
        let first = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.to[first..self.ends[place]]
    }
}

/// Which elements a packet can return to: those on a cycle. Elements that no remaining element leads to are
/// removed repeatedly; the rest count as cyclic. (Elements behind a cycle also remain, with the only effect
/// that their draws are keyed by the visit.)
fn cyclic(ways: &Ways) -> Vec<bool> {
    let mut entrances = vec![0usize; ways.len()];
    ways.to.iter().for_each(|&to| entrances[to] += 1);
    let mut loose: Vec<usize> = (0..ways.len()).filter(|&element| entrances[element] == 0).collect();
    let mut cyclic = vec![true; ways.len()];
    while let Some(element) = loose.pop() {
        cyclic[element] = false;
        for &to in ways.of(element) {
            entrances[to] -= 1;
            if entrances[to] == 0 {
                loose.push(to);
            }
        }
    }
    cyclic
}
