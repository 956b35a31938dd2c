//! What is described by its rows.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

use crate::keys::schema::Definitions;
use crate::trace::Format;
use crate::value;

/// Types whose schema comes from rows.
macro_rules! from_rows {
    ($($(#[$doc:meta])* $name:ident = $schema:expr;)+) => {
        $(
            $(#[$doc])*
            pub(super) struct $name;

            impl JsonSchema for $name {
                fn schema_name() -> Cow<'static, str> {
                    stringify!($name).into()
                }

                fn inline_schema() -> bool {
                    true
                }

                fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                    match $schema(generator.definitions_mut()) {
                        Value::Object(schema) => schema.into(),
                        _ => Schema::default(),
                    }
                }
            }
        )+
    };
}

from_rows! {
    /// What a packet must be like.
    Match = value::Match::schema;
    /// How a trace is written.
    TraceFormat = trace_format;
}

fn trace_format(_: &mut Definitions) -> Value {
    json!({ "enum": Format::ALL.map(Format::name) })
}
