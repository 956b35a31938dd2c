//! The keys at the top of a file.

use serde_json::json;

use super::Scenario;
use crate::host::Host;
use crate::keys::compound::Group;
use crate::keys::kind::{ByHand, Described, Given, Kind, Tables, text};
use crate::keys::quantity::Time;
use crate::keys::{self, Keyed, Row, row, schema};
use crate::link::Link;
use crate::node::{Node, Table, Value};
use crate::problem::Problem;
use crate::router::Router;
use crate::timeline::ENTRY;
use crate::topology::Topology;
use crate::traffic::{self, TRAFFIC};

/// The seed where none is given.
pub(crate) const DEFAULT_SEED: u64 = 1;

pub(super) const SEED: ByHand<u64> = ByHand {
    words: || "whole number from 0 to 2⁶⁴ − 1".into(),
    schema: |_| json!({ "anyOf": [{ "type": "integer", "minimum": 0 }, { "type": "string", "pattern": "^ *[0-9]+ *$" }] }),
    read: |node, _| seed(node),
    // TOML promises integers up to 2⁶³ − 1 only.
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
const LINKS: Tables = Tables { words: "tables `[links.NAME]`", of: Link::schema };
const TIMELINE: Described = Described {
    words: || "list of tables `[[timeline]]`".into(),
    schema: |all| json!({ "type": "array", "items": ENTRY.schema(all) }),
};

impl Default for Scenario {
    /// A network of nothing.
    fn default() -> Self {
        Self {
            file: String::new(),
            seed: DEFAULT_SEED,
            duration: None,
            hosts: Vec::new(),
            junctions: Vec::new(),
            routers: Vec::new(),
            links: Vec::new(),
            traffic: Vec::new(),
            timeline: Vec::new(),
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
            "Every random draw follows from it; see [the model](model.md#randomness). `--seed` on the command line counts for more than the file. Every report names it. A number that TOML cannot hold may stand in quotes."
        ),
        row!(
            "duration",
            duration,
            Given(Time::POSITIVE),
            "When a run in virtual time ends; `narrows sim --duration` counts for more. Without one, virtual time ends when all traffic has come and the network is empty. Ignored by live runs, which end with their program."
        )
        .default("none"),
        Row::apart("hosts", &HOSTS, "[Where programs run](#hosts) and traffic comes from.", |all: &Self| {
            named(all.hosts.iter().map(|host| (&host.name, keys::written(host))))
        })
        .required(),
        Row::apart("junctions", &JUNCTIONS, "[Where exactly two links are joined](#junctions) in series.", |all: &Self| {
            named(all.junctions.iter().map(|name| (name, Table::default())))
        })
        .default("none"),
        Row::apart("routers", &ROUTERS, "[Where any number of links meet](#routers), and packets go on by their destination.", |all: &Self| {
            named(all.routers.iter().map(|router| (&router.name, keys::written(router))))
        })
        .default("none"),
        Row::apart("links", &LINKS, "[What joins](#links) two hosts, junctions or routers; at least one.", |all: &Self| {
            named(all.links.iter().map(|link| (&link.name, link.table())))
        })
        .required(),
        Row::apart("traffic", &TRAFFIC, "[Traffic](#traffic) that the scenario itself brings.", |all: &Self| {
            listed(all.traffic.iter().map(|traffic| traffic::table(traffic, all.folder())))
        })
        .default("none"),
        Row::apart("timeline", &TIMELINE, "[What changes](#timeline) when.", |all: &Self| {
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
