//! Numbers, ranges, probabilities and sets of flags in rules.

use std::ops::RangeInclusive;

use narrows_core::Probability;

use super::lexer::Word;
use super::names::{self, Names};
use crate::dialect;
use crate::problem::{Found, Problem, article, nearest, one_of};
use crate::units::decimal::Decimal;

/// A whole decimal number, such as that of a rule or pipe. Leading zeros are ignored.
pub(super) fn decimal<'a>(
    word: impl Into<dialect::Word<'a>>,
    what: &str,
    range: RangeInclusive<u32>,
) -> Result<u32, Problem> {
    let word = word.into();
    let text = word.text;
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let value = text.parse().ok().filter(|value| digits && range.contains(value));
    value.ok_or_else(|| word.expected(&format!("{what} from {} to {}", range.start(), range.end())))
}

/// A whole number in C syntax: decimal, or hexadecimal with `0x`. A leading zero is rejected, as it would
/// mean octal in C but not to people.
pub(super) fn integer<T>(word: &Word, what: &str, most: T) -> Result<T, Problem>
where
    T: TryFrom<u128> + Copy + PartialOrd + std::fmt::Display,
{
    let text = word.text.as_str();
    let number = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            u128::from_str_radix(digits, 16).ok()
        }
        None if text.len() > 1 && text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit()) => {
            return Err(word
                .problem(format!("{} is octal in ipfw but looks decimal", Found(text)))
                .help("remove the leading zeros, or write hexadecimal with `0x`"));
        }
        None if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
        _ => None,
    };
    let value = number.and_then(|number| T::try_from(number).ok()).filter(|value| *value <= most);
    value.ok_or_else(|| word.expected(&format!("{what} from 0 to {most}")))
}

/// The numbers in a list, and their names.
#[derive(Clone, Copy)]
pub(super) struct Numbers {
    /// Description with its article.
    pub(super) what: &'static str,
    pub(super) names: Names<u16>,
    pub(super) least: u16,
    pub(super) most: u16,
}

pub(super) const PORTS: Numbers = Numbers { what: "a port", names: names::SERVICES, least: 0, most: 65_535 };
pub(super) const ETHER_TYPES: Numbers =
    Numbers { what: "an ether type", names: names::ETHER_TYPES, least: 0, most: 65_535 };
pub(super) const LENGTHS: Numbers = Numbers { what: "a length", names: &[], least: 0, most: 65_535 };
pub(super) const HOP_LIMITS: Numbers = Numbers { what: "a time to live", names: &[], least: 0, most: 255 };
pub(super) const IDENTIFICATIONS: Numbers =
    Numbers { what: "an identification", names: &[], least: 0, most: 65_535 };
pub(super) const WINDOWS: Numbers = Numbers { what: "a window", names: &[], least: 0, most: 65_535 };
pub(super) const SEGMENT_SIZES: Numbers =
    Numbers { what: "a segment size", names: &[], least: 0, most: 65_535 };
pub(super) const ROUTING_TABLES: Numbers =
    Numbers { what: "a routing table", names: &[], least: 0, most: 65_535 };
pub(super) const TAGS: Numbers = Numbers { what: "a tag", names: &[], least: 1, most: 65_534 };

/// Parses a list of numbers and ranges, such as `22,80,6000-6010`.
pub(super) fn ranges(word: &Word, numbers: Numbers) -> Result<Vec<RangeInclusive<u16>>, Problem> {
    word.text.split(',').map(|item| range(&word.part(item), numbers)).collect()
}

fn range(item: &Word, numbers: Numbers) -> Result<RangeInclusive<u16>, Problem> {
    // A hyphen within a name may be escaped with a backslash.
    let name = item.text.replace('\\', "");
    if let Some(number) = names::number(numbers.names, &name) {
        return Ok(number..=number);
    }
    let hyphens = item.text.match_indices('-').map(|(at, _)| at);
    let mut hyphens = hyphens.filter(|at| !item.text[..*at].ends_with('\\'));
    let Some(at) = hyphens.next() else { return one(item, numbers).map(|number| number..=number) };
    let (low, high) = (&item.text[..at], &item.text[at + 1..]);
    let (first, last) = (one(&item.part(low), numbers)?, one(&item.part(high), numbers)?);
    if first > last {
        return Err(item
            .problem(format!("{} is a descending range", Found(&item.text)))
            .help(format!("write `{high}-{low}`")));
    }
    Ok(first..=last)
}

