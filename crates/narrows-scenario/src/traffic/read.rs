//! Parses `[[traffic]]`.

use std::collections::BTreeMap;
use std::path::Path;

use narrows_core::source::{Arrivals, Lengths, SourceConfig};
use narrows_core::{FlowKey, Protocol, Time};

use super::protocol::{TCP, UDP};
use super::rows::{Aimd, OnOff, Said};
use super::{AimdConfig, AppKind, Traffic, TrafficSource, app, key};
use crate::keys;
use crate::node::{Node, Table};
use crate::problem::{Found, Problem};
use crate::surroundings::Surroundings;
use crate::topology::{Port, Topology};

const SOURCES: &[&str] =
    &["constant", "poisson", "on-off", "aimd", "web", "file", "voip", "dns", "telnet", "capture"];
/// Keys of generated packets, which a capture does not accept.
const IN_CAPTURE: &[(&str, &str)] = &[
    ("length", AS_THEY_ARE),
    ("stop", AS_THEY_ARE),
    ("packets", AS_THEY_ARE),
    ("source", AS_THEY_ARE),
    ("destination", AS_THEY_ARE),
    ("source-port", AS_THEY_ARE),
    ("destination-port", AS_THEY_ARE),
    ("protocol", AS_THEY_ARE),
    ("dscp", AS_THEY_ARE),
    ("ecn", AS_THEY_ARE),
];
const AS_THEY_ARE: &str = "the packets of a capture cannot be changed";
/// Keys that a congestion-responsive sender has in its own table.
const IN_AIMD: &[(&str, &str)] = &[
    ("packets", "give the amount in bytes: aimd = { size = \"1000000 bytes\" }"),
    ("ecn", "use aimd = { ecn = true }"),
];

/// Keys that an application does not accept.
const NOT_IN_APP: &[(&str, &str)] = &[
    ("length", "set the sizes in the application's table"),
    ("packets", "set `transactions` in the application's table"),
    ("ecn", "hosts' TCP ignores marks"),
];

/// iperf's default UDP datagram, as an IP packet.
const LENGTH: u32 = 1498;

/// The ports of a network by their names, and by those of their hosts.
pub(crate) struct Places<'a> {
    topology: &'a Topology,
    by_name: BTreeMap<&'a str, Vec<&'a Port>>,
}

impl<'a> Places<'a> {
    pub(crate) fn of(topology: &'a Topology) -> Self {
        let mut by_name: BTreeMap<&str, Vec<&Port>> = BTreeMap::new();
        for port in &topology.ports {
            for name in [&port.name, &port.host] {
                by_name.entry(name).or_default().push(port);
            }
        }
        Self { topology, by_name }
    }

    fn named(&self, name: &str) -> &[&'a Port] {
        self.by_name.get(name).map_or(&[], Vec::as_slice)
    }
}

