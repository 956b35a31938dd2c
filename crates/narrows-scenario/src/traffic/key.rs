//! What generated packets have in their headers.

use std::net::IpAddr;

use narrows_core::{FlowKey, Protocol};

use crate::node::{Node, Table};
use crate::problem::{Found, Problem, one_of};
use crate::topology::Port;

pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
/// Those with a name, and whether they have ports; others go by their number.
const PROTOCOLS: &[(&str, u8, bool)] = &[
    ("udp", UDP, true),
    ("tcp", TCP, true),
    ("sctp", 132, true),
    ("dccp", 33, true),
    ("udplite", 136, true),
    ("icmp", 1, false),
    ("icmpv6", 58, false),
];
/// RFC 3168, RFC 9331.
pub(crate) const ECN: &[(&str, u8)] = &[("not-ect", 0), ("ect0", 2), ("ect1", 1), ("ce", 3)];
/// The discard service (RFC 863).
const DISCARD: u16 = 9;
/// The first dynamic port (RFC 6335); each source of traffic has one of its own.
const FIRST_PORT: u16 = 49_152;

/// The flow of the `index`th source of traffic.
pub(super) fn read(
    index: usize,
    table: &Table,
    from: &Port,
    to: &Port,
    protocol: u8,
) -> Result<FlowKey, Problem> {
    let (source, destination) = (address(table, "source", from)?, address(table, "destination", to)?);
    if source.is_ipv4() != destination.is_ipv4() {
        return Err(Problem::new(format!("{source} and {destination} are of different families"))
            .at(&table.key("source").or(table.key("destination")).map_or(0..0, |key| key.span.clone())));
    }
    let transport = table.optional("protocol", self::protocol)?.unwrap_or(protocol);
    let port = |key, default: u16| {
        let given = table.optional(key, |node| node.integer("a port", 0..65_536))?;
        if let (Some(key), false) = (table.key(key), has_ports(transport)) {
            let name = protocol_name(transport);
            return Err(Problem::new(format!("packets of the protocol {name} have no ports")).at(&key.span));
        }
        Ok(given.map_or(if has_ports(transport) { default } else { 0 }, |port| port as u16))
    };
    let dscp = table.optional("dscp", |node| node.integer("a code point", 0..64))?.unwrap_or(0) as u8;
    let ecn = table.optional("ecn", |node| node.choice("value of the ECN field", ECN))?.unwrap_or(0);
    let bytes = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    };
    Ok(FlowKey {
        source: bytes(source),
        destination: bytes(destination),
        // 16,384 dynamic ports, then they come again.
        source_port: port("source-port", FIRST_PORT + (index % 16_384) as u16)?,
        destination_port: port("destination-port", DISCARD)?,
        network: if source.is_ipv4() { Protocol::Ipv4 } else { Protocol::Ipv6 },
        transport,
        traffic_class: dscp << 2 | ecn,
        ..FlowKey::default()
    })
}

/// An IP protocol, by its name or number.
fn protocol(node: &Node) -> Result<u8, Problem> {
    let named = node.text("").ok().and_then(|text| PROTOCOLS.iter().find(|(name, ..)| *name == text.trim()));
    if let Some(&(_, number, _)) = named {
        return Ok(number);
    }
    let names: Vec<&str> = PROTOCOLS.iter().map(|(name, ..)| *name).collect();
    let allowed = format!("{} or the number of an IP protocol", one_of(&names));
    node.integer("the number of an IP protocol", 0..256)
        .map(|number| number as u8)
        .map_err(|_| node.expected(&allowed))
}

pub(crate) const fn has_ports(protocol: u8) -> bool {
    let mut at = 0;
    while at < PROTOCOLS.len() {
        if PROTOCOLS[at].1 == protocol {
            return PROTOCOLS[at].2;
        }
        at += 1;
    }
    false
}

/// As it stands in a file.
pub(crate) fn protocol_name(protocol: u8) -> String {
    let named = PROTOCOLS.iter().find(|(_, number, _)| *number == protocol);
    named.map_or(protocol.to_string(), |(name, ..)| format!("\"{name}\""))
}

fn address(table: &Table, key: &str, port: &Port) -> Result<IpAddr, Problem> {
    let given = table.optional(key, |node| {
        let text = node.text("an address")?;
        text.parse::<IpAddr>().map_err(|_| {
            Problem::new(format!("{} is no address", Found(text)))
                .at(&node.span)
                .help("write \"10.1.2.3\" or \"fd00::1\"")
        })
    })?;
    Ok(given.or(port.addresses.first().map(|a| a.ip)).unwrap_or(IpAddr::from([0u8; 4])))
}
