//! The keys of filters of the kind `flower`: `ip_proto tcp dst_port 80`.

use std::ops::RangeInclusive;

use narrows_core::classify::{Families, Fragments, LinkPattern, TcpFlags};

use super::both::both;
use super::protocol;
use super::u32::{having, mask, ranges};
use crate::dialect::{Word, Words};
use crate::netem::units;
use crate::node::{Node, Value};
use crate::problem::{Found, Problem};
use crate::value::{
    Match, Party, link_pattern, link_pattern_text, party, protocol as ip_protocol, protocol_name,
};

/// Keys that classes do not match, and why.
const OTHERS: &[(&str, &str)] = &[
    ("vlan_prio", "priorities of VLAN tags are not kept: match `vlan_id`"),
    ("cvlan_id", "only the first VLAN tag is seen"),
    ("cvlan_prio", "only the first VLAN tag is seen"),
    ("cvlan_ethtype", "only the first VLAN tag is seen"),
    ("num_of_vlans", "only the first VLAN tag is seen"),
    ("type", "classes do not see types of ICMP"),
    ("code", "classes do not see types of ICMP"),
    ("arp_tip", "of packets that are not IP, classes see no field"),
    ("arp_sip", "of packets that are not IP, classes see no field"),
    ("arp_op", "of packets that are not IP, classes see no field"),
    ("arp_sha", "of packets that are not IP, classes see no field"),
    ("arp_tha", "of packets that are not IP, classes see no field"),
    ("mpls_label", "classes do not see labels of MPLS"),
    ("mpls_tc", "classes do not see labels of MPLS"),
    ("ct_state", "there is no connection tracking here"),
    ("ct_zone", "there is no connection tracking here"),
    ("ct_mark", "there is no connection tracking here"),
];

/// Whether it is a key of the tunnel that a packet came out of.
pub(super) fn is_of_tunnels(word: &str) -> bool {
    matches!(
        word,
        "enc_key_id" | "enc_src_ip" | "enc_dst_ip" | "enc_src_port" | "enc_dst_port" | "enc_tos" | "enc_ttl"
    )
}

/// Parses one key about a VLAN tag; returns whether it is one.
pub(super) fn of_tag(
    word: Word<'_>,
    words: &mut Words<'_>,
    tagged: bool,
    all: &mut Match,
) -> Result<bool, Problem> {
    if !matches!(word.text, "vlan_id" | "vlan_ethtype") {
        return Ok(false);
    }
    if !tagged {
        return Err(word
            .problem(format!("{} of packets without a VLAN tag", Found(word.text)))
            .help("tc wants the protocol before it, as in: protocol 802.1Q flower vlan_id 100"));
    }
    let new = match word.text {
        "vlan_id" => {
            let id = units::integer(words.expect(word, "a VLAN")?, "a VLAN", 1, 4095)? as u16;
            Match { vlans: vec![id..=id], ..Match::default() }
        }
        _ => {
            let families = protocol::read(words.expect(word, "a type")?)?;
            Match { families: protocol::written(families), ..Match::default() }
        }
    };
    *all =
        both(all, &new).ok_or_else(|| word.problem("no packet matches: it contradicts an earlier match"))?;
    Ok(true)
}

/// The places among fragments that flags such as `frag/nofirstfrag` leave.
fn fragments(after: Word<'_>, words: &mut Words<'_>) -> Result<Match, Problem> {
    let flags = words.expect(after, "flags of fragments")?;
    let mut left = vec![Fragments::WHOLE, Fragments::FIRST, Fragments::LATER];
    for flag in flags.text.split('/') {
        let (name, is) = flag.strip_prefix("no").map_or((flag, true), |name| (name, false));
        let within: &[Fragments] = match name {
            "frag" => &[Fragments::FIRST, Fragments::LATER],
            "firstfrag" => &[Fragments::FIRST],
            _ => {
                return Err(flags
                    .part(flag)
                    .problem(format!("{} is not a flag of fragments", Found(flag)))
                    .help("allowed: frag, nofrag, firstfrag, nofirstfrag, joined by `/`"));
            }
        };
        left.retain(|one| within.contains(one) == is);
    }
    if left.is_empty() {
        return Err(flags.problem("no packet matches: these flags exclude each other"));
    }
    Ok(Match { fragments: left, ..Match::default() })
}

