//! Selectors of filters: `u32 match ip dport 80 0xffff`, and `flower dst_port 80`.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;

use super::both::both;
use crate::dialect::{Word, Words};
use crate::netem::units;
use crate::node::{Node, Value};
use crate::problem::{Found, Problem};
use crate::value::{Match, Party, protocol, protocol_name};

/// A value of this many bits, as in C, and its mask in hexadecimal with or without `0x`, as tc parses
/// masks.
fn value_and_mask(after: Word<'_>, words: &mut Words<'_>, bits: u32) -> Result<(u32, u32), Problem> {
    let most = (1_i64 << bits) - 1;
    let value = units::integer(words.expect(after, "a number")?, "a number", 0, most)? as u32;
    let word = words.expect(after, "a mask")?;
    Ok((value, mask(word, word.text, bits)?))
}

fn mask(word: Word<'_>, text: &str, bits: u32) -> Result<u32, Problem> {
    let mask = u32::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok();
    mask.filter(|mask| u64::from(*mask) < 1 << bits).ok_or_else(|| {
        word.problem(format!("{} is not a mask of {bits} bits", Found(text)))
            .help("masks are hexadecimal, as in ffff or 0xffff")
    })
}

/// The values of a 16-bit field that match a value and a mask; `None` for all.
fn range(word: Word<'_>, value: u32, mask: u32) -> Result<Option<RangeInclusive<u16>>, Problem> {
    let (value, mask) = (value as u16, mask as u16);
    let rest = !mask;
    match mask {
        0 => Ok(None),
        _ if rest & rest.wrapping_add(1) == 0 => Ok(Some(value & mask..=value & mask | rest)),
        _ => Err(word
            .problem(format!("the mask {mask:#06x} is not a range"))
            .help("use a mask with leading ones, such as 0xffff or 0xfff0, or several filters")),
    }
}

/// The code points and ECN values that match a TOS value and a mask.
fn tos(value: u32, mask: u32) -> Match {
    let (value, mask) = (value as u8, mask as u8);
    // Empty if the mask has none of these bits: then all match.
    let having = |bits: u8, shift: u32, all: u8| -> Vec<u8> {
        let mask = mask & bits;
        (0..all).filter(|number| mask != 0 && (number << shift) & mask == value & mask).collect()
    };
    Match { dscps: having(0xfc, 2, 64), ecns: having(0x03, 0, 4), ..Match::default() }
}

/// The network that a word names; empty for all.
fn network(after: Word<'_>, words: &mut Words<'_>) -> Result<Vec<Party>, Problem> {
    let word = words.expect(after, "an address")?;
    if matches!(word.text, "any" | "all" | "default" | "0/0" | "0.0.0.0/0" | "::/0") {
        return Ok(Vec::new());
    }
    let node = Node { span: word.span(), value: Value::String(word.text.into()) };
    Ok(vec![crate::value::party(&node, &[])?])
}

/// Adds a condition.
fn also(word: Word<'_>, all: &mut Match, new: Match) -> Result<(), Problem> {
    *all =
        both(all, &new).ok_or_else(|| word.problem("no packet matches: it contradicts an earlier match"))?;
    Ok(())
}

fn from(sources: Vec<Party>) -> Match {
    Match { sources, ..Match::default() }
}

fn to(destinations: Vec<Party>) -> Match {
    Match { destinations, ..Match::default() }
}

fn of_protocol(number: u8) -> Match {
    Match { protocols: vec![number], ..Match::default() }
}

fn from_ports(range: Option<RangeInclusive<u16>>) -> Match {
    Match { source_ports: range.into_iter().collect(), ..Match::default() }
}

fn to_ports(range: Option<RangeInclusive<u16>>) -> Match {
    Match { destination_ports: range.into_iter().collect(), ..Match::default() }
}

