//! How links are joined: ports at the hosts, and the paths between them.
//!
//! A junction joins exactly two links, so that packets go straight through and every link lies on exactly one path
//! between two ports.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use narrows_core::{Duration, Target};

use crate::bound::DefaultBound;
use crate::host::{Address, Host};
use crate::link::{Link, Medium, Way};
use crate::problem::Problem;

/// Where packets enter and leave the network: the end of a link at a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// `HOST.LINK`.
    pub name: String,
    /// The host.
    pub host: String,
    /// The link.
    pub link: String,
    /// The port at the other end of the path, where packets get that enter here.
    pub peer: String,
    /// The host's addresses here: those given, or else one of IPv4 and one of IPv6, in a network that only the two
    /// ends of this path share.
    pub addresses: Vec<Address>,
    /// What packets pass on the way to the peer, in order: the engine's name of the link, and its lane.
    pub path: Vec<Target>,
    pub(crate) hops: Vec<Hop>,
}

/// One link on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hop {
    /// Its index among the scenario's links.
    pub(crate) link: usize,
    pub(crate) way: Way,
}

/// All paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Topology {
    pub(crate) ports: Vec<Port>,
}

/// What is wrong with how links are joined, and at which link or junction.
pub(crate) enum Fault {
    Junction(String, Problem),
    Link(usize, Problem),
}

