//! The parts of a condition: protocols, addresses, ports, code points, lengths.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::str::FromStr;

use narrows_core::Bytes;
use narrows_core::classify::TcpFlags;
use serde_json::{Value as Json, json};

use super::Party;
use super::sender::Sender;
use crate::keys::schema::{self, Definitions};
use crate::link::Way;
use crate::node::{Node, Value};
use crate::problem::{Found, Problem, nearest, one_of};
use crate::units;

/// Names of IP protocols as registered at IANA, in lower case.
const PROTOCOLS: &[(&str, u8)] = &[
    ("tcp", 6),
    ("udp", 17),
    ("icmp", 1),
    ("icmpv6", 58),
    ("sctp", 132),
    ("dccp", 33),
    ("udplite", 136),
    ("igmp", 2),
    ("ipip", 4),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("ospf", 89),
];

/// Names of code points: RFC 2474 (be, cs), RFC 2597 (af), RFC 3246 (ef), RFC 5865 (va), RFC 8622 (le).
const CODE_POINTS: &[(&str, u8)] = &[
    ("be", 0),
    ("le", 1),
    ("ef", 46),
    ("va", 44),
    ("cs0", 0),
    ("cs1", 8),
    ("cs2", 16),
    ("cs3", 24),
    ("cs4", 32),
    ("cs5", 40),
    ("cs6", 48),
    ("cs7", 56),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
];

/// Reads a name from a table, or a number up to `most`.
fn named(node: &Node, what: &str, names: &[(&str, u8)], most: i64) -> Result<u8, Problem> {
    match &node.value {
        Value::String(text) if !text.trim().starts_with(|c: char| c.is_ascii_digit()) => {
            node.choice(what, names).map_err(|p| p.help(format!("or a number from 0 to {most}")))
        }
        _ => node.integer(&format!("a {what}"), 0..most + 1).map(|number| number as u8).map_err(|p| {
            p.help(format!("or a name: {}", one_of(&names.iter().map(|n| n.0).collect::<Vec<_>>())))
        }),
    }
}

