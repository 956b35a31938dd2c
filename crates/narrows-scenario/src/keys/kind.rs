//! What the value of a key may be: how it is read and written, what the schema says of it, and how people call it.

use std::fmt::Display;
use std::ops::RangeInclusive;

use narrows_core::queue::Bound;
use narrows_core::{Bytes, Duration, Probability};
use serde_json::{Value as Json, json};

use super::schema::{self, Definitions};
use super::{Keyed, read_table, table};
use crate::node::{Node, Value};
use crate::problem::{Problem, one_of};
use crate::units::{self, Number, Share};
use crate::value::Surroundings;

/// What is known of a value whatever it becomes.
pub(crate) trait Kind: Sync {
    /// What the schema says of it.
    fn schema(&self, definitions: &mut Definitions) -> Json;
    /// For a table of the reference, such as `time, 1ms to 10s`.
    fn words(&self) -> String;
}

/// A kind of value that becomes a `V`.
pub(crate) trait Form<V>: Kind {
    /// Reads it.
    fn read(&self, node: &Node, around: Surroundings<'_>) -> Result<V, Problem>;
    /// As it stands in a file; nothing where there is nothing to say.
    fn write(&self, value: &V) -> Option<Value>;
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

/// A span of time, both ends included.
pub(crate) struct Time {
    low: Duration,
    high: Duration,
}

impl Time {
    pub(crate) const fn between(low: Duration, high: Duration) -> Self {
        Self { low, high }
    }
}

impl Kind for Time {
    fn schema(&self, definitions: &mut Definitions) -> Json {
        schema::time(definitions)
    }

    fn words(&self) -> String {
        match (self.low, self.high) {
            (Duration::ZERO, high) => format!("time, up to {high}"),
            (low, high) => format!("time, {low} to {high}"),
        }
    }
}

impl Form<Duration> for Time {
    fn read(&self, node: &Node, _: Surroundings<'_>) -> Result<Duration, Problem> {
        units::time_between(node, self.low, self.high)
    }

    fn write(&self, value: &Duration) -> Option<Value> {
        Some(text(value))
    }
}

/// The length of an IP packet.
pub(crate) struct PacketSize;

impl Kind for PacketSize {
    fn schema(&self, definitions: &mut Definitions) -> Json {
        schema::size(definitions)
    }

    fn words(&self) -> String {
        "size, 1 to 65535 bytes".into()
    }
}

impl Form<Bytes> for PacketSize {
    fn read(&self, node: &Node, _: Surroundings<'_>) -> Result<Bytes, Problem> {
        units::packet_size(node)
    }

    fn write(&self, value: &Bytes) -> Option<Value> {
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

    /// The shortest digits that are read as the same number.
    fn write(&self, value: &f64) -> Option<Value> {
        Some(Value::Float(value.to_string()))
    }
}

/// A probability, which the engine has as it was written but for its last bit.
pub(crate) struct Percentage;

impl Kind for Percentage {
    fn schema(&self, definitions: &mut Definitions) -> Json {
        schema::share(definitions)
    }

    fn words(&self) -> String {
        "probability".into()
    }
}

impl Form<Probability> for Percentage {
    fn read(&self, node: &Node, _: Surroundings<'_>) -> Result<Probability, Problem> {
        Share::read(node).map(Share::probability)
    }

    fn write(&self, value: &Probability) -> Option<Value> {
        Some(text(Share::shortest(*value)))
    }
}

/// A number of packets or bytes.
pub(crate) struct PacketsOrBytes;

impl Kind for PacketsOrBytes {
    fn schema(&self, definitions: &mut Definitions) -> Json {
        schema::bound(definitions)
    }

    fn words(&self) -> String {
        "packets or size".into()
    }
}

impl Form<Bound> for PacketsOrBytes {
    fn read(&self, node: &Node, _: Surroundings<'_>) -> Result<Bound, Problem> {
        units::bound(node)
    }

    fn write(&self, value: &Bound) -> Option<Value> {
        Some(text(value))
    }
}

/// A number of packets that may be zero.
pub(crate) struct PacketsOrNone;

impl Kind for PacketsOrNone {
    fn schema(&self, definitions: &mut Definitions) -> Json {
        schema::packets(definitions)
    }

    fn words(&self) -> String {
        "packets, `\"0 packets\"` too".into()
    }
}

impl Form<u64> for PacketsOrNone {
    fn read(&self, node: &Node, _: Surroundings<'_>) -> Result<u64, Problem> {
        match node.text("").is_ok_and(|text| text.trim() == "0 packets") {
            true => Ok(0),
            false => units::packets(node),
        }
    }

    fn write(&self, value: &u64) -> Option<Value> {
        Some(text(Bound::Packets(*value)))
    }
}

/// A whole number without a unit. `what` is a noun with its article.
pub(crate) struct Integer {
    pub(crate) what: &'static str,
    pub(crate) low: i64,
    pub(crate) high: i64,
}

impl Kind for Integer {
    fn schema(&self, _: &mut Definitions) -> Json {
        json!({ "type": "integer", "minimum": self.low, "maximum": self.high })
    }

    fn words(&self) -> String {
        format!("whole number, {} to {}", self.low, self.high)
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

/// `"tail"` or `"head"`, as code.
pub(crate) fn words_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = names.map(|name| format!("\"{name}\"")).collect();
    one_of(&quoted.iter().map(String::as_str).collect::<Vec<_>>())
}

/// A value that need not be given; what holds then is for others to say.
pub(crate) struct Given<F>(pub(crate) F);

impl<F: Kind> Kind for Given<F> {
    fn schema(&self, definitions: &mut Definitions) -> Json {
        self.0.schema(definitions)
    }

    fn words(&self) -> String {
        self.0.words()
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
}

impl<V, F: Form<V>> Form<Option<V>> for Or<F> {
    fn read(&self, node: &Node, around: Surroundings<'_>) -> Result<Option<V>, Problem> {
        match &node.value {
            Value::String(text) if text.trim() == self.0 => Ok(None),
            _ => self.1.read(node, around).map(Some),
        }
    }

    fn write(&self, value: &Option<V>) -> Option<Value> {
        value.as_ref().map_or(Some(text(self.0)), |value| self.1.write(value))
    }
}

/// A table with keys of its own.
pub(crate) struct Group<T> {
    /// What the schema calls it.
    pub(crate) name: &'static str,
    /// What it says, for the schema.
    pub(crate) doc: &'static str,
    /// A whole one, for errors and the reference.
    pub(crate) example: &'static str,
    pub(crate) of: std::marker::PhantomData<fn() -> T>,
}

impl<T: Keyed> Group<T> {
    pub(crate) const fn new(name: &'static str, doc: &'static str, example: &'static str) -> Self {
        Self { name, doc, example, of: std::marker::PhantomData }
    }
}

impl<T: Keyed> Kind for Group<T> {
    fn schema(&self, definitions: &mut Definitions) -> Json {
        schema::define(definitions, self.name, |definitions| {
            schema::object(self.doc, &super::keys::<T>(), definitions)
        })
    }

    fn words(&self) -> String {
        format!("`{}`", self.example)
    }
}

impl<T: Keyed> Form<T> for Group<T> {
    fn read(&self, node: &Node, around: Surroundings<'_>) -> Result<T, Problem> {
        read_table(node, node.table(self.example)?, around)
    }

    fn write(&self, value: &T) -> Option<Value> {
        Some(Value::Table(table::whole(value)))
    }
}
