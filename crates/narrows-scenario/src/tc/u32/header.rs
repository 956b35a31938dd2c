//! The fields of an IP header that a pattern is about, as a condition.
//!
//! IPv4 headers have no options here, and IPv6 headers no extensions: ports are at 20 and 40. (`match ip
//! dport` has the same assumption.)

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use narrows_core::classify::{Families, Fragments, LinkPattern, TcpFlags};

use super::pattern::{Field, Pattern};
use crate::problem::Problem;
use crate::value::{Match, Party};

const TCP: u8 = 6;
/// TCP, UDP, DCCP, SCTP, UDP-Lite.
const WITH_PORTS: [u8; 5] = [6, 17, 33, 132, 136];

/// Why a pattern is no condition.
pub(super) struct Unknown {
    /// The offset of the byte.
    pub(super) at: i32,
    pub(super) problem: Box<Problem>,
}

impl Unknown {
    fn new(at: i32, problem: Problem) -> Self {
        Self { at, problem: Box::new(problem) }
    }
}

/// Where IPv4 and IPv6 have a field.
struct Layout {
    family: Families,
    version: u8,
    length: i32,
    /// What the length field does not count.
    header: u32,
    /// The shortest packet.
    least: u32,
    protocol: i32,
    hop_limit: i32,
    source: i32,
    destination: i32,
    address: i32,
    ports: i32,
    flags: i32,
    /// The protocol number of its ICMP.
    icmp: u8,
    /// Other fields: first and last byte, and what they are.
    others: &'static [(i32, i32, &'static str)],
}

const IPV4: Layout = Layout {
    family: Families::IPV4,
    version: 4,
    length: 2,
    header: 0,
    least: 20,
    protocol: 9,
    hop_limit: 8,
    source: 12,
    destination: 16,
    address: 4,
    ports: 20,
    flags: 33,
    icmp: 1,
    others: &[
        (4, 5, "the identification of IPv4 packets"),
        (6, 7, "the fragmentation of IPv4 packets"),
        (10, 11, "the checksum of the header"),
    ],
};

const IPV6: Layout = Layout {
    family: Families::IPV6,
    version: 6,
    length: 4,
    header: 40,
    least: 40,
    protocol: 6,
    hop_limit: 7,
    source: 8,
    destination: 24,
    address: 16,
    ports: 40,
    flags: 53,
    icmp: 58,
    others: &[(1, 3, "the flow label")],
};

/// The condition that a pattern stands for in packets of these families; `None` if no packet has it.
pub(super) fn condition(mut pattern: Pattern, families: Families) -> Result<Option<Match>, Unknown> {
    if pattern.is_empty() {
        return Ok(Some(Match { families: super::super::protocol::written(families), ..Match::default() }));
    }
    let layout = match families {
        Families::IPV6 => IPV6,
        Families::OTHER => {
            let problem =
                Problem::new("bytes of packets that are not IP").help("match all of them: match u32 0 0");
            return Err(Unknown::new(pattern.left().unwrap_or(0), problem));
        }
        _ => IPV4,
    };
    let mut all = Match::default();
    if !link_header(&mut pattern, families, &mut all)? {
        return Ok(None);
    }
    if pattern.is_empty() {
        all.families = super::super::protocol::written(families);
        return Ok(Some(all));
    }
    if !first_word(&mut pattern, &layout, &mut all) {
        return Ok(None);
    }
    if let Some(field) = pattern.take(layout.length, 2) {
        let ranges = field.ranges().map_err(|problem| Unknown::new(layout.length, problem))?;
        match &ranges[..] {
            [range] => {
                let bytes = |end: &u16| u32::from(*end) + layout.header;
                // Shorter than the header.
                if bytes(range.end()) < layout.least {
                    return Ok(None);
                }
                all.length = Some(bytes(range.start())..=bytes(range.end()));
            }
            _ => {
                let problem =
                    Problem::new(format!("the mask {:#06x} of the length is not a range", field.mask));
                return Err(Unknown::new(layout.length, problem));
            }
        }
    }
    let mut protocol = None;
    if let Some(field) = pattern.take(layout.protocol, 1) {
        protocol = field.whole_byte();
        let agrees = |number: &u8| u32::from(*number) & field.mask == field.value;
        all.protocols = (0..=u8::MAX).filter(agrees).collect();
    }
    if let Some(field) = pattern.take(layout.hop_limit, 1) {
        let ranges = field.byte_ranges().map_err(|problem| Unknown::new(layout.hop_limit, problem))?;
        all.hop_limits = ranges;
    }
    all.sources.extend(address(&mut pattern, &layout, layout.source)?);
    all.destinations.extend(address(&mut pattern, &layout, layout.destination)?);
    transport(&mut pattern, &layout, protocol, &mut all)?;
    fragments(&mut pattern, &layout, &mut all);
    if let Some(at) = pattern.left() {
        return Err(other(at, &layout));
    }
    if all.sources.is_empty() && all.destinations.is_empty() {
        all.families = vec![layout.family];
    }
    Ok(Some(all))
}

