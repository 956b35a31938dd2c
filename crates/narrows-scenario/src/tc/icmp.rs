//! Types and codes of ICMP in conditions of iptables and flower.

use std::ops::RangeInclusive;

use narrows_core::classify::Fragments;

use crate::dialect::Word;
use crate::problem::{Found, Problem, one_of};
use crate::value::Match;

/// As iptables names them: type and first and last code.
const OF_IPV4: &[(&str, u8, u8, u8)] = &[
    ("echo-reply", 0, 0, 255),
    ("pong", 0, 0, 255),
    ("destination-unreachable", 3, 0, 255),
    ("network-unreachable", 3, 0, 0),
    ("host-unreachable", 3, 1, 1),
    ("protocol-unreachable", 3, 2, 2),
    ("port-unreachable", 3, 3, 3),
    ("fragmentation-needed", 3, 4, 4),
    ("source-route-failed", 3, 5, 5),
    ("network-unknown", 3, 6, 6),
    ("host-unknown", 3, 7, 7),
    ("network-prohibited", 3, 9, 9),
    ("host-prohibited", 3, 10, 10),
    ("tos-network-unreachable", 3, 11, 11),
    ("tos-host-unreachable", 3, 12, 12),
    ("communication-prohibited", 3, 13, 13),
    ("host-precedence-violation", 3, 14, 14),
    ("precedence-cutoff", 3, 15, 15),
    ("source-quench", 4, 0, 255),
    ("redirect", 5, 0, 255),
    ("network-redirect", 5, 0, 0),
    ("host-redirect", 5, 1, 1),
    ("tos-network-redirect", 5, 2, 2),
    ("tos-host-redirect", 5, 3, 3),
    ("echo-request", 8, 0, 255),
    ("ping", 8, 0, 255),
    ("router-advertisement", 9, 0, 255),
    ("router-solicitation", 10, 0, 255),
    ("time-exceeded", 11, 0, 255),
    ("ttl-exceeded", 11, 0, 255),
    ("ttl-zero-during-transit", 11, 0, 0),
    ("ttl-zero-during-reassembly", 11, 1, 1),
    ("parameter-problem", 12, 0, 255),
    ("ip-header-bad", 12, 0, 0),
    ("required-option-missing", 12, 1, 1),
    ("timestamp-request", 13, 0, 255),
    ("timestamp-reply", 14, 0, 255),
    ("address-mask-request", 17, 0, 255),
    ("address-mask-reply", 18, 0, 255),
];

const OF_IPV6: &[(&str, u8, u8, u8)] = &[
    ("destination-unreachable", 1, 0, 255),
    ("no-route", 1, 0, 0),
    ("communication-prohibited", 1, 1, 1),
    ("beyond-scope", 1, 2, 2),
    ("address-unreachable", 1, 3, 3),
    ("port-unreachable", 1, 4, 4),
    ("failed-policy", 1, 5, 5),
    ("reject-route", 1, 6, 6),
    ("packet-too-big", 2, 0, 255),
    ("time-exceeded", 3, 0, 255),
    ("ttl-exceeded", 3, 0, 255),
    ("ttl-zero-during-transit", 3, 0, 0),
    ("ttl-zero-during-reassembly", 3, 1, 1),
    ("parameter-problem", 4, 0, 255),
    ("bad-header", 4, 0, 0),
    ("unknown-header-type", 4, 1, 1),
    ("unknown-option", 4, 2, 2),
    ("echo-request", 128, 0, 255),
    ("ping", 128, 0, 255),
    ("echo-reply", 129, 0, 255),
    ("pong", 129, 0, 255),
    ("router-solicitation", 133, 0, 255),
    ("router-advertisement", 134, 0, 255),
    ("neighbour-solicitation", 135, 0, 255),
    ("neighbor-solicitation", 135, 0, 255),
    ("neighbour-advertisement", 136, 0, 255),
    ("neighbor-advertisement", 136, 0, 255),
    ("redirect", 137, 0, 255),
];

