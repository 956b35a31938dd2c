//! Flow masks: `"all"`, `"none"`, or `{ src-ip = "0xff", dst-port = "all" }`.
//!
//! A value selects the bits that distinguish flows, as in ipfw: a hexadecimal or decimal number, an address
//! for address fields, `"/64"` for the first 64 bits of an IPv6 address, or `"all"`.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use narrows_core::classify::FlowMask;
use serde_json::{Value as Json, json};

use crate::keys::compound::Group;
use crate::keys::kind::{Boolean, text};
use crate::keys::schema::{self, Definitions};
use crate::keys::{self, Form, Keyed, Kind, Row, row};
use crate::node::{Node, Table, Value};
use crate::problem::{Found, Problem};
use crate::value::Surroundings;

/// The selected bits of a field. `of` is a noun with its article.
struct Bits {
    of: &'static str,
    most: u32,
}

const fn of(of: &'static str, most: u32) -> Bits {
    Bits { of, most }
}

impl Bits {
    const fn all(&self) -> u128 {
        u128::MAX >> (128 - self.most)
    }
}

impl Kind for Bits {
    fn schema(&self, definitions: &mut Definitions) -> Json {
        schema::define(definitions, "Bits", |_| {
            json!({
                "description": "`all`, a number such as `0xff`, or for addresses one of them such as `255.255.255.0`.",
                "anyOf": [{ "type": "integer", "minimum": 0 }, { "type": "string" }],
            })
        })
    }

    fn words(&self) -> String {
        format!("{} bits", self.most)
    }
}

impl<V: TryFrom<u128> + Into<u128> + Copy> Form<V> for Bits {
    fn read(&self, node: &Node, _: Surroundings<'_>) -> Result<V, Problem> {
        let text = node_text(node);
        // In ipfw, `/N` selects the lowest N bits of other fields; for IPv6 addresses it selects the first
        // N.
        let first = text.strip_prefix('/').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let bits = match (self.most, first.map(str::parse)) {
            (32, _) if let Ok(address) = text.parse::<Ipv4Addr>() => address.to_bits().into(),
            (128, Some(Ok(first @ 0..=128))) => u128::MAX.checked_shl(128 - first).unwrap_or(0),
            (128, _) if let Ok(address) = text.parse::<Ipv6Addr>() => address.to_bits(),
            _ => bits(node, self)?,
        };
        V::try_from(bits).map_err(|_| node.expected(self.of))
    }

    /// `None` if no bit is selected.
    fn write(&self, bits: &V) -> Option<Value> {
        match (*bits).into() {
            0 => None,
            bits if bits == self.all() => Some(text("all")),
            bits => Some(text(format!("{bits:#x}"))),
        }
    }
}

impl Keyed for FlowMask {
    const ROWS: &'static [Row<Self>] = &[
        row!("src-ip", source_v4, of("an IPv4 address", 32), "The IPv4 source address."),
        row!("dst-ip", destination_v4, of("an IPv4 address", 32), "The IPv4 destination address."),
        row!("src-ip6", source_v6, of("an IPv6 address", 128), "The IPv6 source address."),
        row!("dst-ip6", destination_v6, of("an IPv6 address", 128), "The IPv6 destination address."),
        row!("src-port", source_port, of("a port", 16), "The source port."),
        row!("dst-port", destination_port, of("a port", 16), "The destination port."),
        row!("proto", protocol, of("a protocol number", 8), "The protocol number."),
        row!("flow-id", flow_label, of("an IPv6 flow label", 20), "The IPv6 flow label."),
        row!("queue", queue, Boolean, "Queue chosen by a rule."),
    ];

    fn check(&self, _: &Table, place: &Range<usize>) -> Result<(), Problem> {
        if self.is_none() {
            return Err(Problem::new("an empty mask: all packets would be one flow")
                .at(place)
                .help("remove the mask, or give the bits that count: { src-ip = \"0xffffffff\" }"));
        }
        Ok(())
    }
}

