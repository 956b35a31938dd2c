//! What is described by its rows.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

use crate::host::Host as KeyedHost;
use crate::keys::Kind;
use crate::keys::kind::Group;
use crate::keys::schema::Definitions;
use crate::link;
use crate::router::Router as KeyedRouter;
use crate::timeline::ENTRY;
use crate::trace::Format;
use crate::traffic::TRAFFIC;
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
    /// What joins two hosts, junctions or routers.
    Link = link::Link::schema;
    /// Where programs run.
    Host = (|definitions| Group::<KeyedHost>::new("Host", "A network namespace of its own, unless it names an existing one.", "").schema(definitions));
    /// Where any number of links meet.
    Router = (|definitions| Group::<KeyedRouter>::new("Router", "Sends packets on by their destination, by the shortest path unless a route says otherwise.", "").schema(definitions));
    /// Something changes.
    Step = (|definitions| ENTRY.schema(definitions));
    /// What a packet must be like.
    Match = value::Match::schema;
    /// How a trace is written.
    TraceFormat = trace_format;
    /// Traffic that a scenario brings.
    Traffic = (|definitions| TRAFFIC.schema(definitions));
}

fn trace_format(_: &mut Definitions) -> Value {
    json!({ "enum": Format::ALL.map(Format::name) })
}
