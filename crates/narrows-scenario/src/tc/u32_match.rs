//! The selectors of filters: `u32 match ip dport 80 0xffff`, and `flower dst_port 80`.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;

use crate::netem::units;
use crate::netem::words::{Word, Words};
use crate::node::{Node, Value};
use crate::problem::{Found, Problem};
use crate::value::{Match, Party, code_point, protocol};

/// A number, hexadecimal with `0x`, or as tc has it decimal.
fn number(after: Word<'_>, words: &mut Words<'_>, most: i64) -> Result<u32, Problem> {
    let word = words.expect(after, "a number")?;
    Ok(units::integer(word, "a number", 0, most)? as u32)
}

/// A number in hexadecimal, with `0x` or without, as raw selectors have it.
fn raw(after: Word<'_>, words: &mut Words<'_>, bits: u32) -> Result<u32, Problem> {
    let word = words.expect(after, "a number")?;
    let digits = word.text.strip_prefix("0x").unwrap_or(word.text);
    let value = match word.text.starts_with("0x") {
        true => u64::from_str_radix(digits, 16).ok(),
        false => digits.parse().ok(),
    };
    value
        .filter(|value| *value < 1 << bits)
        .map(|value| value as u32)
        .ok_or_else(|| word.problem(format!("{} is no number of {bits} bits", Found(word.text))))
}

/// The values of a field of 16 bits that a value and a mask mean; nothing for all.
fn range(word: Word<'_>, value: u32, mask: u32) -> Result<Option<RangeInclusive<u16>>, Problem> {
    let (value, mask) = (value as u16, mask as u16);
    let rest = !mask;
    match mask {
        0 => Ok(None),
        _ if rest & rest.wrapping_add(1) == 0 => Ok(Some(value & mask..=value & mask | rest)),
        _ => Err(word.problem(format!("the mask {mask:#06x} means no range")).help(
            "take one whose set bits are its first, such as 0xffff or 0xfff0; for others several filters",
        )),
    }
}

/// The code points that a value of the TOS byte and a mask mean. The two bits of ECN are not looked at.
fn code_points(value: u32, mask: u32) -> Vec<u8> {
    let (value, mask) = (value as u8 & 0xfc, mask as u8 & 0xfc);
    if mask == 0 {
        return Vec::new();
    }
    (0..64u8).filter(|point| (point << 2) & mask == value & mask).collect()
}

fn network(after: Word<'_>, words: &mut Words<'_>) -> Result<Option<Party>, Problem> {
    let word = words.expect(after, "an address")?;
    if matches!(word.text, "any" | "all" | "default" | "0/0" | "0.0.0.0/0" | "::/0") {
        return Ok(None);
    }
    let node = Node { span: word.span(), value: Value::String(word.text.into()) };
    crate::value::party(&node, &[]).map(Some)
}

/// Puts a second condition on what a part lists.
fn narrow<T: PartialEq + Clone>(word: Word<'_>, part: &mut Vec<T>, new: Vec<T>) -> Result<(), Problem> {
    if new.is_empty() {
        return Ok(());
    }
    if part.is_empty() {
        *part = new;
        return Ok(());
    }
    let both: Vec<T> = part.iter().filter(|one| new.contains(one)).cloned().collect();
    if both.is_empty() {
        return Err(word.problem("no packet is like this: it contradicts what is said before"));
    }
    *part = both;
    Ok(())
}

/// `match ip dport 80 0xffff`, after the word `match`.
pub(super) fn selector(after: Word<'_>, words: &mut Words<'_>, all: &mut Match) -> Result<(), Problem> {
    let layer = words.expect(after, "what to match")?;
    match layer.text {
        "ip" | "ip6" | "tcp" | "udp" => {}
        "u32" | "u16" | "u8" => return raw_selector(layer, words, all),
        other => {
            return Err(layer
                .problem(format!("{} is not understood in `match`", Found(other)))
                .help("understood: ip, ip6, tcp, udp, u32, u16 and u8"));
        }
    }
    let field = words.expect(layer, "a field")?;
    match field.text {
        "src" | "dst" if matches!(layer.text, "tcp" | "udp") => ports(field, words, all)?,
        "src" => narrow(field, &mut all.sources, network(field, words)?.into_iter().collect())?,
        "dst" => narrow(field, &mut all.destinations, network(field, words)?.into_iter().collect())?,
        "sport" | "dport" => ports(field, words, all)?,
        "tos" | "dsfield" | "priority" | "precedence" => {
            let (value, mask) = (number(field, words, 255)?, number(field, words, 255)?);
            narrow(field, &mut all.dscps, code_points(value, mask))?;
        }
        "protocol" => {
            let word = words.expect(field, "a protocol")?;
            let node = Node { span: word.span(), value: Value::String(word.text.into()) };
            let number_of = match word.text.strip_prefix("0x") {
                Some(digits) => u8::from_str_radix(digits, 16).ok(),
                None => None,
            };
            let which = number_of.map_or_else(|| protocol(&node), Ok)?;
            let mask = number(word, words, 255)?;
            if mask == 0xff {
                narrow(field, &mut all.protocols, vec![which])?;
            } else if mask != 0 {
                return Err(word.problem("a mask of a protocol is 0xff"));
            }
        }
        other => {
            return Err(field
                .problem(format!("the field {} is not understood", Found(other)))
                .help("understood: src, dst, sport, dport, protocol, tos and dsfield"));
        }
    }
    if matches!(layer.text, "tcp" | "udp") {
        let number = if layer.text == "tcp" { 6 } else { 17 };
        narrow(layer, &mut all.protocols, vec![number])?;
    }
    offset(words)
}

