//! Tables of a link with rules: `1 = ["10.0.0.0/8 5", "2001:db8::/32"]`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use narrows_core::classify::Prefix;
use narrows_core::rules::{SpecialKey, Table};

use crate::ipfw::{Network, TableKey, flow_entry, flow_fields, flow_kind};
use crate::keys::kind::text;
use crate::node::{Key, Node, Value};
use crate::problem::{Found, Problem};

/// Reads the entries of a table.
pub(super) fn read(key: &Key, node: &Node) -> Result<Table, Vec<Problem>> {
    const ALLOWED: &str =
        "a list of addresses and their values, such as [\"10.0.0.0/8 5\", \"192.168.1.1 7\"]";
    let one = |problem: Problem| vec![problem];
    check_name(key).map_err(one)?;
    let mut table = Table::default();
    let mut problems = Vec::new();
    let items = node.list(ALLOWED).map_err(one)?;
    if let Some(first) = items.first()
        && let Ok(text) = first.text(ALLOWED)
        && text.starts_with("flow:")
    {
        return flows(text, first, &items[1..]);
    }
    for item in items {
        let read = item.text(ALLOWED).and_then(|text| {
            entry(text).ok_or_else(|| {
                item.expected("an address, its bits and a value, such as \"10.0.0.0/8 5\"").help(
                    "the value is a whole number from 0 to 4294967295, and 0 where none stands; a number in place of the \
                     address is a port or code point; other entries are 02:00:00:00:00:01 and, at the first host of the link, \
                     em0@first; a table of flows begins with its fields, as \"flow:src-ip,dst-port\"",
                )
            })
        });
        match read {
            Ok((prefix, value)) => {
                if let Some(before) = table.insert(prefix, value) {
                    problems.push(
                        Problem::new(format!("{} is in the table twice", item.found()))
                            .at(&item.span)
                            .help(format!("its value was {before} before; keep one of the two")),
                    );
                }
            }
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(table) } else { Err(problems) }
}

/// Reads a table of flows, whose first item says the fields.
fn flows(kind: &str, first: &Node, items: &[Node]) -> Result<Table, Vec<Problem>> {
    let fields = match flow_fields(kind) {
        Ok(fields) => fields.unwrap_or_default(),
        Err(problem) => return Err(vec![problem.put_at(&first.span)]),
    };
    let mut table = Table::of_flows(fields);
    let mut problems = Vec::new();
    for item in items {
        let mut read = || {
            let text = item.text("a flow and its value, such as \"10.0.0.1,53 5\"")?;
            let mut words = text.split_whitespace();
            let (key, value, more) = (words.next().unwrap_or_default(), words.next(), words.next());
            let value = value.map_or(Some(0), |value| value.parse().ok());
            let (Some(value), None) = (value, more) else {
                return Err(item.expected("a flow and its value, such as \"10.0.0.1,53 5\""));
            };
            let flow = flow_entry(key, fields).map_err(|problem| problem.put_at(&item.span))?;
            match table.insert_flow(flow, value) {
                Some(_) => {
                    Err(Problem::new(format!("{} is in the table twice", item.found())).at(&item.span))
                }
                None => Ok(()),
            }
        };
        problems.extend(read().err());
    }
    if problems.is_empty() { Ok(table) } else { Err(problems) }
}

fn check_name(key: &Key) -> Result<(), Problem> {
    let is_one = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if (1..=63).contains(&key.name.len()) && key.name.chars().all(is_one) {
        return Ok(());
    }
    Err(Problem::new(format!("{} cannot be the name of a table", Found(&key.name)))
        .at(&key.span)
        .help("a table has a number, or a name of 1 to 63 of the characters a–z, A–Z, 0–9, `-`, `_` and `.`"))
}

/// Parses `ADDRESS[/BITS] [VALUE]`, with a number, a link address or an interface in place of the address.
fn entry(text: &str) -> Option<(Prefix, u32)> {
    let mut words = text.split_whitespace();
    let (what, value) = (words.next()?, words.next());
    if words.next().is_some() {
        return None;
    }
    let value = match value {
        None => 0,
        Some(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok()?,
        Some(_) => return None,
    };
    if let Some(key) = Network::from_scenario(what) {
        return Some((Prefix::new(key.address.to_be_bytes(), key.bits), value));
    }
    if what.bytes().all(|byte| byte.is_ascii_digit()) {
        let number = Ipv4Addr::from_bits(what.parse().ok()?);
        return Some((prefix(IpAddr::V4(number), 32), value));
    }
    let (address, bits) = what.split_once('/').map_or((what, None), |(address, bits)| (address, Some(bits)));
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = match bits {
        None => most,
        Some(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => {
            text.parse().ok().filter(|bits| *bits <= most)?
        }
        Some(_) => return None,
    };
    Some((prefix(address, bits), value))
}

fn prefix(address: IpAddr, bits: u8) -> Prefix {
    match address {
        IpAddr::V4(address) => Prefix::new(address.to_ipv6_mapped().octets(), 96 + bits),
        IpAddr::V6(address) => Prefix::new(address.octets(), bits),
    }
}

/// As written in a file.
pub(super) fn value(table: &Table) -> Value {
    let entry = |(prefix, value): (Prefix, u32)| {
        let value = if value == 0 { String::new() } else { format!(" {value}") };
        Node::new(text(format!("{}{value}", prefix_text(prefix))))
    };
    let Some(fields) = table.flow_fields() else { return Value::Array(table.iter().map(entry).collect()) };
    let flow = |(flow, value)| Node::new(text(format!("{} {value}", TableKey::Flow(fields, flow))));
    Value::Array(std::iter::once(Node::new(text(flow_kind(fields)))).chain(table.flows().map(flow)).collect())
}

/// `10.0.0.0/8`, or `192.168.1.1` for all bits; `em0@first`.
fn prefix_text(prefix: Prefix) -> String {
    if SpecialKey::of(prefix).is_some() {
        return Network { address: u128::from_be_bytes(prefix.address()), bits: prefix.bits() }.in_scenario();
    }
    let address = Ipv6Addr::from_octets(prefix.address());
    match address.to_ipv4_mapped() {
        Some(address) if prefix.bits() == 128 => address.to_string(),
        Some(address) if prefix.bits() >= 96 => format!("{address}/{}", prefix.bits() - 96),
        _ if prefix.bits() == 128 => address.to_string(),
        _ => format!("{address}/{}", prefix.bits()),
    }
}
