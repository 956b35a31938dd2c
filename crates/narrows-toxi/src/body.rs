//! Bodies of requests and refusals, as Toxiproxy reads and writes them.
//!
//! As Go's decoder does: names of fields match in upper or lower case, unknown fields are ignored, null leaves a field
//! as it is, and what follows the first value is ignored.

use serde_json::{Map, Value, json};

/// Why a request is refused: a status, and a text for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) text: String,
}

impl Refusal {
    pub(crate) fn new(status: u16, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }

    pub(crate) fn bad_body(why: impl std::fmt::Display) -> Self {
        Self::new(400, format!("bad request body: {why}"))
    }

    pub(crate) fn bad_value(field: &str, found: &Value, allowed: &str) -> Self {
        Self::bad_body(format!("{field}: found {found}, expected {allowed}"))
    }

    pub(crate) fn missing(field: impl std::fmt::Display) -> Self {
        Self::new(400, format!("missing required field: {field}"))
    }

    pub(crate) fn bad_toxic(why: impl std::fmt::Display) -> Self {
        Self::new(400, format!("invalid toxic type: {why}"))
    }

    pub(crate) fn json(&self) -> Value {
        json!({ "error": self.text, "status": self.status })
    }
}

/// The first JSON value of a body.
pub(crate) fn first_value(body: &[u8]) -> Result<Value, Refusal> {
    let mut values = serde_json::Deserializer::from_slice(body).into_iter::<Value>();
    match values.next() {
        None => Err(Refusal::bad_body("EOF")),
        Some(value) => value.map_err(Refusal::bad_body),
    }
}

/// The fields of an object.
#[derive(Debug)]
pub(crate) struct Fields {
    fields: Map<String, Value>,
    /// What comes before their names in errors.
    inside: String,
}

impl Fields {
    pub(crate) fn new(fields: Map<String, Value>, inside: &str) -> Self {
        Self { fields, inside: inside.into() }
    }

    /// The fields of a body.
    pub(crate) fn of_body(body: &[u8]) -> Result<Self, Refusal> {
        match first_value(body)? {
            Value::Object(fields) => Ok(Self::new(fields, "")),
            Value::Null => Ok(Self::new(Map::new(), "")),
            other => Err(Refusal::bad_body(format!("found {other}, expected an object"))),
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        let like =
            || self.fields.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value);
        self.fields.get(name).or_else(like).filter(|value| !value.is_null())
    }

    fn wrong(&self, name: &str, found: &Value, allowed: &str) -> Refusal {
        Refusal::bad_value(&format!("{}{name}", self.inside), found, allowed)
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, Refusal> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(self.wrong(name, other, "a string")),
        }
    }

    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, Refusal> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(*value)),
            Some(other) => Err(self.wrong(name, other, "true or false")),
        }
    }

    /// A whole number, 0 or more.
    pub(crate) fn whole(&self, name: &str) -> Result<Option<i64>, Refusal> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match value.as_i64() {
            Some(number) if number >= 0 => Ok(Some(number)),
            _ => Err(self.wrong(name, value, &format!("a whole number from 0 to {}", i64::MAX))),
        }
    }

    pub(crate) fn fraction(&self, name: &str) -> Result<Option<f32>, Refusal> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match value.as_f64() {
            Some(number) if (number as f32).is_finite() => Ok(Some(number as f32)),
            _ => Err(self.wrong(name, value, "a number, such as 0.5")),
        }
    }
}
