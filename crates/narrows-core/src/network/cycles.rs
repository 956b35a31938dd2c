//! Which elements a packet can come back to, so that its draws must tell visits apart.

use alloc::vec;
use alloc::vec::Vec;

use super::{Hop, Later, Network};

impl Network {
    /// Finds out to which elements a packet may come again. Where it might before, it may still: packets are inside.
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
        revisited.zip(others).for_each(|(revisited, cyclic)| *revisited |= cyclic);
    }

    /// Where a hop leads: the place among links, then rules, then routers, then ports.
    pub(super) fn place(&self, hop: &Hop) -> usize {
        let (links, rules) = (self.links.len(), self.rules.len());
        let past_rules = match *hop {
            // What leaves a pipe does not meet these rules again: most packets come to a pipe once.
            Hop::FromPipe { rules, incoming } if self.rules[rules as usize].one_pass => {
                Some(self.rules[rules as usize].exits[usize::from(incoming)])
            }
            _ => None,
        };
        match past_rules.unwrap_or(*hop) {
            Hop::Port(port) => links + rules + self.routers.len() + usize::from(port.index()),
            Hop::Link { link, .. } => link as usize,
            Hop::Instance { made, .. } => self.made[made as usize].of as usize,
            Hop::Rules { rules, .. } | Hop::FromPipe { rules, .. } => links + rules as usize,
            Hop::Router(router) | Hop::OfRouter(router) => links + rules + router as usize,
        }
    }

    /// Which elements lead to which, and to which ports, by their places. Ports lead nowhere from here. Nothing leads to a
    /// link that was made on first use but to the configured one, so its exits do not count.
    pub(super) fn ways(&self) -> Ways {
        let mut ways = Ways::default();
        for (element, exits) in (0..).zip(&self.exits) {
            let exits = if self.is_made(element) { &[][..] } else { exits };
            ways.push(exits.iter().map(|hop| self.place(hop)));
        }
        for set in &self.rules {
            let pipes = set.pipes.values().chain(set.queues.values()).map(|pipe| pipe.link.element as usize);
            ways.push(set.exits.iter().map(|hop| self.place(hop)).chain(pipes));
        }
        for router in &self.routers {
            let hops = router.routes.iter().flat_map(|ways| &ways.hops);
            ways.push(hops.map(|(hop, _)| self.place(hop)));
        }
        self.ports.iter().for_each(|_| ways.push([]));
        ways
    }

    /// Whether an element is a link that was made on first use.
    fn is_made(&self, element: u32) -> bool {
        let later = element.checked_sub(self.configured).map(|later| &self.later[later as usize]);
        matches!(later, Some(Later::Made { .. }))
    }
}

/// Where each place leads to, one behind the other: there may be thousands.
#[derive(Debug, Default)]
pub(super) struct Ways {
    to: Vec<usize>,
    /// Where those of each place end.
    ends: Vec<usize>,
}

impl Ways {
    /// Adds those of the next place.
    fn push(&mut self, to: impl IntoIterator<Item = usize>) {
        self.to.extend(to);
        self.ends.push(self.to.len());
    }

    /// How many places there are.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Where a place leads to.
    pub(super) fn of(&self, place: usize) -> &[usize] {
        let first = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.to[first..self.ends[place]]
    }
}

/// Which elements a packet can come back to: those on a cycle of the ways that lead from each. An element is on one unless it
/// can be taken away by peeling off, again and again, those that no remaining one leads to. (What lies behind a cycle stays
/// too, which only means that its draws are keyed by the visit.)
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
