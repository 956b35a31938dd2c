//! A scenario as a file: what the input log keeps of a run, whether it came from a file or from flags.

use std::fmt::Write;
use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;

use narrows_core::source::{Arrivals, Lengths, Pace, Period};
use narrows_core::{FlowKey, Time};

use crate::keys::{self, Keyed};
use crate::node::{Node, Table, Value, toml_key, toml_string};
use crate::scenario::Scenario;
use crate::traffic::{AimdConfig, AppKind, Marks, Traffic, TrafficSource, app, key};

impl Scenario {
    /// The scenario as a file, with the links' present values. Read again under the same file name it is equal to this
    /// one, but for default bounds of queues where a rate or delay was changed since it was read: those are worked out
    /// again.
    pub fn to_toml(&self) -> String {
        // TOML promises integers up to 2⁶³ − 1 only.
        let quote = if i64::try_from(self.seed).is_ok() { "" } else { "\"" };
        let mut file = format!("seed = {quote}{}{quote}\n", self.seed);
        if let Some(duration) = self.duration {
            line(&mut file, "duration", &format!("\"{duration}\""));
        }
        self.hosts.iter().for_each(|host| write_keys(&mut file, &format!("[hosts.{}]", host.name), host));
        self.junctions.iter().for_each(|name| section(&mut file, &format!("[junctions.{name}]")));
        self.routers
            .iter()
            .for_each(|router| write_keys(&mut file, &format!("[routers.{}]", router.name), router));
        self.links
            .iter()
            .for_each(|link| write_table(&mut file, &format!("links.{}", link.name), &link.table()));
        let folder = Path::new(&self.file).parent().unwrap_or(Path::new(""));
        self.traffic.iter().for_each(|traffic| write_traffic(&mut file, traffic, folder));
        self.timeline.iter().for_each(|entry| write_keys(&mut file, "[[timeline]]", entry));
        file
    }
}

fn section(file: &mut String, title: &str) {
    file.push('\n');
    file.push_str(title);
    file.push('\n');
}

fn line(file: &mut String, key: &str, value: &str) {
    writeln!(file, "{key} = {value}").expect("writing to a string does not fail");
}

/// A section with the keys of a value.
fn write_keys<T: Keyed>(file: &mut String, title: &str, value: &T) {
    section(file, title);
    keys::differing(value).into_iter().for_each(|(key, value)| line(file, key, &Node::new(value).toml()));
}

/// Tables within the table of a link that are sections of their own, and those that hold such.
const SECTIONS: &[&str] = &["up", "down", "tables"];
const OF_SECTIONS: &[&str] = &["pipes", "queues"];

/// A section, and behind it those within.
fn write_table(file: &mut String, path: &str, table: &Table) {
    section(file, &format!("[{path}]"));
    let mut within = Vec::new();
    for (key, node) in table.iter() {
        match &node.value {
            Value::Table(inner) if SECTIONS.contains(&key.name.as_str()) => {
                within.push((format!("{path}.{}", key.name), inner));
            }
            Value::Table(inner) if OF_SECTIONS.contains(&key.name.as_str()) => {
                let all = inner.iter().filter_map(|(number, node)| Some((number, node.table("").ok()?)));
                within.extend(all.map(|(number, inner)| {
                    (format!("{path}.{}.{}", key.name, toml_key(&number.name)), inner)
                }));
            }
            Value::Array(rules) if key.name == "rules" && !rules.is_empty() => {
                let rules: Vec<String> = rules.iter().map(Node::toml).collect();
                line(file, &key.name, &format!("[\n  {},\n]", rules.join(",\n  ")));
            }
            _ => line(file, &toml_key(&key.name), &node.toml()),
        }
    }
    within.into_iter().for_each(|(path, table)| write_table(file, &path, table));
}

