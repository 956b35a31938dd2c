//! The parser of rules, and functions that it shares with other commands.

use narrows_core::rules::{Field, Test};

use super::address::Context;
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
        return problem.help("shell variables are not expanded: write their values");
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

/// The field of a lookup.
pub(super) fn field(word: &Word) -> Result<Field, Problem> {
    const FIELDS: &[(&str, Field)] = &[
        ("src-ip", Field::Source),
        ("dst-ip", Field::Destination),
        ("src-port", Field::SourcePort),
        ("dst-port", Field::DestinationPort),
        ("dscp", Field::Dscp),
        ("src-ip6", Field::Source),
        ("dst-ip6", Field::Destination),
    ];
    names::number(FIELDS, &word.text).ok_or_else(|| {
        let known: Vec<&str> = FIELDS.iter().take(5).map(|(name, _)| *name).collect();
        unknown(word, &word.text, "field", &known, REFUSED_OPTIONS)
    })
}
