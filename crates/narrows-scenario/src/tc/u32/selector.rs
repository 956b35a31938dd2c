//! `match ip dport 80 0xffff`: the bytes that a word of tc stands for.

use std::net::IpAddr;
use std::ops::Range;

use narrows_core::classify::Families;

use super::pattern::Field;
use crate::dialect::{Word, Words};
use crate::netem::units;
use crate::node::{Node, Value};
use crate::problem::{Found, Problem};
use crate::value::{Party, link_address, party, protocol};

/// Bits that a packet must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    /// Offset in bytes from the network header, or from the next header.
    pub(super) at: i32,
    /// Whether the offset counts from the next header, as an `offset` has set it.
    pub(super) next: bool,
    pub(super) bytes: u8,
    pub(super) field: Field,
    /// The word that says it.
    pub(super) span: Range<usize>,
}

/// What a selector matches, and in packets of which family.
#[derive(Debug)]
pub(super) struct Selected {
    pub(super) keys: Vec<Key>,
    pub(super) families: Families,
}

/// A value of this many bits, as in C, and its mask in hexadecimal with or without `0x`, as tc parses
/// masks.
fn value_and_mask(after: Word<'_>, words: &mut Words<'_>, bits: u32) -> Result<Field, Problem> {
    let most = (1_i64 << bits) - 1;
    let value = units::integer(words.expect(after, "a number")?, "a number", 0, most)? as u32;
    let word = words.expect(after, "a mask")?;
    let mask = mask(word, word.text, bits)?;
    Ok(Field { mask, value: value & mask })
}

pub(in crate::tc) fn mask(word: Word<'_>, text: &str, bits: u32) -> Result<u32, Problem> {
    let mask = u32::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok();
    mask.filter(|mask| u64::from(*mask) < 1 << bits).ok_or_else(|| {
        word.problem(format!("{} is not a mask of {bits} bits", Found(text)))
            .help("masks are hexadecimal, as in ffff or 0xffff")
    })
}

/// Fields by their words: layer, word, offset, bytes.
const FIELDS: &[(&str, &str, i32, u8)] = &[
    ("ip", "sport", 20, 2),
    ("ip", "dport", 22, 2),
    ("ip", "tos", 1, 1),
    ("ip", "dsfield", 1, 1),
    ("ip", "precedence", 1, 1),
    ("ip", "ihl", 0, 1),
    ("ip", "ttl", 8, 1),
    ("ip", "icmp_type", 20, 1),
    ("ip", "icmp_code", 21, 1),
    ("ip6", "sport", 40, 2),
    ("ip6", "dport", 42, 2),
    ("ip6", "icmp_type", 40, 1),
    ("ip6", "icmp_code", 41, 1),
    ("tcp", "src", 0, 2),
    ("tcp", "dst", 2, 2),
    ("udp", "src", 0, 2),
    ("udp", "dst", 2, 2),
    ("icmp", "type", 0, 1),
    ("icmp", "code", 1, 1),
];

/// Parses what follows the word `match`.
pub(super) fn read(after: Word<'_>, words: &mut Words<'_>) -> Result<Selected, Problem> {
    let layer = words.expect(after, "what to match")?;
    let bytes = match layer.text {
        "u32" => 4,
        "u16" => 2,
        "u8" => 1,
        "ip" | "ip6" | "tcp" | "udp" | "icmp" => return named(layer, words),
        "ether" => return ether(layer, words),
        "mark" => {
            return Err(layer
                .problem("`match mark` is not understood")
                .help("filters of the kind `fw` match marks: handle N fw flowid 1:10"));
        }
        other => {
            return Err(layer
                .problem(format!("unsupported {} in `match`", Found(other)))
                .help("understood: ip, ip6, tcp, udp, icmp, ether, u32, u16 and u8"));
        }
    };
    let field = value_and_mask(layer, words, u32::from(bytes) * 8)?;
    let key = Key { at: 0, next: false, bytes, field, span: layer.span() };
    Ok(Selected { keys: vec![placed(key, words)?], families: Families::ALL })
}

