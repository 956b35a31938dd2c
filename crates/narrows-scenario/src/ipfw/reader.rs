//! The parser of rules, and functions that it shares with other commands.

use std::net::IpAddr;

use narrows_core::rules::{Field, Test};

use super::address::Context;
use super::directions::Directions;
use super::lexer::{Word, Words};
use super::names::{self, REFUSED_OPTIONS};
use super::numbers;
use crate::problem::{Found, Problem, nearest};

/// The highest rule number; 65,535 is the default rule.
pub(super) const LAST: u32 = 65_534;

/// Parser of a rule.
pub(super) struct Reader<'a> {
    pub(super) words: Words<'a>,
    pub(super) context: &'a Context<'a>,
    pub(super) remarks: &'a mut Vec<String>,
    pub(super) directions: Directions,
}

/// The number of a set.
pub(super) fn set_number(word: &Word) -> Result<u8, Problem> {
    numbers::decimal(word, "the number of a set", 0..=31).map(|set| set as u8) // at most 31
}

/// The error for an unknown word.
pub(super) fn unknown(
    word: &Word,
    name: &str,
    kind: &str,
    known: &[&str],
    refused: &[(&str, &str)],
) -> Problem {
    if let Some((_, why)) = refused.iter().find(|(refused, _)| refused.eq_ignore_ascii_case(name)) {
        return word.problem(format!("{} exists in ipfw but not in narrows", Found(name))).help(*why);
    }
    let article = if kind.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    let problem = word.expected(&format!("{article} {kind}"));
    if name.starts_with('$') || name.contains("${") {
        return problem
            .help("variables are expanded in lines of a shell only, which start with a program: ipfw …");
    }
    match nearest(name, known.iter().copied()) {
        Some(near) => problem.help(format!("did you mean `{near}`?")),
        None => problem.help(format!("allowed: {}", crate::problem::one_of(known))),
    }
}

/// The condition of a protocol in the body; `None` for any protocol.
pub(super) fn protocol_test(word: &Word) -> Result<Option<Test>, Problem> {
    Ok(match word.text.as_str() {
        "ip" | "all" => None,
        "ip4" | "ipv4" => Some(Test::IpVersion(4)),
        "ip6" | "ipv6" => Some(Test::IpVersion(6)),
        _ => Some(Test::Protocol(numbers::protocol(word)?)),
    })
}

/// The field of a lookup, the version of IP that it is for, and its bits.
pub(super) fn field(word: &Word) -> Result<(Field, Option<u8>, u128), Problem> {
    const FIELDS: &[(&str, (Field, Option<u8>))] = &[
        ("src-ip", (Field::Source, None)),
        ("dst-ip", (Field::Destination, None)),
        ("src-port", (Field::SourcePort, None)),
        ("dst-port", (Field::DestinationPort, None)),
        ("dscp", (Field::Dscp, None)),
        ("src-ip4", (Field::Source, Some(4))),
        ("dst-ip4", (Field::Destination, Some(4))),
        ("src-ip6", (Field::Source, Some(6))),
        ("dst-ip6", (Field::Destination, Some(6))),
        ("src-mac", (Field::LinkSource, None)),
        ("dst-mac", (Field::LinkDestination, None)),
        ("mark", (Field::Mark, None)),
        ("rulenum", (Field::RuleNumber, None)),
    ];
    let (name, mask) = match word.text.split_once(':') {
        Some((name, mask)) => (word.part(name), lookup_bits(&word.part(mask))?),
        None => (word.clone(), u128::MAX),
    };
    let Some((field, version)) = names::number(FIELDS, &name.text) else {
        let known: Vec<&str> = FIELDS.iter().map(|(name, _)| *name).collect();
        return Err(unknown(&name, &name.text, "field", &known, REFUSED_OPTIONS));
    };
    if mask != u128::MAX && matches!(field, Field::LinkSource | Field::LinkDestination) {
        return Err(word
            .problem(format!("a mask for {}", Found(&name.text)))
            .help("masks are for addresses of IP and for numbers"));
    }
    let is_v6 = mask >> 32 != u128::MAX >> 32;
    if is_v6 && (version == Some(4) || !matches!(field, Field::Source | Field::Destination)) {
        return Err(word
            .problem(format!("a mask of IPv6 for {}", Found(&name.text)))
            .help("as in src-ip4:0.0.0.3"));
    }
    if version == Some(6) && !is_v6 && mask != u128::MAX {
        return Err(word
            .problem(format!("a mask of IPv4 for {}", Found(&name.text)))
            .help("as in src-ip6:ffff:ffff:ffff:ffff::"));
    }
    Ok((field, version, mask))
}

/// The bits of a lookup: an address, or a number of 32 bits.
fn lookup_bits(word: &Word) -> Result<u128, Problem> {
    match word.text.parse::<IpAddr>() {
        Ok(IpAddr::V4(mask)) => Ok(u128::MAX << 32 | u128::from(mask.to_bits())),
        Ok(IpAddr::V6(mask)) => Ok(mask.to_bits()),
        Err(_) => numbers::integer(word, "a mask", u32::MAX).map(|mask| u128::MAX << 32 | u128::from(mask)),
    }
}