/// The addresses and the type of an Ethernet header without tags, which ends where the network header begins; returns
/// whether a packet can match.
fn link_header(pattern: &mut Pattern, families: Families, all: &mut Match) -> Result<bool, Unknown> {
    const TYPES: [(Families, u32); 2] = [(Families::IPV4, 0x0800), (Families::IPV6, 0x86dd)];
    for (at, addresses) in [(-14, &mut all.link_destinations), (-8, &mut all.link_sources)] {
        let parts: [Option<Field>; 6] = std::array::from_fn(|byte| pattern.take(at + byte as i32, 1));
        if parts.iter().any(Option::is_some) {
            let bytes = |of: fn(Field) -> u32| parts.map(|part| part.map_or(0, of) as u8);
            addresses.push(LinkPattern::new(bytes(|part| part.value), bytes(|part| part.mask)));
        }
    }
    let Some(field) = pattern.take(-2, 2) else { return Ok(true) };
    // A filter of all protocols is asked about each family by itself.
    let own = TYPES.iter().find(|(family, _)| *family == families).map(|(_, number)| *number);
    match own {
        Some(number) => Ok((number ^ field.value) & field.mask == 0),
        None => Err(Unknown::new(-2, Problem::new("the type of packets that are neither IPv4 nor IPv6"))),
    }
}

/// The version, the header's length, and the TOS byte or traffic class; returns whether a packet can match.
fn first_word(pattern: &mut Pattern, layout: &Layout, all: &mut Match) -> bool {
    let Some(field) = pattern.take(0, 2) else { return true };
    let is_six = layout.family == Families::IPV6;
    // The length of an IPv4 header is in the low half of the first byte.
    let (known, fixed) = if is_six { (0xf000, 0x6000) } else { (0xff00, 0x4500) };
    if (field.value ^ fixed) & field.mask & known != 0 {
        return false;
    }
    debug_assert_eq!(fixed >> 12, u32::from(layout.version));
    let shift = if is_six { 4 } else { 0 };
    let (mask, value) = ((field.mask >> shift) as u8, (field.value >> shift) as u8);
    *all = Match {
        dscps: having(0xfc, 2, 64, mask, value),
        ecns: having(0x03, 0, 4, mask, value),
        ..all.clone()
    };
    if is_six && field.mask & 0x000f != 0 {
        pattern.add(1, 1, Field { mask: field.mask & 0x000f, value: field.value & 0x000f });
    }
    true
}

/// The values of a part of the TOS byte that agree with a value and a mask; empty for all.
pub(in crate::tc) fn having(bits: u8, shift: u32, all: u8, mask: u8, value: u8) -> Vec<u8> {
    let mask = mask & bits;
    (0..all).filter(|number| mask != 0 && (number << shift) & mask == value & mask).collect()
}

/// The most networks that a mask may stand for.
const MOST_NETWORKS: u32 = 256;

/// The networks of an address; none for all addresses. A mask with gaps stands for several.
fn address(pattern: &mut Pattern, layout: &Layout, at: i32) -> Result<Vec<Party>, Unknown> {
    let bits = 8 * layout.address as u32;
    let (mut mask, mut value) = (0_u128, 0_u128);
    for word in (0..layout.address).step_by(4) {
        let field = pattern.take(at + word, 4).unwrap_or(Field { mask: 0, value: 0 });
        (mask, value) = (mask << 32 | u128::from(field.mask), value << 32 | u128::from(field.value));
    }
    if mask == 0 {
        return Ok(Vec::new());
    }
    let prefix = bits - mask.trailing_zeros();
    let free: Vec<u32> = (mask.trailing_zeros()..bits).filter(|bit| mask >> bit & 1 == 0).collect();
    if 1_u32.checked_shl(free.len() as u32).is_none_or(|count| count > MOST_NETWORKS) {
        let width = layout.address as usize * 2 + 2;
        let problem = Problem::new(format!("the mask {mask:#0width$x} is not a network")).help(format!(
            "here addresses are matched by networks, at most {MOST_NETWORKS}: a mask has leading ones"
        ));
        let first = (mask.leading_zeros() + bits - u128::BITS) / 8;
        return Err(Unknown::new(at + first as i32, problem));
    }
    // Each bit that does not count, from the last one on, doubles the networks.
    let mut all = vec![value & mask];
    for bit in free.iter().rev() {
        all = all.into_iter().flat_map(|low| [low, low | 1 << bit]).collect();
    }
    let party = |value| {
        let ip = match layout.family {
            Families::IPV6 => IpAddr::V6(Ipv6Addr::from_bits(value)),
            _ => IpAddr::V4(Ipv4Addr::from_bits(value as u32)),
        };
        Party::Network { ip, prefix: prefix as u8 }
    };
    Ok(all.into_iter().map(party).collect())
}

