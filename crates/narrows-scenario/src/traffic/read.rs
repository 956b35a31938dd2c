//! Reading `[[traffic]]`.

use std::path::{Path, PathBuf};

use narrows_core::source::{Arrivals, Lengths, Pace, Period, SourceConfig};
use narrows_core::{Protocol, Rate, Time};

use crate::node::{Key, Node, Table, Value, check_name};
use crate::problem::{Found, Problem};
use crate::topology::{Port, Topology};
use crate::traffic::{AppKind, Traffic, TrafficSource, aimd, app, key};
use crate::units;

pub(crate) const KEYS: &[&str] = &[
    "name",
    "from",
    "to",
    "constant",
    "poisson",
    "on-off",
    "aimd",
    "web",
    "file",
    "voip",
    "dns",
    "telnet",
    "capture",
    "length",
    "start",
    "stop",
    "packets",
    "source",
    "destination",
    "source-port",
    "destination-port",
    "protocol",
    "dscp",
    "ecn",
];
const SOURCES: &[&str] =
    &["constant", "poisson", "on-off", "aimd", "web", "file", "voip", "dns", "telnet", "capture"];
/// Keys that say what generated packets are like; those of a capture are as they are.
const GENERATED: &[&str] = &[
    "length",
    "stop",
    "packets",
    "source",
    "destination",
    "source-port",
    "destination-port",
    "protocol",
    "dscp",
    "ecn",
];
/// Keys that a sender that responds has in its own table.
const IN_AIMD: &[(&str, &str)] = &[
    ("packets", "say how much in bytes: aimd = { size = \"1000000 bytes\" }"),
    ("ecn", "say aimd = { ecn = true }"),
];

/// Keys that an application has no use for.
const NOT_IN_APP: &[(&str, &str)] = &[
    ("length", "the sizes of what is sent stand in the table of the application"),
    ("packets", "say `transactions` in the table of the application"),
    ("ecn", "hosts' TCP knows no marks"),
];

/// What iperf sends by default, as an IP packet.
const LENGTH: u32 = 1498;

/// Reads the `index`th entry.
pub(crate) fn read(
    index: usize,
    node: &Node,
    topology: &Topology,
    folder: &Path,
) -> Result<Traffic, Problem> {
    let table = node.table("a table of what is sent")?;
    table.only(KEYS)?;
    let name = table.optional("name", |node| {
        let name = node.text("a name")?.to_string();
        check_name(&Key { name: name.clone(), span: node.span.clone() }, "source of traffic")?;
        Ok(name)
    })?;
    let name = name.unwrap_or_else(|| format!("traffic-{}", index + 1));
    let (from, to) = ends(table, node, topology)?;
    let kinds: Vec<&str> = SOURCES.iter().copied().filter(|kind| table.get(kind).is_some()).collect();
    let [kind] = kinds[..] else {
        let title = if kinds.is_empty() {
            "it is not said when packets come"
        } else {
            "packets come in more than one way"
        };
        return Err(Problem::new(title).at(&node.span).help(
            "say one of: constant = \"1000/s\", poisson = \"12mbit\", on-off = { … }, aimd = { … }, web = { … }, \
             file = { … }, voip = { … }, dns = { … }, telnet = { … }, capture = \"FILE\"",
        ));
    };
    let instant = |key| table.optional(key, units::time).map(|time| time.map(|time| Time::ZERO + time));
    let start = instant("start")?.unwrap_or(Time::ZERO);
    let source = if kind == "capture" {
        if let Some(key) = GENERATED.iter().find_map(|key| table.key(key)) {
            return Err(Problem::new(format!("`{}` does not go with a capture", key.name))
                .at(&key.span)
                .help("the packets of a capture are as they are"));
        }
        TrafficSource::Capture {
            file: table.required("capture", &node.span, |node| capture(node, folder))?,
            start,
        }
    } else if kind == "aimd" {
        if let Some((key, help)) = IN_AIMD.iter().find_map(|(key, help)| Some((table.key(key)?, help))) {
            let problem = Problem::new(format!("`{}` does not go with `aimd`", key.name));
            return Err(problem.at(&key.span).help(*help));
        }
        let length = table.optional("length", length)?.unwrap_or(LENGTH);
        let stop = instant("stop")?.unwrap_or(Time::NEVER);
        let config = table.required("aimd", &node.span, |node| aimd::read(node, length, start, stop))?;
        let mut key = key::read(index, table, from, to, key::TCP)?;
        key.traffic_class |= config.marks.ecn();
        if key.network == Protocol::Ipv4 {
            key.network = Protocol::Ipv4DontFragment;
        }
        TrafficSource::Aimd { config, key }
    } else if let Some(app) = AppKind::ALL.into_iter().find(|app| app.name() == kind) {
        if let Some((key, help)) = NOT_IN_APP.iter().find_map(|(key, help)| Some((table.key(key)?, help))) {
            let problem = Problem::new(format!("`{}` does not go with `{kind}`", key.name));
            return Err(problem.at(&key.span).help(*help));
        }
        let key = key::of_app(app, table, from, to)?;
        let times = (start, instant("stop")?.unwrap_or(Time::NEVER));
        let udp = key.transport == key::UDP;
        let config = table.required(kind, &node.span, |node| app::read::read(app, node, times, udp))?;
        TrafficSource::App { config: Box::new(config), key }
    } else {
        let config = SourceConfig {
            arrivals: table.required(kind, &node.span, |node| arrivals(kind, node))?,
            lengths: table.optional("length", lengths)?.unwrap_or(Lengths::Fixed(LENGTH)),
            start,
            stop: instant("stop")?.unwrap_or(Time::NEVER),
            packets: table
                .optional("packets", |node| node.integer("a number of packets", 1..i64::MAX))?
                .map(|n| n as u64),
        };
        TrafficSource::Generated { config, key: key::read(index, table, from, to, key::UDP)? }
    };
    Ok(Traffic { name, from: from.name.clone(), to: to.name.clone(), source })
}

