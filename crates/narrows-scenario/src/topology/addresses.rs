//! Addresses of the ends: the configured ones, or free automatic ones.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Fault;
use super::segments::{End, Owner};
use crate::host::{Address, Host, HostAddress};
use crate::problem::Problem;
use crate::router::Router;

/// Assigns the addresses of every end.
pub(super) fn give(ends: &mut [End], hosts: &[Host], routers: &[Router], is_free: &dyn Fn(Address) -> bool) {
    let mut networks: BTreeMap<usize, u16> = BTreeMap::new();
    let mut count = 0u16;
    for (index, end) in ends.iter_mut().enumerate() {
        let given: &[HostAddress] = match end.owner {
            Owner::Host(host) => &hosts[host].addresses,
            Owner::Router(router) => &routers[router].addresses,
        };
        let here = |given: &&HostAddress| given.link.as_ref().is_none_or(|link| *link == end.link);
        end.addresses = given.iter().filter(here).map(|given| given.address).collect();
        let (network, place) = match networks.get(&index) {
            Some(&network) => (network, 2),
            None => {
                let free = |network: &u16| automatic(*network, 1).into_iter().all(is_free);
                let network = (count..u16::MAX).find(free).unwrap_or(count);
                count = network.wrapping_add(1);
                networks.insert(end.peer, network);
                (network, 1)
            }
        };
        if end.addresses.is_empty() {
            end.addresses = automatic(network, place).into();
        }
    }
}

/// The automatic addresses of one end of a segment. Beyond 10,752 segments, IPv4 networks repeat; IPv6 has
/// room for the 65,535 ports of a network.
fn automatic(network: u16, end: u8) -> [Address; 2] {
    let [high, low] = network.to_be_bytes();
    let v4 = Ipv4Addr::new(10, 213 + high % 42, low, end);
    // A unique local prefix (RFC 4193) whose forty bits spell "narro".
    let v6 = Ipv6Addr::new(0xfd6e, 0x6172, 0x726f, network, 0, 0, 0, u16::from(end));
    [Address { ip: IpAddr::V4(v4), prefix: 24 }, Address { ip: IpAddr::V6(v6), prefix: 64 }]
}

/// Whether two addresses reach each other without a router.
pub(super) fn are_neighbours(a: &Address, b: &Address) -> bool {
    a.network() == b.network() && a.ip != b.ip
}

/// Checks the addresses.
pub(super) fn check(ends: &[End], routers: &[Router]) -> Vec<Fault> {
    let faults = strangers(ends);
    if faults.is_empty() && !routers.is_empty() { overlaps(ends) } else { faults }
}

/// Finds segments whose ends cannot reach each other: each end must have an address in a network of the
/// other.
fn strangers(ends: &[End]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for end in ends {
        let peer = &ends[end.peer];
        // Check each pair once.
        if peer.name <= end.name {
            continue;
        }
        let alone = |address: &&Address| !peer.addresses.iter().any(|other| are_neighbours(address, other));
        if let Some(address) =
            end.addresses.iter().find(alone).filter(|_| end.addresses.iter().all(|a| alone(&a)))
        {
            let problem = Problem::new(format!(
                "`{}` and `{}` cannot reach each other",
                end.owner_name, peer.owner_name
            ))
            .help(format!(
                "`{}` has {address} and `{}` has {}: give both ends addresses in one network, with the same prefix",
                end.owner_name, peer.owner_name, peer.addresses[0]
            ));
            faults.push(Fault::Link(end.hops[0].link, problem));
        }
    }
    faults
}

/// Finds overlapping networks of two segments, which no route could distinguish. Networks without a router
/// may overlap.
fn overlaps(ends: &[End]) -> Vec<Fault> {
    let mut networks: Vec<(Address, usize)> = Vec::new();
    for (index, end) in ends.iter().enumerate() {
        let is_routed = [end, &ends[end.peer]].iter().any(|end| matches!(end.owner, Owner::Router(_)));
        if is_routed {
            // The segment's number, from both of its ends.
            let segment = index.min(end.peer);
            networks.extend(end.addresses.iter().map(|address| (address.network(), segment)));
        }
    }
    // In this order, a network directly precedes the networks within it, except for others within it.
    networks.sort_by_key(|(network, segment)| (network.ip, network.prefix, *segment));
    networks.dedup();
    let mut faults = Vec::new();
    let mut around: Vec<(Address, usize)> = Vec::new();
    for (network, segment) in networks {
        while around.last().is_some_and(|(outer, _)| !contains(outer, &network)) {
            around.pop();
        }
        if let Some(&(outer, other)) = around.iter().find(|(_, other)| *other != segment) {
            let [here, there] = [segment, other].map(|end| &ends[end]);
            let problem = Problem::new(format!(
                "the addresses of `{}` and `{}` overlap: {network} and {outer}",
                here.link, there.link
            ))
            .help("each link, or chain of links, between routers and hosts is a separate network");
            faults.push(Fault::Link(here.hops[0].link, problem));
        }
        around.push((network, segment));
    }
    faults
}

/// Whether one network contains all addresses of the other.
fn contains(outer: &Address, inner: &Address) -> bool {
    outer.ip.is_ipv4() == inner.ip.is_ipv4()
        && outer.prefix <= inner.prefix
        && Address { prefix: outer.prefix, ..*inner }.network() == *outer
}