/// Parses `match ip dport 80 0xffff`, after the word `match`.
pub(super) fn selector(after: Word<'_>, words: &mut Words<'_>, all: &mut Match) -> Result<(), Problem> {
    let layer = words.expect(after, "what to match")?;
    match layer.text {
        "ip" | "ip6" | "tcp" | "udp" => {}
        "u32" | "u16" | "u8" => return raw_selector(layer, words, all),
        other => {
            return Err(layer
                .problem(format!("unsupported {} in `match`", Found(other)))
                .help("understood: ip, ip6, tcp, udp, u32, u16 and u8"));
        }
    }
    let field = words.expect(layer, "a field")?;
    match field.text {
        "src" | "dst" if matches!(layer.text, "tcp" | "udp") => ports(field, words, all)?,
        "src" => also(field, all, from(network(field, words)?))?,
        "dst" => also(field, all, to(network(field, words)?))?,
        "sport" | "dport" => ports(field, words, all)?,
        "tos" | "dsfield" | "priority" | "precedence" => {
            let (value, mask) = value_and_mask(field, words, 8)?;
            also(field, all, tos(value, mask))?;
        }
        "protocol" => {
            let word = words.expect(field, "a protocol")?;
            let node = Node { span: word.span(), value: Value::String(word.text.into()) };
            let number_of = match word.text.strip_prefix("0x") {
                Some(digits) => u8::from_str_radix(digits, 16).ok(),
                None => None,
            };
            let which = number_of.map_or_else(|| protocol(&node), Ok)?;
            let place = words.expect(word, "a mask")?;
            match mask(place, place.text, 8)? {
                0 => {}
                0xff => also(field, all, of_protocol(which))?,
                _ => return Err(place.problem("a mask of a protocol is 0xff")),
            }
        }
        other => {
            return Err(field
                .problem(format!("unsupported field {}", Found(other)))
                .help("understood: src, dst, sport, dport, protocol, tos and dsfield"));
        }
    }
    if matches!(layer.text, "tcp" | "udp") {
        let number = if layer.text == "tcp" { 6 } else { 17 };
        also(layer, all, of_protocol(number))?;
    }
    offset(words)
}

/// `at OFFSET` may repeat the position of a field.
fn offset(words: &mut Words<'_>) -> Result<(), Problem> {
    if let Some(word) = words.peek().filter(|word| word.text == "at") {
        words.take();
        words.expect(word, "an offset")?;
    }
    Ok(())
}

fn ports(field: Word<'_>, words: &mut Words<'_>, all: &mut Match) -> Result<(), Problem> {
    let (value, mask) = value_and_mask(field, words, 16)?;
    let range = range(field, value, mask)?;
    let is_source = matches!(field.text, "sport" | "src");
    also(field, all, if is_source { from_ports(range) } else { to_ports(range) })
}

/// `match u8 0x06 0xff at 9`: bytes of the IPv4 header, and of the ports after a header without options.
fn raw_selector(layer: Word<'_>, words: &mut Words<'_>, all: &mut Match) -> Result<(), Problem> {
    let bits = match layer.text {
        "u32" => 32,
        "u16" => 16,
        _ => 8,
    };
    let (value, mask) = value_and_mask(layer, words, bits)?;
    let mut at = 0;
    let mut place = layer;
    if let Some(word) = words.peek().filter(|word| word.text == "at") {
        words.take();
        place = words.peek().unwrap_or(word);
        at = match words.take().map(|word| word.text) {
            Some("nexthdr+0") => 20,
            Some("nexthdr+2") => 22,
            Some(text) => text
                .parse()
                .map_err(|_| place.problem(format!("{} is not an offset that is understood", Found(text))))?,
            None => return Err(words.missing(word, "an offset")),
        };
    }
    if mask == 0 {
        return Ok(());
    }
    let address = |value: u32, mask: u32| -> Option<Party> {
        let prefix = mask.leading_ones();
        (mask.checked_shl(prefix).unwrap_or(0) == 0).then(|| Party::Network {
            ip: IpAddr::V4(Ipv4Addr::from_bits(value & mask)),
            prefix: prefix as u8,
        })
    };
    let new = match (bits, at) {
        // The version and header length: true for all packets examined.
        (8, 0) => Match::default(),
        (8, 1) => tos(value, mask),
        (8, 9) if mask == 0xff => of_protocol(value as u8),
        (16, 2) => {
            let bytes = |range: RangeInclusive<u16>| u32::from(*range.start())..=u32::from(*range.end());
            Match { length: range(layer, value, mask)?.map(bytes), ..Match::default() }
        }
        (16, 20) => from_ports(range(layer, value, mask)?),
        (16, 22) => to_ports(range(layer, value, mask)?),
        (32, 12 | 16) => match address(value, mask) {
            Some(party) if at == 12 => from(vec![party]),
            Some(party) => to(vec![party]),
            None => return Err(layer.problem(format!("the mask {mask:#010x} is not a network"))),
        },
        (32, 20) => Match {
            source_ports: range(layer, value >> 16, mask >> 16)?.into_iter().collect(),
            destination_ports: range(layer, value, mask)?.into_iter().collect(),
            ..Match::default()
        },
        _ => {
            return Err(place
            .problem(format!("{bits} bits at {at} are no field that a class of narrows matches"))
            .help("understood: the TOS byte (u8 at 1), the protocol (u8 at 9), the length (u16 at 2), addresses (u32 at 12 and 16), ports (u16 at 20 and 22)"));
        }
    };
    also(layer, all, new)
}