/// `--icmp-type echo-request`, `8`, `3/4`, `any`.
pub(super) fn of_ipv4(word: Word<'_>, not: bool) -> Result<Match, Problem> {
    named(word, not, 1, OF_IPV4)
}

/// `--icmpv6-type echo-request`.
pub(super) fn of_ipv6(word: Word<'_>, not: bool) -> Result<Match, Problem> {
    named(word, not, 58, OF_IPV6)
}

fn named(word: Word<'_>, not: bool, protocol: u8, names: &[(&str, u8, u8, u8)]) -> Result<Match, Problem> {
    let lower = word.text.to_ascii_lowercase();
    let range = match lower.as_str() {
        "any" => 0..=u16::MAX,
        _ if lower.starts_with(|c: char| c.is_ascii_digit()) => numbers(&lower).ok_or_else(|| {
            word.problem(format!("{} is not a type of ICMP", Found(word.text)))
                .help("a type from 0 to 255, a type and a code such as 3/4, or a name such as echo-request")
        })?,
        _ => {
            let mut starting = names.iter().filter(|(name, ..)| name.starts_with(&lower));
            let exact = names.iter().find(|(name, ..)| *name == lower);
            let found = match (exact, starting.next(), starting.next()) {
                (Some(exact), ..) => Some(exact),
                (None, only, None) => only,
                _ => None,
            };
            let (_, kind, low, high) = found.ok_or_else(|| {
                let known: Vec<&str> = names.iter().map(|(name, ..)| *name).collect();
                word.problem(format!("{} is not a type of ICMP", Found(word.text)))
                    .help(format!("allowed: a number, or {}", one_of(&known)))
            })?;
            let of = |code: u8| u16::from_be_bytes([*kind, code]);
            of(*low)..=of(*high)
        }
    };
    let icmp = merged((0..=u16::MAX).filter(|number| range.contains(number) != not));
    if icmp.is_empty() {
        return Err(word.problem("no type of ICMP is left"));
    }
    // iptables matches no type of a later fragment, which here has type 0 and code 0.
    let has_zero = icmp.iter().any(|range| *range.start() == 0);
    let fragments = if has_zero { vec![Fragments::WHOLE, Fragments::FIRST] } else { Vec::new() };
    Ok(Match { protocols: vec![protocol], icmp, fragments, ..Match::default() })
}

/// `8` or `3/4`.
fn numbers(text: &str) -> Option<RangeInclusive<u16>> {
    match text.split_once('/') {
        Some((kind, code)) => {
            let number = u16::from_be_bytes([kind.parse().ok()?, code.parse().ok()?]);
            Some(number..=number)
        }
        None => {
            let kind: u8 = text.parse().ok()?;
            Some(u16::from_be_bytes([kind, 0])..=u16::from_be_bytes([kind, 0xff]))
        }
    }
}

/// The types and codes that agree with a value in the bits of a mask.
pub(super) fn having(value: u16, mask: u16) -> Vec<RangeInclusive<u16>> {
    merged((0..=u16::MAX).filter(|number| number & mask == value & mask))
}

/// Ascending numbers as ranges: of whole types, or of codes of one type.
fn merged(all: impl Iterator<Item = u16>) -> Vec<RangeInclusive<u16>> {
    let mut ranges: Vec<RangeInclusive<u16>> = Vec::new();
    for number in all {
        match ranges.last_mut() {
            // Codes of one type.
            Some(last) if last.end() + 1 == number && number & 0xff != 0 => *last = *last.start()..=number,
            _ => ranges.push(number..=number),
        }
    }
    let mut joined: Vec<RangeInclusive<u16>> = Vec::new();
    let is_whole = |range: &RangeInclusive<u16>| range.start() & 0xff == 0 && range.end() & 0xff == 0xff;
    for range in ranges {
        match joined.last_mut() {
            Some(last)
                if is_whole(last)
                    && is_whole(&range)
                    && last.end().checked_add(1) == Some(*range.start()) =>
            {
                *last = *last.start()..=*range.end();
            }
            _ => joined.push(range),
        }
    }
    joined
}
