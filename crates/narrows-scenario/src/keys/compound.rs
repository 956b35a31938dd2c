//! Values that are tables or shorthand for tables, and lists of values.

use std::marker::PhantomData;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::kind::{Choice, Compound, text};
use super::schema::{self, Definitions};
use super::{Form, Key, Kind, Tabled, read_table};
use crate::node::{Node, Table, Value};
use crate::problem::Problem;
use crate::surroundings::Surroundings;

/// A table with keys of its own.
pub(crate) struct Group<T> {
    /// Its name in the schema.
    name: &'static str,
    /// Its description in the schema.
    doc: &'static str,
    /// A complete example, for errors and the reference.
    pub(crate) example: &'static str,
    of: PhantomData<fn() -> T>,
}

impl<T: Tabled> Group<T> {
    pub(crate) const fn new(name: &'static str, doc: &'static str, example: &'static str) -> Self {
        Self { name, doc, example, of: PhantomData }
    }
}

impl<T> Group<T> {
    fn expected(&self) -> String {
        match self.example {
            table if table.starts_with('{') => format!("a table such as {table}"),
            other => other.into(),
        }
    }
}

impl<T: Tabled> Kind for Group<T> {
    fn schema(&self, definitions: &mut Definitions) -> Json {
        schema::define(definitions, self.name, |definitions| {
            schema::object(self.doc, &T::keys(), definitions)
        })
    }

    fn words(&self) -> String {
        if self.example.starts_with('{') { format!("`{}`", self.example) } else { "table".into() }
    }

    fn compound(&self) -> Option<&dyn Compound> {
        Some(self)
    }
}

impl<T: Tabled> Compound for Group<T> {
    fn keys(&self) -> Vec<&'static dyn Key> {
        T::keys()
    }

    fn example(&self) -> &'static str {
        self.example
    }

    fn expected(&self) -> Option<String> {
        Some(self.expected())
    }
}

impl<T: Tabled> Form<T> for Group<T> {
    fn read(&self, node: &Node, around: Surroundings<'_>) -> Result<T, Problem> {
        read_table(node, node.table(&self.expected())?, around)
    }

    fn write(&self, value: &T) -> Option<Value> {
        Some(Value::Table(value.to_table()))
    }
}

/// A table, or as shorthand the value of one of its keys.
pub(crate) struct Short<T> {
    pub(crate) key: &'static str,
    /// The shorthand in words, for the reference.
    pub(crate) words: &'static str,
    pub(crate) table: Group<T>,
}

impl<T: Tabled> Kind for Short<T> {
    fn schema(&self, definitions: &mut Definitions) -> Json {
        let key = T::keys().into_iter().find(|key| key.name() == self.key);
        let short = key.map_or(json!({}), |key| key.kind().schema(definitions));
        json!({ "anyOf": [short, self.table.schema(definitions)] })
    }

    fn words(&self) -> String {
        format!("{} or table", self.words)
    }

    fn compound(&self) -> Option<&dyn Compound> {
        Some(self)
    }
}

impl<T: Tabled> Compound for Short<T> {
    fn keys(&self) -> Vec<&'static dyn Key> {
        T::keys()
    }

    fn example(&self) -> &'static str {
        self.table.example
    }

    fn table(&self, value: Value) -> Option<Table> {
        match value {
            Value::Table(table) => Some(table),
            short => Some(Table::default().and(self.key, short)),
        }
    }
}

impl<T: Tabled> Form<T> for Short<T> {
    fn read(&self, node: &Node, around: Surroundings<'_>) -> Result<T, Problem> {
        match &node.value {
            Value::Table(table) => read_table(node, table, around),
            _ => {
                let mut table = Table::default();
                table.set(self.key, node.clone());
                T::from_table(node, &table, around).map_err(|problem| problem.outside(self.key))
            }
        }
    }

    fn write(&self, value: &T) -> Option<Value> {
        let table = value.to_table();
        let mut entries = table.iter();
        let short = match (entries.next(), entries.next()) {
            (Some((key, node)), None) if key.name == self.key => Some(node.value.clone()),
            _ => None,
        };
        drop(entries);
        Some(short.unwrap_or(Value::Table(table)))
    }
}

/// A table, or one of several names for common values.
pub(crate) struct Named<V: 'static, F> {
    pub(crate) words: &'static str,
    pub(crate) names: Choice<V>,
    pub(crate) table: F,
}

impl<V: Copy + PartialEq + Sync, F: Form<V>> Kind for Named<V, F> {
    fn schema(&self, definitions: &mut Definitions) -> Json {
        json!({ "anyOf": [self.names.schema(definitions), self.table.schema(definitions)] })
    }

    fn words(&self) -> String {
        self.words.into()
    }

    fn compound(&self) -> Option<&dyn Compound> {
        self.table.compound().map(|_| self as &dyn Compound)
    }
}