/// `ether dst 02:00:00:00:00:01`: the addresses of an Ethernet header, before the network header.
fn ether(layer: Word<'_>, words: &mut Words<'_>) -> Result<Selected, Problem> {
    let word = words.expect(layer, "src or dst")?;
    let first = match word.text {
        "dst" => -14,
        "src" => -8,
        other => {
            return Err(word
                .problem(format!("unsupported field {}", Found(other)))
                .help("understood: src and dst"));
        }
    };
    let value = words.expect(word, "a MAC address")?;
    let address = link_address(value.text)
        .ok_or_else(|| value.problem(format!("{} is not a MAC address", Found(value.text))))?;
    let key = |(at, byte): (i32, u8)| {
        let field = Field { mask: 0xff, value: byte.into() };
        Key { at, next: false, bytes: 1, field, span: word.span() }
    };
    Ok(Selected { keys: (first..).zip(address).map(key).collect(), families: Families::ALL })
}

/// Fields by name.
fn named(layer: Word<'_>, words: &mut Words<'_>) -> Result<Selected, Problem> {
    let word = words.expect(layer, "a field")?;
    let families = match layer.text {
        "ip" => Families::IPV4,
        "ip6" => Families::IPV6,
        _ => Families::ALL,
    };
    let span = word.span();
    let key = |at, bytes, field| Key { at, next: false, bytes, field, span: span.clone() };
    let one = |key| Ok(Selected { keys: vec![key], families });
    match (layer.text, word.text) {
        ("ip", "src") => Ok(Selected { keys: address(word, words, 12, false)?, families }),
        ("ip", "dst") => Ok(Selected { keys: address(word, words, 16, false)?, families }),
        ("ip6", "src") => Ok(Selected { keys: address(word, words, 8, true)?, families }),
        ("ip6", "dst") => Ok(Selected { keys: address(word, words, 24, true)?, families }),
        ("ip6", "priority" | "dsfield" | "tos") => {
            let Field { mask, value } = value_and_mask(word, words, 8)?;
            one(key(0, 4, Field { mask: mask << 20, value: value << 20 }))
        }
        ("ip6", "flowlabel") => one(key(0, 4, value_and_mask(word, words, 20)?)),
        ("ip" | "ip6", "protocol") => {
            let name = words.expect(word, "a protocol")?;
            let number = match name.text.strip_prefix("0x") {
                Some(digits) => u8::from_str_radix(digits, 16).ok(),
                None => None,
            };
            let node = Node { span: name.span(), value: Value::String(name.text.into()) };
            let value = u32::from(number.map_or_else(|| protocol(&node), Ok)?);
            let place = words.expect(name, "a mask")?;
            let mask = mask(place, place.text, 8)?;
            let at = if layer.text == "ip" { 9 } else { 6 };
            one(placed(key(at, 1, Field { mask, value: value & mask }), words)?)
        }
        ("ip", "df") => one(key(6, 2, Field { mask: 0x4000, value: 0x4000 })),
        ("ip", "mf") => one(key(6, 2, Field { mask: 0x2000, value: 0x2000 })),
        ("ip", "nofrag") => one(key(6, 2, Field { mask: 0x3fff, value: 0 })),
        ("ip", "firstfrag") => one(key(6, 2, Field { mask: 0x1fff, value: 0 })),
        (of, name) => {
            let Some((_, _, at, bytes)) = FIELDS.iter().find(|row| (row.0, row.1) == (of, name)) else {
                let known: Vec<&str> = FIELDS.iter().filter(|row| row.0 == of).map(|row| row.1).collect();
                return Err(word.problem(format!("unsupported field {}", Found(name))).help(format!(
                    "understood: {}, and for ip and ip6 src, dst and protocol",
                    known.join(", ")
                )));
            };
            let field = value_and_mask(word, words, u32::from(*bytes) * 8)?;
            let mut key = placed(key(*at, *bytes, field), words)?;
            key.next |= matches!(of, "tcp" | "udp" | "icmp");
            one(key)
        }
    }
}

