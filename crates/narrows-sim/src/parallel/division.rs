//! Which thread carries which region of the network.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use narrows_core::{Duration, Element, Engine, LinkId, PortId};
use narrows_report::Place;
use narrows_scenario::{Scenario, TrafficSource};
use narrows_traffic::Body;

use crate::whole::Whole;

/// The most threads, whatever is asked for: each comes to each meeting.
const MOST: usize = 256;

/// The longest window: nothing else ends one where shares have nothing to do with each other.
const LONGEST: Duration = Duration::from_secs(1);

/// How many least delays between regions are tried.
const TRIED: usize = 12;

/// The work that is known of a network: events at links and ports.
pub(super) struct Work {
    /// By link: packets that entered it, and that left it.
    pub(super) links: Vec<(u64, u64)>,
    /// By port: packets that were sent or received there.
    pub(super) ports: Vec<u64>,
}

/// What an event at a port costs, in events at a link: a sender or a receiver that responds does more than a link.
const PORT: u64 = 3;

impl Work {
    /// What an engine has done so far, and a little for everything else.
    pub(super) fn of(engine: &Engine<Body>) -> Self {
        let sums = |link: LinkId| {
            let view = engine.view(link);
            let all = view.counters();
            let sum = |of: fn(&narrows_core::Counters) -> u64| all.iter().map(of).sum::<u64>() + 1;
            (sum(|lane| lane.arrived.packets), sum(|lane| lane.left.packets))
        };
        let port = |port: PortId| {
            let counters = engine.port_counters(port);
            counters.arrived.packets + counters.delivered.packets + 1
        };
        Self { links: engine.links().map(sums).collect(), ports: engine.ports().map(port).collect() }
    }
}

/// A network divided among threads.
#[derive(Debug)]
pub(super) struct Division {
    /// The number of threads.
    pub(super) threads: usize,
    /// A packet takes at least this long from one thread's share to another's.
    pub(super) lookahead: Duration,
    ports: Vec<usize>,
    /// By link: the thread where packets enter it, and the one where they leave it.
    links: Vec<(usize, usize)>,
    rules: Vec<usize>,
    routers: Vec<usize>,
    switches: Vec<usize>,
}

impl Division {
    /// Divides a network among at most `most` threads.
    pub(super) fn of(
        scenario: &Scenario,
        engine: &Engine<Body>,
        work: &Work,
        most: usize,
    ) -> Result<Self, Whole> {
        if !engine.is_divisible() {
            return Err(Whole::Copies);
        }
        // The two ends of a source that responds know of each other.
        let together: Vec<_> = scenario
            .traffic
            .iter()
            .filter(|traffic| {
                matches!(traffic.source, TrafficSource::Aimd { .. } | TrafficSource::App { .. })
            })
            .filter_map(|traffic| Some((engine.port(&traffic.from)?, engine.port(&traffic.to)?)))
            .collect();
        let mut delays: Vec<_> = engine.links().filter_map(|link| engine.crossing_delay(link)).collect();
        delays.sort_unstable_by(|a, b| b.cmp(a));
        delays.dedup();
        let step = delays.len().div_ceil(TRIED).max(1);
        // The least is always among them: it has the most regions.
        let tried = delays.iter().rev().step_by(step).rev();
        let divisions: Vec<_> =
            tried.filter_map(|&least| Self::at(engine, work, &together, least, most.min(MOST))).collect();
        let Some(even) = divisions.iter().map(|(most, _)| *most).min() else {
            let apart =
                engine.regions(Duration::from_nanos(1), &[]).is_some_and(|regions| regions.count() > 1);
            return Err(if apart { Whole::Responding } else { Whole::Undivided });
        };
        // Threads meet the more rarely, the longer packets are under way: that is worth a tenth of the work.
        let found = divisions.into_iter().find(|(most, _)| *most <= even + even / 10);
        found.map(|(_, division)| division).ok_or(Whole::Undivided)
    }

    /// Divides a network at links with a delay of at least `least`. Also returns the work of the thread that has the most.
    fn at(
        engine: &Engine<Body>,
        work: &Work,
        together: &[(PortId, PortId)],
        least: Duration,
        most: usize,
    ) -> Option<(u64, Self)> {
        let regions = engine.regions(least, together)?;
        let count = regions.count();
        if count < 2 {
            return None;
        }
        let mut weights = vec![0; count];
        let mut neighbours = vec![Vec::new(); count];
        for (link, (entered, left)) in engine.links().zip(&work.links) {
            let (front, back) = (regions.of_element(Element::Link(link)), regions.beyond(link));
            weights[front] += entered;
            weights[back] += left;
            if front != back {
                neighbours[front].push(back);
                neighbours[back].push(front);
            }
        }
        for (port, events) in engine.ports().zip(&work.ports) {
            weights[regions.of_port(port)] += PORT * events;
        }
        let (owner, threads, greatest) = spread(&weights, &neighbours, most);
        if threads < 2 {
            return None;
        }
        let element = |element| owner[regions.of_element(element)];
        let links: Vec<_> =
            engine.links().map(|link| (element(Element::Link(link)), owner[regions.beyond(link)])).collect();
        let crossing = engine.links().zip(&links).filter(|(_, (front, back))| front != back);
        let division = Self {
            threads,
            lookahead: crossing
                .filter_map(|(link, _)| engine.crossing_delay(link))
                .min()
                .unwrap_or(LONGEST)
                .min(LONGEST),
            ports: engine.ports().map(|port| owner[regions.of_port(port)]).collect(),
            links,
            rules: engine.rules().map(|rules| element(Element::Rules(rules))).collect(),
            routers: engine.routers().map(|router| element(Element::Router(router))).collect(),
            switches: engine.switches().map(|switch| element(Element::Switch(switch))).collect(),
        };
        Some((greatest, division))
    }

