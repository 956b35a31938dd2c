//! The longest round-trip times over each link, for networks with routers or switches.
//!
//! A fat tree has about a thousand times as many paths as links, so paths are not enumerated. The routes to
//! one port form a graph. If it has no cycle, two passes suffice: against the routes, the longest path from
//! each router to the port; along the routes, the longest path that packets can have taken to each router.
//! Together with the link between them, they give the longest path over that link. If configured routes
//! form cycles, the paths to the port are enumerated.

use std::collections::BTreeMap;

use narrows_core::Duration;

use super::segments::Owner;
use super::wiring::Wiring;
use super::{Fault, Hop, Port, Topology};
use crate::bound::DefaultBound;
use crate::direction::Direction;
use crate::link::{Link, Way};
use crate::problem::Problem;

/// Maximum number of host ends of links to routers and switches for which this is done: each pair of them has its own path.
const MOST_PORTS: usize = 1000;

/// Where the round-trip times are not computed, rejects links whose queues would depend on them, and switches, each of which is
/// followed from every end.
pub(super) fn check_size(wiring: &Wiring, links: &[Link]) -> Result<(), Vec<Fault>> {
    let ports = routed_ports(wiring);
    if ports <= MOST_PORTS {
        return Ok(());
    }
    let many = format!("{ports} links from hosts to routers and switches");
    if let Some(end) = wiring.ends.iter().find(|end| matches!(end.owner, Owner::Switch(_))) {
        let problem = Problem::new(many).help(format!("at most {MOST_PORTS} in a network with switches"));
        return Err(vec![Fault::Link(end.hops[0].link, problem)]);
    }
    let needs = |link: &Link| link.directions().iter().any(|(_, direction)| needs_round_trip(direction));
    let mut all = links.iter().enumerate().filter(|(_, link)| needs(link));
    let Some((first, link)) = all.next() else { return Ok(()) };
    let title = match all.count() {
        0 => format!("`{}` needs a `queue`", link.name),
        others => format!("`{}` and {others} other links need a `queue`", link.name),
    };
    let help = format!(
        "the default depends on the longest of all paths, which are known for up to {MOST_PORTS}; this network has {many}"
    );
    Err(vec![Fault::Link(first, Problem::new(title).help(help))])
}

/// Whether the bound of a queue depends on the round-trip time.
fn needs_round_trip(direction: &Direction) -> bool {
    if direction.single_netem().is_some()
        || direction.trace.as_ref().is_some_and(|of| of.trace.bound().is_some())
    {
        return false;
    }
    let with = |round_trip| {
        let default_bound = DefaultBound::new(direction.mean_rate(), Some(round_trip));
        let direction = Direction { default_bound, ..direction.clone() };
        (direction.whole_bound(), direction.classes())
    };
    with(Duration::ZERO) != with(Duration::from_secs(3600))
}

/// How many ends at hosts have a router or a switch at the other end of their segment.
fn routed_ports(wiring: &Wiring) -> usize {
    let ends = &wiring.ends;
    let is_routed = |end: usize| wiring.is_switched(end) || wiring.router(ends[end].peer).is_some();
    let is_host = |end: usize| matches!(ends[end].owner, Owner::Host(_));
    (0..ends.len()).filter(|&end| is_host(end) && is_routed(end)).count()
}

/// The longest round-trip time of each link and direction that routed packets take; `None` if the delay is
/// unknown.
pub(super) type RoundTrips = BTreeMap<(usize, Way), Option<Duration>>;

/// The delay along some links: the sum of their means, if all are known, and whether any is given. In
/// comparisons the greater is the longer; an unknown delay counts as shorter than any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Line {
    delay: Option<Duration>,
    given: bool,
}

impl Line {
    const NONE: Self = Self { delay: Some(Duration::ZERO), given: false };
    const UNKNOWN: Self = Self { delay: None, given: false };

    pub(super) fn of(hops: &[Hop], links: &[Link]) -> Self {
        hops.iter().fold(Self::NONE, |line, hop| {
            // The delay of pipes depends on the rules.
            let Some(direction) = links[hop.link].direction(hop.way) else { return line };
            line.then(Self { delay: direction.mean_delay(), given: direction.says_delay() })
        })
    }