/// `at OFFSET` may repeat where a field lies.
fn offset(words: &mut Words<'_>) -> Result<(), Problem> {
    if let Some(word) = words.peek().filter(|word| word.text == "at") {
        words.take();
        words.expect(word, "an offset")?;
    }
    Ok(())
}

fn ports(field: Word<'_>, words: &mut Words<'_>, all: &mut Match) -> Result<(), Problem> {
    let (value, mask) = (number(field, words, 0xffff)?, number(field, words, 0xffff)?);
    let is_source = matches!(field.text, "sport" | "src");
    let part = if is_source { &mut all.source_ports } else { &mut all.destination_ports };
    narrow(field, part, range(field, value, mask)?.into_iter().collect())
}

/// `match u8 0x06 0xff at 9`: bytes of the IPv4 header, and of the ports behind one without options.
fn raw_selector(layer: Word<'_>, words: &mut Words<'_>, all: &mut Match) -> Result<(), Problem> {
    let bits = match layer.text {
        "u32" => 32,
        "u16" => 16,
        _ => 8,
    };
    let (value, mask) = (raw(layer, words, bits)?, raw(layer, words, bits)?);
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
                .map_err(|_| place.problem(format!("{} is no offset that is understood", Found(text))))?,
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
    match (bits, at) {
        // The version and the length of the header: all packets that are looked at have them.
        (8, 0) => Ok(()),
        (8, 1) => narrow(layer, &mut all.dscps, code_points(value, mask)),
        (8, 9) if mask == 0xff => narrow(layer, &mut all.protocols, vec![value as u8]),
        (16, 2) => {
            let lengths = range(layer, value, mask)?.map(|range| u32::from(*range.start())..=u32::from(*range.end()));
            all.length = lengths;
            Ok(())
        }
        (16, 20) => narrow(layer, &mut all.source_ports, range(layer, value, mask)?.into_iter().collect()),
        (16, 22) => narrow(layer, &mut all.destination_ports, range(layer, value, mask)?.into_iter().collect()),
        (32, 12 | 16) => match address(value, mask) {
            Some(party) if at == 12 => narrow(layer, &mut all.sources, vec![party]),
            Some(party) => narrow(layer, &mut all.destinations, vec![party]),
            None => Err(layer.problem(format!("the mask {mask:#010x} means no network"))),
        },
        (32, 20) => {
            narrow(layer, &mut all.source_ports, range(layer, value >> 16, mask >> 16)?.into_iter().collect())?;
            narrow(layer, &mut all.destination_ports, range(layer, value, mask)?.into_iter().collect())
        }
        _ => Err(place
            .problem(format!("{bits} bits at {at} are no field that a class of narrows matches"))
            .help("understood: the TOS byte (u8 at 1), the protocol (u8 at 9), the length (u16 at 2), addresses (u32 at 12 and 16), ports (u16 at 20 and 22)")),
    }
}

/// `ip_proto tcp dst_port 80 …`: one key of flower; whether it is one.
pub(super) fn flower(word: Word<'_>, words: &mut Words<'_>, all: &mut Match) -> Result<bool, Problem> {
    match word.text {
        "ip_proto" => {
            let name = words.expect(word, "a protocol")?;
            let node = Node { span: name.span(), value: Value::String(name.text.into()) };
            narrow(word, &mut all.protocols, vec![protocol(&node)?])?;
        }
        "src_ip" => narrow(word, &mut all.sources, network(word, words)?.into_iter().collect())?,
        "dst_ip" => narrow(word, &mut all.destinations, network(word, words)?.into_iter().collect())?,
        "src_port" | "dst_port" => {
            let text = words.expect(word, "a port")?;
            let wrong = || text.problem(format!("{} is no port, and no range of ports", Found(text.text)));
            let (low, high) = text.text.split_once('-').unwrap_or((text.text, text.text));
            let (low, high): (u16, u16) =
                (low.parse().map_err(|_| wrong())?, high.parse().map_err(|_| wrong())?);
            if low > high {
                return Err(wrong());
            }
            let part =
                if word.text == "src_port" { &mut all.source_ports } else { &mut all.destination_ports };
            narrow(word, part, vec![low..=high])?;
        }
        "ip_tos" => {
            let text = words.expect(word, "a value of the TOS byte")?;
            let (value, mask) = text.text.split_once('/').unwrap_or((text.text, "0xff"));
            let number = |part: &str| match part.strip_prefix("0x") {
                Some(digits) => u32::from_str_radix(digits, 16).ok(),
                None => part.parse().ok(),
            };
            let (Some(value), Some(mask)) = (number(value), number(mask)) else {
                let node = Node { span: text.span(), value: Value::String(text.text.into()) };
                narrow(word, &mut all.dscps, vec![code_point(&node)?])?;
                return Ok(true);
            };
            narrow(word, &mut all.dscps, code_points(value, mask))?;
        }
        "skip_hw" | "skip_sw" | "not_in_hw" => {}
        "eth_type" => {
            words.expect(word, "a type")?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}
