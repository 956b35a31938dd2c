//! A scenario as a file: what the input log keeps of a run, whether it came from a file or from flags.

use std::fmt::Write;
use std::path::Path;

use crate::keys::{self, Keyed};
use crate::node::{Node, Table, Value, toml_key};
use crate::scenario::Scenario;
use crate::traffic;

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
        for traffic in &self.traffic {
            section(&mut file, "[[traffic]]");
            traffic::table(traffic, folder)
                .iter()
                .for_each(|(key, node)| line(&mut file, &key.name, &node.toml()));
        }
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