fn name_of(names: &[(&'static str, u8)], number: u8) -> Option<&'static str> {
    names.iter().find(|(_, known)| *known == number).map(|(name, _)| *name)
}

/// The name of a number, or else the number.
pub(super) fn named_text(name: Option<&str>, number: u8) -> Value {
    name.map_or_else(|| Value::Integer(number.to_string()), |name| Value::String(name.into()))
}

pub(crate) fn protocol(node: &Node) -> Result<u8, Problem> {
    named(node, "protocol", PROTOCOLS, 255)
}

/// Protocol names as code, for errors.
pub(super) fn protocol_names() -> String {
    let quoted = PROTOCOLS.iter().map(|(name, _)| format!("`\"{name}\"`"));
    quoted.collect::<Vec<_>>().join(", ")
}

pub(crate) fn protocol_name(number: u8) -> Option<&'static str> {
    name_of(PROTOCOLS, number)
}

pub(crate) fn code_point(node: &Node) -> Result<u8, Problem> {
    named(node, "code point", CODE_POINTS, 63)
}

pub(super) fn code_point_name(point: u8) -> Option<&'static str> {
    name_of(CODE_POINTS, point)
}

/// `5060` or `"6000-6100"`.
pub(super) fn ports(node: &Node) -> Result<RangeInclusive<u16>, Problem> {
    range(node, "a port from 0 to 65535, or a range such as \"6000-6100\"")
}

/// A number or a range of numbers.
pub(super) fn range<T: FromStr + PartialOrd>(
    node: &Node,
    expected: &str,
) -> Result<RangeInclusive<T>, Problem> {
    let wrong = || node.expected(expected);
    let text = match &node.value {
        Value::Integer(text) | Value::String(text) => text.as_str(),
        _ => return Err(wrong()),
    };
    let number = |text: &str| text.trim().parse::<T>().map_err(|_| wrong());
    let (low, high) = match text.split_once('-').filter(|(low, _)| !low.is_empty()) {
        Some((low, high)) => (number(low)?, number(high)?),
        None => (number(text)?, number(text)?),
    };
    if low > high {
        return Err(Problem::new(format!("the range {} is descending", node.found())).at(&node.span));
    }
    Ok(low..=high)
}

pub(super) fn ports_text(range: &RangeInclusive<u16>) -> String {
    match (range.start(), range.end()) {
        (low, high) if low == high => low.to_string(),
        (low, high) => format!("{low}-{high}"),
    }
}

pub(super) fn ports_value(range: &RangeInclusive<u16>) -> Value {
    let text = ports_text(range);
    if range.start() == range.end() { Value::Integer(text) } else { Value::String(text) }
}

pub(super) fn ports_schema(definitions: &mut Definitions) -> Json {
    schema::define(definitions, "Port", |_| {
        json!({
            "description": "A port, or a range of ports with both ends included.",
            "anyOf": [
                { "type": "integer", "minimum": 0, "maximum": 65535 },
                { "type": "string", "pattern": r"^ *[0-9]+ *(- *[0-9]+ *)?$" },
            ],
        })
    })
}

/// Reads a host of the scenario, an address or a network.
pub(crate) fn party(node: &Node, hosts: &[String]) -> Result<Party, Problem> {
    const HELP: &str =
        "write an address (\"10.1.2.3\", \"fd00::1\"), a network (\"10.1.0.0/16\") or the name of a host";
    let text = node.text("an address, a network or a host").map_err(|p| p.help(HELP))?.trim();
    if hosts.iter().any(|host| host == text) {
        return Ok(Party::Host(text.into()));
    }
    let (address, length) = text.split_once('/').map_or((text, None), |(ip, length)| (ip, Some(length)));
    let Ok(ip) = address.trim().parse::<IpAddr>() else {
        let problem =
            Problem::new(format!("{} is not a host, address or network", Found(text))).at(&node.span);
        return Err(match nearest(text, hosts.iter().map(String::as_str)) {
            Some(near) => problem.help(format!("did you mean `{near}`?")).help(HELP),
            None => problem.help(HELP),
        });
    };
    let most = if ip.is_ipv4() { 32 } else { 128 };
    let prefix = match length.map(str::trim) {
        None => most,
        Some(length) => length.parse().ok().filter(|length| *length <= most).ok_or_else(|| {
            Problem::new(format!("{} is not a length of a prefix", Found(length)))
                .at(&node.span)
                .help(format!("0 to {most}"))
        })?,
    };
    let ip = network(ip, prefix);
    // The engine stores IPv4 addresses as IPv4-mapped IPv6 addresses.
    if ip.is_ipv6()
        && prefix < 96
        && network(IpAddr::V6(Ipv4Addr::UNSPECIFIED.to_ipv6_mapped()), prefix) == ip
    {
        return Err(Problem::new(format!("{} includes IPv4 addresses", node.found()))
            .at(&node.span)
            .help("remove the key for any address; \"2000::/3\" is the global unicast space of IPv6"));
    }
    Ok(Party::Network { ip, prefix })
}

/// The address without the bits beyond its prefix.
fn network(ip: IpAddr, prefix: u8) -> IpAddr {
    match ip {
        IpAddr::V4(ip) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(ip.to_bits() & mask))
        }
        IpAddr::V6(ip) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & mask))
        }
    }
}

