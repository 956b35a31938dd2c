//! Conditions as filters of tc: with `flower`, or with `u32` for ports of any protocol.

use std::ops::RangeInclusive;

use narrows_core::classify::{Families, Fragments, LinkPattern};

use super::flower;
use crate::value::{Match, Party, link_pattern_text};

/// The values of `protocol` with which filters express the condition: both versions of IP where either would do and
/// something in it is about IP, `all` where nothing is.
pub(super) fn protocols(all: &Match) -> &'static [&'static str] {
    let mut networks = all.sources.iter().chain(&all.destinations).filter_map(|party| match party {
        Party::Network { ip, .. } => Some(ip.is_ipv4()),
        _ => None,
    });
    match (&all.families[..], networks.next()) {
        ([Families::IPV4], _) | ([], Some(true)) => &["ip"],
        ([Families::IPV6], _) | ([], Some(false)) => &["ipv6"],
        _ => {
            let of_any = Match {
                link_sources: all.link_sources.clone(),
                link_destinations: all.link_destinations.clone(),
                fragments: all.fragments.clone(),
                ..Match::default()
            };
            if *all == of_any { &["all"] } else { &["ip", "ipv6"] }
        }
    }
}

/// The filter for packets of this protocol, which is one of [`protocols`]; `None` if tc cannot express it: lists, hosts by
/// name, lengths.
pub(super) fn words(all: &Match, protocol: &str) -> Option<String> {
    match (&all.protocols[..], &all.source_ports[..], &all.destination_ports[..]) {
        (_, [], []) | ([6 | 17 | 132], ..) => flower(all, protocol),
        ([], ..) => u32(all, protocol),
        _ => None,
    }
}

fn flower(all: &Match, protocol: &str) -> Option<String> {
    let port = |ports: &[RangeInclusive<u16>]| match ports {
        [] => Some(None),
        [range] if range.start() == range.end() => Some(Some(range.start().to_string())),
        [range] => Some(Some(format!("{}-{}", range.start(), range.end()))),
        _ => None,
    };
    let number = |numbers: &[u8]| match numbers {
        [] => Some(None),
        [one] => Some(Some(*one)),
        _ => None,
    };
    let mac = |addresses: &[LinkPattern]| match addresses {
        [] => Some(None),
        [one] => Some(Some(link_pattern_text(one))),
        _ => None,
    };
    let ttl = match &all.hop_limits[..] {
        [] => None,
        [one] if one.start() == one.end() => Some(one.start().to_string()),
        _ => return None,
    };
    let plain = Match {
        ports: all.ports.clone(),
        length: all.length.clone(),
        from: all.from.clone(),
        // A filter of `flower` with a VLAN needs another `protocol`.
        vlans: all.vlans.clone(),
        ..Match::default()
    };
    if plain != Match::default() || !matches!(all.families[..], [] | [Families::IPV4] | [Families::IPV6]) {
        return None;
    }
    let tos = match (number(&all.dscps)?, number(&all.ecns)?) {
        (None, None) => None,
        (Some(point), None) => Some(format!("{:#x}/0xfc", point << 2)),
        (None, Some(field)) => Some(format!("{field:#x}/0x3")),
        (Some(point), Some(field)) => Some(format!("{:#x}/0xff", point << 2 | field)),
    };
    let flags = match &all.fragments[..] {
        [] => None,
        [Fragments::WHOLE] => Some("nofrag"),
        [Fragments::FIRST] => Some("firstfrag"),
        [Fragments::LATER] => Some("frag/nofirstfrag"),
        [Fragments::FIRST, Fragments::LATER] => Some("frag"),
        [Fragments::WHOLE, Fragments::LATER] => Some("nofirstfrag"),
        _ => return None,
    };
    let tcp_flags = match (&all.tcp_flags, &all.protocols[..]) {
        (None, _) => None,
        (Some(flags), [6]) => Some(format!("{:#x}/{:#x}", flags.set, flags.set | flags.clear)),
        _ => return None,
    };
    let (icmp_type, icmp_code) = icmp(all)?;
    let parts = [
        ("ip_flags", flags.map(str::to_owned)),
        ("ip_proto", number(&all.protocols)?.map(|number| protocol_name(number, protocol))),
        ("type", icmp_type),
        ("code", icmp_code),
        ("src_mac", mac(&all.link_sources)?),
        ("dst_mac", mac(&all.link_destinations)?),
        ("ip_tos", tos),
        ("ip_ttl", ttl),
        ("src_ip", network(&all.sources)?),
        ("dst_ip", network(&all.destinations)?),
        ("src_port", port(&all.source_ports)?),
        ("dst_port", port(&all.destination_ports)?),
        ("tcp_flags", tcp_flags),
    ];
    let said = parts.into_iter().filter_map(|(word, value)| Some(format!(" {word} {}", value?)));
    Some("flower".to_owned() + &said.collect::<String>())
}

/// A type and a code of ICMP, if there are any; `None` if there are several.
fn icmp(all: &Match) -> Option<(Option<String>, Option<String>)> {
    let [range] = &all.icmp[..] else { return all.icmp.is_empty().then_some((None, None)) };
    let ([kind, low], [last, high]) = (range.start().to_be_bytes(), range.end().to_be_bytes());
    let code = match (low, high) {
        (0, 0xff) => None,
        (one, other) if one == other => Some(one.to_string()),
        _ => return None,
    };
    (kind == last && matches!(all.protocols[..], [1 | 58])).then(|| (Some(kind.to_string()), code))
}

/// The one network of a list, if it has any; `None` if it has more, or hosts by name.
fn network(parties: &[Party]) -> Option<Option<String>> {
    match parties {
        [] => Some(None),
        [Party::Network { ip, prefix }] => Some(Some(format!("{ip}/{prefix}"))),
        _ => None,
    }
}

/// Ports of any protocol, which only `u32` can match, by their bytes; with addresses.
fn u32(all: &Match, protocol: &str) -> Option<String> {
    let plain = Match {
        families: all.families.clone(),
        sources: all.sources.clone(),
        destinations: all.destinations.clone(),
        source_ports: all.source_ports.clone(),
        destination_ports: all.destination_ports.clone(),
        ..Match::default()
    };
    if *all != plain {
        return None;
    }
    let port = |ports: &[RangeInclusive<u16>]| match ports {
        [] => Some(None),
        [range] if range.start() == range.end() => Some(Some(format!("{} 0xffff", range.start()))),
        _ => None,
    };
    let parts = [
        ("src", network(&all.sources)?),
        ("dst", network(&all.destinations)?),
        ("sport", port(&all.source_ports)?),
        ("dport", port(&all.destination_ports)?),
    ];
    let header = if protocol == "ipv6" { "ip6" } else { "ip" };
    let said =
        parts.into_iter().filter_map(|(word, value)| Some(format!(" match {header} {word} {}", value?)));
    Some("u32".to_owned() + &said.collect::<String>())
}

/// A protocol by its name in tc, or in hexadecimal.
fn protocol_name(number: u8, within: &str) -> String {
    let icmp = match within {
        "ip" => Some(&flower::ICMP),
        "ipv6" => Some(&flower::ICMP_OF_IPV6),
        _ => None,
    };
    let name = flower::NAMES.iter().chain(icmp).find(|(_, known)| *known == number);
    name.map_or_else(|| format!("{number:#x}"), |(name, _)| (*name).into())
}
