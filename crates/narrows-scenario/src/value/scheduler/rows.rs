//! The keys of schedulers: reading and writing, which kind has which key, the schema and the tables of the
//! reference.

use narrows_core::classify::Identity;
use serde_json::{Value as Json, json};

use super::hfsc::CurveParts;
use super::kind::{Kind, Serves};
use super::{CakeFilter, Class, Division, Filter, IDENTITIES, MOST_FLOWS, Scheduler, class, hpd};
use crate::keys::kind::{ByHand, Choice, Given, Integer, Text, text};
use crate::keys::quantity::Size;
use crate::keys::schema::{self, Definitions};
use crate::keys::{self, Form, Key, Keyed, Row, row};
use crate::node::{Node, Table, Value};
use crate::problem::{Problem, one_of};
use crate::value::condition::{Match, Surroundings};
use crate::value::queue;
pub(super) const QUANTUM: Size =
    Size { low: 256, high: 1 << 20, expected: "a quantum from 256 to 1048576 bytes" };
const COUNT: Integer = Integer { what: "a number of flows", low: 1, high: MOST_FLOWS };
const BY: Choice<Identity> = Choice { what: "way to tell flows apart", choices: IDENTITIES };

/// For keys that are read together with others: a scheduler's type, which determines the keys, and its
/// classes.
const TOGETHER: fn(&mut Scheduler, &Node, Surroundings<'_>) -> Result<(), Problem> = |_, _, _| Ok(());

/// A list of tables.
const CLASSES: ByHand<()> = ByHand {
    words: || "list of [classes](#classes)".into(),
    schema: |_| json!({ "type": "array", "minItems": 1 }),
    read: |_, _| Ok(()),
    write: |()| None,
};
const FILTERS: ByHand<()> = ByHand {
    words: || "list of [filters](#filters)".into(),
    schema: |definitions| {
        let one = schema::define(definitions, "Filter", |definitions| {
            schema::object("Sends packets to a class.", &keys::keys::<Filter>(), definitions)
        });
        json!({ "type": "array", "items": one })
    },
    read: |_, _| Ok(()),
    write: |()| None,
};

impl Keyed for Scheduler {
    const ROWS: &'static [Row<Self>] = &[
        Row::new(
            "type",
            &KindName,
            "Scheduling algorithm.",
            |of: &Self| Some(text(of.kind.name())),
            TOGETHER,
        )
        .required(),
        row!("bound", bound, queue::BOUND, "Bound of all classes together.")
            .default("[see below](#how-much-may-wait)"),
        Row::new(
            "flows",
            &COUNT,
            "Number of hash buckets for flows.",
            |of: &Self| match of.serves {
                Division::Flows { count, .. } => Some(Value::Integer(count.to_string())),
                _ => None,
            },
            |of: &mut Self, node, around| match &mut of.serves {
                Division::Flows { count, .. } => {
                    *count = COUNT.read(node, around)?;
                    Ok(())
                }
                _ => Ok(()),
            },
        ),
        Row::new(
            "by",
            &BY,
            "Header fields that identify a flow.",
            |of: &Self| match of.serves {
                Division::Flows { by, .. } => Given(BY).write(&by),
                _ => None,
            },
            |of: &mut Self, node, around| match &mut of.serves {
                Division::Flows { by, .. } => {
                    *by = Given(BY).read(node, around)?;
                    Ok(())
                }
                _ => Ok(()),
            },
        )
        .default("`\"5-tuple\"`; for `dcf` and `csma-cd` `\"source\"`"),
        row!(
            "quantum",
            quantum,
            Given(QUANTUM),
            "Quantum: bytes per turn for a flow of weight 1; for schedulers with a quantum."
        )
        .default("that in the table above"),
        Row::new(
            "classes",
            &CLASSES,
            "Classes, in the order in which their conditions are tried.",
            |of: &Self| match &of.serves {
                Division::Classes { classes, .. } => list(classes, Class::value),
                _ => None,
            },
            TOGETHER,
        ),
        Row::new(
            "filters",
            &FILTERS,
            "Filters that assign packets to classes, instead of `match` in the classes.",
            |of: &Self| match &of.serves {
                Division::Classes { filters, .. } if of.serves.has_filters() && filters.is_empty() => {
                    Some(Value::Array(Vec::new()))
                }
                Division::Classes { filters, .. } => list(filters, Filter::value),
                _ => None,
            },
            TOGETHER,
        )
        .default("none"),
        Row::new(
            "default",
            &Text("the name of a class"),
            "With `filters`: class of unmatched packets; `\"drop\"` drops them with the reason `no class`.",
            |of: &Self| match &of.serves {
                Division::Classes { default: Some(class), .. } => Some(text(class)),
                Division::Classes { drops_rest: true, .. } => Some(text("drop")),
                _ => None,
            },
            TOGETHER,
        ),
    ];
}

/// The list as written in a file; `None` if empty.
fn list<T>(items: &[T], value: fn(&T) -> Value) -> Option<Value> {
    let items: Vec<Node> = items.iter().map(value).map(Node::new).collect();
    (!items.is_empty()).then_some(Value::Array(items))
}

