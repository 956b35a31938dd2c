//! A link with rules as it stands in a file.

use super::{RulesLink, tables};
use crate::ipfw;
use crate::node::{toml_key, toml_string};
use crate::rules_link::pipe::{Pipe, Sharing};
use crate::value;

/// A table of a file: its name below that of the link, keys and values.
pub(crate) type Section = (String, Vec<(String, String)>);

impl RulesLink {
    /// The tables of the link, that of the link itself first.
    pub(crate) fn sections(&self) -> Vec<Section> {
        let mut own: Vec<(String, String)> = Vec::new();
        let mut add = |key: &str, value: Option<String>| own.extend(value.map(|value| (key.into(), value)));
        add("one-pass", (!self.one_pass).then(|| "false".into()));
        add("interface", self.interface.as_ref().map(|name| toml_string(name)));
        let sets: Vec<String> =
            (0..32).filter(|set| self.disabled_sets >> set & 1 == 1).map(|set| set.to_string()).collect();
        add("disabled-sets", (!sets.is_empty()).then(|| format!("[{}]", sets.join(", "))));
        let rules: Vec<String> = self.rules.iter().map(|rule| toml_string(&ipfw::rule_text(rule))).collect();
        add(
            "rules",
            Some(match &rules[..] {
                [] => "[]".into(),
                rules => format!("[\n  {},\n]", rules.join(",\n  ")),
            }),
        );
        let mut sections = vec![(String::new(), own)];
        if !self.tables.is_empty() {
            let tables = self.tables.iter().map(|(name, table)| (toml_key(name), tables::text(table)));
            sections.push((".tables".into(), tables.collect()));
        }
        for (number, pipe) in &self.pipes {
            sections.push((format!(".pipes.{number}"), owned(pipe.entries())));
        }
        for (number, queue) in &self.queues {
            sections.push((format!(".queues.{number}"), owned(queue.entries())));
        }
        sections
    }
}

fn owned(entries: Vec<(&str, String)>) -> Vec<(String, String)> {
    entries.into_iter().map(|(key, value)| (key.into(), value)).collect()
}

impl Pipe {
    /// As it stands in a file: keys and values.
    pub(crate) fn entries(&self) -> Vec<(&'static str, String)> {
        let mut entries = self.direction.entries();
        let mut add = |key, value: Option<String>| entries.extend(value.map(|value| (key, value)));
        add("scheduler", self.sharing.map(Sharing::text));
        add("mask", self.mask.map(value::mask_toml));
        add("most", (self.most != Self::MOST).then(|| self.most.to_string()));
        add("idle", (self.idle != Self::IDLE).then(|| format!("\"{}\"", self.idle)));
        entries
    }
}