impl<V: Copy + PartialEq + Sync, F: Form<V>> Compound for Named<V, F> {
    fn keys(&self) -> Vec<&'static dyn Key> {
        self.table.compound().map(Compound::keys).unwrap_or_default()
    }

    fn example(&self) -> &'static str {
        self.table.compound().map_or("", Compound::example)
    }

    fn table(&self, value: Value) -> Option<Table> {
        let known = self.names.choices.iter().find(|(name, _)| value == text(name));
        known.map_or(Some(value), |(_, known)| self.table.write(known))?.into_table()
    }
}

impl<V: Copy + PartialEq + Sync, F: Form<V>> Form<V> for Named<V, F> {
    fn read(&self, node: &Node, around: Surroundings<'_>) -> Result<V, Problem> {
        match &node.value {
            Value::Table(_) => self.table.read(node, around),
            _ => self
                .names
                .read(node, around)
                .map_err(|problem| problem.help(format!("or a table such as {}", self.example()))),
        }
    }

    fn write(&self, value: &V) -> Option<Value> {
        self.names.write(value).or_else(|| self.table.write(value))
    }
}

/// A value that is stored as another type than the one that has the keys.
pub(crate) struct As<F, T, V> {
    pub(crate) kind: F,
    pub(crate) into: fn(T) -> V,
    pub(crate) from: fn(&V) -> T,
}

impl<F: Kind, T, V> Kind for As<F, T, V> {
    fn schema(&self, definitions: &mut Definitions) -> Json {
        self.kind.schema(definitions)
    }

    fn words(&self) -> String {
        self.kind.words()
    }

    fn compound(&self) -> Option<&dyn Compound> {
        self.kind.compound()
    }
}

impl<F: Form<T>, T, V> Form<V> for As<F, T, V> {
    fn read(&self, node: &Node, around: Surroundings<'_>) -> Result<V, Problem> {
        self.kind.read(node, around).map(self.into)
    }

    fn write(&self, value: &V) -> Option<Value> {
        self.kind.write(&(self.from)(value))
    }
}

/// A list of one value up to a maximum number. `what` is a noun with its article and an example.
pub(crate) struct List<F> {
    pub(crate) what: &'static str,
    pub(crate) most: usize,
    pub(crate) one: F,
}

impl<F: Kind> Kind for List<F> {
    fn schema(&self, definitions: &mut Definitions) -> Json {
        json!({
            "type": "array", "items": self.one.schema(definitions), "minItems": 1, "maxItems": self.most,
        })
    }

    fn words(&self) -> String {
        let what = self.what.split_once(", such as").map_or(self.what, |(what, _)| what);
        what.trim_start_matches("a ").into()
    }
}

/// The list as written in a file; `None` if it is empty.
fn listed<V>(one: &impl Form<V>, values: &[V]) -> Option<Value> {
    let items: Vec<Node> = values.iter().filter_map(|value| one.write(value)).map(Node::new).collect();
    (!items.is_empty()).then_some(Value::Array(items))
}

impl<V, F: Form<V>> Form<Vec<V>> for List<F> {
    fn read(&self, node: &Node, around: Surroundings<'_>) -> Result<Vec<V>, Problem> {
        let items = node.list(self.what)?;
        match items.len() {
            0 => Err(Problem::new("the list is empty").at(&node.span)),
            count if count > self.most => Err(Problem::new(format!("a list of {count}"))
                .at(&node.span)
                .help(format!("at most {}", self.most))),
            _ => items.iter().map(|item| self.one.read(item, around)).collect(),
        }
    }

    fn write(&self, values: &Vec<V>) -> Option<Value> {
        listed(&self.one, values)
    }
}

impl<V, F: Form<V>> Form<Arc<[V]>> for List<F> {
    fn read(&self, node: &Node, around: Surroundings<'_>) -> Result<Arc<[V]>, Problem> {
        let values: Vec<V> = self.read(node, around)?;
        Ok(values.into())
    }

    fn write(&self, values: &Arc<[V]>) -> Option<Value> {
        listed(&self.one, values)
    }
}

/// A list of values, which may be empty.
pub(crate) struct Items<F> {
    pub(crate) words: &'static str,
    /// Starts the text after "expected" in errors.
    pub(crate) expected: &'static str,
    pub(crate) of: F,
}

impl<F: Kind> Kind for Items<F> {
    fn schema(&self, definitions: &mut Definitions) -> Json {
        json!({ "type": "array", "items": self.of.schema(definitions) })
    }

    fn words(&self) -> String {
        self.words.into()
    }
}

impl<V, F: Form<V>> Form<Vec<V>> for Items<F> {
    fn read(&self, node: &Node, around: Surroundings<'_>) -> Result<Vec<V>, Problem> {
        node.list(self.expected)?.iter().map(|item| self.of.read(item, around)).collect()
    }

    fn write(&self, values: &Vec<V>) -> Option<Value> {
        listed(&self.of, values)
    }
}
