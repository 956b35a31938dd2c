//! Queues and their management.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

use crate::value;

/// Where packets wait for the transmitter.
pub(super) struct Queue;

impl JsonSchema for Queue {
    fn schema_name() -> Cow<'static, str> {
        "Queue".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        match value::Queue::schema(generator.definitions_mut()) {
            Value::Object(schema) => schema.into(),
            _ => Schema::default(),
        }
    }
}
