//! What rules write into the headers of packets: `DSCP`, `TOS`, `TTL`, `HL`.
//!
//! Source: `xt_DSCP.c` and `xt_HL.c` of Linux, iptables-extensions(8).

use super::Marked;
use super::list::{Change, Number};
use crate::dialect::{Word, Words};
use crate::keys::kind::text;
use crate::netem::units;
use crate::node::{Node, Table, Value};
use crate::problem::{Found, Problem};
use crate::tc::both::both;
use crate::value::{ECN, Match, code_point};

// A number says what is written: the byte with code point and ECN field, which of its bits are, the hop limit, and whether it
// is.
const BYTE: u32 = 0xff;
const BITS: u32 = 8;
const HOPS: u32 = 16;
const HAS_HOPS: u32 = 1 << 24;
/// The bits of the byte.
const CODE_POINT: u32 = 0xfc;
const ECN_FIELD: u32 = 0x03;
/// The most conditions that are compared with one another.
const MOST: usize = 2048;

/// The symbols of TOS (RFC 1349).
const SYMBOLS: [(&str, u32); 5] = [
    ("minimize-delay", 16),
    ("maximize-throughput", 8),
    ("maximize-reliability", 4),
    ("minimize-cost", 2),
    ("normal-service", 0),
];

/// The bits of the byte in a mask become those of a value.
fn byte(value: u32, mask: u32) -> Change {
    let written = mask << BITS;
    Change::of(Number::Header, mask | written, value & mask | written)
}

/// The options of a target that writes; `None` for another target.
pub(super) fn read(target: Word<'_>, words: &mut Words<'_>) -> Option<Result<Change, Problem>> {
    Some(match target.text {
        "DSCP" => dscp(target, words),
        "TOS" => tos(target, words),
        "TTL" => hops(target, "--ttl-set", words),
        "HL" => hops(target, "--hl-set", words),
        _ => return None,
    })
}

/// `--set-dscp 46`, `--set-dscp-class EF`.
fn dscp(target: Word<'_>, words: &mut Words<'_>) -> Result<Change, Problem> {
    let option = words.expect(target, "`--set-dscp` or `--set-dscp-class`")?;
    if !matches!(option.text, "--set-dscp" | "--set-dscp-class") {
        return Err(option.expected("`--set-dscp` or `--set-dscp-class`"));
    }
    let point = point(words.expect(option, "a code point")?)?;
    Ok(byte(u32::from(point) << 2, CODE_POINT))
}

/// A code point as a number, also a hexadecimal one, or by its name.
pub(super) fn point(word: Word<'_>) -> Result<u8, Problem> {
    let digits = word.text.strip_prefix("0x");
    if let Some(point) =
        digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|point| *point < 64)
    {
        return Ok(point);
    }
    code_point(&Node { span: word.span(), value: Value::String(word.text.to_ascii_lowercase()) })
}

/// `--set-tos 0x10/0xfc`, `--set-tos Minimize-Delay`.
fn tos(target: Word<'_>, words: &mut Words<'_>) -> Result<Change, Problem> {
    let option = words.expect(target, "`--set-tos`")?;
    if option.text != "--set-tos" {
        return Err(option
            .problem(format!("unsupported {} of `TOS`", Found(option.text)))
            .help("understood: --set-tos VALUE, --set-tos VALUE/MASK"));
    }
    let word = words.expect(option, "a value of the TOS byte")?;
    let lower = word.text.to_ascii_lowercase();
    if let Some((_, value)) = SYMBOLS.iter().find(|(name, _)| *name == lower) {
        return Ok(byte(*value, BYTE));
    }
    let (value, mask) = word.text.split_once('/').unwrap_or((word.text, "0xff"));
    let number =
        |part| Ok::<_, Problem>(units::integer(word.part(part), "a TOS byte", 0, BYTE.into())? as u32);
    let (value, mask) = (number(value)?, number(mask)?);
    if value & !mask != 0 || !matches!(mask, BYTE | CODE_POINT | ECN_FIELD) {
        return Err(word
            .problem(format!("{} changes a part of the code point", Found(word.text)))
            .help("understood: masks of the code point (0xfc), the ECN field (0x03) and both (0xff)"));
    }
    Ok(byte(value, mask))
}

/// `--ttl-set 64`.
fn hops(target: Word<'_>, name: &'static str, words: &mut Words<'_>) -> Result<Change, Problem> {
    let option = words.expect(target, "a change")?;
    if option.text != name {
        return Err(option
            .problem(format!("unsupported {} of {}", Found(option.text), Found(target.text)))
            .help(format!("understood: {name} NUMBER")));
    }
    let hops = units::integer(words.expect(option, "a number of hops")?, "a number of hops", 0, 255)? as u32;
    let written = BYTE << HOPS | HAS_HOPS;
    Ok(Change::of(Number::Header, written, hops << HOPS | HAS_HOPS))
}

/// Filters that write what the first condition that holds says. They come to the same in any order in which, of two conditions
/// that a packet may have both, the earlier one has the last word.
pub(super) fn filters(written: &[Marked]) -> Result<Vec<Table>, Problem> {
    let fields = |one: &Marked| one.value & (BYTE << BITS | HAS_HOPS);
    if written.len() > MOST {
        return Err(Problem::new(format!(
            "rules of iptables that change packets, which come to more than {MOST} conditions"
        )));
    }
    for (at, earlier) in written.iter().enumerate() {
        let left = |later: &&Marked| fields(later) & !fields(earlier) != 0;
        let meets = |later: &&Marked| match (&earlier.matches, &later.matches) {
            (Some(one), Some(other)) => both(one, other).is_some(),
            _ => true,
        };
        if written[at + 1..].iter().filter(left).any(|later| meets(&later)) {
            return Err(Problem::new(
                "rules of iptables that change packets, from which others are excepted before",
            )
            .help("match the packets to change, and no others"));
        }
    }
    Ok(written.iter().rev().filter(|one| fields(one) != 0).map(filter).collect())
}

fn filter(one: &Marked) -> Table {
    let mut set = Table::default();
    let number = |value: u32| Value::Integer(value.to_string());
    if one.value >> BITS & CODE_POINT != 0 {
        set.put("dscp", number((one.value & CODE_POINT) >> 2));
    }
    if one.value >> BITS & ECN_FIELD != 0 {
        set.put("ecn", text(ECN.name(&((one.value & ECN_FIELD) as u8))));
    }
    if one.value & HAS_HOPS != 0 {
        set.put("hop-limit", number(one.value >> HOPS & BYTE));
    }
    let mut table = Table::default();
    if let Some(matches) = &one.matches {
        table.put("match", matches.value());
    }
    table.and("action", text("edit")).and("set", Value::Table(set)).and("conform", text("next"))
}

/// Whether a condition looks at what rules may write.
pub(super) fn is_looked_at(matches: &Match) -> bool {
    !(matches.dscps.is_empty() && matches.ecns.is_empty() && matches.hop_limits.is_empty())
}
