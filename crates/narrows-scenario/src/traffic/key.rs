//! What generated packets have in their headers.

use std::net::IpAddr;

use narrows_core::{FlowKey, Protocol};

use crate::node::Table;
use crate::problem::{Found, Problem};
use crate::topology::Port;
use crate::traffic::AppKind;
use crate::value::{code_point, protocol_name};

pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
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
    // 16,384 dynamic ports, then they come again.
    let ports = (FIRST_PORT + (index % 16_384) as u16, DISCARD);
    read_with(table, from, to, protocol, ports)
}

/// The first flow of an application's clients, whose packets are not to be cut.
pub(super) fn of_app(app: AppKind, table: &Table, from: &Port, to: &Port) -> Result<FlowKey, Problem> {
    let usual = if matches!(app, AppKind::Dns | AppKind::Voip) { UDP } else { TCP };
    let mut key = read_with(table, from, to, usual, (FIRST_PORT, app.port()))?;
    if key.transport != usual && !(app == AppKind::Voip && key.transport == TCP) {
        let allowed = if app == AppKind::Voip {
            "udp or tcp"
        } else if usual == TCP {
            "tcp"
        } else {
            "udp"
        };
        let name = protocol_name(key.transport).map_or(key.transport.to_string(), Into::into);
        let span = table.key("protocol").map_or(0..0, |key| key.span.clone());
        return Err(Problem::new(format!("`{}` does not go over {name}", app.name()))
            .at(&span)
            .help(format!("allowed: {allowed}")));
    }
    for (name, port) in [("source-port", key.source_port), ("destination-port", key.destination_port)] {
        if let (0, Some(key)) = (port, table.key(name)) {
            return Err(Problem::new("no host has a port 0").at(&key.span));
        }
    }
    if key.network == Protocol::Ipv4 {
        key.network = Protocol::Ipv4DontFragment;
    }
    Ok(key)
}

/// `ports` are what is meant where nothing is said.
fn read_with(
    table: &Table,
    from: &Port,
    to: &Port,
    protocol: u8,
    ports: (u16, u16),
) -> Result<FlowKey, Problem> {
    let (source, destination) = (address(table, "source", from)?, address(table, "destination", to)?);
    if source.is_ipv4() != destination.is_ipv4() {
        return Err(Problem::new(format!("{source} and {destination} are of different families"))
            .at(&table.key("source").or(table.key("destination")).map_or(0..0, |key| key.span.clone())));
    }
    let transport = table.optional("protocol", crate::value::protocol)?.unwrap_or(protocol);
    let port = |key, default: u16| {
        let given = table.optional(key, |node| node.integer("a port", 0..65_536))?;
        if let (Some(key), false) = (table.key(key), has_ports(transport)) {
            let name = protocol_name(transport).map_or(transport.to_string(), Into::into);
            return Err(Problem::new(format!("packets of protocol {name} have no ports")).at(&key.span));
        }
        Ok(given.map_or(if has_ports(transport) { default } else { 0 }, |port| port as u16))
    };
    let dscp = table.optional("dscp", code_point)?.unwrap_or(0);
    let ecn = table.optional("ecn", |node| node.choice("value of the ECN field", ECN))?.unwrap_or(0);
    let bytes = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    };
    Ok(FlowKey {
        source: bytes(source),
        destination: bytes(destination),
        source_port: port("source-port", ports.0)?,
        destination_port: port("destination-port", ports.1)?,
        network: if source.is_ipv4() { Protocol::Ipv4 } else { Protocol::Ipv6 },
        transport,
        traffic_class: dscp << 2 | ecn,
        ..FlowKey::default()
    })
}

/// Whether packets of an IP protocol have ports: TCP, UDP, DCCP, SCTP and UDP-Lite.
pub(crate) const fn has_ports(protocol: u8) -> bool {
    matches!(protocol, TCP | UDP | 33 | 132 | 136)
}

/// As it stands in a file.
pub(crate) fn protocol_text(protocol: u8) -> String {
    protocol_name(protocol).map_or(protocol.to_string(), |name| format!("\"{name}\""))
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
