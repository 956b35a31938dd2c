//! The kind of a key's value: how it is parsed and written, its schema, and its description for people.

use std::fmt::Display;
use std::ops::RangeInclusive;

use serde_json::{Value as Json, json};

use super::Key;
use super::schema::Definitions;
use crate::node::{Node, Table, Value};
use crate::problem::{Problem, one_of};
use crate::surroundings::Surroundings;
use crate::units::Number;

/// What is known of a value, whatever type it becomes.
pub(crate) trait Kind: Sync {
    /// Its schema.
    fn schema(&self, definitions: &mut Definitions) -> Json;
    /// Description for a table of the reference, such as `time, 1ms to 10s`.
    fn words(&self) -> String;
    /// The table form, if the value is or may be a table.
    fn compound(&self) -> Option<&dyn Compound> {
        None
    }
}

/// A kind of value that is parsed into a `V`.
pub(crate) trait Form<V>: Kind {
    /// Parses it.
    fn read(&self, node: &Node, around: Surroundings<'_>) -> Result<V, Problem>;
    /// As written in a file; `None` if there is nothing to write.
    fn write(&self, value: &V) -> Option<Value>;
}

/// A value that is or may be a table.
pub(crate) trait Compound {
    /// The keys of the table.
    fn keys(&self) -> Vec<&'static dyn Key>;
    /// A complete example.
    fn example(&self) -> &'static str;
    /// What the error expects if the value must be a table.
    fn expected(&self) -> Option<String> {
        None
    }
    /// The table that a value is or is shorthand for; `None` otherwise.
    fn table(&self, value: Value) -> Option<Table> {
        value.into_table()
    }
}

/// A value in quotes.
pub(crate) fn text(value: impl Display) -> Value {
    Value::String(value.to_string())
}

/// `true` or `false`.
pub(crate) struct Boolean;

impl Kind for Boolean {
    fn schema(&self, _: &mut Definitions) -> Json {
        json!({ "type": "boolean" })
    }

    fn words(&self) -> String {
        "boolean".into()
    }
}

impl Form<bool> for Boolean {
    fn read(&self, node: &Node, _: Surroundings<'_>) -> Result<bool, Problem> {
        node.boolean()
    }

    fn write(&self, value: &bool) -> Option<Value> {
        Some(Value::Boolean(*value))
    }
}

/// A word or name in quotes. `what` is a noun with its article.
pub(crate) struct Text(pub(crate) &'static str);

impl Kind for Text {
    fn schema(&self, _: &mut Definitions) -> Json {
        json!({ "type": "string" })
    }

    fn words(&self) -> String {
        self.0.split_once(' ').map_or(self.0, |(_, noun)| noun).into()
    }
}

impl Form<String> for Text {
    fn read(&self, node: &Node, _: Surroundings<'_>) -> Result<String, Problem> {
        node.text(self.0).map(str::to_owned)
    }

    fn write(&self, value: &String) -> Option<Value> {
        Some(text(value))
    }
}

/// A plain number in a range, with at most nine digits after the point.
pub(crate) struct Decimal(pub(crate) RangeInclusive<f64>);

impl Kind for Decimal {
    fn schema(&self, _: &mut Definitions) -> Json {
        json!({ "type": "number", "minimum": self.0.start(), "maximum": self.0.end() })
    }

    fn words(&self) -> String {
        format!("number, {} to {}", self.0.start(), self.0.end())
    }
}

impl Form<f64> for Decimal {
    fn read(&self, node: &Node, _: Surroundings<'_>) -> Result<f64, Problem> {
        Number::within(node, self.0.clone()).map(Number::as_f64)
    }

    /// Writes the shortest digits that parse to the same number.
    fn write(&self, value: &f64) -> Option<Value> {
        Some(Value::Float(value.to_string()))
    }
}

/// A whole number without a unit. `what` is a noun with its article.
pub(crate) struct Integer {
    pub(crate) what: &'static str,
    pub(crate) low: i64,
    pub(crate) high: i64,
}

impl Integer {
    /// The highest value of an integer without a maximum.
    pub(crate) const NO_END: i64 = i64::MAX - 1;
}

impl Kind for Integer {
    fn schema(&self, _: &mut Definitions) -> Json {
        match self.high {
            Self::NO_END => json!({ "type": "integer", "minimum": self.low }),
            high => json!({ "type": "integer", "minimum": self.low, "maximum": high }),
        }
    }

    fn words(&self) -> String {
        match self.high {
            Self::NO_END => format!("whole number, {} or more", self.low),
            high => format!("whole number, {} to {high}", self.low),
        }
    }
}

impl<V: TryFrom<i64> + Display> Form<V> for Integer {
    fn read(&self, node: &Node, _: Surroundings<'_>) -> Result<V, Problem> {
        let number = node.integer(self.what, self.low..self.high + 1)?;
        V::try_from(number).map_err(|_| node.expected(self.what))
    }

    fn write(&self, value: &V) -> Option<Value> {
        Some(Value::Integer(value.to_string()))
    }
}

/// One of several words. `what` is a noun.
pub(crate) struct Choice<V: 'static> {
    pub(crate) what: &'static str,
    pub(crate) choices: &'static [(&'static str, V)],
}

