//! Header fields of generated packets.

use std::net::IpAddr;

use narrows_core::{FlowKey, Protocol};

use super::AppKind;
use super::protocol::{TCP, UDP, has_ports};
use super::rows::Said;
use crate::node::Table;
use crate::problem::Problem;
use crate::topology::Port;
use crate::value::protocol_name;

/// The discard service (RFC 863).
const DISCARD: u16 = 9;
/// The first dynamic port (RFC 6335); each traffic source has its own.
const FIRST_PORT: u16 = 49_152;

/// Reads the flow key of traffic source number `index`.
pub(super) fn read(
    index: usize,
    said: &Said,
    table: &Table,
    from: &Port,
    to: &Port,
    protocol: u8,
) -> Result<FlowKey, Problem> {
    // There are 16,384 dynamic ports; then they repeat.
    let ports = (FIRST_PORT + (index % 16_384) as u16, DISCARD);
    read_with(said, table, from, to, protocol, ports)
}

/// The first flow key of an application's clients. Its packets must not be fragmented.
pub(super) fn of_app(
    app: AppKind,
    said: &Said,
    table: &Table,
    from: &Port,
    to: &Port,
) -> Result<FlowKey, Problem> {
    let usual = if matches!(app, AppKind::Dns | AppKind::Voip) { UDP } else { TCP };
    let mut key = read_with(said, table, from, to, usual, (FIRST_PORT, app.port()))?;
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
        return Err(Problem::new(format!("`{}` does not run over {name}", app.name()))
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

/// `ports` are the defaults.
fn read_with(
    said: &Said,
    table: &Table,
    from: &Port,
    to: &Port,
    protocol: u8,
    ports: (u16, u16),
) -> Result<FlowKey, Problem> {
    let (source, destination) = (address(said.source, from), address(said.destination, to));
    if source.is_ipv4() != destination.is_ipv4() {
        return Err(Problem::new(format!("{source} and {destination} are of different families"))
            .at(&table.key("source").or(table.key("destination")).map_or(0..0, |key| key.span.clone())));
    }
    let transport = said.protocol.unwrap_or(protocol);
    let port = |key, given: Option<u16>, default: u16| match (table.key(key), has_ports(transport)) {
        (Some(key), false) => {
            let name = protocol_name(transport).map_or(transport.to_string(), Into::into);
            Err(Problem::new(format!("packets of protocol {name} have no ports")).at(&key.span))
        }
        (_, has_ports) => Ok(given.unwrap_or(if has_ports { default } else { 0 })),
    };
    let bytes = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    };
    Ok(FlowKey {
        source: bytes(source),
        destination: bytes(destination),
        source_port: port("source-port", said.source_port, ports.0)?,
        destination_port: port("destination-port", said.destination_port, ports.1)?,
        network: if source.is_ipv4() { Protocol::Ipv4 } else { Protocol::Ipv6 },
        transport,
        traffic_class: said.dscp << 2 | said.ecn,
        ..FlowKey::default()
    })
}

fn address(given: Option<IpAddr>, port: &Port) -> IpAddr {
    given.or(port.addresses.first().map(|a| a.ip)).unwrap_or(IpAddr::from([0u8; 4]))
}