    /// The thread that has a place; of a link, the one where packets enter it.
    pub(super) fn of_place(&self, place: Place) -> usize {
        match place {
            Place::Port(port) => self.ports[usize::from(port.index())],
            Place::Element(Element::Link(link)) => self.links[link.index() as usize].0,
            Place::Element(Element::Rules(rules)) => self.rules[rules.index() as usize],
            Place::Element(Element::Router(router)) => self.routers[router.index() as usize],
            Place::Element(Element::Switch(switch)) => self.switches[switch.index() as usize],
        }
    }

    /// The thread where the packets of a link arrive.
    pub(super) fn beyond(&self, link: LinkId) -> usize {
        self.links[link.index() as usize].1
    }

    /// By link: whether it is between two threads.
    pub(super) fn crosses(&self) -> Vec<bool> {
        self.links.iter().map(|(front, back)| front != back).collect()
    }

    /// The links between threads, each with the thread where packets enter it and the one where they leave.
    pub(super) fn crossing<'a>(
        &'a self,
        engine: &Engine<Body>,
    ) -> impl Iterator<Item = (LinkId, usize, usize)> + use<'a> {
        let all = engine.links().zip(&self.links);
        all.filter(|(_, (front, back))| front != back).map(|(link, &(front, back))| (link, front, back))
    }
}

/// Spreads regions over at most `most` threads. Returns the thread of each region, how many there are, and the work of the one
/// that has the most.
fn spread(weights: &[u64], neighbours: &[Vec<usize>], most: usize) -> (Vec<usize>, usize, u64) {
    let near = in_rows(weights, &in_depth(neighbours), most);
    let even = heaviest_first(weights, most);
    // Fewer packets cross between threads where neighbours stay together: that is worth a tenth of the work.
    if near.2 <= even.2 + even.2 / 10 { near } else { even }
}

/// Each thread gets a row of the regions in this order.
fn in_rows(weights: &[u64], order: &[usize], most: usize) -> (Vec<usize>, usize, u64) {
    let mut owner = vec![0; weights.len()];
    let mut works = vec![0];
    let mut left: u64 = weights.iter().sum();
    for &region in order {
        let (weight, own, number) = (weights[region], works[works.len() - 1], works.len());
        let share = (own + left) / (most - number + 1) as u64;
        // Whichever comes nearer to an even share.
        if number < most && own > 0 && own + weight / 2 > share {
            works.push(0);
        }
        let thread = works.len() - 1;
        works[thread] += weight;
        left -= weight;
        owner[region] = thread;
    }
    (owner, works.len(), works.iter().copied().max().unwrap_or(0))
}

/// The region with the most work next, to the thread with the least.
fn heaviest_first(weights: &[u64], most: usize) -> (Vec<usize>, usize, u64) {
    let mut owner = vec![0; weights.len()];
    let mut works: BinaryHeap<_> = (0..most.min(weights.len())).map(|thread| Reverse((0, thread))).collect();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|&region| Reverse(weights[region]));
    for region in order {
        if let Some(mut least) = works.peek_mut() {
            least.0.0 += weights[region];
            owner[region] = least.0.1;
        }
    }
    let greatest = works.iter().map(|Reverse((work, _))| *work).max().unwrap_or(0);
    (owner, works.len(), greatest)
}

/// All regions, each near those before it.
fn in_depth(neighbours: &[Vec<usize>]) -> Vec<usize> {
    let mut order = Vec::with_capacity(neighbours.len());
    let mut seen = vec![false; neighbours.len()];
    for first in 0..neighbours.len() {
        let mut stack = vec![first];
        while let Some(region) = stack.pop() {
            if !std::mem::replace(&mut seen[region], true) {
                order.push(region);
                stack.extend(neighbours[region].iter().rev().filter(|&&next| !seen[next]));
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A leaf-spine of two leaves with two hosts each and a spine: regions 0 to 3 are hosts, 4 and 5 leaves, 6 the spine.
    fn neighbours() -> Vec<Vec<usize>> {
        vec![vec![4], vec![4], vec![5], vec![5], vec![0, 1, 6], vec![2, 3, 6], vec![4, 5]]
    }

    #[test]
    fn neighbours_stay_together_where_that_is_even() {
        let (owner, threads, greatest) = spread(&[10, 10, 10, 10, 10, 10, 1], &neighbours(), 2);
        assert_eq!((threads, greatest), (2, 31));
        assert_eq!((owner[0], owner[1]), (owner[4], owner[4]));
        assert_eq!((owner[2], owner[3]), (owner[5], owner[5]));
        assert_ne!(owner[4], owner[5]);
    }

    #[test]
    fn one_heavy_region_gets_a_thread_of_its_own() {
        for heavy in 0..7 {
            let mut weights = [1; 7];
            weights[heavy] = 100;
            let (owner, threads, greatest) = spread(&weights, &neighbours(), 2);
            assert!(threads == 2 && greatest <= 103, "{heavy}: {owner:?}");
        }
    }

    #[test]
    fn there_are_no_more_threads_than_regions() {
        let (owner, threads, _) = spread(&[1, 1], &[vec![1], vec![0]], 8);
        assert_eq!((owner, threads), (vec![0, 1], 2));
    }
}