    pub(super) fn then(self, other: Self) -> Self {
        Self {
            delay: self.delay.zip(other.delay).map(|(one, other)| one + other),
            given: self.given || other.given,
        }
    }

    /// The sum, if all of it is known and some of it is given.
    pub(super) fn round_trip(self) -> Option<Duration> {
        self.delay.filter(|_| self.given)
    }
}

impl Topology {
    /// For each link and direction that packets take from one host through routers or switches to another; none in a
    /// network with too many of them.
    pub(super) fn longest_round_trips(&self, links: &[Link]) -> RoundTrips {
        if routed_ports(&self.wiring) > MOST_PORTS {
            return RoundTrips::new();
        }
        let lines = self.wiring.ends.iter().map(|end| Line::of(&end.hops, links)).collect();
        let ports = self.ports.iter().filter(|port| self.is_routed(port)).collect();
        let over = vec![BTreeMap::new(); self.wiring.ends.len()];
        let mut search = Search { topology: self, links, lines, ports, over, longest: RoundTrips::new() };
        // By destination port and source port: the longest path, if any arrives.
        let far: Vec<Vec<Option<Line>>> = search.ports.iter().map(|to| search.far(to)).collect();
        for to in 0..far.len() {
            // The longest path back to each source.
            let back = |from: usize| far[from][to].unwrap_or(Line::UNKNOWN);
            let sources = (0..far.len()).filter(|&from| far[to][from].is_some());
            search.note_all(to, sources.map(|from| (from, back(from))).collect());
        }
        for (from, all) in std::mem::take(&mut search.over).into_iter().enumerate() {
            all.into_iter().for_each(|(to, longest)| search.note(&self.wiring.hops(from, to), longest));
        }
        search.longest
    }
}

struct Search<'a> {
    topology: &'a Topology,
    links: &'a [Link],
    /// The delay from each end to its peer.
    lines: Vec<Line>,
    ports: Vec<&'a Port>,
    /// For each end where packets leave, by the end where they arrive next: the longest round trip. Its links are
    /// looked up once, and not for every pair of ports.
    over: Vec<BTreeMap<usize, Option<Duration>>>,
    longest: RoundTrips,
}

impl Search<'_> {
    /// The delay from an end to a neighbour.
    fn line(&self, end: usize, to: usize) -> Line {
        let wiring = &self.topology.wiring;
        match wiring.ends[end].peer == to {
            true => self.lines[end],
            false => {
                wiring.legs(end, to).into_iter().fold(Line::NONE, |line, leg| line.then(self.lines[leg]))
            }
        }
    }

    /// The end where packets from one port to another arrive first.
    fn first(&self, from: &Port, to: &Port) -> Option<usize> {
        let wiring = &self.topology.wiring;
        if wiring.ends[from.end].domain == wiring.ends[to.end].domain {
            return Some(to.end);
        }
        let destination = to.addresses.first()?.ip;
        self.topology.routing.first(from.end, destination, &self.topology.wiring)
    }

    /// The longest path from each port to this one, if any arrives.
    fn far(&self, to: &Port) -> Vec<Option<Line>> {
        let graph = Graph::new(self, to);
        let from = |from: &&Port| {
            if from.end == to.end {
                return None;
            }
            let first = self.first(from, to)?;
            let line = self.line(from.end, first);
            match (self.topology.wiring.router(first), &graph) {
                (None, _) => (first == to.end).then_some(line),
                (Some(router), Ok(graph)) => Some(line.then(graph.far[router]?)),
                (Some(_), Err(Cycle)) => self.paths(from, to).into_iter().map(|(_, line)| line).max(),
            }
        };
        self.ports.iter().map(from).collect()
    }

    /// Records the round-trip times over all links on paths to a port. Each source comes with its path
    /// back. The graph is rebuilt: storing those of all ports would take as much memory as all routes.
    fn note_all(&mut self, to: usize, sources: Vec<(usize, Line)>) {
        let to = self.ports[to];
        let Ok(graph) = Graph::new(self, to) else {
            for (from, back) in sources {
                for (hops, line) in self.paths(self.ports[from], to) {
                    self.note(&hops, back.then(line).round_trip());
                }
            }
            return;
        };
        // By router: the longest path from the destination back to a source, plus that from the source to
        // the router.
        let mut come: Vec<Option<Line>> = vec![None; graph.far.len()];
        let pass =
            |search: &mut Self, come: &mut [Option<Line>], way: (usize, usize), line: Line, rest: Line| {
                let wiring = &search.topology.wiring;
                if let Some(router) = wiring.router(way.1) {
                    come[router] = come[router].max(Some(line));
                }
                let round_trip = line.then(rest).round_trip();
                let known = search.over[way.0].entry(way.1).or_insert(round_trip);
                *known = (*known).max(round_trip);
            };
        for (from, back) in sources {
            let from = self.ports[from];
            let Some(first) = self.first(from, to) else { continue };
            let rest = match self.topology.wiring.router(first) {
                Some(router) => graph.far[router],
                None => Some(Line::NONE),
            };
            let line = back.then(self.line(from.end, first));
            rest.into_iter().for_each(|rest| pass(self, &mut come, (from.end, first), line, rest));
        }
        // A router comes after all routers that it sends to, so go in reverse.
        for (router, next) in graph.routers.iter().rev() {
            let Some(line) = come[*router] else { continue };
            for &(way, rest) in next {
                pass(self, &mut come, way, line.then(self.line(way.0, way.1)), rest);
            }
        }
    }

    fn note(&mut self, hops: &[Hop], round_trip: Option<Duration>) {
        for hop in hops {
            let known = self.longest.entry((hop.link, hop.way)).or_insert(round_trip);
            *known = (*known).max(round_trip);
        }
    }

    /// All paths from one port that arrive at another, each with its delay.
    fn paths(&self, from: &Port, to: &Port) -> Vec<(Vec<Hop>, Line)> {
        let line = |hops: Vec<Hop>| {
            let line = Line::of(&hops, self.links);
            (hops, line)
        };
        self.topology.arriving(from, to).into_iter().map(|way| line(way.hops)).collect()
    }
}

