//! Conjunction of conditions.

use narrows_core::classify::{Families, LinkPattern, TcpFlags};

use crate::value::{Match, Party};

/// A condition that matches where both do; `None` if they exclude each other.
pub(super) fn both(one: &Match, other: &Match) -> Option<Match> {
    fn part<T: Clone + PartialEq>(one: &[T], other: &[T]) -> Option<Vec<T>> {
        match (one, other) {
            ([], all) | (all, []) => Some(all.to_vec()),
            _ => {
                let both: Vec<T> = one.iter().filter(|item| other.contains(item)).cloned().collect();
                (!both.is_empty()).then_some(both)
            }
        }
    }
    fn ranges<T: Ord + Copy>(
        one: &[std::ops::RangeInclusive<T>],
        other: &[std::ops::RangeInclusive<T>],
    ) -> Option<Vec<std::ops::RangeInclusive<T>>> {
        if one.is_empty() || other.is_empty() {
            return Some([one, other].concat());
        }
        let both: Vec<_> = one
            .iter()
            .flat_map(|a| other.iter().map(move |b| *a.start().max(b.start())..=*a.end().min(b.end())))
            .filter(|range| range.start() <= range.end())
            .collect();
        (!both.is_empty()).then_some(both)
    }
    fn patterns(one: &[LinkPattern], other: &[LinkPattern]) -> Option<Vec<LinkPattern>> {
        if one.is_empty() || other.is_empty() {
            return Some([one, other].concat());
        }
        let both: Vec<_> = one.iter().flat_map(|a| other.iter().filter_map(|b| a.and(b))).collect();
        (!both.is_empty()).then_some(both)
    }
    fn parties(one: &[Party], other: &[Party]) -> Option<Vec<Party>> {
        if one.is_empty() || other.is_empty() {
            return Some([one, other].concat());
        }
        let mut both = Vec::new();
        for a in one {
            for b in other {
                match (a, b) {
                    (
                        Party::Network { ip: first, prefix: long },
                        Party::Network { ip: second, prefix: short },
                    ) => {
                        let (inner, outer, most) =
                            if long >= short { (a, second, *short) } else { (b, first, *long) };
                        let Party::Network { ip, .. } = inner else { continue };
                        if within(*ip, *outer, most) {
                            both.push(inner.clone());
                        }
                    }
                    _ if a == b => both.push(a.clone()),
                    _ => {}
                }
            }
        }
        (!both.is_empty()).then_some(both)
    }
    let joined = Match {
        protocols: part(&one.protocols, &other.protocols)?,
        icmp: ranges(&one.icmp, &other.icmp)?,
        sources: parties(&one.sources, &other.sources)?,
        destinations: parties(&one.destinations, &other.destinations)?,
        source_ports: ranges(&one.source_ports, &other.source_ports)?,
        destination_ports: ranges(&one.destination_ports, &other.destination_ports)?,
        ports: ranges(&one.ports, &other.ports)?,
        dscps: part(&one.dscps, &other.dscps)?,
        ecns: part(&one.ecns, &other.ecns)?,
        length: match (&one.length, &other.length) {
            (Some(a), Some(b)) => {
                let both = *a.start().max(b.start())..=*a.end().min(b.end());
                Some(both).filter(|both| both.start() <= both.end()).map(Some)?
            }
            (one, other) => one.clone().or(other.clone()),
        },
        families: part(&one.families, &other.families)?,
        tcp_flags: match (one.tcp_flags, other.tcp_flags) {
            (Some(a), Some(b)) => {
                let both = TcpFlags { set: a.set | b.set, clear: a.clear | b.clear };
                Some(Some(both).filter(|both| both.set & both.clear == 0)?)
            }
            (one, other) => one.or(other),
        },
        link_sources: patterns(&one.link_sources, &other.link_sources)?,
        link_destinations: patterns(&one.link_destinations, &other.link_destinations)?,
        hop_limits: ranges(&one.hop_limits, &other.hop_limits)?,
        vlans: ranges(&one.vlans, &other.vlans)?,
        fragments: part(&one.fragments, &other.fragments)?,
        from: one.from.clone().or_else(|| other.from.clone()),
    };
    of_one_family(joined)
}

/// Addresses say the family, too; `None` if that is another one.
fn of_one_family(mut all: Match) -> Option<Match> {
    let parties = all.sources.iter().chain(&all.destinations);
    let families = parties.map(|party| match party {
        Party::Network { ip, .. } if ip.is_ipv4() => Families::IPV4,
        Party::Network { .. } => Families::IPV6,
        Party::Host(_) => Families::IPV4.or(Families::IPV6),
    });
    let Some(of_addresses) = families.reduce(Families::or) else { return Some(all) };
    let asked = all.families.iter().copied().reduce(Families::or).unwrap_or(Families::ALL);
    if of_addresses.and(asked).is_empty() {
        return None;
    }
    if of_addresses.and(asked) == of_addresses {
        all.families = Vec::new();
    }
    Some(all)
}

/// Whether an address is in a network.
fn within(ip: std::net::IpAddr, network: std::net::IpAddr, prefix: u8) -> bool {
    use std::net::IpAddr::{V4, V6};
    match (ip, network) {
        (V4(a), V4(b)) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
            a.to_bits() & mask == b.to_bits() & mask
        }
        (V6(a), V6(b)) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
            a.to_bits() & mask == b.to_bits() & mask
        }
        _ => false,
    }
}
