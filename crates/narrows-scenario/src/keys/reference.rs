//! The tables of the reference, `docs/scenario.md`, from rows.

use std::collections::BTreeMap;

use super::Key;
use crate::direction::Direction;
use crate::flags::{LinkFlag, LinkFlags};
use crate::host::Host;
use crate::link::Link;
use crate::node::Node;
use crate::router::{ExplicitRoute, Router};
use crate::rules_link::{Pipe, PipeQueue, RulesLink};
use crate::timeline::Entry;
use crate::value;

/// The tables of the reference, by the names with which its page marks their places: `<!-- keys: pie -->`.
pub fn reference() -> BTreeMap<&'static str, String> {
    let keys = value::queue_tables().into_iter().chain(value::scheduler_tables()).chain([
        ("direction", super::keys::<Direction>()),
        ("host", super::keys::<Host>()),
        ("router", super::keys::<Router>()),
        ("route", super::keys::<ExplicitRoute>()),
        ("timeline", super::keys::<Entry>()),
        ("link", super::keys::<Link>()),
        ("rules", super::keys::<RulesLink>()),
        ("pipe", super::keys::<Pipe>()),
        ("pipe-queue", super::keys::<PipeQueue>()),
    ]);
    let keys = keys.chain(crate::traffic::tables()).chain(crate::traffic::app_tables());
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