impl<V: PartialEq> Choice<V> {
    /// The name of a value; empty if it is none of the choices.
    pub(crate) fn name(&self, value: &V) -> &'static str {
        self.choices.iter().find(|(_, known)| known == value).map_or("", |(name, _)| name)
    }
}

impl<V: Sync> Kind for Choice<V> {
    fn schema(&self, _: &mut Definitions) -> Json {
        let names: Vec<&str> = self.choices.iter().map(|(name, _)| *name).collect();
        json!({ "type": "string", "enum": names })
    }

    fn words(&self) -> String {
        words_of(self.choices.iter().map(|(name, _)| *name))
    }
}

impl<V: Copy + PartialEq + Sync> Form<V> for Choice<V> {
    fn read(&self, node: &Node, _: Surroundings<'_>) -> Result<V, Problem> {
        node.choice(self.what, self.choices)
    }

    fn write(&self, value: &V) -> Option<Value> {
        self.choices.iter().find(|(_, known)| known == value).map(|(name, _)| text(name))
    }
}

/// Joins names as code: `"tail"` or `"head"`.
pub(crate) fn words_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = names.map(|name| format!("\"{name}\"")).collect();
    one_of(&quoted.iter().map(String::as_str).collect::<Vec<_>>())
}

/// An optional value. The code that uses it defines the default.
pub(crate) struct Given<F>(pub(crate) F);

impl<F: Kind> Kind for Given<F> {
    fn schema(&self, definitions: &mut Definitions) -> Json {
        self.0.schema(definitions)
    }

    fn words(&self) -> String {
        self.0.words()
    }

    fn compound(&self) -> Option<&dyn Compound> {
        self.0.compound()
    }
}

impl<V, F: Form<V>> Form<Option<V>> for Given<F> {
    fn read(&self, node: &Node, around: Surroundings<'_>) -> Result<Option<V>, Problem> {
        self.0.read(node, around).map(Some)
    }

    fn write(&self, value: &Option<V>) -> Option<Value> {
        self.0.write(value.as_ref()?)
    }
}

/// A value, or a word for none.
pub(crate) struct Or<F>(pub(crate) &'static str, pub(crate) F);

impl<F: Kind> Kind for Or<F> {
    fn schema(&self, definitions: &mut Definitions) -> Json {
        json!({ "anyOf": [{ "const": self.0 }, self.1.schema(definitions)] })
    }

    fn words(&self) -> String {
        format!("{}, or `\"{}\"`", self.1.words(), self.0)
    }

    fn compound(&self) -> Option<&dyn Compound> {
        self.1.compound().map(|_| self as &dyn Compound)
    }
}

impl<F: Kind> Compound for Or<F> {
    fn keys(&self) -> Vec<&'static dyn Key> {
        self.1.compound().map(Compound::keys).unwrap_or_default()
    }

    fn example(&self) -> &'static str {
        self.1.compound().map_or("", Compound::example)
    }

    fn table(&self, value: Value) -> Option<Table> {
        if value == text(self.0) { None } else { self.1.compound()?.table(value) }
    }
}