/// The ports that `from` and `to` stand for, each a host or a port.
fn ends<'a>(table: &Table, node: &Node, topology: &'a Topology) -> Result<(&'a Port, &'a Port), Problem> {
    let ports = &topology.ports;
    let is = |port: &Port, name: &str| port.name == name || port.host == name;
    let name = |key: &str| {
        table.required(key, &node.span, |node| {
            let name = node.text("the name of a host")?;
            if ports.iter().any(|port| is(port, name)) {
                return Ok((name, node));
            }
            let mut problem =
                Problem::new(format!("no host or port is called {}", Found(name))).at(&node.span);
            let names = ports.iter().flat_map(|port| [port.host.as_str(), port.name.as_str()]);
            problem = problem.did_you_mean(name, names);
            Err(problem)
        })
    };
    let ((from, _), (to, to_node)) = (name("from")?, name("to")?);
    let ends = |name| ports.iter().filter(move |port| is(port, name));
    let mut pairs = ends(from)
        .flat_map(|port| ends(to).map(move |other| (port, other)))
        .filter(|(port, other)| topology.joins(port, other));
    match (pairs.next(), pairs.next()) {
        (Some(pair), None) => Ok(pair),
        (None, _) => Err(Problem::new(format!("no path leads from `{from}` to `{to}`"))
            .at(&to_node.span)
            .inside("to")
            .help("packets go along links, through junctions and routers; hosts do not forward them")),
        (Some((one, _)), Some((other, _))) => {
            Err(Problem::new(format!("more than one path leads from `{from}` to `{to}`"))
                .at(&to_node.span)
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

fn arrivals(kind: &str, node: &Node) -> Result<Arrivals, Problem> {
    match kind {
        "constant" => pace(node).map(Arrivals::Constant),
        "poisson" => pace(node).map(Arrivals::Poisson),
        _ => {
            let table = node.table("{ pace = \"1000/s\", on = \"1s\", off = \"2s\" }")?;
            table.only(&["pace", "on", "off"])?;
            Ok(Arrivals::OnOff {
                pace: table.required("pace", &node.span, pace)?,
                on: table.required("on", &node.span, period)?,
                off: table.required("off", &node.span, period)?,
            })
        }
    }
}

/// `"1000/s"`, `"1/20ms"` or a rate.
pub(super) fn pace(node: &Node) -> Result<Pace, Problem> {
    const HELP: &str =
        "write \"1000/s\", \"1/20ms\" (one every 20 ms) or a rate of network-layer bits, such as \"12mbit\"";
    let text = node.text("how fast packets come").map_err(|p| p.help(HELP))?;
    let Some((count, per)) = text.split_once('/') else {
        if text.trim().bytes().all(|c| c.is_ascii_digit()) {
            return Err(Problem::new(format!("{} has no unit", node.found())).at(&node.span).help(HELP));
        }
        return match units::rate(node)? {
            Rate::DOWN | Rate::UNLIMITED => Err(node.expected("a rate above zero").help(HELP)),
            rate => Ok(Pace::Bits(rate)),
        };
    };
    let part = |text: String| Node { span: node.span.clone(), value: Value::String(text) };
    let count =
        part(count.into()).integer("a number of packets", 1..1_000_000_001).map_err(|p| p.help(HELP))?;
    let per = per.trim();
    let per = if per.starts_with(|c: char| c.is_ascii_digit()) { per.into() } else { format!("1{per}") };
    let per = units::positive_time(&part(per)).map_err(|p| p.help(HELP))?;
    Ok(Pace::Packets { count: count as u64, per })
}

pub(super) fn period(node: &Node) -> Result<Period, Problem> {
    let Value::Table(table) = &node.value else {
        return units::positive_time(node).map(Period::Fixed);
    };
    table.only(&["exponential", "pareto"])?;
    let exponential = table.optional("exponential", units::positive_time)?.map(Period::Exponential);
    let pareto = table.optional("pareto", |node| {
        let table = node.table("{ mean = \"1s\", shape = 1.5 }")?;
        table.only(&["mean", "shape"])?;
        let mean = table.required("mean", &node.span, units::positive_time)?;
        Ok(Period::Pareto { mean, shape: table.required("shape", &node.span, shape)? })
    })?;
    match (exponential, pareto) {
        (Some(period), None) | (None, Some(period)) => Ok(period),
        _ => Err(node.expected("one of `exponential` and `pareto`")),
    }
}

pub(super) fn shape(node: &Node) -> Result<f64, Problem> {
    let text = match &node.value {
        Value::Integer(text) | Value::Float(text) => text.as_str(),
        _ => "",
    };
    let shape: Option<f64> = text.parse().ok();
    shape.filter(|shape| *shape > 1.0 && *shape <= 1000.0).ok_or_else(|| {
        node.expected("a number above 1, such as 1.5").help("at a shape of 1 and below the mean is infinite")
    })
}

fn lengths(node: &Node) -> Result<Lengths, Problem> {
    let Value::Table(table) = &node.value else { return length(node).map(Lengths::Fixed) };
    const MIX: &str =
        "{ mix = [{ length = \"40 bytes\", weight = 7 }, { length = \"1500 bytes\", weight = 1 }] }";
    table.only(&["mix"])?;
    let mix = table.required("mix", &node.span, |node| {
        let items = node.list("a list")?;
        if items.is_empty() || items.len() > 10_000 {
            return Err(Problem::new(format!("a mix of {} lengths", items.len()))
                .at(&node.span)
                .help("1 to 10000"));
        }
        let item = |node: &Node| {
            let table = node.table("a length and its weight")?;
            table.only(&["length", "weight"])?;
            let weight =
                table.required("weight", &node.span, |node| node.integer("a weight", 1..1_000_000_001))?;
            Ok((table.required("length", &node.span, length)?, weight as u64))
        };
        items.iter().map(item).collect()
    });
    mix.map(Lengths::Mix).map_err(|p| p.help(format!("write it like {MIX}")))
}

/// Bytes from the network header on: at least those of IPv4 and UDP without content.
fn length(node: &Node) -> Result<u32, Problem> {
    let bytes = units::size(node)?.get();
    if (28..65_536).contains(&bytes) {
        return Ok(bytes as u32);
    }
    Err(Problem::new(format!("{} is no length of an IP packet", node.found()))
        .at(&node.span)
        .help("28 to 65535 bytes, the headers of IP and UDP included"))
}

fn capture(node: &Node, folder: &Path) -> Result<PathBuf, Problem> {
    match node.text("the path of a pcap or pcapng file")? {
        "" => Err(node.expected("the path of a pcap or pcapng file")),
        path => Ok(folder.join(path)),
    }
}