fn one(word: &Word, numbers: Numbers) -> Result<u16, Problem> {
    let text = word.text.as_str();
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        let number: u16 = integer(word, numbers.what, numbers.most)?;
        return if number >= numbers.least {
            Ok(number)
        } else {
            Err(word.expected(&format!("{} from {} to {}", numbers.what, numbers.least, numbers.most)))
        };
    }
    let name = text.replace('\\', "");
    names::number(numbers.names, &name).ok_or_else(|| {
        let problem = word.expected(&format!("{} from {} to {}", numbers.what, numbers.least, numbers.most));
        if numbers.names.is_empty() || text.is_empty() {
            return problem;
        }
        problem
            .did_you_mean(text, numbers.names.iter().map(|(name, _)| *name))
            .help("only common names are known; a number always works")
    })
}

/// Whether a word starts like a port or a range of ports.
pub(super) fn is_port(word: &Word) -> bool {
    let text = word.text.as_str();
    text.starts_with(|c: char| c.is_ascii_digit())
        || text.split([',', '-']).any(|part| names::number(names::SERVICES, part).is_some())
        || text.split(',').any(|part| names::number(names::SERVICES, &part.replace('\\', "")).is_some())
}

/// Parses a set of types up to `most` into bits.
pub(super) fn types(word: &Word, what: &str) -> Result<[u64; 4], Problem> {
    let mut set = [0; 4];
    for item in word.text.split(',') {
        let number: u8 = integer(&word.part(item), what, u8::MAX)?;
        set[usize::from(number / 64)] |= 1 << (number % 64);
    }
    Ok(set)
}

/// A probability above 0, at most 1.
pub(super) fn probability(word: &Word) -> Result<Probability, Problem> {
    const EXPECTED: &str = "a probability above 0 and at most 1, such as 0.25";
    /// One in fixed-point units: 19 digits after the decimal point are kept.
    const ONE: u64 = 10_000_000_000_000_000_000;
    let (Some(number), "") = Decimal::split(&word.text) else { return Err(word.expected(EXPECTED)) };
    let parts = number.times_rounded_down(u128::from(ONE)).ok().and_then(|parts| u64::try_from(parts).ok());
    let probability = parts.and_then(|parts| Probability::from_ratio(parts, ONE));
    probability.filter(|probability| !probability.is_zero()).ok_or_else(|| word.expected(EXPECTED))
}

/// Flags that must be set or, with `!`, clear: `syn,!ack`, or numbers.
pub(super) fn flags(word: &Word, what: &str, known: Names<u8>) -> Result<(u8, u8), Problem> {
    let (mut set, mut clear) = (0, 0);
    for item in word.text.split(',') {
        let item = word.part(item);
        let (name, bits) = match item.text.strip_prefix('!') {
            Some(name) => (item.part(name), &mut clear),
            None => (item.clone(), &mut set),
        };
        *bits |= match names::number(known, &name.text) {
            Some(bit) => bit,
            None if name.text.starts_with("0x") => integer(&name, what, u8::MAX)?,
            None => {
                let known: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
                return Err(item
                    .problem(format!("{} is not {} {what}", Found(&item.text), article(what)))
                    .did_you_mean(&name.text, known.iter().copied())
                    .help(format!(
                        "allowed: {}, with `!` before those that must not be set",
                        one_of(&known)
                    )));
            }
        };
    }
    if set & clear != 0 {
        return Err(
            word.problem(format!("{} requires a {what} to be both set and not set", Found(&word.text)))
        );
    }
    Ok((set, clear))
}

/// A code point by name or number.
pub(super) fn code_point(word: &Word) -> Result<u8, Problem> {
    match names::number(names::CODE_POINTS, &word.text) {
        Some(point) => Ok(point),
        None if word.text.starts_with(|c: char| c.is_ascii_digit()) => integer(word, "a code point", 63),
        None => {
            let known = names::CODE_POINTS.iter().map(|(name, _)| *name);
            let problem = word.expected("a code point");
            let problem = match nearest(&word.text, known.clone()) {
                Some(near) => problem.help(format!("did you mean `{near}`?")),
                None => problem,
            };
            Err(problem
                .help(format!("allowed: a number from 0 to 63, {}", one_of(&known.collect::<Vec<_>>()))))
        }
    }
}

/// An IP protocol by name or number.
pub(super) fn protocol(word: &Word) -> Result<u8, Problem> {
    if word.text.starts_with(|c: char| c.is_ascii_digit()) {
        return integer(word, "a protocol", u8::MAX);
    }
    names::number(names::PROTOCOLS, &word.text).ok_or_else(|| {
        word.expected("an IP protocol")
            .did_you_mean(&word.text, names::PROTOCOLS.iter().map(|(name, _)| *name))
            .help("a name such as `tcp`, or a number from 0 to 255")
    })
}
