//! Plugin schedulers: `{ plugin = "drr.wasm", parameters = { quantum = "1500 bytes" } }`.

use std::ops::Range;

use narrows_plugin::{LoadError, Loaded, Module, abi};
use serde_json::json;

use super::own::OwnParameters;
use crate::files::NamedFile;
use crate::keys::Form;
use crate::keys::kind::{ByHand, Integer};
use crate::keys::{Keyed, Row, row};
use crate::node::{Node, Table, Value};
use crate::problem::Problem;
use crate::surroundings::Surroundings;
use crate::units;
use crate::value::file::FILE;

/// A plugin module and its parameters.
#[derive(Clone, Debug)]
pub struct Plugin {
    /// The module's file; `None` until it is read.
    pub file: Option<NamedFile>,
    /// The loaded module.
    module: Option<Module>,
    /// Values of its parameters.
    pub parameters: Vec<(String, i64)>,
    /// Fuel limit per call.
    pub fuel: u64,
}

impl PartialEq for Plugin {
    /// Modules are compared by file.
    fn eq(&self, other: &Self) -> bool {
        (&self.file, &self.parameters, self.fuel) == (&other.file, &other.parameters, other.fuel)
    }
}

impl Default for Plugin {
    /// Has no module, which is required.
    fn default() -> Self {
        Self { file: None, module: None, parameters: Vec::new(), fuel: abi::FUEL }
    }
}

const FUEL: Integer = Integer { what: "an amount of fuel", low: 1, high: abi::MOST_FUEL as i64 };
const PARAMETERS: ByHand<Vec<(String, i64)>> = ByHand {
    words: || "table of whole numbers, booleans, times, sizes and rates".into(),
    schema: |_| {
        let value = json!({ "type": ["integer", "boolean", "string"] });
        json!({ "type": "object", "additionalProperties": value })
    },
    read: |node, _| {
        let table = node.table("the values of parameters, such as { quantum = 1500 }")?;
        table
            .iter()
            .map(|(key, node)| Ok((key.name.clone(), parameter(node).map_err(|p| p.inside(&key.name))?)))
            .collect()
    },
    write: |parameters| {
        let mut table = Table::default();
        for (name, value) in parameters {
            table.put(name, Value::Integer(value.to_string()));
        }
        (!parameters.is_empty()).then_some(Value::Table(table))
    },
};

/// Reads a whole number as it is, a boolean as 1 or 0, and values with units in nanoseconds, bytes or bits
/// per second.
fn parameter(node: &Node) -> Result<i64, Problem> {
    let number = |number: u64| i64::try_from(number).ok();
    let read = match &node.value {
        Value::Integer(_) => Some(node.integer("a whole number", i64::MIN..i64::MAX)?),
        Value::Boolean(yes) => Some(i64::from(*yes)),
        Value::String(_) => units::time(node)
            .map(|time| time.nanos())
            .or_else(|_| units::size(node).map(|bytes| bytes.get()))
            .or_else(|_| units::rate(node).map(|rate| rate.bits_per_second()))
            .ok()
            .and_then(number),
        _ => None,
    };
    read.ok_or_else(|| node.expected("a whole number, a boolean, a time, a size or a rate"))
}

impl Keyed for Plugin {
    const ROWS: &'static [Row<Self>] = &[
        Row::new(
            "plugin",
            &FILE,
            "WebAssembly module that exports [a scheduler](writing-a-scheduler.md#a-scheduler-that-is-loaded).",
            |of: &Self| FILE.write(&of.file),
            |of: &mut Self, node, around: Surroundings<'_>| {
                of.file = FILE.read(node, around)?;
                let bytes = of.file.as_ref().map(|file| &*file.contents).unwrap_or_default();
                let module = Module::new(bytes);
                of.module = Some(module.map_err(|error| Problem::new(error.to_string()).at(&node.span))?);
                Ok(())
            },
        )
        .required(),
        row!("parameters", parameters, PARAMETERS, "Parameters of the module, with names of its own. Times are passed in nanoseconds, sizes in bytes, rates in bits per second.").default("the module's own"),
        row!("fuel", fuel, FUEL, "Fuel per call of the module, about one unit per instruction. A call that needs more fails."),
    ];

    fn check(&self, table: &Table, place: &Range<usize>) -> Result<(), Problem> {
        let Err(error) = self.scheduler() else { return Ok(()) };
        let problem = Problem::new(error.to_string());
        let parameters = table.get("parameters");
        Err(match (&error, parameters.and_then(|node| node.table("").ok())) {
            (LoadError::NoParameter { name, known }, Some(table)) => {
                let known = known.iter().map(String::as_str);
                let at = table.key(name).map_or(place, |key| &key.span);
                problem.at(at).did_you_mean(name, known).inside("parameters")
            }
            (LoadError::Refused { name, .. }, Some(table)) => {
                let at = table.get(name).map_or(place, |node| &node.span);
                problem.at(at).inside(name).inside("parameters")
            }
            _ => problem.at(table.get("plugin").map_or(place, |node| &node.span)),
        })
    }
}

impl Plugin {
    /// A scheduler instance of the module, with its own memory.
    pub(super) fn scheduler(&self) -> Result<Loaded, LoadError> {
        self.module.as_ref().ok_or(LoadError::NoModule)?.scheduler(&self.parameters, self.fuel)
    }
}

impl OwnParameters for Plugin {
    fn effective(&self) -> String {
        let file = self.file.as_ref().map_or("no file", |file| &file.name);
        let parameters: Vec<String> =
            self.parameters.iter().map(|(name, value)| format!("{name} {value}")).collect();
        let with = if parameters.is_empty() { String::new() } else { format!(", {}", parameters.join(", ")) };
        format!(": {file}{with}, fuel {} a call", self.fuel)
    }

    fn missing(&self) -> Option<Problem> {
        self.file.is_none().then(|| {
            Problem::new("`plugin` has no module").help("write all of it: { plugin = \"FILE.wasm\" }")
        })
    }
}
