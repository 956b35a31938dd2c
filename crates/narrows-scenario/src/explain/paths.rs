//! Paths between hosts: round-trip times and, with routers or switches, all ways that packets may take.

use narrows_core::sched::Weight;
use narrows_core::{Duration, Rate};
use serde::Serialize;

use super::{FULL, SMALL, full_bytes, one_way, present_rate};
use crate::direction::Direction;
use crate::link::Link;
use crate::router::{ExplicitRoute, Router, spread_name};
use crate::scenario::Scenario;
use crate::switch::PortVlans;
use crate::topology::{Hop, MOST_WAYS, Outcome, Port, WayThrough};

/// Expected values of a path between two hosts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathExplanation {
    /// The port at one end.
    pub from: String,
    /// The port at the other.
    pub to: String,
    /// Names in the file of the links on the first way there.
    pub links: Vec<String>,
    /// With routers or switches on the path: the ways there.
    pub there: Vec<WayExplanation>,
    /// With routers or switches on the path: the ways back.
    pub back: Vec<WayExplanation>,
    /// Round-trip time of 64 bytes without queueing, on the shortest ways.
    pub round_trip_small_ns: Option<u64>,
    /// Round-trip time of full packets both ways without queueing, on the shortest ways.
    pub round_trip_full_ns: Option<u64>,
    /// Round-trip time of 64 bytes on the longest ways.
    pub longest_round_trip_small_ns: Option<u64>,
    /// Round-trip time of full packets on the longest ways.
    pub longest_round_trip_full_ns: Option<u64>,
    /// Length of the full packets in bytes: the minimum of 1500 and the MTUs of the path.
    pub full_bytes: u32,
    /// Whether a link of the path is down.
    pub is_down: bool,
    /// Whether rules choose the pipes of each packet; then no times are known.
    pub by_rules: bool,
}

/// One way of packets through routers from one host to another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WayExplanation {
    /// Share of flows, or of packets, that take it.
    pub share: f64,
    /// How routers choose among several ways: `flow`, `packet` or `None`.
    pub by: Option<String>,
    /// The host, the link by which packets leave it, the next router, and so on.
    pub hops: Vec<String>,
    /// Mean time of 64 bytes without queueing.
    pub one_way_small_ns: Option<u64>,
    /// Why packets do not arrive on this way, if they do not.
    pub fault: Option<String>,
    /// Whether the reason is a routing loop.
    pub goes_round: bool,
}

/// Maximum number of paths listed; each pair of hosts has one.
const MOST_PATHS: usize = 1000;
/// Maximum number of links of a way that is shown in full.
const MOST_LINKS_SHOWN: usize = 16;
/// Number of links shown at each end of a longer way.
const LINKS_AT_AN_END: usize = 4;
/// The default hop limit of programs.
const USUAL_HOP_LIMIT: u32 = 64;

impl Scenario {
    /// The paths between all pairs of hosts, and the number of those not listed.
    pub(super) fn paths(&self) -> (Vec<PathExplanation>, usize) {
        let ports = self.ports();
        let mut paths = Vec::new();
        // Each pair once, at the port whose name sorts first.
        for (port, other) in self.topology.joined_behind() {
            let (port, other) = (&ports[port], &ports[other]);
            if port.peer != other.name && port.host == other.host {
                continue;
            }
            if paths.len() == MOST_PATHS {
                return (paths, self.topology.count_joined_behind() - MOST_PATHS);
            }
            paths.push(self.path(port, other));
        }
        (paths, 0)
    }

    /// A router in one line: what it connects, and how it chooses among several paths.
    pub(super) fn router_words(&self, router: &Router) -> String {
        let here = self.interfaces().iter().filter(|interface| interface.router == router.name);
        let links: Vec<&str> = here.map(|interface| interface.link.as_str()).collect();
        let multipath = match router.multipath {
            None => String::new(),
            Some(spread) => format!("; equal paths are shared by {}", spread_name(spread)),
        };
        let route = |ExplicitRoute { to, via, spread }: &ExplicitRoute| {
            let several = via.len() > 1;
            let way = |(link, weight): &(String, Weight)| match several {
                true => format!("{link} (weight {weight})"),
                false => link.clone(),
            };
            let ways: Vec<String> = via.iter().map(way).collect();
            let by = if several { format!(", by {}", spread_name(*spread)) } else { String::new() };
            format!("; to {to} by {}{by}", ways.join(" and "))
        };
        let routes: String = router.routes.iter().map(route).collect();
        format!("{}: joins {}{multipath}{routes}", router.name, links.join(", "))
    }

    /// A switch in one line: what it connects, and where in which VLAN.
    pub(super) fn switch_words(&self, switch: usize) -> String {
        let ports: Vec<_> = self.topology.ports_of(switch).collect();
        let usual = |vlans: &PortVlans| *vlans == PortVlans::usual(false);
        let is_plain = ports.iter().all(|(_, vlans)| usual(vlans));
        let word = |(link, vlans): &(&str, &PortVlans)| match is_plain {
            true => (*link).to_owned(),
            false => format!("{link} ({vlans})"),
        };
        let words: Vec<String> = ports.iter().map(word).collect();
        let left_out = words.len().saturating_sub(MOST_LINKS_SHOWN);
        let more = if left_out > 0 { format!(" and {left_out} more") } else { String::new() };
        let shown = &words[..words.len() - left_out];
        format!("{}: joins {}{more}", self.switches[switch].name, shown.join(", "))
    }