/// Parses one key of flower, `ip_proto tcp dst_port 80 …`; returns whether it is one.
pub(super) fn flower(word: Word<'_>, words: &mut Words<'_>, all: &mut Match) -> Result<bool, Problem> {
    match word.text {
        "ip_proto" => {
            let name = words.expect(word, "a protocol")?;
            let node = Node { span: name.span(), value: Value::String(name.text.into()) };
            also(word, all, of_protocol(protocol(&node)?))?;
        }
        "src_ip" => also(word, all, from(network(word, words)?))?,
        "dst_ip" => also(word, all, to(network(word, words)?))?,
        "src_port" | "dst_port" => {
            let text = words.expect(word, "a port")?;
            let wrong = || text.problem(format!("{} is not a port, and no range of ports", Found(text.text)));
            let (low, high) = text.text.split_once('-').unwrap_or((text.text, text.text));
            let (low, high): (u16, u16) =
                (low.parse().map_err(|_| wrong())?, high.parse().map_err(|_| wrong())?);
            if low > high {
                return Err(wrong());
            }
            let range = Some(low..=high);
            let is_source = word.text == "src_port";
            also(word, all, if is_source { from_ports(range) } else { to_ports(range) })?;
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
            also(word, all, tos(value.into(), mask(text, of, 8)?))?;
        }
        "eth_type" => {
            words.expect(word, "a type")?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// The condition in the syntax of `flower`; `None` if it cannot express it: lists, hosts by name, lengths.
pub(super) fn flower_words(all: &Match) -> Option<String> {
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
    let plain =
        Match { ports: all.ports.clone(), length: all.length.clone(), from: all.from, ..Match::default() };
    if plain != Match::default() {
        return None;
    }
    let tos = match (number(&all.dscps)?, number(&all.ecns)?) {
        (None, None) => None,
        (Some(point), None) => Some(format!("{:#x}/0xfc", point << 2)),
        (None, Some(field)) => Some(format!("{field:#x}/0x3")),
        (Some(point), Some(field)) => Some(format!("{:#x}/0xff", point << 2 | field)),
    };
    let parts = [
        (
            "ip_proto",
            number(&all.protocols)?
                .map(|number| protocol_name(number).map_or_else(|| number.to_string(), Into::into)),
        ),
        ("ip_tos", tos),
        ("src_ip", one(&all.sources)?),
        ("dst_ip", one(&all.destinations)?),
        ("src_port", port(&all.source_ports)?),
        ("dst_port", port(&all.destination_ports)?),
    ];
    let said = parts.into_iter().filter_map(|(word, value)| Some(format!("{word} {}", value?)));
    Some(said.collect::<Vec<_>>().join(" "))
}
