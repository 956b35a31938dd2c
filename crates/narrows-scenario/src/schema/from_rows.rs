//! What is described by its rows.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

use crate::direction;
use crate::keys::schema::{Definitions, define, named_number, object, rate, size, time};
use crate::keys::{self, Kind};
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
    /// What one direction of a link does.
    Direction = direction;
    /// Its keys among others.
    DirectionKeys = direction_keys;
    /// Where packets wait for the transmitter.
    Queue = value::Queue::schema;
    /// Packets that are lost by chance.
    Loss = loss;
    /// What tells flows apart.
    Mask = value::mask_schema;
    /// A span of time.
    Time = time;
    /// A number of bytes.
    Size = size;
    /// A number of bits a second.
    Rate = rate;
    /// A name or a number.
    NameOrNumber = named_number;
}

fn loss(definitions: &mut Definitions) -> Value {
    value::Losing.schema(definitions)
}

fn direction(definitions: &mut Definitions) -> Value {
    define(definitions, "Direction", direction_keys)
}

fn direction_keys(definitions: &mut Definitions) -> Value {
    object("What one direction of a link does.", &keys::keys::<direction::Direction>(), definitions)
}