impl<V, F: Form<V>> Form<Option<V>> for Or<F> {
    fn read(&self, node: &Node, around: Surroundings<'_>) -> Result<Option<V>, Problem> {
        match &node.value {
            Value::String(text) if text.trim() == self.0 => Ok(None),
            Value::Table(_) => self.1.read(node, around).map(Some),
            _ => match self.1.compound().and_then(Compound::expected) {
                Some(table) => Err(node.expected(&format!("{table}, or \"{}\"", self.0))),
                None => self.1.read(node, around).map(Some),
            },
        }
    }

    fn write(&self, value: &Option<V>) -> Option<Value> {
        value.as_ref().map_or(Some(text(self.0)), |value| self.1.write(value))
    }
}

/// One value, or a list of alternatives of which one must match; empty if the key is left out.
pub(crate) struct Several<F>(pub(crate) F);

impl<F: Kind> Kind for Several<F> {
    fn schema(&self, definitions: &mut Definitions) -> Json {
        let one = self.0.schema(definitions);
        json!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }] })
    }

    fn words(&self) -> String {
        format!("{}, or a list", self.0.words())
    }
}

impl<V, F: Form<V>> Form<Vec<V>> for Several<F> {
    fn read(&self, node: &Node, around: Surroundings<'_>) -> Result<Vec<V>, Problem> {
        match &node.value {
            Value::Array(items) if items.is_empty() => {
                Err(Problem::new("an empty list, which matches no packet")
                    .at(&node.span)
                    .help("remove the key if it does not matter"))
            }
            Value::Array(items) => items.iter().map(|item| self.0.read(item, around)).collect(),
            _ => Ok(vec![self.0.read(node, around)?]),
        }
    }

    fn write(&self, values: &Vec<V>) -> Option<Value> {
        let mut written: Vec<Node> =
            values.iter().filter_map(|value| self.0.write(value)).map(Node::new).collect();
        match written.len() {
            0 => None,
            1 => written.pop().map(|node| node.value),
            _ => Some(Value::Array(written)),
        }
    }
}

/// Tables keyed by name or number.
pub(crate) struct Tables {
    pub(crate) words: &'static str,
    /// The schema of each.
    pub(crate) of: fn(&mut Definitions) -> Json,
}

impl Kind for Tables {
    fn schema(&self, definitions: &mut Definitions) -> Json {
        json!({ "type": "object", "additionalProperties": (self.of)(definitions) })
    }

    fn words(&self) -> String {
        self.words.into()
    }
}

/// A value with hand-written parsing, writing and schema.
pub(crate) struct ByHand<V> {
    pub(crate) words: fn() -> String,
    pub(crate) schema: fn(&mut Definitions) -> Json,
    pub(crate) read: fn(&Node, Surroundings<'_>) -> Result<V, Problem>,
    pub(crate) write: fn(&V) -> Option<Value>,
}

impl<V> Kind for ByHand<V> {
    fn schema(&self, definitions: &mut Definitions) -> Json {
        (self.schema)(definitions)
    }

    fn words(&self) -> String {
        (self.words)()
    }
}

impl<V> Form<V> for ByHand<V> {
    fn read(&self, node: &Node, around: Surroundings<'_>) -> Result<V, Problem> {
        (self.read)(node, around)
    }

    fn write(&self, value: &V) -> Option<Value> {
        (self.write)(value)
    }
}

/// A value with the description of another kind, but hand-written parsing and writing.
pub(crate) struct Like<F, V> {
    pub(crate) kind: F,
    pub(crate) read: fn(&Node, Surroundings<'_>) -> Result<V, Problem>,
    pub(crate) write: fn(&V) -> Option<Value>,
}

impl<F: Kind, V> Kind for Like<F, V> {
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

impl<F: Kind, V> Form<V> for Like<F, V> {
    fn read(&self, node: &Node, around: Surroundings<'_>) -> Result<V, Problem> {
        (self.read)(node, around)
    }

    fn write(&self, value: &V) -> Option<Value> {
        (self.write)(value)
    }
}

/// The description of a value that becomes several things at once.
pub(crate) struct Described {
    pub(crate) words: fn() -> String,
    pub(crate) schema: fn(&mut Definitions) -> Json,
}

impl Kind for Described {
    fn schema(&self, definitions: &mut Definitions) -> Json {
        (self.schema)(definitions)
    }

    fn words(&self) -> String {
        (self.words)()
    }
}