/// `"..300 bytes"`, `"301 bytes.."`, `"100..200 bytes"` or `"40 bytes"`; ranges are inclusive.
pub(super) fn length(node: &Node) -> Result<RangeInclusive<u32>, Problem> {
    const HELP: &str = "write \"..300 bytes\", \"301 bytes..\" or \"100..200 bytes\"; both ends are included";
    let text = node.text("a range of lengths").map_err(|p| p.help(HELP))?.trim();
    let bytes = |text: &str| {
        let part = Node { span: node.span.clone(), value: Value::String(text.trim().into()) };
        let bytes = units::size(&part)?.get();
        u32::try_from(bytes).map_err(|_| part.expected("a length of at most 4294967295 bytes"))
    };
    let range = match text.split_once("..") {
        None => bytes(text).map(|length| length..=length),
        Some((low, high)) => {
            // The unit after the second number applies to both.
            let unit = high.trim().trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '_');
            let bare = low.trim().bytes().all(|c| c.is_ascii_digit() || c == b'.' || c == b'_');
            let low = if bare && !low.trim().is_empty() { format!("{low}{unit}") } else { low.into() };
            match (low.trim(), high.trim()) {
                ("", "") => Err(node.expected("a range of lengths")),
                ("", high) => bytes(high).map(|high| 0..=high),
                (low, "") => bytes(low).map(|low| low..=u32::MAX),
                (low, high) => bytes(low).and_then(|low| Ok(low..=bytes(high)?)),
            }
        }
    };
    let range = range.map_err(|p| p.help(HELP))?;
    if range.start() > range.end() {
        return Err(Problem::new(format!("the range {} is descending", node.found())).at(&node.span));
    }
    if *range.end() < 20 || *range.start() > 65_535 {
        return Err(Problem::new(format!("no IP packet has {}", node.found()))
            .at(&node.span)
            .help("an IP packet has 20 to 65535 bytes"));
    }
    Ok(range)
}

pub(super) fn length_text(range: &RangeInclusive<u32>) -> String {
    let bytes = |length: u32| Bytes::new(length.into());
    match (*range.start(), *range.end()) {
        (low, high) if low == high => bytes(low).to_string(),
        (low, u32::MAX) => format!("{}..", bytes(low)),
        (0, high) => format!("..{}", bytes(high)),
        (low, high) => format!("{low}..{}", bytes(high)),
    }
}

pub(super) fn length_words(range: &RangeInclusive<u32>) -> String {
    match (*range.start(), *range.end()) {
        (low, high) if low == high => format!("{low} bytes"),
        (low, u32::MAX) => format!("{low} bytes or more"),
        (0, high) => format!("up to {high} bytes"),
        (low, high) => format!("{low} to {high} bytes"),
    }
}

/// The flags of a TCP header, from the lowest bit on (RFC 9293, RFC 3168).
const FLAGS: [&str; 8] = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"];

/// `"ack"` or `"syn,!ack"`.
pub(super) fn tcp_flags(node: &Node) -> Result<TcpFlags, Problem> {
    let mut flags = TcpFlags::default();
    for item in node.text("TCP flags, such as \"syn,!ack\"")?.split(',').map(str::trim) {
        let name = item.strip_prefix('!');
        let known = FLAGS.iter().position(|known| *known == name.unwrap_or(item));
        let Some(bit) = known else {
            return Err(Problem::new(format!("{} is not a TCP flag", Found(item)))
                .at(&node.span)
                .help(format!("allowed: {}, each also after `!`", one_of(&FLAGS))));
        };
        *if name.is_some() { &mut flags.clear } else { &mut flags.set } |= 1 << bit;
    }
    if flags.set & flags.clear != 0 {
        return Err(Problem::new(format!("{} both sets and clears a flag", node.found())).at(&node.span));
    }
    Ok(flags)
}

pub(super) fn tcp_flags_text(flags: TcpFlags) -> String {
    let names = |set: u8, not: &str| -> Vec<String> {
        let all = FLAGS.iter().enumerate().filter(|(bit, _)| set >> bit & 1 == 1);
        all.map(|(_, name)| format!("{not}{name}")).collect()
    };
    [names(flags.set, ""), names(flags.clear, "!")].concat().join(",")
}

/// `"up"`, `"down"` or a station.
pub(super) fn sender(node: &Node, shared: bool, stations: &[String]) -> Result<Sender, Problem> {
    let mut senders = vec![Sender::Way(Way::Up), Sender::Way(Way::Down)];
    let station = |(number, name): (u8, &String)| Sender::Station { name: name.clone(), number };
    senders.extend((0..).zip(stations).map(station));
    let choices: Vec<(&str, usize)> =
        senders.iter().enumerate().map(|(index, sender)| (sender.name(), index)).collect();
    let sender = senders[node.choice("sender", &choices)?].clone();
    if shared {
        return Ok(sender);
    }
    Err(Problem::new("`from` distinguishes the directions of a shared medium")
        .at(&node.span)
        .help("this link has a queue per direction: give `up` or `down` its own scheduler"))
}
