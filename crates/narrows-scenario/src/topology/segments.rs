//! Segments: the ends of links at hosts, routers and switches, and the path from one end to the other.

use std::collections::{BTreeMap, BTreeSet};

use super::{Fault, Hop};
use crate::host::{Address, Host};
use crate::link::{Link, Medium, Way};
use crate::problem::Problem;
use crate::router::Router;
use crate::switch::Switch;

/// The owner of an end: index among the scenario's hosts, routers or switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    Host(usize),
    Router(usize),
    Switch(usize),
}

/// One end of a segment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct End {
    pub(crate) owner: Owner,
    /// `OWNER.LINK`.
    pub(crate) name: String,
    pub(crate) owner_name: String,
    /// The first link from here.
    pub(crate) link: String,
    /// The path to the other end.
    pub(crate) hops: Vec<Hop>,
    /// The index of the other end.
    pub(crate) peer: usize,
    /// Total cost of the links on the path.
    pub(crate) cost: u64,
    pub(crate) addresses: Vec<Address>,
    /// Its broadcast domain, for an end at a host or a router.
    pub(crate) domain: usize,
}

/// Maximum number of links and rule sets in series, the engine's maximum for one packet.
const LONGEST: usize = 255;

/// Both ends of every segment: those at hosts first, in the order of the hosts, then those at routers, then those
/// at switches.
pub(crate) fn join(
    hosts: &[Host],
    junctions: &[String],
    routers: &[Router],
    switches: &[Switch],
    links: &[Link],
) -> Result<Vec<End>, Vec<Fault>> {
    let mut joined: BTreeMap<&str, Vec<Hop>> = BTreeMap::new();
    for (link, config) in links.iter().enumerate() {
        // The hop that leaves from each end.
        joined.entry(&config.between[0]).or_default().push(Hop { link, way: Way::Up });
        joined.entry(&config.between[1]).or_default().push(Hop { link, way: Way::Down });
    }
    let mut faults = Vec::new();
    for junction in junctions {
        let count = joined.get(junction.as_str()).map_or(0, Vec::len);
        if count != 2 {
            faults.push(Fault::Junction(junction.clone(), junction_problem(junction, count)));
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }

    let junction_names: BTreeSet<&str> = junctions.iter().map(String::as_str).collect();
    let mut on_segment = vec![false; links.len()];
    let mut ends = Vec::new();
    let mut peers = Vec::new();
    let owners = (hosts.iter().map(|host| &host.name).enumerate())
        .map(|(index, name)| (Owner::Host(index), name))
        .chain(routers.iter().enumerate().map(|(index, router)| (Owner::Router(index), &router.name)))
        .chain(switches.iter().enumerate().map(|(index, switch)| (Owner::Switch(index), &switch.name)));
    for (owner, name) in owners {
        for &first in joined.get(name.as_str()).map_or(&[][..], Vec::as_slice) {
            let mut hops = vec![first];
            let mut last = first;
            let other = loop {
                on_segment[last.link] = true;
                let [_, end] = links[last.link].ends(last.way);
                if !junction_names.contains(end) {
                    break end;
                }
                // A junction connects two links: the next one is the other. The two ends of a link differ,
                // so the two hops are on different links.
                let next = joined[end].iter().find(|hop| hop.link != last.link);
                let Some(&next) = next else { break end };
                hops.push(next);
                last = next;
            };
            peers.push(end_name(other, &links[last.link]));
            ends.push(End {
                owner,
                name: end_name(name, &links[first.link]),
                owner_name: name.clone(),
                link: links[first.link].name.clone(),
                cost: hops.iter().map(|hop| u64::from(links[hop.link].cost)).sum(),
                hops,
                peer: 0,
                addresses: Vec::new(),
                domain: 0,
            });
        }
    }
    for (link, _) in on_segment.iter().enumerate().filter(|(_, seen)| !**seen) {
        let problem = Problem::new(format!("`{}` is on a ring without a host", links[link].name))
            .help("packets enter and leave at hosts: join the ring to one");
        faults.push(Fault::Link(link, problem));
    }
    for end in &ends {
        // Rules count besides their pipes.
        let ruled = |hop: &&Hop| matches!(links[hop.link].medium, Medium::Rules(_));
        let rules = end.hops.iter().filter(ruled).count();
        if end.hops.len() + rules > LONGEST {
            let and = if rules > 0 { format!(", {rules} of them with rules,") } else { String::new() };
            let problem = Problem::new(format!("{} links{and} in a row from `{}`", end.hops.len(), end.name))
                .help(format!("a packet passes at most {LONGEST}; one with rules counts twice"));
            faults.push(Fault::Link(end.hops[0].link, problem));
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let numbers: BTreeMap<String, usize> =
        ends.iter().enumerate().map(|(index, end)| (end.name.clone(), index)).collect();
    for (end, peer) in ends.iter_mut().zip(peers) {
        // The walk from the peer ends here.
        end.peer = numbers[&peer];
    }
    Ok(ends)
}

fn end_name(owner: &str, link: &Link) -> String {
    format!("{owner}.{}", link.name)
}

fn junction_problem(junction: &str, links: usize) -> Problem {
    let problem = match links {
        0 => Problem::new(format!("no link ends at the junction `{junction}`")),
        1 => Problem::new(format!("only one link ends at the junction `{junction}`")),
        more => Problem::new(format!("{more} links meet at the junction `{junction}`")),
    };
    problem.help(if links < 2 {
        "a junction joins two links in series; end the link at a host instead".into()
    } else {
        format!("a junction joins exactly two links in series; use a router for more: [routers.{junction}]")
    })
}