const TABLE: Group<FlowMask> = Group::new(
    "MaskParts",
    "The bits that count: packets that agree in them are one flow.",
    "{ src-ip = \"0xffffffff\" }",
);

/// Reads a mask; `None` for `"none"`.
pub(crate) fn read(node: &Node, around: Surroundings<'_>) -> Result<Option<FlowMask>, Problem> {
    match &node.value {
        Value::Table(_) => TABLE.read(node, around).map(Some),
        Value::String(text) if text.trim() == "all" => Ok(Some(FlowMask::ALL)),
        Value::String(text) if text.trim() == "none" => Ok(None),
        _ => Err(node
            .expected("\"all\", or a table of what tells flows apart, such as { src-ip = \"0xffffffff\" }")),
    }
}

/// As written in a file.
pub(crate) fn value(mask: FlowMask) -> Value {
    if mask == FlowMask::ALL { text("all") } else { Value::Table(keys::written(&mask)) }
}

/// The schema of a mask.
pub(crate) fn schema(definitions: &mut Definitions) -> Json {
    json!({ "anyOf": [{ "enum": ["all", "none"] }, TABLE.schema(definitions)] })
}

fn node_text(node: &Node) -> &str {
    match &node.value {
        Value::String(text) | Value::Integer(text) => text.trim(),
        _ => "",
    }
}

/// Reads a number with a limited number of bits.
fn bits(node: &Node, within: &Bits) -> Result<u128, Problem> {
    let (text, all) = (node_text(node), within.all());
    let Bits { of, most } = within;
    if text == "all" {
        return Ok(all);
    }
    let number = match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        // Rust's number parser would also accept a sign.
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
        Ok(_) | Err(true) => {
            Err(Problem::new(format!("the mask {} is wider than {of}, which has {most} bits", Found(text)))
                .at(&node.span)
                .help(format!("the full mask is {all:#x}; one digit too many?")))
        }
        Err(false) if text.starts_with('/') => Err(node
            .expected(&format!("the bits of {of} that count, such as \"{:#x}\"", all >> (most / 2)))
            .help("`/8` means the lowest 8 bits in ipfw and the first 8 elsewhere: write the bits")),
        Err(false) => {
            Err(node.expected(&format!("the bits of {of} that count, such as \"{all:#x}\", or \"all\"")))
        }
    }
}

/// Describes what packets of one flow have in common.
pub fn words(mask: &FlowMask) -> String {
    if *mask == FlowMask::ALL {
        return "addresses, ports, protocol and flow label".into();
    }
    let parts: [(&str, u128, u32); 8] = [
        ("the IPv4 source address", mask.source_v4.into(), 32),
        ("the IPv4 destination address", mask.destination_v4.into(), 32),
        ("the IPv6 source address", mask.source_v6, 128),
        ("the IPv6 destination address", mask.destination_v6, 128),
        ("the source port", mask.source_port.into(), 16),
        ("the destination port", mask.destination_port.into(), 16),
        ("the protocol", mask.protocol.into(), 8),
        ("the IPv6 flow label", mask.flow_label.into(), 20),
    ];
    let part = |(name, bits, most): (&str, u128, u32)| {
        let all = u128::MAX >> (128 - most);
        let ones = bits.count_ones();
        (bits > 0).then(|| match () {
            () if bits == all => name.into(),
            () if bits == u128::MAX >> (128 - ones) => format!("the last {ones} bits of {name}"),
            () if bits == all & !(all >> ones) => format!("the first {ones} bits of {name}"),
            () => format!("the bits {bits:#x} of {name}"),
        })
    };
    let mut all: Vec<String> = parts.into_iter().filter_map(part).collect();
    all.extend(mask.queue.then(|| "the queue that the rules gave them".into()));
    match all.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => "nothing".into(),
    }
}
