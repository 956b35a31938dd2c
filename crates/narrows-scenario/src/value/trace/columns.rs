//! The columns of a trace that a link follows: a list of them, or which columns of a table they are.

use serde_json::json;

use crate::keys::compound::List;
use crate::keys::kind::{ByHand, Choice, text};
use crate::keys::{Form, Kind};
use crate::node::{Node, Table, Value};
use crate::problem::Problem;
use crate::trace::{Columns, Trace};

/// Columns of a trace.
#[derive(Clone, Debug, PartialEq)]
pub enum TraceColumns {
    /// These of [`Trace::COLUMNS`].
    Only(Vec<&'static str>),
    /// These columns of any CSV file.
    Named(Columns),
}

const LIST: List<Choice<&str>> = List {
    what: "a list of columns, such as [\"rate\", \"delay\"], or a table such as { time = \"ts\", rate = \"dl\", unit = \"mbit\" }",
    most: Trace::COLUMNS.len(),
    one: Choice {
        what: "column",
        choices: &[
            ("rate", "rate"),
            ("delay", "delay"),
            ("loss", "loss"),
            ("duplicate", "duplicate"),
            ("queue", "queue"),
        ],
    },
};

pub(super) const COLUMNS: ByHand<TraceColumns> = ByHand {
    words: || format!("{}, or table", LIST.words()),
    schema: |definitions| {
        let place = json!({ "type": ["string", "integer"] });
        let keys: serde_json::Map<_, _> =
            Columns::KEYS.iter().map(|key| ((*key).to_owned(), place.clone())).collect();
        let table = json!({ "type": "object", "properties": keys, "additionalProperties": false });
        json!({ "anyOf": [LIST.schema(definitions), table] })
    },
    read: |node, around| match &node.value {
        Value::Table(table) => named(node, table).map(TraceColumns::Named),
        _ => LIST.read(node, around).map(TraceColumns::Only),
    },
    write: |columns| match columns {
        TraceColumns::Only(names) => LIST.write(names),
        TraceColumns::Named(columns) => {
            let mut table = Table::default();
            columns.words().iter().for_each(|(key, value)| table.put(key, text(value)));
            Some(Value::Table(table))
        }
    },
};

/// Reads `{ time = "ts", rate = 7, unit = "mbit" }`.
fn named(node: &Node, table: &Table) -> Result<Columns, Problem> {
    let mut words = Vec::new();
    for (key, value) in table.iter() {
        let (Value::String(text) | Value::Integer(text)) = &value.value else {
            return Err(value.expected("the name of a column, or its number").inside(&key.name));
        };
        words.push((key.name.as_str(), text.as_str()));
    }
    table.only(&Columns::KEYS)?;
    Columns::from_words(words).map_err(|why| Problem::new(why).at(&node.span))
}
