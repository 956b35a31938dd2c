//! JSON objects as the rows of a table: one per line (JSON lines), or a list of them.
//!
//! ```text
//! {"time": "2026-03-14T20:36:20.704Z", "route": {"latencyMs": 32.3, "hops": 2}}
//! {"time": "2026-03-14T20:36:25.704Z", "route": {"latencyMs": 31.9, "hops": 2}}
//! ```
//! A column is the path of keys to a number or a text, such as `route.latencyMs`; lists inside are left out. What a
//! column means is said by its name, as in any other table ([`super::described`]), or by its [`Columns`].

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

use super::columns::Columns;
use super::look::Look;
use super::{described, json, table};
use crate::node::{Node, Value};
use crate::problem::Problem;
use crate::source::Source;
use crate::trace::format::Entry;
use crate::trace::{CannotWrite, Format, MOST_POINTS, Trace};

/// Files are JSON objects, one per line, or a list of objects.
impl Format {
    /// JSON objects with a time and a rate, a delay or a loss. Read only.
    pub const JSON_ROWS: Self = Self(&FORMAT);
}

const FORMAT: Entry = Entry {
    name: "json-rows",
    begins: |beginning| match beginning.first {
        '{' => {
            let mut lines = beginning.text.lines().map(str::trim).filter(|line| !line.is_empty());
            lines.next().is_some_and(|line| line.ends_with('}'))
                && lines.next().is_some_and(|line| line.starts_with('{'))
        }
        '[' => is_list(beginning.text) && !beginning.head().contains("Config"),
        _ => false,
    },
    always: &["jsonl", "ndjson"],
    extensions: &[],
    read,
    write: |_, _| {
        let why = "it is a log with more than a trace";
        Err(CannotWrite::ReadOnly { format: Format::JSON_ROWS, why })
    },
    has_opportunities: false,
    says_loop: false,
};

/// Columns that are read; further ones are left out.
const MOST_COLUMNS: usize = 128;
const ROW: &str = "an object, such as {\"time\": 0.5, \"rate_mbit\": 12}";

/// Whether a text is a list of objects.
fn is_list(text: &str) -> bool {
    text.trim_start().strip_prefix('[').is_some_and(|rest| rest.trim_start().starts_with('{'))
}

/// Parses a file.
fn read(source: &Source<'_>) -> Result<Trace, Problem> {
    let rows = Rows::of(source)?;
    rows.read(|table| match Look::at(table).filter(|look| look.is_header) {
        Some(look) => described::read(table, &look),
        None => Err(Problem::new("these objects have no two columns with names").help(ROW)),
    })
}

/// Parses a file by its columns; `None` if it is no JSON.
pub(super) fn read_columns(source: &Source<'_>, columns: &Columns) -> Option<Result<Trace, Problem>> {
    let text = source.text.trim_start_matches('\u{feff}').trim_start();
    if !text.starts_with('{') && !is_list(text) {
        return None;
    }
    Some(Rows::of(source).and_then(|rows| rows.read(|text| table::read(text, columns, Format::JSON_ROWS))))
}

/// The objects as a table.
#[derive(Default)]
struct Rows {
    names: Vec<String>,
    numbers: BTreeMap<String, usize>,
    rows: Vec<Row>,
}

/// An object.
struct Row {
    /// Its values, with the numbers of their columns.
    cells: Vec<(usize, String)>,
    place: Range<usize>,
}

impl Rows {
    fn of(source: &Source<'_>) -> Result<Self, Problem> {
        let mut rows = Self::default();
        let text = source.text.trim_start_matches('\u{feff}').trim_start();
        if text.starts_with('[') {
            json::each_item(source.text, "a list of objects", |node| rows.add(node, node.span.clone()))?;
        } else {
            for line in table::lines(source) {
                let start = source.span(line).start;
                let node = json::document(line).map_err(|problem| problem.moved(start))?;
                rows.add(&node, source.span(line)).map_err(|problem| problem.put_at(&source.span(line)))?;
            }
        }
        match rows.rows.is_empty() {
            true => Err(source.empty()),
            false => Ok(rows),
        }
    }

    fn add(&mut self, node: &Node, place: Range<usize>) -> Result<(), Problem> {
        node.table(ROW)?;
        let mut cells = Vec::new();
        self.cells(node, "", &mut cells);
        self.rows.push(Row { cells, place });
        match self.rows.len() * self.names.len() > 5 * MOST_POINTS {
            true => Err(Problem::new("too many objects with too many keys").at(&node.span)),
            false => Ok(()),
        }
    }

    /// Adds the values of an object, whose path this is.
    fn cells(&mut self, node: &Node, path: &str, cells: &mut Vec<(usize, String)>) {
        let text = match &node.value {
            Value::Table(table) => {
                for (key, value) in table.iter() {
                    match path {
                        "" => self.cells(value, &key.name, cells),
                        _ => self.cells(value, &format!("{path}.{}", key.name), cells),
                    }
                }
                return;
            }
            Value::Array(_) => return,
            Value::Integer(text) | Value::Float(text) => text.clone(),
            Value::Boolean(value) => value.to_string(),
            Value::String(text) => {
                let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
                format!("\"{}\"", plain.replace('"', "\"\""))
            }
            // That is `null`.
            Value::Datetime(_) => String::new(),
        };
        let number = match self.numbers.get(path) {
            Some(number) => *number,
            None if self.names.len() < MOST_COLUMNS => {
                let apart = |c: char| c.is_control() || ",;#\"".contains(c);
                self.names.push(path.replace(apart, "_"));
                self.numbers.insert(path.to_owned(), self.names.len() - 1);
                self.names.len() - 1
            }
            None => return,
        };
        cells.push((number, text));
    }

    /// Reads them as a table in CSV; problems are at the objects.
    fn read(&self, read: impl FnOnce(&Source<'_>) -> Result<Trace, Problem>) -> Result<Trace, Problem> {
        let mut text = self.names.join(",");
        for Row { cells, .. } in &self.rows {
            text.push('\n');
            let mut row: Vec<&str> = vec![""; self.names.len()];
            for (number, cell) in cells {
                row[*number] = cell;
            }
            for (number, cell) in row.into_iter().enumerate() {
                // Writing to a String cannot fail.
                let _ = write!(text, "{}{cell}", if number > 0 { "," } else { "" });
            }
        }
        let trace = read(&Source { text: &text }).map_err(|problem| {
            let line = problem.place().map_or(0, |place| text[..place.start].matches('\n').count());
            problem.put_at(&self.rows[line.saturating_sub(1)].place)
        });
        trace.map(|trace| Trace { format: Format::JSON_ROWS, ..trace })
    }
}
