//! Flow masks: `"all"`, or `{ src-ip = "0xff", dst-port = "all" }`, and for none `"none"`.
//!
//! A value is the bits that count, as ipfw has them: a number, hexadecimal or decimal, an address where it is of one, `"/64"`
//! for the first 64 bits of an IPv6 address, or `"all"`.

use std::net::{Ipv4Addr, Ipv6Addr};

use narrows_core::classify::FlowMask;

use crate::node::{Node, Table, Value};
use crate::problem::{Found, Problem};
use crate::value::inline::Inline;

pub(crate) const KEYS: &[&str] =
    &["src-ip", "dst-ip", "src-ip6", "dst-ip6", "src-port", "dst-port", "proto", "flow-id", "queue"];

const ALLOWED: &str = "\"all\", or a table of what tells flows apart, such as { src-ip = \"0xffffffff\" }";

/// Reads a mask; nothing for `"none"`.
pub(crate) fn read(node: &Node) -> Result<Option<FlowMask>, Problem> {
    let table = match &node.value {
        Value::Table(table) => table,
        Value::String(text) if text.trim() == "all" => return Ok(Some(FlowMask::ALL)),
        Value::String(text) if text.trim() == "none" => return Ok(None),
        _ => return Err(node.expected(ALLOWED)),
    };
    table.only(KEYS)?;
    let mask = FlowMask {
        source_v4: v4(table, "src-ip")?,
        destination_v4: v4(table, "dst-ip")?,
        source_v6: v6(table, "src-ip6")?,
        destination_v6: v6(table, "dst-ip6")?,
        // Within their bits, as `bits` has checked.
        source_port: table.optional("src-port", |node| bits(node, "a port", 16))?.unwrap_or(0) as u16,
        destination_port: table.optional("dst-port", |node| bits(node, "a port", 16))?.unwrap_or(0) as u16,
        protocol: table.optional("proto", |node| bits(node, "a protocol number", 8))?.unwrap_or(0) as u8,
        flow_label: table.optional("flow-id", |node| bits(node, "an IPv6 flow label", 20))?.unwrap_or(0)
            as u32,
        queue: table.optional("queue", Node::boolean)?.unwrap_or(false),
    };
    if mask.is_none() {
        return Err(Problem::new("a mask with no bits: all packets would be one flow")
            .at(&node.span)
            .help("leave the mask out, or say which bits count: { src-ip = \"0xffffffff\" }"));
    }
    Ok(Some(mask))
}

fn v4(table: &Table, key: &str) -> Result<u32, Problem> {
    let mask = table.optional(key, |node| match node_text(node).parse::<Ipv4Addr>() {
        Ok(address) => Ok(u128::from(address.to_bits())),
        Err(_) => bits(node, "an IPv4 address", 32),
    })?;
    Ok(mask.unwrap_or(0) as u32) // 32 bits at most
}

fn v6(table: &Table, key: &str) -> Result<u128, Problem> {
    let mask = table.optional(key, |node| {
        let text = node_text(node);
        // ipfw's `/N` is the lowest N bits elsewhere, and here the first.
        let first = text.strip_prefix('/').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        match (first.map(str::parse), text.parse::<Ipv6Addr>()) {
            (Some(Ok(first @ 0..=128)), _) => Ok(u128::MAX.checked_shl(128 - first).unwrap_or(0)),
            (_, Ok(address)) => Ok(address.to_bits()),
            _ => bits(node, "an IPv6 address", 128),
        }
    })?;
    Ok(mask.unwrap_or(0))
}

fn node_text(node: &Node) -> &str {
    match &node.value {
        Value::String(text) | Value::Integer(text) => text.trim(),
        _ => "",
    }
}

/// A number of at most so many bits.
fn bits(node: &Node, of: &str, most: u32) -> Result<u128, Problem> {
    let text = node_text(node);
    let all = u128::MAX >> (128 - most);
    if text == "all" {
        return Ok(all);
    }
    let number = match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        // Not all that Rust takes for a number: a sign is none here.
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            let digits = digits.trim_start_matches('0');
            if digits.is_empty() { Ok(0) } else { u128::from_str_radix(digits, 16).map_err(|_| true) }
        }
        None if text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() => {
            text.parse().map_err(|_| true)
        }
        _ => Err(false),
    };
    match number {
        Ok(number) if number <= all => Ok(number),
        Ok(_) | Err(true) => Err(Problem::new(format!(
            "the mask {} has more bits than {of} has, which are {most}",
            Found(text)
        ))
        .at(&node.span)
        .help(format!("all of them are {all:#x}; is it a digit too many?"))),
        Err(false) if text.starts_with('/') => Err(node
            .expected(&format!("the bits of {of} that count, such as \"{:#x}\"", all >> (most / 2)))
            .help("ipfw takes `/8` for the lowest 8 bits, and others take it for the first: write the bits")),
        Err(false) => {
            Err(node.expected(&format!("the bits of {of} that count, such as \"{all:#x}\", or \"all\"")))
        }
    }
}

/// As it stands in a file.
pub(crate) fn text(mask: Option<FlowMask>) -> String {
    let Some(mask) = mask else { return "\"none\"".into() };
    if mask == FlowMask::ALL {
        return "\"all\"".into();
    }
    let mut table = Inline::default();
    for (key, bits, most) in parts(&mask) {
        let word = if bits == u128::MAX >> (128 - most) { "all".into() } else { format!("{bits:#x}") };
        table.quoted(key, (bits > 0).then_some(word));
    }
    table.plain("queue", mask.queue.then_some("true"));
    table.finish()
}

/// In words: what packets of one flow agree in.
pub fn words(mask: &FlowMask) -> String {
    if *mask == FlowMask::ALL {
        return "addresses, ports, protocol and flow label".into();
    }
    let part = |(key, bits, most): (&str, u128, u32)| {
        let name = match key {
            "src-ip" => "the IPv4 source address",
            "dst-ip" => "the IPv4 destination address",
            "src-ip6" => "the IPv6 source address",
            "dst-ip6" => "the IPv6 destination address",
            "src-port" => "the source port",
            "dst-port" => "the destination port",
            "proto" => "the protocol",
            _ => "the IPv6 flow label",
        };
        let all = u128::MAX >> (128 - most);
        let ones = bits.count_ones();
        (bits > 0).then(|| match () {
            () if bits == all => name.into(),
            () if bits == u128::MAX >> (128 - ones) => format!("the last {ones} bits of {name}"),
            () if bits == all & !(all >> ones) => format!("the first {ones} bits of {name}"),
            () => format!("the bits {bits:#x} of {name}"),
        })
    };
    let mut all: Vec<String> = parts(mask).into_iter().filter_map(part).collect();
    all.extend(mask.queue.then(|| "the queue that the rules gave them".into()));
    match all.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => "nothing".into(),
    }
}

/// Key, bits that count, and how many there are.
fn parts(mask: &FlowMask) -> [(&'static str, u128, u32); 8] {
    [
        ("src-ip", mask.source_v4.into(), 32),
        ("dst-ip", mask.destination_v4.into(), 32),
        ("src-ip6", mask.source_v6, 128),
        ("dst-ip6", mask.destination_v6, 128),
        ("src-port", mask.source_port.into(), 16),
        ("dst-port", mask.destination_port.into(), 16),
        ("proto", mask.protocol.into(), 8),
        ("flow-id", mask.flow_label.into(), 20),
    ]
}
