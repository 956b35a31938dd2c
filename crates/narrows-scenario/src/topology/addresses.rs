//! Addresses of the ends: the configured ones, or free automatic ones.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::segments::{End, Owner};
use super::wiring::Wiring;
use super::{Fault, Hop, HostRoute};
use crate::host::{Address, Host, HostAddress};
use crate::link::{Link, Way};
use crate::problem::Problem;
use crate::router::Router;

/// Assigns the addresses of every end at a host or a router.
pub(super) fn give(
    wiring: &mut Wiring,
    hosts: &[Host],
    routers: &[Router],
    is_free: &dyn Fn(Address) -> bool,
) {
    let Wiring { ends, domains, .. } = wiring;
    let usual: u64 = domains.iter().map(|domain| u64::from(Block::usual(domain.len()).size)).sum();
    let is_large = usual > ADDRESSES.into();
    let mut first = 0u32;
    let mut is_full = false;
    for domain in domains {
        let block = if is_large { Block::small(domain.len()) } else { Block::usual(domain.len()) };
        // Blocks start at a multiple of their size.
        let free = |network: &u32| {
            block.parts(*network).all(|network| block.automatic(network, 1).into_iter().all(is_free))
        };
        let start = first.next_multiple_of(block.size);
        let last = if is_full { start } else { ADDRESSES.saturating_sub(block.size) };
        let found = (start..=last).step_by(block.size as usize).find(free);
        is_full |= found.is_none();
        let network = found.unwrap_or(start);
        first = network.wrapping_add(block.size);
        for (place, &mut index) in (1..).zip(domain) {
            let end = &mut ends[index];
            let given: &[HostAddress] = match end.owner {
                Owner::Host(host) => &hosts[host].addresses,
                Owner::Router(router) => &routers[router].addresses,
                Owner::Switch(_) => &[],
            };
            let here = |given: &&HostAddress| given.link.as_ref().is_none_or(|link| *link == end.link);
            end.addresses = given.iter().filter(here).map(|given| given.address).collect();
            if end.addresses.is_empty() {
                end.addresses = block.automatic(network, place).into();
            }
        }
    }
}

/// Gives the outer addresses of translators that nobody has to the first end of their link, each as a network of its
/// own.
pub(super) fn give_outer(wiring: &mut Wiring, links: &[Link]) {
    for (number, link) in links.iter().enumerate() {
        let Some(rules) = link.rules() else { continue };
        let first = Hop { link: number, way: Way::Up };
        let Some(at) = wiring.ends.iter().position(|end| end.hops.first() == Some(&first)) else { continue };
        for outer in rules.outer_addresses() {
            let address = Address::host(IpAddr::V4(outer));
            let mut all = wiring.ends.iter().flat_map(|end| &end.addresses);
            if !all.any(|known| known.ip == address.ip) {
                wiring.ends[at].addresses.push(address);
            }
        }
    }
}

/// Finds translators whose outer address another has, and those without one.
pub(super) fn untranslatable(wiring: &Wiring, links: &[Link]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (number, link) in links.iter().enumerate() {
        let Some(rules) = link.rules() else { continue };
        let first = Hop { link: number, way: Way::Up };
        let Some(end) = wiring.ends.iter().find(|end| end.hops.first() == Some(&first)) else { continue };
        for outer in rules.outer_addresses() {
            let has = |other: &&End| other.addresses.iter().any(|address| address.ip == IpAddr::V4(outer));
            if let Some(other) = wiring.ends.iter().filter(has).find(|other| other.owner != end.owner) {
                let problem = Problem::new(format!(
                    "a translator has the outer address {outer}, which is that of `{}`",
                    other.owner_name
                ));
                let help = format!("give it one of `{}`, or one that nobody has", end.owner_name);
                faults.push(Fault::Link(number, problem.help(help)));
            }
        }
        let is_v4 = |address: &Address| address.ip.is_ipv4();
        if let Some(nat) = rules.needs_own_address().filter(|_| !end.addresses.iter().any(is_v4)) {
            let title =
                format!("translator {nat} has no `address`, and `{}` has none of IPv4", end.owner_name);
            faults.push(Fault::Link(number, Problem::new(title)));
        }
    }
    faults
}

/// The routes of a host to such addresses at the other ends of its segment.
pub(super) fn outer_routes(wiring: &Wiring, end: usize) -> Vec<HostRoute> {
    let own = &wiring.ends[end].addresses;
    let mut routes = Vec::new();
    for neighbour in wiring.neighbours(end) {
        let addresses = &wiring.ends[neighbour].addresses;
        let gateway = addresses
            .iter()
            .find(|address| address.ip.is_ipv4() && own.iter().any(|own| are_neighbours(own, address)));
        let is_outer = |address: &&Address| address.ip.is_ipv4() && address.prefix == 32;
        let Some(gateway) = gateway else { continue };
        let outer = addresses.iter().filter(is_outer).filter(|address| address.ip != gateway.ip);
        routes.extend(outer.map(|&to| HostRoute { to, via: gateway.ip }));
    }
    routes
}

/// Automatic addresses of IPv4: those of 10.213.0.0 to 10.254.255.255.
const ADDRESSES: u32 = 42 << 16;

/// The automatic addresses of one domain: a network of IPv4 and one of IPv6.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// Addresses of IPv4, a power of two.
    size: u32,
    /// Whether it may be smaller than a /24.
    is_small: bool,
}

impl Block {
    /// Whole /24 networks: easy to read.
    fn usual(ends: usize) -> Self {
        Self { size: Self::small(ends).size.max(256), is_small: false }
    }

    /// No more addresses than needed, for networks that have no room for others.
    fn small(ends: usize) -> Self {
        // The first and the last address are not for hosts.
        let size = u32::try_from((ends + 2).next_power_of_two()).unwrap_or(1 << 20);
        Self { size, is_small: true }
    }