/// Parses one key; returns whether it is one.
pub(super) fn read(word: Word<'_>, words: &mut Words<'_>, all: &mut Match) -> Result<bool, Problem> {
    if let Some((_, why)) = OTHERS.iter().find(|(name, _)| *name == word.text) {
        return Err(word.problem(format!("{} of flower", Found(word.text))).help(*why).help(
            "understood: eth_type, src_mac, dst_mac, ip_proto, src_ip, dst_ip, src_port, dst_port, ip_tos, ip_ttl, ip_flags, vlan_id, vlan_ethtype and tcp_flags",
        ));
    }
    let new = match word.text {
        "ip_proto" => {
            let name = words.expect(word, "a protocol")?;
            let number = name.text.strip_prefix("0x").and_then(|digits| u8::from_str_radix(digits, 16).ok());
            let node = Node { span: name.span(), value: Value::String(name.text.into()) };
            Match { protocols: vec![number.map_or_else(|| ip_protocol(&node), Ok)?], ..Match::default() }
        }
        "src_ip" => Match { sources: network(word, words)?, ..Match::default() },
        "dst_ip" => Match { destinations: network(word, words)?, ..Match::default() },
        "src_port" => Match { source_ports: vec![ports(word, words)?], ..Match::default() },
        "dst_port" => Match { destination_ports: vec![ports(word, words)?], ..Match::default() },
        "src_mac" => Match { link_sources: vec![mac(word, words)?], ..Match::default() },
        "dst_mac" => Match { link_destinations: vec![mac(word, words)?], ..Match::default() },
        "ip_ttl" => {
            let text = words.expect(word, "a TTL")?;
            let ttl: u8 = text.text.parse().map_err(|_| {
                text.problem(format!("{} is not a TTL", Found(text.text)))
                    .help("a number from 0 to 255, without a mask")
            })?;
            Match { hop_limits: vec![ttl..=ttl], ..Match::default() }
        }
        "ip_tos" => {
            let text = words.expect(word, "a value of the TOS byte")?;
            let (value, of) = text.text.split_once('/').unwrap_or((text.text, "ff"));
            // Decimal if possible, else hexadecimal, as in tc.
            let digits = value.strip_prefix("0x").unwrap_or(value);
            let value = value.parse().ok().or_else(|| u8::from_str_radix(digits, 16).ok());
            let value = value.ok_or_else(|| {
                text.problem(format!("{} is not a value of the TOS byte", Found(text.text)))
                    .help("a number from 0 to 255, decimal or hexadecimal, and a mask: as in 0xb8/0xfc for the code point ef")
            })?;
            tos(value, mask(text, of, 8)? as u8)
        }
        "tcp_flags" => {
            let text = words.expect(word, "flags of TCP")?;
            let (value, of) = text.text.split_once('/').unwrap_or((text.text, "ff"));
            let (value, mask) = (mask(text, value, 12)?, mask(text, of, 12)?);
            let flags = TcpFlags { set: (mask & value) as u8, clear: (mask & !value) as u8 };
            if mask > 0xff && text.text.contains('/') {
                return Err(text
                    .problem("flags of TCP beyond the eight of its byte")
                    .help("the bits are fin 1, syn 2, rst 4, psh 8, ack 10, urg 20, ece 40 and cwr 80"));
            }
            Match { tcp_flags: Some(flags), ..Match::default() }
        }
        "ip_flags" => fragments(word, words)?,
        "eth_type" => {
            let families = protocol::read(words.expect(word, "a type")?)?;
            Match { families: protocol::written(families), ..Match::default() }
        }
        _ => return Ok(false),
    };
    *all =
        both(all, &new).ok_or_else(|| word.problem("no packet matches: it contradicts an earlier match"))?;
    Ok(true)
}

/// The code points and ECN values that agree with a value of the TOS byte and a mask.
pub(super) fn tos(value: u8, mask: u8) -> Match {
    Match {
        dscps: having(0xfc, 2, 64, mask, value),
        ecns: having(0x03, 0, 4, mask, value),
        ..Match::default()
    }
}

