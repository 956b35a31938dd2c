//! The default bounds of queues: one product of a link's rate and a round trip over it.
//!
//! The round trip is that of the segment between two hosts; with routers, the longest among those of all pairs of hosts whose
//! packets pass the link, or where none do, that of the link's own segment.

use std::collections::BTreeMap;

use narrows_core::Duration;

use super::{Hop, Port, Topology, WayThrough};
use crate::bound::DefaultBound;
use crate::link::{Link, Medium, Way};

impl Topology {
    /// Works out the bounds of queues that are given none.
    pub(crate) fn set_default_bounds(&self, links: &mut [Link]) {
        let longest = self.longest_round_trips(links);
        for end in &self.ends {
            let own = there_and_back(&end.hops, links).round_trip();
            for hop in &end.hops {
                let round_trip = longest.get(&(hop.link, hop.way)).copied().unwrap_or(own);
                let link = &mut links[hop.link];
                for direction in link.directions_mut(Some(hop.way)) {
                    direction.default_bound = DefaultBound::new(direction.mean_rate(), round_trip);
                }
                // Pipes are the same both ways: one way stands for both.
                if let (Medium::Rules(rules), Way::Up) = (&mut link.medium, hop.way) {
                    rules.set_default_bounds(round_trip);
                }
            }
        }
    }

    /// For each link and way that packets take from one host by routers to another.
    fn longest_round_trips(&self, links: &[Link]) -> BTreeMap<(usize, Way), Option<Duration>> {
        let mut longest = BTreeMap::new();
        let routed: Vec<&Port> = self.ports.iter().filter(|port| self.is_routed(port)).collect();
        for (index, from) in routed.iter().enumerate() {
            for to in &routed[..index] {
                let (Some(there), Some(back)) = (self.lines(from, to, links), self.lines(to, from, links))
                else {
                    continue;
                };
                for (one, other) in [(&there, &back), (&back, &there)] {
                    let rest = other.iter().map(|(_, line)| *line).reduce(Line::longer);
                    for (hops, line) in one {
                        let round_trip = rest.and_then(|rest| line.then(rest).round_trip());
                        for hop in hops {
                            let known = longest.entry((hop.link, hop.way)).or_insert(round_trip);
                            *known = (*known).max(round_trip);
                        }
                    }
                }
            }
        }
        longest
    }

    /// The ways from one port to another that get there, each with its delay; nothing where no router is on them.
    fn lines(&self, from: &Port, to: &Port, links: &[Link]) -> Option<Vec<(Vec<Hop>, Line)>> {
        if from.peer == to.name || !self.joins(from, to) {
            return None;
        }
        let line = |way: WayThrough| {
            let line = Line::of(&way.hops, links);
            (way.hops, line)
        };
        Some(self.arriving(from, to).into_iter().map(line).collect())
    }
}

/// The delay along some links: the sum of their means, if all are known, and whether any is given.
#[derive(Clone, Copy, Debug)]
struct Line {
    given: bool,
    delay: Option<Duration>,
}

impl Line {
    fn of(hops: &[Hop], links: &[Link]) -> Self {
        let none = Self { given: false, delay: Some(Duration::ZERO) };
        hops.iter().fold(none, |line, hop| {
            // What pipes add is for rules to say.
            let Some(direction) = links[hop.link].direction(hop.way) else { return line };
            line.then(Self { given: direction.says_delay(), delay: direction.mean_delay() })
        })
    }

    fn then(self, other: Self) -> Self {
        Self {
            given: self.given || other.given,
            delay: self.delay.zip(other.delay).map(|(one, other)| one + other),
        }
    }

    fn longer(self, other: Self) -> Self {
        if other.delay > self.delay { other } else { self }
    }

    /// The sum, if any of it is given and all of it known.
    fn round_trip(self) -> Option<Duration> {
        self.delay.filter(|_| self.given)
    }
}

fn there_and_back(hops: &[Hop], links: &[Link]) -> Line {
    let back: Vec<Hop> = hops.iter().map(|hop| hop.back()).collect();
    Line::of(hops, links).then(Line::of(&back, links))
}
