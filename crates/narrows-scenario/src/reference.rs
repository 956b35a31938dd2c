//! Output generated from the rows of the keys: the JSON Schema for editors, and the tables of
//! `docs/scenario.md`.

use std::collections::BTreeMap;

use narrows_core::rules::NatConfig;
use serde_json::json;

use crate::direction::Direction;
use crate::flags::{LinkFlag, LinkFlags};
use crate::host::Host;
use crate::keys::{self, Key, schema};
use crate::link::Link;
use crate::node::Node;
use crate::router::{ExplicitRoute, Router};
use crate::rules_link::{Pipe, PipeQueue, RulesLink};
use crate::scenario::Scenario;
use crate::switch::Switch;
use crate::timeline::Entry;
use crate::traffic;
use crate::value;

/// The JSON Schema (draft 2020-12) of a scenario file, as text.
pub fn schema() -> String {
    let mut definitions = schema::Definitions::new();
    let doc = "A scenario of narrows: a network and what happens to it.";
    let mut all = schema::object(doc, &keys::keys::<Scenario>(), &mut definitions);
    all["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    all["title"] = json!("narrows scenario");
    all["$defs"] = json!(definitions);
    let mut text =
        serde_json::to_string_pretty(&all).expect("a schema has string keys and finite numbers only");
    text.push('\n');
    text
}

/// The tables of the reference, by the names in the page's markers: `<!-- keys: pie -->`.
pub fn reference() -> BTreeMap<&'static str, String> {
    let keys = value::tables().into_iter().chain([
        ("direction", keys::keys::<Direction>()),
        ("scenario", keys::keys::<Scenario>()),
        ("host", keys::keys::<Host>()),
        ("router", keys::keys::<Router>()),
        ("switch", keys::keys::<Switch>()),
        ("route", keys::keys::<ExplicitRoute>()),
        ("timeline", keys::keys::<Entry>()),
        ("link", keys::keys::<Link>()),
        ("rules", keys::keys::<RulesLink>()),
        ("nat", keys::keys::<NatConfig>()),
        ("pipe", keys::keys::<Pipe>()),
        ("pipe-queue", keys::keys::<PipeQueue>()),
    ]);
    let keys = keys.chain(traffic::tables()).chain(traffic::app_tables());
    keys.map(|(name, keys)| (name, table(&keys)))
        .chain([("schedulers", value::schedulers()), ("flags", flags())])
        .collect()
}

fn flags() -> String {
    let line = |LinkFlag { name, value, help }: LinkFlag| {
        format!("| `--{name} {}` | {} |\n", value.replace('|', "\\|"), help.replace('|', "\\|"))
    };
    let lines: String = LinkFlags::known().into_iter().map(line).collect();
    format!("| flag | what it says |\n|---|---|\n{lines}")
}

fn table(keys: &[&'static dyn Key]) -> String {
    let has_defaults =
        keys.iter().any(|key| key.is_required() || key.default().is_some() || key.default_words().is_some());
    let mut text = String::from("| key | type | meaning |\n|---|---|---|\n");
    if has_defaults {
        text = "| key | type | default | meaning |\n|---|---|---|---|\n".into();
    }
    for key in keys {
        let names: Vec<String> = std::iter::once(key.name())
            .chain(key.aliases().iter().copied())
            .map(|name| format!("`{name}`"))
            .collect();
        let default = match (key.default(), key.default_words()) {
            _ if key.is_required() => "required".into(),
            (_, Some(words)) => words.into(),
            (Some(value), None) => format!("`{}`", Node::new(value).toml()),
            (None, None) => String::new(),
        };
        let (names, kind, doc) = (names.join(", "), key.kind().words(), key.doc());
        let default = if has_defaults { format!("{default} | ") } else { default };
        text += &format!("| {names} | {kind} | {default}{doc} |\n");
    }
    text
}