/// The routes to one port.
struct Graph {
    /// The routers whose packets arrive there, each with the ends by which it sends and where that
    /// arrives, and the rest of the path from there. A router comes after all routers that it sends to.
    routers: Vec<(usize, Vec<Onward>)>,
    /// By router: the longest path from there, if any arrives.
    far: Vec<Option<Line>>,
}

/// Where a router sends: the end where packets leave, the end where they arrive, the rest of the path.
type Onward = ((usize, usize), Line);

/// The routes form a cycle.
struct Cycle;

/// Search state of a router.
#[derive(Clone, Copy, PartialEq)]
enum Mark {
    New,
    /// On the current path.
    Open,
    Done,
}

impl Graph {
    fn new(search: &Search<'_>, to: &Port) -> Result<Self, Cycle> {
        let routers = search.topology.routing.routers();
        let mut graph = Self { routers: Vec::new(), far: vec![None; routers] };
        let mut marks = vec![Mark::New; routers];
        for router in 0..routers {
            graph.follow(router, to, search, &mut marks)?;
        }
        Ok(graph)
    }

    /// Follows the routes of a router; returns its longest path, if any reaches the port.
    fn follow(
        &mut self,
        router: usize,
        to: &Port,
        search: &Search<'_>,
        marks: &mut [Mark],
    ) -> Result<Option<Line>, Cycle> {
        match marks[router] {
            Mark::Open => return Err(Cycle),
            Mark::Done => return Ok(self.far[router]),
            Mark::New => marks[router] = Mark::Open,
        }
        let topology = search.topology;
        let entry = to.addresses.first().and_then(|address| topology.routing.find(router, address.ip));
        let mut next = Vec::new();
        for way in entry.iter().flat_map(|entry| &entry.ways) {
            let rest = match topology.wiring.router(way.to) {
                Some(router) => self.follow(router, to, search, marks)?,
                None => (way.to == to.end).then_some(Line::NONE),
            };
            next.extend(rest.map(|rest| ((way.end, way.to), rest)));
        }
        marks[router] = Mark::Done;
        self.far[router] = next.iter().map(|&((end, to), rest)| search.line(end, to).then(rest)).max();
        if !next.is_empty() {
            self.routers.push((router, next));
        }
        Ok(self.far[router])
    }
}

#[cfg(test)]
mod tests;