impl Topology {
    /// Joins the links. Every end of a link is a host or junction.
    pub(crate) fn new(hosts: &[Host], junctions: &[String], links: &[Link]) -> Result<Self, Vec<Fault>> {
        let mut faults = Vec::new();
        let mut joined: BTreeMap<&str, Vec<Hop>> = BTreeMap::new();
        for (link, config) in links.iter().enumerate() {
            // At each end: the hop that leaves from there.
            joined.entry(&config.between[0]).or_default().push(Hop { link, way: Way::Up });
            joined.entry(&config.between[1]).or_default().push(Hop { link, way: Way::Down });
        }
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

        let mut ports = Vec::new();
        let mut on_path = vec![false; links.len()];
        for host in hosts {
            for &first in joined.get(host.name.as_str()).map_or(&[][..], Vec::as_slice) {
                let mut hops = vec![first];
                let mut last = first;
                let end = loop {
                    on_path[last.link] = true;
                    let [_, end] = links[last.link].ends(last.way);
                    if !junction_names.contains(end) {
                        break end;
                    }
                    // A junction joins two links: the next is the one that we did not come by. Both ends of a link
                    // differ, so the two hops are on different links.
                    let next = joined[end].iter().find(|hop| hop.link != last.link);
                    let Some(&next) = next else { break end };
                    hops.push(next);
                    last = next;
                };
                let target = |hop: &Hop| entry(&links[hop.link], hop.way);
                ports.push(Port {
                    name: port_name(&host.name, &links[first.link]),
                    host: host.name.clone(),
                    link: links[first.link].name.clone(),
                    peer: port_name(end, &links[last.link]),
                    addresses: Vec::new(),
                    path: hops.iter().map(target).collect(),
                    hops,
                });
            }
        }
        for (link, _) in on_path.iter().enumerate().filter(|(_, seen)| !**seen) {
            let problem = Problem::new(format!("`{}` lies on a ring without a host", links[link].name))
                .help("packets enter and leave at hosts: join the ring to one");
            faults.push(Fault::Link(link, problem));
        }
        for port in ports.iter().filter(|port| port.hops.len() > LONGEST_PATH) {
            let problem = Problem::new(format!("{} links in a row from `{}`", port.hops.len(), port.name))
                .help(format!("a packet passes at most {LONGEST_PATH}"));
            faults.push(Fault::Link(port.hops[0].link, problem));
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        address(&mut ports, hosts, &|_| true);
        let faults = strangers(&ports);
        if faults.is_empty() { Ok(Self { ports }) } else { Err(faults) }
    }

    /// Where packets go that leave this link this way.
    pub(crate) fn exits(&self, links: &[Link]) -> BTreeMap<(usize, Way), Target> {
        let mut exits = BTreeMap::new();
        for port in &self.ports {
            for (at, hop) in port.hops.iter().enumerate() {
                let target = match port.hops.get(at + 1) {
                    Some(next) => entry(&links[next.link], next.way),
                    None => Target::Port(port.peer.clone()),
                };
                exits.insert((hop.link, hop.way), target);
            }
        }
        exits
    }

    /// Works out the bounds of queues that are given none.
    pub(crate) fn set_default_bounds(&self, links: &mut [Link]) {
        for port in &self.ports {
            let round_trip = round_trip(&port.hops, links);
            for hop in &port.hops {
                for direction in links[hop.link].directions_mut(Some(hop.way)) {
                    direction.default_bound = DefaultBound::new(direction.mean_rate(), round_trip);
                }
            }
        }
    }
}

/// The mean delays of a path there and back, if any is given and all are known.
fn round_trip(hops: &[Hop], links: &[Link]) -> Option<Duration> {
    let mut sum = Duration::ZERO;
    let mut given = false;
    for hop in hops {
        for way in [Way::Up, Way::Down] {
            let direction = links[hop.link].direction(way);
            given |= direction.says_delay();
            sum += direction.mean_delay()?;
        }
    }
    given.then_some(sum)
}

/// Into a link, this way.
pub(crate) fn entry(link: &Link, way: Way) -> Target {
    let lane = match (&link.medium, way) {
        (Medium::Shared(_), Way::Down) => 1,
        _ => 0,
    };
    Target::Link { name: link.core_name(way), lane }
}

fn port_name(host: &str, link: &Link) -> String {
    format!("{host}.{}", link.name)
}

fn junction_problem(junction: &str, links: usize) -> Problem {
    let problem = match links {
        0 => Problem::new(format!("no link ends at the junction `{junction}`")),
        1 => Problem::new(format!("only one link ends at the junction `{junction}`")),
        more => Problem::new(format!("{more} links meet at the junction `{junction}`")),
    };
    problem.help(if links < 2 {
        "a junction joins two links in series; a link that ends here ends at a host"
    } else {
        "a junction joins exactly two links in series; routers, which choose among more, come in a later version"
    })
}

/// The most elements that the engine lets a packet visit.
const LONGEST_PATH: usize = 255;

/// Addresses with which the two ends of a path cannot reach each other: each must have one in a network of the other's.
fn strangers(ports: &[Port]) -> Vec<Fault> {
    let network = |address: &Address| match address.ip {
        IpAddr::V4(ip) => u128::from(ip.to_bits()) >> (32 - address.prefix.min(32)).min(31),
        IpAddr::V6(ip) => ip.to_bits() >> (128 - u32::from(address.prefix.min(128))).min(127),
    };
    let same = |a: &Address, b: &Address| {
        a.ip.is_ipv4() == b.ip.is_ipv4() && a.prefix == b.prefix && network(a) == network(b) && a.ip != b.ip
    };
    let mut faults = Vec::new();
    for port in ports {
        // Each pair once.
        let Some(peer) = ports.iter().find(|peer| peer.name == port.peer && peer.name > port.name) else {
            continue;
        };
        let alone = |address: &&Address| !peer.addresses.iter().any(|other| same(address, other));
        if let Some(address) =
            port.addresses.iter().find(alone).filter(|_| port.addresses.iter().all(|a| alone(&a)))
        {
            let [given, other] = [(port, address), (peer, &peer.addresses[0])];
            let problem = Problem::new(format!(
                "`{}` and `{}` cannot reach each other",
                port.host, peer.host
            ))
            .help(format!(
                "`{}` has {} and `{}` has {}: give both ends addresses in one network, with the same prefix",
                given.0.host, given.1, other.0.host, other.1
            ));
            faults.push(Fault::Link(port.hops[0].link, problem));
        }
    }
    faults
}

/// Gives every port its addresses: those of its host, or automatic ones that are free.
pub(crate) fn address(ports: &mut [Port], hosts: &[Host], is_free: &dyn Fn(Address) -> bool) {
    let mut networks: BTreeMap<String, u16> = BTreeMap::new();
    let hosts: BTreeMap<&str, &Host> = hosts.iter().map(|host| (host.name.as_str(), host)).collect();
    let mut count = 0u16;
    for port in ports {
        let given = hosts[port.host.as_str()].addresses.iter();
        port.addresses = given
            .filter(|given| given.link.as_ref().is_none_or(|link| *link == port.link))
            .map(|given| given.address)
            .collect();
        let (network, end) = match networks.get(&port.name) {
            Some(&network) => (network, 2),
            None => {
                let free = |network: &u16| automatic(*network, 1).into_iter().all(is_free);
                let network = (count..u16::MAX).find(free).unwrap_or(count);
                count = network.wrapping_add(1);
                networks.insert(port.peer.clone(), network);
                (network, 1)
            }
        };
        if port.addresses.is_empty() {
            port.addresses = automatic(network, end).into();
        }
    }
}

/// The addresses of one end of a path. Beyond 10,752 paths IPv4 networks come again; IPv6 has room for the 65,535 ports
/// of a network.
fn automatic(network: u16, end: u8) -> [Address; 2] {
    let [high, low] = network.to_be_bytes();
    let v4 = Ipv4Addr::new(10, 213 + high % 42, low, end);
    // A unique local prefix (RFC 4193) whose forty bits spell "narro".
    let v6 = Ipv6Addr::new(0xfd6e, 0x6172, 0x726f, network, 0, 0, 0, u16::from(end));
    [Address { ip: IpAddr::V4(v4), prefix: 24 }, Address { ip: IpAddr::V6(v6), prefix: 64 }]
}
