//! Tables of flows: their fields, `src-ip,proto,dst-ip,dst-port`, and their keys, `10.0.0.1,udp,10.0.0.2,53`.

use std::fmt::{self, Display, Formatter};
use std::net::IpAddr;

use narrows_core::rules::{FlowEntry, FlowFields};

use super::address;
use super::interfaces::command_for_table;
use super::lexer::{Line, Word};
use super::names;
use super::network::Network;
use super::numbers;
use super::text::protocol;
use crate::problem::{Problem, one_of};

/// A key of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TableKey {
    /// An address, a network, a number, a link address or an interface.
    Network(Network),
    /// A flow, in a table with these fields.
    Flow(FlowFields, FlowEntry),
}

impl TableKey {
    /// As written in a scenario.
    pub fn in_scenario(&self) -> String {
        match self {
            Self::Network(network) => network.in_scenario(),
            Self::Flow(..) => self.to_string(),
        }
    }

    /// Whether it is an interface that no packet passes.
    pub(crate) fn is_elsewhere(&self) -> bool {
        matches!(self, Self::Network(network) if network.is_elsewhere())
    }

    /// The type of a table with such keys.
    pub(super) fn kind(&self) -> String {
        match self {
            Self::Network(network) => network.kind().into(),
            Self::Flow(fields, _) => kind_text(*fields),
        }
    }
}

impl Display for TableKey {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(network) => network.fmt(f),
            Self::Flow(fields, flow) => f.write_str(&flow_text(*fields, flow)),
        }
    }
}

/// Names of the fields, in the order in which they are written.
const FIELDS: [&str; 5] = ["src-ip", "proto", "src-port", "dst-ip", "dst-port"];

/// The fields of a table of flows for which none are named.
const ALL: FlowFields =
    FlowFields { source: true, protocol: true, source_port: true, destination: true, destination_port: true };

fn flags(fields: FlowFields) -> [bool; 5] {
    [fields.source, fields.protocol, fields.source_port, fields.destination, fields.destination_port]
}

/// `flow:src-ip,proto,dst-port`
pub(crate) fn kind_text(fields: FlowFields) -> String {
    let named: Vec<&str> =
        FIELDS.iter().zip(flags(fields)).filter(|(_, is)| *is).map(|(name, _)| *name).collect();
    format!("flow:{}", named.join(","))
}

fn flow_text(fields: FlowFields, flow: &FlowEntry) -> String {
    let address = |bits: u128| {
        let v6 = std::net::Ipv6Addr::from_bits(bits);
        v6.to_ipv4_mapped().map_or(v6.to_string(), |v4| v4.to_string())
    };
    let parts = [
        address(flow.source),
        protocol(flow.protocol),
        flow.source_port.to_string(),
        address(flow.destination),
        flow.destination_port.to_string(),
    ];
    let parts: Vec<String> =
        parts.into_iter().zip(flags(fields)).filter(|(_, is)| *is).map(|(part, _)| part).collect();
    parts.join(",")
}

/// Parses the type of a table if it is one of flows: `flow`, or `flow:src-ip,dst-port`.
pub(super) fn fields(word: &Word) -> Result<Option<FlowFields>, Problem> {
    let Some(rest) = word.text.strip_prefix("flow") else { return Ok(None) };
    let Some(named) = rest.strip_prefix(':') else {
        return if rest.is_empty() { Ok(Some(ALL)) } else { Ok(None) };
    };
    let mut fields = FlowFields::default();
    for name in named.split(',') {
        let field = match name {
            "src-ip" => &mut fields.source,
            "proto" => &mut fields.protocol,
            "src-port" => &mut fields.source_port,
            "dst-ip" => &mut fields.destination,
            "dst-port" => &mut fields.destination_port,
            _ => {
                return Err(word
                    .part(name)
                    .expected("a field of a flow")
                    .did_you_mean(name, FIELDS)
                    .help(format!("allowed: {}", one_of(&FIELDS))));
            }
        };
        if std::mem::replace(field, true) {
            return Err(word.part(name).problem(format!("`{name}` twice")));
        }
    }
    Ok(Some(fields))
}

/// Parses a key of a table with these fields.
pub(super) fn entry(word: &Word, fields: FlowFields) -> Result<FlowEntry, Problem> {
    let parts: Vec<&str> = word.text.split(',').collect();
    let named: Vec<&str> =
        FIELDS.iter().zip(flags(fields)).filter(|(_, is)| *is).map(|(name, _)| *name).collect();
    if parts.len() != named.len() {
        return Err(word
            .expected("a flow")
            .help(format!("the table has the fields {}, in this order", named.join(","))));
    }
    let mut flow = FlowEntry::default();
    for (name, part) in named.into_iter().zip(parts) {
        let part = word.part(part);
        match name {
            "src-ip" => flow.source = address_of(&part)?,
            "dst-ip" => flow.destination = address_of(&part)?,
            "proto" => flow.protocol = numbers::protocol(&part)?,
            "src-port" => flow.source_port = port(&part)?,
            _ => flow.destination_port = port(&part)?,
        }
    }
    let is_v4 = |bits: u128| bits >> 32 == 0xffff;
    if fields.source && fields.destination && is_v4(flow.source) != is_v4(flow.destination) {
        return Err(word.problem("a flow between addresses of IPv4 and IPv6"));
    }
    Ok(flow)
}

fn address_of(word: &Word) -> Result<u128, Problem> {
    let address: IpAddr = word
        .text
        .parse()
        .map_err(|_| word.expected("an IP address").help("a flow has no networks or names"))?;
    Ok(address::mapped(address))
}

fn port(word: &Word) -> Result<u16, Problem> {
    match names::number(names::SERVICES, &word.text) {
        Some(port) => Ok(port),
        None => numbers::integer(word, "a port", u16::MAX),
    }
}

/// As [`fields`], for a text without a place.
pub(crate) fn fields_of(text: &str) -> Result<Option<FlowFields>, Problem> {
    fields(&Word { text: text.into(), span: 0..text.len() })
}

/// As [`entry`], for a text without a place.
pub(crate) fn entry_of(text: &str, fields: FlowFields) -> Result<FlowEntry, Problem> {
    entry(&Word { text: text.into(), span: 0..text.len() }, fields)
}

/// The tables of flows that these commands create, or use before they are created.
pub(super) fn tables<'a>(lines: impl IntoIterator<Item = &'a Line>) -> Vec<(String, FlowFields)> {
    let (mut created, mut used) = (Vec::new(), Vec::new());
    for line in lines {
        if let Some((name, "create", options)) = command_for_table(&line.words) {
            let mut pairs = options.windows(2).filter(|pair| pair[0].text == "type");
            let fields = pairs.find_map(|pair| fields(&pair[1]).ok().flatten());
            created.extend(address::table_name(name).ok().zip(fields));
        }
        for pair in line.words.windows(2).filter(|pair| pair[0].text == "flow") {
            used.extend(address::named_table(&pair[1]).ok().flatten().map(|test| (test.table, ALL)));
        }
    }
    // As in ipfw, a rule that uses a table creates it.
    created.extend(used);
    created
}
