//! Builds fragments of the JSON Schema from rows.

use serde_json::{Map, Value as Json, json};

use super::Key;
use crate::node::{Node, Value};

/// Shared schemas by name, for references.
pub(crate) type Definitions = Map<String, Json>;

/// Returns a reference to the schema with this name, and builds it if it does not exist.
pub(crate) fn define(
    definitions: &mut Definitions,
    name: &str,
    make: impl FnOnce(&mut Definitions) -> Json,
) -> Json {
    if !definitions.contains_key(name) {
        // The schema may refer to itself.
        definitions.insert(name.into(), Json::Null);
        let schema = make(definitions);
        definitions.insert(name.into(), schema);
    }
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// A table with exactly these keys.
pub(crate) fn object(doc: &str, keys: &[&'static dyn Key], definitions: &mut Definitions) -> Json {
    let mut properties = Map::new();
    for key in keys {
        let property = property(*key, definitions);
        for name in std::iter::once(key.name()).chain(key.aliases().iter().copied()) {
            properties.insert(name.into(), property.clone());
        }
    }
    // A key with two names may appear under either.
    let is_required = |key: &&&dyn Key| key.is_required() && key.aliases().is_empty();
    let required: Vec<&str> = keys.iter().filter(is_required).map(|key| key.name()).collect();
    let mut schema = json!({
        "type": "object", "description": doc, "properties": properties, "additionalProperties": false,
    });
    if let (Some(object), false) = (schema.as_object_mut(), required.is_empty()) {
        object.insert("required".into(), json!(required));
    }
    schema
}

/// A table with this `type` and these keys.
pub(crate) fn tagged(
    name: &str,
    doc: &str,
    keys: &[&'static dyn Key],
    definitions: &mut Definitions,
) -> Json {
    let mut schema = object(doc, keys, definitions);
    schema["properties"]["type"] = json!({ "const": name, "description": doc });
    let required = keys.iter().filter(|key| key.is_required()).map(|key| key.name());
    let mut required: Vec<&str> = required.filter(|key| *key != "type").collect();
    required.push("type");
    schema["required"] = json!(required);
    schema
}

fn property(key: &dyn Key, definitions: &mut Definitions) -> Json {
    let mut schema = key.kind().schema(definitions);
    let Some(object) = schema.as_object_mut() else { return schema };
    let mut doc = key.doc().to_string();
    if let Some(words) = key.default_words() {
        doc += &format!(" Default: {words}.");
    }
    object.insert("description".into(), json!(doc));
    if let (None, Some(default)) = (key.default_words(), key.default()) {
        object.insert("default".into(), self::json(&default));
    }
    schema
}

/// A value of a file as JSON.
fn json(value: &Value) -> Json {
    match value {
        Value::String(text) | Value::Datetime(text) => json!(text),
        Value::Integer(text) | Value::Float(text) => text.parse().unwrap_or_else(|_| json!(text)),
        Value::Boolean(value) => json!(value),
        Value::Array(items) => items.iter().map(|Node { value, .. }| json(value)).collect(),
        Value::Table(table) => {
            table.iter().map(|(key, node)| (key.name.clone(), json(&node.value))).collect()
        }
    }
}

fn quantity(definitions: &mut Definitions, name: &str, doc: &str, pattern: &str) -> Json {
    define(definitions, name, |_| json!({ "type": "string", "description": doc, "pattern": pattern }))
}

/// A duration.
pub(crate) fn time(definitions: &mut Definitions) -> Json {
    let doc = "A time such as `10ms`. Units: ns, us, ms, s, min, h.";
    let pattern = r"^ *\+?[0-9_.]+([eE][+-]?[0-9]+)? *(ns|us|µs|μs|ms|s|min|h) *$";
    quantity(definitions, "Time", doc, pattern)
}

/// A rate in bits per second.
pub(crate) fn rate(definitions: &mut Definitions) -> Json {
    let doc = "A rate such as `1.5mbit`, `unlimited` or `down`. Units: bit, kbit, mbit, gbit, tbit, kibit, mibit, gibit, tibit.";
    let pattern = r"^ *(unlimited|down|\+?[0-9_.]+([eE][+-]?[0-9]+)? *([kKmMgGtT][iI]?)?[bB][iI][tT]) *$";
    quantity(definitions, "Rate", doc, pattern)
}

/// A number of bytes.
pub(crate) fn size(definitions: &mut Definitions) -> Json {
    let doc = "A size such as `64kB`. Units: bytes, B, kB, MB, GB, KiB, MiB, GiB.";
    let pattern = r"^ *\+?[0-9_.]+([eE][+-]?[0-9]+)? *(bytes?|B|[kMG]B|[KMG]iB) *$";
    quantity(definitions, "Size", doc, pattern)
}

/// A number of packets or bytes.
pub(crate) fn bound(definitions: &mut Definitions) -> Json {
    let doc = "A number of packets or bytes, such as `13 packets` or `64kB`, or `default`.";
    let pattern = r"^ *(default|\+?[0-9_.]+([eE][+-]?[0-9]+)? *(packets?|bytes?|B|[kMG]B|[KMG]iB)) *$";
    quantity(definitions, "Bound", doc, pattern)
}

/// A number of packets.
pub(crate) fn packets(definitions: &mut Definitions) -> Json {
    let pattern = r"^ *\+?[0-9_.]+([eE][+-]?[0-9]+)? *packets? *$";
    quantity(definitions, "Packets", "A number of packets, such as `13 packets`.", pattern)
}

/// A probability.
pub(crate) fn share(definitions: &mut Definitions) -> Json {
    define(definitions, "Share", |_| {
        json!({
            "description": "A probability such as `1%` or 0.01.",
            "anyOf": [
                {
                    "description": "In percent, or as a fraction.",
                    "type": "string",
                    "pattern": r"^ *\+?[0-9_.]+([eE][+-]?[0-9]+)? *%? *$",
                },
                { "description": "As a fraction.", "type": "number", "minimum": 0, "maximum": 1 },
            ],
        })
    })
}

/// A plain number, quoted or not.
pub(crate) fn number(definitions: &mut Definitions) -> Json {
    define(definitions, "Number", |_| {
        json!({
            "description": "A plain number, in quotes or not.",
            "anyOf": [
                { "type": "number", "minimum": 0, "maximum": 1_000_000_000 },
                { "type": "string", "pattern": r"^ *\+?[0-9_.]+([eE][+-]?[0-9]+)? *$" },
            ],
        })
    })
}

/// A list of this many strings and numbers.
pub(crate) fn tuple(length: usize) -> Json {
    let item = json!({ "anyOf": [{ "type": "string" }, { "type": "number" }] });
    json!({ "type": "array", "items": item, "minItems": length, "maxItems": length })
}

/// A small number, or its name.
pub(crate) fn named_number(definitions: &mut Definitions) -> Json {
    define(definitions, "NamedNumber", |_| {
        json!({
            "description": "A name or a number.",
            "anyOf": [{ "type": "integer", "minimum": 0, "maximum": 255 }, { "type": "string" }],
        })
    })
}