/// Parses entry number `index`.
pub(crate) fn read(
    index: usize,
    node: &Node,
    places: &Places<'_>,
    folder: &Path,
    around: Surroundings<'_>,
) -> Result<Traffic, Problem> {
    let table = node.table("a table of what is sent")?;
    keys::only(table, &keys::keys::<Said>())?;
    let said: Said = keys::read(node, table, around)?;
    let name = said.name.clone().unwrap_or_else(|| format!("traffic-{}", index + 1));
    let (from, to) = ends(&said, table, places)?;
    let kinds: Vec<&str> = SOURCES.iter().copied().filter(|kind| table.get(kind).is_some()).collect();
    let [kind] = kinds[..] else {
        let title =
            if kinds.is_empty() { "no packet timing is given" } else { "several packet timings are given" };
        return Err(Problem::new(title).at(&node.span).help(
            "use one of: constant = \"1000/s\", poisson = \"12mbit\", on-off = { … }, aimd = { … }, web = { … }, file = { … }, voip = { … }, dns = { … }, telnet = { … }, capture = \"FILE\"",
        ));
    };
    let app = AppKind::ALL.into_iter().find(|app| app.name() == kind);
    let refused: &[(&str, &str)] = match (kind, app) {
        ("capture", _) => IN_CAPTURE,
        ("aimd", _) => IN_AIMD,
        (_, Some(_)) => NOT_IN_APP,
        _ => &[],
    };
    if let Some((key, help)) = refused.iter().find_map(|(key, help)| Some((table.key(key)?, help))) {
        let what = if kind == "capture" { "a capture".into() } else { format!("`{kind}`") };
        return Err(Problem::new(format!("`{}` cannot be used with {what}", key.name))
            .at(&key.span)
            .help(*help));
    }
    let start = Time::ZERO + said.start;
    let stop = said.stop.map_or(Time::NEVER, |stop| Time::ZERO + stop);
    let source = if let Some(file) = &said.capture {
        TrafficSource::Capture { file: folder.join(file), start }
    } else if let Some(Aimd { marks, size, window }) = said.aimd {
        let length = match (&said.length, table.get("length")) {
            (Some(Lengths::Fixed(length)), _) => *length,
            (Some(Lengths::Mix(_)), Some(node)) => {
                return Err(node
                    .expected("a size, as all packets of `aimd` have one length")
                    .inside("length"));
            }
            _ => LENGTH,
        };
        let mut key = key::read(index, &said, table, from, to, TCP)?;
        key.traffic_class |= marks.ecn();
        if key.network == Protocol::Ipv4 {
            key.network = Protocol::Ipv4DontFragment;
        }
        TrafficSource::Aimd { config: AimdConfig { length, size, start, stop, window, marks }, key }
    } else if let Some(app) = app {
        let key = key::of_app(app, &said, table, from, to)?;
        let udp = key.transport == UDP;
        let config = table
            .required(kind, &node.span, |node| app::read::read(app, node, (start, stop), udp, around))?;
        TrafficSource::App { config: Box::new(config), key }
    } else {
        let arrivals = match (said.constant, said.poisson, &said.on_off) {
            (Some(pace), ..) => Arrivals::Constant(pace),
            (_, Some(pace), _) => Arrivals::Poisson(pace),
            (.., on_off) => {
                let OnOff { pace, on, off } = *on_off.as_ref().unwrap_or(&OnOff::default());
                Arrivals::OnOff { pace, on, off }
            }
        };
        let key = key::read(index, &said, table, from, to, UDP)?;
        let lengths = said.length.unwrap_or(Lengths::Fixed(LENGTH));
        check_ipv6(&key, &lengths, table)?;
        TrafficSource::Generated {
            config: SourceConfig { arrivals, lengths, start, stop, packets: said.packets },
            key,
        }
    };
    let sim_only = said.sim_only;
    Ok(Traffic { name, from: from.name.clone(), to: to.name.clone(), source, sim_only })
}

/// The header of IPv6 is longer than that of IPv4, whose packets `length` allows.
fn check_ipv6(key: &FlowKey, lengths: &Lengths, table: &Table) -> Result<(), Problem> {
    let headers = 40 + if key.transport == UDP { 8 } else { 0 };
    let least = match lengths {
        Lengths::Fixed(length) => *length,
        Lengths::Mix(mix) => mix.iter().map(|(length, _)| *length).min().unwrap_or(headers),
    };
    if key.network != Protocol::Ipv6 || least >= headers {
        return Ok(());
    }
    Err(Problem::new(format!("an IPv6 packet of {least} bytes, of which its headers take {headers}"))
        .at(&table.get("length").map_or(0..0, |node| node.span.clone()))
        .inside("length"))
}

/// The ports that `from` and `to` name; each is a host or a port.
fn ends<'a>(said: &Said, table: &Table, places: &Places<'a>) -> Result<(&'a Port, &'a Port), Problem> {
    let place = |key: &str| table.get(key).map_or(0..0, |node| node.span.clone());
    for (key, name) in [("from", &said.from), ("to", &said.to)] {
        if places.named(name).is_empty() {
            let ports = places.topology.ports.iter();
            let names = ports.flat_map(|port| [port.host.as_str(), port.name.as_str()]);
            let problem = Problem::new(format!("there is no host or port {}", Found(name)));
            return Err(problem.at(&place(key)).inside(key).did_you_mean(name, names));
        }
    }
    let (from, to) = (said.from.as_str(), said.to.as_str());
    let ends = |name| places.named(name).iter().copied();
    let mut pairs = ends(from)
        .flat_map(|port| ends(to).map(move |other| (port, other)))
        .filter(|(port, other)| places.topology.joins(port, other));
    match (pairs.next(), pairs.next()) {
        (Some(pair), None) => Ok(pair),
        (None, _) => Err(Problem::new(format!("no path leads from `{from}` to `{to}`"))
            .at(&place("to"))
            .inside("to")
            .help("packets travel along links, junctions and routers; hosts do not forward")),
        (Some((one, _)), Some((other, _))) => {
            Err(Problem::new(format!("more than one path leads from `{from}` to `{to}`"))
                .at(&place("to"))
                .inside("to")
                .help(if one.name != other.name {
                    format!(
                        "name the port where they enter: from = \"{}\" or from = \"{}\"",
                        one.name, other.name
                    )
                } else {
                    let at =
                        |key| ends(key).map(|port| format!("to = \"{}\"", port.name)).collect::<Vec<_>>();
                    format!("name the port where they get: {}", at(to).join(" or "))
                }))
        }
    }
}