/// An IPv4 network as tc reads it: bytes in decimal, octal or hexadecimal, the last ones may be missing, and the mask may
/// be an address. `None` for anything else.
fn plain_network(text: &str) -> Option<String> {
    let byte = |part: &str| match part.strip_prefix("0x") {
        Some(digits) => u8::from_str_radix(digits, 16).ok(),
        None if part.len() > 1 && part.starts_with('0') => u8::from_str_radix(&part[1..], 8).ok(),
        None => part.parse().ok(),
    };
    let (address, mask) = text.split_once('/').map_or((text, None), |(address, mask)| (address, Some(mask)));
    let mut bytes = address.split('.').map(byte).collect::<Option<Vec<u8>>>()?;
    if bytes.len() > 4 {
        return None;
    }
    bytes.resize(4, 0);
    let bits = match mask.map(|mask| (mask, mask.parse::<std::net::Ipv4Addr>())) {
        None => String::new(),
        Some((_, Ok(mask))) => {
            let mask = u32::from(mask);
            (mask.leading_ones() + mask.trailing_zeros() == 32)
                .then(|| format!("/{}", mask.leading_ones()))?
        }
        Some((mask, Err(_))) => format!("/{mask}"),
    };
    let [a, b, c, d] = bytes[..] else { return None };
    Some(format!("{a}.{b}.{c}.{d}{bits}"))
}

/// An address or network; no key for all of them.
fn address(field: Word<'_>, words: &mut Words<'_>, at: i32, six: bool) -> Result<Vec<Key>, Problem> {
    let word = words.expect(field, "an address")?;
    if matches!(word.text, "any" | "all" | "default" | "0/0" | "0.0.0.0/0" | "::/0") {
        return Ok(Vec::new());
    }
    let text = plain_network(word.text).unwrap_or_else(|| word.text.into());
    let node = Node { span: word.span(), value: Value::String(text) };
    let Party::Network { ip, prefix } = party(&node, &[])? else { return Ok(Vec::new()) };
    if ip.is_ipv6() != six {
        let layer = if six { "ip6" } else { "ip" };
        return Err(word.problem(format!("{} is not an address of `{layer}`", Found(word.text))));
    }
    let span = field.span();
    let octets: Vec<u8> = match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let key = |(index, octet): (usize, &u8)| {
        let index = index as i32;
        let left = i32::from(prefix) - 8 * index;
        let mask = 0xff_u32 & !(0xff_u32 >> left.clamp(0, 8));
        let field = Field { mask, value: u32::from(*octet) & mask };
        (mask != 0).then(|| Key { at: at + index, next: false, bytes: 1, field, span: span.clone() })
    };
    Ok(octets.iter().enumerate().filter_map(key).collect())
}

/// Takes `at OFFSET` or `at nexthdr+OFFSET`.
fn placed(mut key: Key, words: &mut Words<'_>) -> Result<Key, Problem> {
    let Some(word) = words.peek().filter(|word| word.text == "at") else { return Ok(key) };
    words.take();
    let place = words.expect(word, "an offset")?;
    let (next, digits) = match place.text.strip_prefix("nexthdr+") {
        Some(digits) => (true, digits),
        None => (false, place.text),
    };
    let number = digits
        .strip_prefix("0x")
        .map_or_else(|| digits.parse::<i32>(), |hexadecimal| i32::from_str_radix(hexadecimal, 16));
    let offset = number
        .ok()
        .filter(|at| (-64..=1500).contains(at))
        .ok_or_else(|| place.problem(format!("{} is not an offset that is understood", Found(place.text))))?;
    if key.bytes == 2 && offset % 2 != 0 {
        return Err(place.problem(format!("an odd offset of a `u16`: {offset}")));
    }
    (key.at, key.next) = (offset, next);
    Ok(key)
}