/// The network that a word names; empty for all. A mask may have the form of an address.
fn network(after: Word<'_>, words: &mut Words<'_>) -> Result<Vec<Party>, Problem> {
    let word = words.expect(after, "an address")?;
    if matches!(word.text, "any" | "all" | "default" | "0/0" | "0.0.0.0/0" | "::/0") {
        return Ok(Vec::new());
    }
    let dotted = word.text.split_once('/').and_then(|(address, mask)| {
        let mask = u32::from(mask.parse::<std::net::Ipv4Addr>().ok()?);
        (mask.leading_ones() + mask.trailing_zeros() == 32)
            .then(|| format!("{address}/{}", mask.leading_ones()))
    });
    let text = dotted.unwrap_or_else(|| word.text.into());
    let node = Node { span: word.span(), value: Value::String(text) };
    Ok(vec![party(&node, &[])?])
}

/// A MAC address, also with a mask.
fn mac(after: Word<'_>, words: &mut Words<'_>) -> Result<LinkPattern, Problem> {
    let text = words.expect(after, "a MAC address")?;
    link_pattern(text.text).ok_or_else(|| {
        text.problem(format!("{} is not a MAC address", Found(text.text)))
            .help("six bytes such as 02:00:00:00:00:01, and a mask such as /24 or /01:00:00:00:00:00")
    })
}

fn ports(after: Word<'_>, words: &mut Words<'_>) -> Result<RangeInclusive<u16>, Problem> {
    let text = words.expect(after, "a port")?;
    let wrong = || text.problem(format!("{} is not a port, and no range of ports", Found(text.text)));
    if let Some((value, of)) = text.text.split_once('/') {
        let value: u16 = value.parse().map_err(|_| wrong())?;
        let all = ranges(value, mask(text, of, 16)? as u16);
        return match all.as_deref() {
            Ok([range]) => Ok(range.clone()),
            _ => Err(text.problem(format!("the mask {of} is not a range"))),
        };
    }
    let (low, high) = text.text.split_once('-').unwrap_or((text.text, text.text));
    let (low, high): (u16, u16) = (low.parse().map_err(|_| wrong())?, high.parse().map_err(|_| wrong())?);
    if low > high {
        return Err(wrong());
    }
    Ok(low..=high)
}

/// The condition in the syntax of `flower`; `None` if it cannot express it: lists, hosts by name, lengths.
pub(super) fn words(all: &Match) -> Option<String> {
    let one = |parties: &[Party]| match parties {
        [] => Some(None),
        [Party::Network { ip, prefix }] => Some(Some(format!("{ip}/{prefix}"))),
        _ => None,
    };
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
    if plain != Match::default() {
        return None;
    }
    let tos = match (number(&all.dscps)?, number(&all.ecns)?) {
        (None, None) => None,
        (Some(point), None) => Some(format!("{:#x}/0xfc", point << 2)),
        (None, Some(field)) => Some(format!("{field:#x}/0x3")),
        (Some(point), Some(field)) => Some(format!("{:#x}/0xff", point << 2 | field)),
    };
    let family = match &all.families[..] {
        [] => None,
        [Families::IPV4] => Some("ipv4".to_owned()),
        [Families::IPV6] => Some("ipv6".to_owned()),
        _ => return None,
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
    let parts = [
        ("eth_type", family),
        ("ip_flags", flags.map(str::to_owned)),
        (
            "ip_proto",
            number(&all.protocols)?
                .map(|number| protocol_name(number).map_or_else(|| number.to_string(), Into::into)),
        ),
        ("src_mac", mac(&all.link_sources)?),
        ("dst_mac", mac(&all.link_destinations)?),
        ("ip_tos", tos),
        ("ip_ttl", ttl),
        ("src_ip", one(&all.sources)?),
        ("dst_ip", one(&all.destinations)?),
        ("src_port", port(&all.source_ports)?),
        ("dst_port", port(&all.destination_ports)?),
        ("tcp_flags", all.tcp_flags.map(|flags| format!("{:#x}/{:#x}", flags.set, flags.set | flags.clear))),
    ];
    let said = parts.into_iter().filter_map(|(word, value)| Some(format!("{word} {}", value?)));
    Some(said.collect::<Vec<_>>().join(" "))
}
