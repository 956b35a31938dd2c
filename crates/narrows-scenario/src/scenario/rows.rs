//! The top-level keys of a file.

use narrows_core::NetworkConfig;
use serde_json::json;

use super::Scenario;
use crate::host::Host;
use crate::keys::compound::Group;
use crate::keys::kind::{ByHand, Described, Given, Kind, Tables, text};
use crate::keys::quantity::{Size, Time};
use crate::keys::{self, Keyed, Row, row, schema};
use crate::link::Link;
use crate::node::{Node, Table, Value};
use crate::problem::Problem;
use crate::router::Router;
use crate::switch::Switch;
use crate::timeline::ENTRY;
use crate::topology::Topology;
use crate::traffic::{self, TRAFFIC};

/// The default seed.
pub(crate) const DEFAULT_SEED: u64 = 1;

pub(super) const SEED: ByHand<u64> = ByHand {
    words: || "whole number from 0 to 2⁶⁴ − 1".into(),
    schema: |_| json!({ "anyOf": [{ "type": "integer", "minimum": 0 }, { "type": "string", "pattern": "^ *[0-9]+ *$" }] }),
    read: |node, _| seed(node),
    // TOML guarantees integers up to 2⁶³ − 1 only.
    write: |seed| Some(i64::try_from(*seed).map_or(text(seed), |seed| Value::Integer(seed.to_string()))),
};
const HOST: Group<Host> =
    Group::new("Host", "A network namespace of its own, unless it names an existing one.", "");
const HOSTS: Tables = Tables { words: "tables `[hosts.NAME]`", of: |all| HOST.schema(all) };
const JUNCTIONS: Tables = Tables {
    words: "tables `[junctions.NAME]`",
    of: |all| {
        schema::define(all, "Junction", |all| schema::object("Packets pass straight through.", &[], all))
    },
};
const ROUTER: Group<Router> = Group::new(
    "Router",
    "Sends packets on by their destination, by the shortest path unless a route says otherwise.",
    "",
);
const ROUTERS: Tables = Tables { words: "tables `[routers.NAME]`", of: |all| ROUTER.schema(all) };
const SWITCH: Group<Switch> = Group::new(
    "Switch",
    "Sends frames on by their link addresses: one broadcast domain, or one for each VLAN.",
    "",
);
const SWITCHES: Tables = Tables { words: "tables `[switches.NAME]`", of: |all| SWITCH.schema(all) };
const LINKS: Tables = Tables { words: "tables `[links.NAME]`", of: Link::schema };
const TIMELINE: Described = Described {
    words: || "list of tables `[[timeline]]`".into(),
    schema: |all| json!({ "type": "array", "items": ENTRY.schema(all) }),
};

/// What packets inside take at most.
const MEMORY: Size = Size { low: 1 << 20, high: 1_000_000_000_000, expected: "a size from 1 MiB to 1000 GB" };

impl Default for Scenario {
    /// An empty network.
    fn default() -> Self {
        Self {
            file: String::new(),
            seed: DEFAULT_SEED,
            duration: None,
            memory: NetworkConfig::DEFAULT_MEMORY,
            hosts: Vec::new(),
            junctions: Vec::new(),
            routers: Vec::new(),
            switches: Vec::new(),
            links: Vec::new(),
            traffic: Vec::new(),
            timeline: Vec::new(),
            part: None,
            topology: Topology::default(),
            files: Default::default(),
        }
    }
}

impl Keyed for Scenario {
    const ROWS: &'static [Row<Self>] = &[
        row!(
            "seed",
            seed,
            SEED,
            "Seed of all random draws; see [the model](model.md#randomness). `--seed` overrides it, and every report names it. Quote a number that TOML cannot hold."
        ),
        row!(
            "duration",
            duration,
            Given(Time::POSITIVE),
            "End of a run in virtual time; `narrows sim --duration` overrides it. By default it ends when all traffic has arrived and the network is empty. Ignored by live runs, which end with their program."
        )
        .default("none"),
        row!(
            "memory",
            memory,
            MEMORY,
            "The most that packets inside the network take, counting each frame plus 128 bytes. Further packets are dropped with the reason `memory`."
        )
        .default("`\"1 GiB\"`"),
        Row::apart("hosts", &HOSTS, "[Hosts](#hosts), where programs run and traffic starts and ends.", |all: &Self| {
            named(all.hosts.iter().map(|host| (&host.name, keys::written(host))))
        })
        .required(),
        Row::apart("junctions", &JUNCTIONS, "[Junctions](#junctions), each of which joins exactly two links in series.", |all: &Self| {
            named(all.junctions.iter().map(|name| (name, Table::default())))
        })
        .default("none"),
        Row::apart("routers", &ROUTERS, "[Routers](#routers), which join any number of links and forward by destination.", |all: &Self| {
            named(all.routers.iter().map(|router| (&router.name, keys::written(router))))
        })
        .default("none"),
        Row::apart("switches", &SWITCHES, "[Switches](#switches), which join any number of links and forward by link address.", |all: &Self| {
            named(all.switches.iter().map(|switch| (&switch.name, keys::written(switch))))
        })
        .default("none"),
        Row::apart("links", &LINKS, "[Links](#links) between hosts, junctions, routers or switches; at least one, unless a switch has `hosts`.", |all: &Self| {
            named(all.links.iter().map(|link| (&link.name, link.table())))
        })
        .default("none"),
        Row::apart("traffic", &TRAFFIC, "[Traffic](#traffic) generated by the scenario.", |all: &Self| {
            listed(all.traffic.iter().map(|traffic| traffic::table(traffic, all.folder())))
        })
        .default("none"),
        Row::apart("timeline", &TIMELINE, "[Changes](#timeline) over time.", |all: &Self| {
            listed(all.timeline.iter().map(keys::written))
        })
        .default("none"),
    ];
}

fn named<'a>(tables: impl Iterator<Item = (&'a String, Table)>) -> Option<Value> {
    let mut all = Table::default();
    tables.for_each(|(name, table)| all.put(name, Value::Table(table)));
    (!all.is_empty()).then_some(Value::Table(all))
}

fn listed(tables: impl Iterator<Item = Table>) -> Option<Value> {
    let all: Vec<Node> = tables.map(|table| Node::new(Value::Table(table))).collect();
    (!all.is_empty()).then_some(Value::Array(all))
}

pub(crate) fn seed(node: &Node) -> Result<u64, Problem> {
    let text = match &node.value {
        Value::Integer(text) | Value::String(text) => text.trim(),
        _ => "",
    };
    text.parse().map_err(|_| node.expected("a whole number from 0 to 18446744073709551615"))
}
