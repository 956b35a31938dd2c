//! Writes a scenario as a file: the form that the input log stores, whether the run used a file or flags.

use std::fmt::Write;

use super::Scenario;
use super::rows::SEED;
use crate::keys::{self, Form};
use crate::node::{Node, Table, Value, toml_key};

impl Scenario {
    /// The scenario as a file, with the current values of the links. Parsing it under the same file name
    /// gives an equal scenario, except for default bounds of queues whose rate or delay has changed since
    /// it was read: these are recomputed.
    pub fn to_toml(&self) -> String {
        let mut file = String::new();
        // The seed is written even if it is the default.
        SEED.write(&self.seed).into_iter().for_each(|seed| line(&mut file, "seed", &Node::new(seed)));
        for (name, value) in keys::differing(self).into_iter().filter(|(name, _)| *name != "seed") {
            match &value {
                Value::Table(all) => tables(all)
                    .for_each(|(key, table)| write_table(&mut file, &format!("{name}.{key}"), table)),
                Value::Array(all) => {
                    for table in all.iter().filter_map(|node| node.table("").ok()) {
                        write!(file, "\n[[{name}]]\n").expect(WRITES);
                        table.iter().for_each(|(key, node)| line(&mut file, &key.name, node));
                    }
                }
                _ => line(&mut file, name, &Node::new(value)),
            }
        }
        file
    }
}

const WRITES: &str = "writing to a string does not fail";

fn line(file: &mut String, key: &str, value: &Node) {
    writeln!(file, "{} = {}", toml_key(key), value.toml()).expect(WRITES);
}

/// The tables of a table, by their keys.
fn tables(table: &Table) -> impl Iterator<Item = (String, &Table)> {
    table.iter().filter_map(|(key, node)| Some((toml_key(&key.name), node.table("").ok()?)))
}

/// Tables within a link's table that become sections of their own, and those that contain such tables.
const SECTIONS: &[&str] = &["up", "down", "tables"];
const OF_SECTIONS: &[&str] = &["pipes", "queues"];

/// Writes a section, followed by the sections within it.
fn write_table(file: &mut String, path: &str, table: &Table) {
    write!(file, "\n[{path}]\n").expect(WRITES);
    let mut within = Vec::new();
    for (key, node) in table.iter() {
        let name = key.name.as_str();
        match &node.value {
            Value::Table(inner) if SECTIONS.contains(&name) => within.push((format!("{path}.{name}"), inner)),
            Value::Table(inner) if OF_SECTIONS.contains(&name) => {
                within
                    .extend(tables(inner).map(|(number, inner)| (format!("{path}.{name}.{number}"), inner)));
            }
            Value::Array(rules) if name == "rules" && !rules.is_empty() => {
                let rules: Vec<String> = rules.iter().map(Node::toml).collect();
                writeln!(file, "{name} = [\n  {},\n]", rules.join(",\n  ")).expect(WRITES);
            }
            _ => line(file, name, node),
        }
    }
    within.into_iter().for_each(|(path, table)| write_table(file, &path, table));
}