    fn path(&self, port: &Port, other: &Port) -> PathExplanation {
        let is_routed = port.peer != other.name;
        let ways = |from: &Port, to: &Port| match is_routed {
            true => to.addresses.first().map_or(Vec::new(), |to| self.topology.ways(from, to.ip)),
            false => Vec::new(),
        };
        let (there, back) = (ways(port, other), ways(other, port));
        let lines = |ways: &[WayThrough], to: &Port, direct: &[Hop]| -> Vec<Vec<Hop>> {
            let arrives = |way: &&WayThrough| way.outcome == Outcome::Port(to.name.clone());
            match is_routed {
                true => ways.iter().filter(arrives).map(|way| way.hops.clone()).collect(),
                false => vec![direct.to_vec()],
            }
        };
        let directions = |hops: &[Hop]| -> Vec<Option<&Direction>> {
            hops.iter().map(|hop| self.links[hop.link].direction(hop.way)).collect()
        };
        let lines = [lines(&there, other, &port.hops), lines(&back, port, &other.hops)];
        let all = || lines.iter().flatten().flat_map(|hops| directions(hops));
        let full_bytes = all().flatten().map(full_bytes).min().unwrap_or(FULL);
        // The shortest and the longest of all ways in one direction; `None` if one is unknown.
        let extremes = |lines: &[Vec<Hop>], bytes| {
            let times: Option<Vec<_>> = lines.iter().map(|hops| travel(&directions(hops), bytes)).collect();
            let times = times?;
            Some((*times.iter().min()?, *times.iter().max()?))
        };
        let round_trip = |bytes| {
            let (there, back) = (extremes(&lines[0], bytes)?, extremes(&lines[1], bytes)?);
            Some(((there.0 + back.0).nanos(), (there.1 + back.1).nanos()))
        };
        let (small, full) = (round_trip(SMALL), round_trip(full_bytes));
        let first = lines[0].first().map_or(&[][..], |hops| hops);
        PathExplanation {
            from: port.name.clone(),
            to: other.name.clone(),
            links: first.iter().map(|hop| self.links[hop.link].name.clone()).collect(),
            round_trip_small_ns: small.map(|(least, _)| least),
            round_trip_full_ns: full.map(|(least, _)| least),
            longest_round_trip_small_ns: small.map(|(_, most)| most),
            longest_round_trip_full_ns: full.map(|(_, most)| most),
            full_bytes,
            is_down: all().flatten().any(|direction| present_rate(direction) == Rate::DOWN),
            by_rules: all().any(|direction| direction.is_none()),
            there: there.iter().map(|way| explain(way, other, &self.links)).collect(),
            back: back.iter().map(|way| explain(way, port, &self.links)).collect(),
        }
    }
}

/// The sum of transmission times and mean delays; `None` if rules choose the pipes.
fn travel(directions: &[Option<&Direction>], bytes: u32) -> Option<Duration> {
    directions.iter().try_fold(Duration::ZERO, |sum, direction| Some(sum + one_way((*direction)?, bytes)?))
}

fn explain(way: &WayThrough, to: &Port, links: &[Link]) -> WayExplanation {
    let directions: Vec<_> = way.hops.iter().map(|hop| links[hop.link].direction(hop.way)).collect();
    let by = match (way.by_packet, way.by_flow) {
        (true, _) => Some("packet".into()),
        (false, true) => Some("flow".into()),
        (false, false) => None,
    };
    let fault = match &way.outcome {
        Outcome::Port(port) if *port == to.name && way.routers < USUAL_HOP_LIMIT => None,
        Outcome::Port(port) if *port == to.name => {
            Some(format!("it crosses {} routers; the usual hop limit is {USUAL_HOP_LIMIT}", way.routers))
        }
        Outcome::Port(port) => Some(format!("it ends at {port}")),
        Outcome::Router(router) => Some(format!("it ends at the router {router}")),
        Outcome::NoRoute(router) => Some(format!("{router} has no route")),
        Outcome::Loop(router) => Some(format!("it returns to {router} until its hop limit is exhausted")),
    };
    WayExplanation {
        share: way.share,
        by,
        hops: way.names.clone(),
        one_way_small_ns: travel(&directions, SMALL).map(Duration::nanos).filter(|_| fault.is_none()),
        goes_round: matches!(way.outcome, Outcome::Loop(_)),
        fault,
    }
}

impl PathExplanation {
    /// Prints the ways there and back, for people.
    pub(super) fn print_ways(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (title, ways) in [("there", &self.there), ("back ", &self.back)] {
            for (at, way) in ways.iter().enumerate() {
                let title = if at == 0 { title } else { "     " };
                writeln!(f, "  {title}       {way}")?;
            }
            if ways.len() == MOST_WAYS {
                writeln!(f, "              and maybe more")?;
            }
        }
        Ok(())
    }
}

impl std::fmt::Display for WayExplanation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(by) = &self.by {
            write!(f, "{} of {by}s: ", super::percent(self.share))?;
        }
        // Shows the start and the end of a long way; both start and end with a node.
        let links = self.hops.len() / 2;
        let left_out = match links > MOST_LINKS_SHOWN {
            true => 2 * LINKS_AT_AN_END + 1..self.hops.len() - 2 * LINKS_AT_AN_END - 1,
            false => 0..0,
        };
        for (at, name) in self.hops.iter().enumerate() {
            match at % 2 {
                _ if left_out.contains(&at) && at > left_out.start => {}
                _ if left_out.contains(&at) => write!(f, " … {} links … ", links - 2 * LINKS_AT_AN_END)?,
                1 => write!(f, " –{name}→ ")?,
                _ => write!(f, "{name}")?,
            }
        }
        match (&self.fault, self.one_way_small_ns) {
            (Some(fault), _) => write!(f, "; {fault}"),
            (None, Some(nanos)) => write!(f, ", {}", super::print::span(Some(nanos))),
            (None, None) => Ok(()),
        }
    }
}