/// Types of ICMP, ports and the flags of TCP.
fn transport(
    pattern: &mut Pattern,
    layout: &Layout,
    protocol: Option<u8>,
    all: &mut Match,
) -> Result<(), Unknown> {
    if protocol.is_some_and(|protocol| protocol == layout.icmp)
        && let Some(field) = pattern.take(layout.ports, 2)
    {
        all.icmp = field.ranges().map_err(|problem| Unknown::new(layout.ports, problem))?;
    }
    for (at, ports) in [(layout.ports, &mut all.source_ports), (layout.ports + 2, &mut all.destination_ports)]
    {
        let Some(field) = pattern.take(at, 2) else { continue };
        if let Some(protocol) = protocol.filter(|protocol| !WITH_PORTS.contains(protocol)) {
            let problem =
                Problem::new(format!("bytes behind the IP header of packets of protocol {protocol}"))
                    .help("of these packets the IP header alone is matched here");
            return Err(Unknown::new(at, problem));
        }
        *ports = field.ranges().map_err(|problem| Unknown::new(at, problem))?;
    }
    if let Some(field) = pattern.take(layout.flags, 1) {
        if protocol != Some(TCP) {
            let problem = Problem::new("a byte behind the ports of packets that may not be TCP's")
                .help("the flags of TCP need: match ip protocol 6 0xff");
            return Err(Unknown::new(layout.flags, problem));
        }
        let (mask, value) = (field.mask as u8, field.value as u8);
        all.tcp_flags = Some(TcpFlags { set: mask & value, clear: mask & !value });
    }
    Ok(())
}

/// Takes what says that it is whole or the first fragment. Where ports or flags are matched, too, that is no condition: a
/// later fragment has none of them here.
fn fragments(pattern: &mut Pattern, layout: &Layout, all: &mut Match) {
    const FRAGMENT: i32 = 6;
    const OFFSET: u32 = 0x1fff;
    const MORE: u32 = 0x2000;
    if layout.family != Families::IPV4 {
        return;
    }
    let Some(field) = pattern.take(FRAGMENT, 2) else { return };
    let has = |ranges: &[std::ops::RangeInclusive<u16>]| {
        !ranges.is_empty() && ranges.iter().all(|range| !range.contains(&0))
    };
    let is_first = has(&all.source_ports)
        || has(&all.icmp)
        || has(&all.destination_ports)
        || all.tcp_flags.is_some_and(|flags| flags.set != 0);
    if is_first && field.mask & !OFFSET == 0 && field.value == 0 {
        return;
    }
    all.fragments = match (field.mask, field.value) {
        (OFFSET, 0) => vec![Fragments::WHOLE, Fragments::FIRST],
        (mask, 0) if mask == OFFSET | MORE => vec![Fragments::WHOLE],
        (mask, MORE) if mask == OFFSET | MORE => vec![Fragments::FIRST],
        _ => {
            pattern.add(FRAGMENT, 2, field);
            return;
        }
    };
}

fn other(at: i32, layout: &Layout) -> Unknown {
    let what = layout.others.iter().find(|(first, last, _)| (*first..=*last).contains(&at));
    let problem = match what {
        Some((_, _, what)) => Problem::new(format!("classes do not match {what}")),
        None if at < 0 => Problem::new("classes do not match addresses of the link layer"),
        None => Problem::new(format!("the byte at {at} is no field that a class of narrows matches")),
    };
    let problem = problem.help(
        "understood: the TOS byte or traffic class, the length, the protocol, addresses, ports, and the flags of TCP",
    );
    Unknown::new(at, problem)
}
