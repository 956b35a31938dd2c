//! Default bounds of queues: one product of a link's rate and a round-trip time.
//!
//! The round-trip time is that of the segment between two hosts. With routers or switches, it is the longest one of all
//! pairs of hosts whose packets pass the link or, if there are none, that of the link's own segment.

use super::longest::Line;
use super::{Hop, Topology};
use crate::bound::DefaultBound;
use crate::link::{Link, Medium, Way};

impl Topology {
    /// Computes default bounds.
    pub(crate) fn set_default_bounds(&self, links: &mut [Link]) {
        let longest = self.longest_round_trips(links);
        for end in &self.wiring.ends {
            let own = there_and_back(&end.hops, links).round_trip();
            for hop in &end.hops {
                let round_trip = longest.get(&(hop.link, hop.way)).copied().unwrap_or(own);
                let link = &mut links[hop.link];
                for direction in link.directions_mut(Some(hop.way)) {
                    direction.default_bound = DefaultBound::new(direction.mean_rate(), round_trip);
                }
                // Pipes are the same in both directions, so one direction suffices.
                if let (Medium::Rules(rules), Way::Up) = (&mut link.medium, hop.way) {
                    rules.set_default_bounds(round_trip);
                }
            }
        }
    }
}

fn there_and_back(hops: &[Hop], links: &[Link]) -> Line {
    let back: Vec<Hop> = hops.iter().map(|hop| hop.back()).collect();
    Line::of(hops, links).then(Line::of(&back, links))
}