    /// One of its addresses out of 256.
    fn parts(self, first: u32) -> impl Iterator<Item = u32> {
        (first..first.saturating_add(self.size)).step_by(256)
    }

    /// The automatic addresses of one end. Beyond the addresses of IPv4 that there are, they repeat.
    fn automatic(self, network: u32, end: u32) -> [Address; 2] {
        let v4 = Ipv4Addr::from_bits((10 << 24 | 213 << 16) + network.wrapping_add(end) % ADDRESSES);
        let v4 = Address { ip: IpAddr::V4(v4), prefix: 32 - self.size.ilog2() as u8 };
        // A unique local prefix (RFC 4193) whose forty bits spell "narro", and one /64 for each /24; where blocks are smaller,
        // one /80 for each address.
        let (groups, prefix) = match self.is_small {
            false => ([(network >> 8) as u16, 0], 64),
            true => ([(network >> 16) as u16, network as u16], 80),
        };
        let [third, fourth] = groups;
        let [high, low] = [(end >> 16) as u16, end as u16];
        let v6 = Ipv6Addr::new(0xfd6e, 0x6172, 0x726f, third, fourth, 0, high, low);
        [v4, Address { ip: IpAddr::V6(v6), prefix }]
    }
}

/// Whether two addresses reach each other without a router.
pub(super) fn are_neighbours(a: &Address, b: &Address) -> bool {
    a.network() == b.network() && a.ip != b.ip
}

/// Checks the addresses.
pub(super) fn check(wiring: &Wiring, routers: &[Router]) -> Vec<Fault> {
    let mut faults = strangers(wiring);
    faults.extend(taken(wiring));
    if faults.is_empty() && !routers.is_empty() { overlaps(wiring) } else { faults }
}

/// Finds ends that cannot reach any other end of their domain: each must have an address in a network of
/// another.
fn strangers(wiring: &Wiring) -> Vec<Fault> {
    let ends = &wiring.ends;
    let mut faults = Vec::new();
    for domain in &wiring.domains {
        let mut all: BTreeMap<Address, usize> = BTreeMap::new();
        for address in domain.iter().flat_map(|&end| &ends[end].addresses) {
            *all.entry(address.network()).or_default() += 1;
        }
        let reaches = |&&end: &&usize| {
            let own = |network| ends[end].addresses.iter().filter(|own| own.network() == network).count();
            ends[end].addresses.iter().any(|address| all[&address.network()] > own(address.network()))
        };
        let Some(&alone) = domain.iter().find(|end| !reaches(end)) else { continue };
        let Some(&other) = domain.iter().find(|&&end| end != alone) else { continue };
        let (end, other) = (&ends[alone], &ends[other]);
        let problem = Problem::new(format!(
            "`{}` and `{}` cannot reach each other",
            end.owner_name, other.owner_name
        ))
        .help(format!(
            "`{}` has {} and `{}` has {}: give both ends addresses in one network, with the same prefix",
            end.owner_name, end.addresses[0], other.owner_name, other.addresses[0]
        ));
        faults.push(Fault::Link(end.hops[0].link, problem));
    }
    faults
}

/// Finds addresses that two ends of a domain have.
fn taken(wiring: &Wiring) -> Vec<Fault> {
    let mut faults = Vec::new();
    for domain in &wiring.domains {
        let mut owners: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for &index in domain {
            let end = &wiring.ends[index];
            for address in &end.addresses {
                let Some(other) = owners.insert(address.ip, index).filter(|&other| other != index) else {
                    continue;
                };
                let other = &wiring.ends[other].owner_name;
                let problem = Problem::new(format!(
                    "`{}` and `{other}` have the address {}",
                    end.owner_name, address.ip
                ))
                .help("give each its own");
                faults.push(Fault::Link(end.hops[0].link, problem));
            }
        }
    }
    faults
}

/// Finds overlapping networks of two domains, which no route could distinguish. Networks without a router
/// may overlap.
fn overlaps(wiring: &Wiring) -> Vec<Fault> {
    let ends = &wiring.ends;
    let mut networks: Vec<(Address, usize)> = Vec::new();
    for (number, domain) in wiring.domains.iter().enumerate() {
        if domain.iter().any(|&end| wiring.router(end).is_some()) {
            let addresses = domain.iter().flat_map(|&end| &ends[end].addresses);
            networks.extend(addresses.map(|address| (address.network(), number)));
        }
    }
    // In this order, a network directly precedes the networks within it, except for others within it.
    networks.sort_by_key(|(network, domain)| (network.ip, network.prefix, *domain));
    networks.dedup();
    let mut faults = Vec::new();
    let mut around: Vec<(Address, usize)> = Vec::new();
    for (network, domain) in networks {
        while around.last().is_some_and(|(outer, _)| !contains(outer, &network)) {
            around.pop();
        }
        if let Some(&(outer, other)) = around.iter().find(|(_, other)| *other != domain) {
            let [here, there] = [domain, other].map(|domain| &ends[wiring.domains[domain][0]]);
            let problem = Problem::new(format!(
                "the addresses of `{}` and `{}` overlap: {network} and {outer}",
                here.link, there.link
            ))
            .help("each link, or chain of links, between routers and hosts is a separate network; so is each VLAN of switches");
            faults.push(Fault::Link(here.hops[0].link, problem));
        }
        around.push((network, domain));
    }
    faults
}

/// Whether one network contains all addresses of the other.
fn contains(outer: &Address, inner: &Address) -> bool {
    outer.ip.is_ipv4() == inner.ip.is_ipv4()
        && outer.prefix <= inner.prefix
        && Address { prefix: outer.prefix, ..*inner }.network() == *outer
}