/// The name of a scheduler.
struct KindName;

impl keys::Kind for KindName {
    fn schema(&self, _: &mut Definitions) -> Json {
        json!({ "enum": Kind::names() })
    }

    fn words(&self) -> String {
        "a name of the table above".into()
    }
}

/// The keys of a scheduler of this kind.
pub(super) fn keys_of(kind: Kind) -> Vec<&'static dyn Key> {
    let about = kind.about();
    let (classes, flows) = match about.serves {
        Serves::Classes => (true, false),
        Serves::ClassesOrFlows => (true, true),
        Serves::Flows => (false, true),
        Serves::Bands | Serves::Colours | Serves::Tins | Serves::Sizes => (false, false),
    };
    let mut all = keys::keys::<Scheduler>();
    all.retain(|key| match key.name() {
        "classes" | "filters" | "default" => classes,
        "flows" | "by" => flows,
        "quantum" => about.quantum.is_some(),
        _ => true,
    });
    all.extend((about.keys)());
    all
}

/// All keys that any kind of scheduler has.
pub(crate) fn all_keys() -> Vec<&'static str> {
    let mut all: Vec<&str> = Kind::ALL.into_iter().flat_map(keys_of).map(|key| key.name()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

impl Scheduler {
    /// The schema of a scheduler.
    pub(crate) fn schema(definitions: &mut Definitions) -> Json {
        schema::define(definitions, "Scheduler", |definitions| {
            let enough = Kind::ALL.into_iter().filter(|kind| kind.is_enough_by_name()).map(Kind::name);
            let mut any = vec![json!({ "enum": std::iter::once("none").chain(enough).collect::<Vec<_>>() })];
            any.extend(Kind::ALL.into_iter().map(|kind| schema_of(kind, definitions)));
            let doc = "What shares the transmitter among classes or flows.";
            json!({ "description": doc, "anyOf": any })
        })
    }
}

/// The schema of schedulers of this kind.
fn schema_of(kind: Kind, definitions: &mut Definitions) -> Json {
    let (name, doc) = (kind.name(), kind.words());
    schema::define(definitions, &format!("{name}-scheduler"), |definitions| {
        let mut table = schema::tagged(name, doc, &keys_of(kind), definitions);
        if kind == Kind::Plugin {
            table["required"] = json!(["plugin"]);
        }
        if table["properties"].get("classes").is_some() {
            let has_own = !(kind.about().class_keys)().is_empty();
            let called = if has_own { format!("{name}-class") } else { "Class".into() };
            table["properties"]["classes"]["items"] = schema::define(definitions, &called, |definitions| {
                let doc = "Packets that share a queue behind a scheduler.";
                schema::object(doc, &class::keys_of(kind), definitions)
            });
        }
        table
    })
}
/// Checks that a table has only keys of this kind. The error names the kind that a wrong key belongs to.
pub(super) fn only(table: &Table, kind: Kind) -> Result<(), Problem> {
    keys::only(table, &keys_of(kind)).map_err(|problem| {
        let Some(key) = keys::unknown(table, &keys_of(kind)) else { return problem };
        let has = |kind: &Kind| keys_of(*kind).iter().any(|known| known.name() == key.name);
        match &Kind::ALL.into_iter().filter(has).map(Kind::name).collect::<Vec<_>>()[..] {
            [] => problem,
            names => problem.help(format!("`{}` requires {}", key.name, one_of(names))),
        }
    })
}

/// The keys of schedulers, of their classes and filters, by the names of their tables in the reference.
pub(crate) fn tables() -> Vec<(&'static str, Vec<&'static dyn Key>)> {
    let mut tables = vec![
        ("scheduler", keys::keys::<Scheduler>()),
        ("class", class::keys_of(Kind::Fifo)),
        ("filter", keys::keys::<Filter>()),
        ("cake-filter", keys::keys::<CakeFilter>()),
        ("match", keys::keys::<Match>()),
    ];
    for about in Kind::ALL.map(Kind::about) {
        // The keys of an AQM are documented with the AQM.
        if (about.own)().is_some() {
            tables.push((about.name, (about.keys)()));
        }
        tables.push((about.class_table, (about.class_keys)()));
    }
    tables.retain(|(_, keys)| !keys.is_empty());
    tables.push(("service-curve", keys::keys::<CurveParts>()));
    tables.extend(hpd::tables());
    tables
}

/// The registry, as the table `schedulers` of the reference.
pub(crate) fn registry() -> String {
    let mut table = String::from("| `type` | serves | quantum | what it does |\n|---|---|---|---|\n");
    for kind in Kind::ALL {
        let about = kind.about();
        let serves = match about.serves {
            Serves::Classes => "classes",
            Serves::ClassesOrFlows => "classes or flows",
            Serves::Flows => "flows",
            Serves::Bands => "three bands of its own",
            Serves::Colours => "two colours of its own",
            Serves::Tins => "tins of its own",
            Serves::Sizes => "two classes of its own",
        };
        let quantum = about.quantum.map_or(String::new(), |quantum| quantum.to_string());
        table += &format!("| `\"{}\"` | {serves} | {quantum} | {} |\n", about.name, about.words);
    }
    table
}
