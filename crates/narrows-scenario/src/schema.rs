//! The JSON Schema of scenario files, for editors: completion, descriptions, a first check.
//!
//! The types here say what a file may look like; the reading is elsewhere, as its errors say more than a schema can. A
//! test holds the two together: every key that is read is described, and the other way round.

#![expect(dead_code, reason = "the types are there for their schema alone")]

mod from_rows;
mod router;
mod rules;
mod traffic;

use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

use from_rows::{Direction, DirectionKeys, Time};
use router::Router;
use rules::{Pipe, PipeQueue};
use traffic::Traffic;

/// The JSON Schema (draft 2020-12) of a scenario file, as text.
pub fn schema() -> String {
    let settings = SchemaSettings::draft2020_12().with_transform(RecursiveTransform(without_null));
    let schema = settings.into_generator().into_root_schema_for::<File>();
    let mut text =
        serde_json::to_string_pretty(&schema).expect("a schema has string keys and finite numbers only");
    text.push('\n');
    text
}

/// TOML has no null: what may be missing is just not required.
fn without_null(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = &types[..] {
            let only = only.clone();
            object.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
        let before = choices.len();
        choices.retain(|choice| choice.get("type").is_none_or(|name| name != "null"));
        // What is left of a pair needs no choice.
        if let ([Value::Object(only)], true) = (&choices[..], before == 2) {
            let only = only.clone();
            object.remove("anyOf");
            object.extend(only);
        }
    }
}

/// A scenario of narrows: a network and what happens to it.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields, title = "narrows scenario")]
struct File {
    /// The seed of every random draw; 1 if it is not given.
    seed: Option<Seed>,
    /// How long a run lasts.
    duration: Option<Time>,
    /// Where programs run and traffic comes from.
    hosts: BTreeMap<String, Host>,
    /// Where exactly two links are joined in series.
    junctions: Option<BTreeMap<String, Junction>>,
    /// Where any number of links meet, and packets go on by their destination.
    routers: Option<BTreeMap<String, Router>>,
    /// What joins two hosts, junctions or routers.
    links: BTreeMap<String, Link>,
    /// Traffic that the scenario itself brings.
    traffic: Option<Vec<Traffic>>,
    /// What changes when.
    timeline: Option<Vec<Step>>,
}

/// A whole number.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Seed {
    /// As TOML has them, up to 2⁶³ − 1.
    Number(u64),
    /// In quotes, up to 2⁶⁴ − 1.
    Text(#[schemars(regex(pattern = r"^ *[0-9]+ *$"))] String),
}

/// A network namespace of its own, unless it names an existing one.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
struct Host {
    /// An existing network namespace, by name or path.
    namespace: Option<String>,
    /// The network namespace of this process.
    pid: Option<u32>,
    /// Addresses with their prefix; automatic if they are not given.
    addresses: Option<Addresses>,
}

/// Addresses such as `10.1.2.1/24` or `fd00::1/64`.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Addresses {
    /// On the only link.
    All(Vec<String>),
    /// For each link, by its name.
    ByLink(BTreeMap<String, Vec<String>>),
}

/// Packets pass straight through.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Junction {}

/// A wire with a queue for each direction, or one medium that both share. Values here count for both directions.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
struct Link {
    /// The two hosts, junctions or routers that it joins; up is from the first to the second.
    #[schemars(length(min = 2, max = 2))]
    between: Vec<String>,
    /// One medium that both directions contend for: half duplex.
    shared: Option<bool>,
    /// What it adds to the length of a path, for routers; 1 if it is not given.
    #[schemars(range(min = 1, max = 65_535))]
    cost: Option<u32>,
    /// From the first to the second.
    up: Option<Direction>,
    /// From the second to the first.
    down: Option<Direction>,
    /// Rules in ipfw's words, such as `100 pipe 1 ip from any to any`: a link with rules, and no wire itself. Out is up, and
    /// in is down.
    rules: Option<Vec<String>>,
    /// Tables that rules look up, by name: addresses with their bits, and a value.
    tables: Option<BTreeMap<String, Vec<String>>>,
    /// Links to which rules send packets, by number.
    pipes: Option<BTreeMap<String, Pipe>>,
    /// Queues in front of pipes, by number.
    queues: Option<BTreeMap<String, PipeQueue>>,
    /// Whether a packet that leaves a pipe has passed; else it goes on at the next rule. True if it is not given.
    one_pass: Option<bool>,
    /// What rules call the interface that they are at; the name of the link if it is not given.
    interface: Option<String>,
    /// Sets of rules that do nothing.
    disabled_sets: Option<Vec<u8>>,
    #[schemars(flatten)]
    both: DirectionKeys,
}

/// Something changes.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
struct Step {
    /// When.
    at: Time,
    /// What `at` counts from; the start if it is not given.
    from: Option<Origin>,
    /// What changes: paths such as `access.down.rate`, or tables within tables, with the values of a link's table. A
    /// table after a key is its whole value; one part alone is set by its path in quotes, "access.loss.wire".
    set: BTreeMap<String, Value>,
    /// Again and again after this time.
    every: Option<Time>,
    /// How often in all; for ever if it is not given.
    times: Option<u64>,
}

/// What an instant counts from.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
enum Origin {
    /// The start of the run.
    Start,
    /// The first packet that enters the network.
    FirstPacket,
}
