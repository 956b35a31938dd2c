//! The tables of the reference, `docs/scenario.md`, from rows.

use std::collections::BTreeMap;

use super::Key;
use crate::node::Node;
use crate::value;

/// The tables of the reference, by the names with which its page marks their places: `<!-- keys: pie -->`.
pub fn reference() -> BTreeMap<&'static str, String> {
    value::queue_tables().into_iter().map(|(name, keys)| (name, table(&keys))).collect()
}

fn table(keys: &[&'static dyn Key]) -> String {
    let mut text = String::from("| key | type | default | meaning |\n|---|---|---|---|\n");
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
        text += &format!("| {names} | {kind} | {default} | {doc} |\n");
    }
    text
}