fn write_traffic(file: &mut String, traffic: &Traffic, folder: &Path) {
    section(file, "[[traffic]]");
    line(file, "name", &format!("\"{}\"", traffic.name));
    line(file, "from", &format!("\"{}\"", traffic.from));
    line(file, "to", &format!("\"{}\"", traffic.to));
    let instant = |file: &mut String, key, at: Time| line(file, key, &format!("\"{at}\""));
    match &traffic.source {
        TrafficSource::Aimd { config: AimdConfig { length, size, start, stop, window, marks }, key } => {
            let size = size.map_or(String::new(), |size| format!("size = \"{size}\", "));
            let marks = match marks {
                Marks::None => "",
                Marks::Classic => ", ecn = true",
                Marks::Scalable => ", scalable = true",
            };
            line(file, "aimd", &format!("{{ {size}window = {window}{marks} }}"));
            line(file, "length", &format!("\"{length} bytes\""));
            instant(file, "start", *start);
            if *stop < Time::NEVER {
                instant(file, "stop", *stop);
            }
            write_key(file, key, key::TCP);
        }
        TrafficSource::App { config, key } => {
            line(file, config.kind.name(), &app::write::table(config));
            instant(file, "start", config.start);
            if config.stop < Time::NEVER {
                instant(file, "stop", config.stop);
            }
            write_key(file, key, if config.kind == AppKind::Voip { key::UDP } else { key.transport });
        }
        TrafficSource::Capture { file: path, start } => {
            let path = path.strip_prefix(folder).unwrap_or(path);
            line(file, "capture", &toml_string(&path.display().to_string()));
            instant(file, "start", *start);
        }
        TrafficSource::Generated { config, key } => {
            let (kind, value) = match config.arrivals {
                Arrivals::Constant(pace) => ("constant", self::pace(pace)),
                Arrivals::Poisson(pace) => ("poisson", self::pace(pace)),
                Arrivals::OnOff { pace, on, off } => {
                    let pace = self::pace(pace);
                    ("on-off", format!("{{ pace = {pace}, on = {}, off = {} }}", period(on), period(off)))
                }
            };
            line(file, kind, &value);
            line(file, "length", &lengths(&config.lengths));
            instant(file, "start", config.start);
            if config.stop < Time::NEVER {
                instant(file, "stop", config.stop);
            }
            if let Some(packets) = config.packets {
                line(file, "packets", &packets.to_string());
            }
            write_key(file, key, key::UDP);
            let ecn = key::ECN.iter().find(|(_, value)| *value == key.ecn() && key.ecn() > 0);
            ecn.into_iter().for_each(|(name, _)| line(file, "ecn", &format!("\"{name}\"")));
        }
    }
}

/// `protocol` is the one that need not be said.
fn write_key(file: &mut String, key: &FlowKey, protocol: u8) {
    let address = |bytes| IpAddr::V6(Ipv6Addr::from_octets(bytes)).to_canonical();
    line(file, "source", &format!("\"{}\"", address(key.source)));
    line(file, "destination", &format!("\"{}\"", address(key.destination)));
    if key.transport != protocol {
        line(file, "protocol", &key::protocol_text(key.transport));
    }
    if key::has_ports(key.transport) {
        line(file, "source-port", &key.source_port.to_string());
        line(file, "destination-port", &key.destination_port.to_string());
    }
    line(file, "dscp", &key.dscp().to_string());
}

pub(crate) fn pace(pace: Pace) -> String {
    match pace {
        Pace::Packets { count, per } => format!("\"{count}/{per}\""),
        Pace::Bits(rate) => format!("\"{rate}\""),
    }
}

pub(crate) fn period(period: Period) -> String {
    match period {
        Period::Fixed(length) => format!("\"{length}\""),
        Period::Exponential(mean) => format!("{{ exponential = \"{mean}\" }}"),
        Period::Pareto { mean, shape } => {
            format!("{{ pareto = {{ mean = \"{mean}\", shape = {shape:?} }} }}")
        }
    }
}

fn lengths(lengths: &Lengths) -> String {
    match lengths {
        Lengths::Fixed(length) => format!("\"{length} bytes\""),
        Lengths::Mix(mix) => {
            let item = |(length, weight)| format!("{{ length = \"{length} bytes\", weight = {weight} }}");
            let items: Vec<String> = mix.iter().map(|(length, weight)| item((length, weight))).collect();
            format!("{{ mix = [{}] }}", items.join(", "))
        }
    }
}
