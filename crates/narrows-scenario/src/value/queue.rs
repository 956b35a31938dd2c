//! Queues: `"13 packets"`, `"64kB"`, `"default"`, `{ bound = "13 packets", drop = "head" }`, and with
//! active queue management (AQM) `"codel"` or `{ type = "codel", target = "5ms", bound = "1000 packets" }`.
//!
//! To add an AQM, add a variant of [`Policy`], a line in [`TYPES`], and a file here with the rows of its
//! configuration.

mod choke;
mod codel;
mod dualpi2;
mod pie;
mod red;
mod sfb;

pub use choke::Choke;
pub use red::Red;

use narrows_core::aqm::{self, Aqm, CodelConfig, DualPi2Config, PieConfig, SfbConfig};
use narrows_core::queue::{self, Bound, DropAt, Fifo};
use narrows_core::sched::{PolicyPerFlow, Store};
use serde_json::{Value as Json, json};

use crate::keys::kind::{ByHand, Choice, Or, text, words_of};
use crate::keys::quantity::PACKETS_OR_BYTES;
use crate::keys::schema::{self, Definitions};
use crate::keys::{self, Form, Key, Keyed, Kind, Parameters, Row, row};
use crate::node::{Node, Table, Value, suggest};
use crate::problem::{Problem, one_of};
use crate::value::Surroundings;

/// A queue in front of the transmitter.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Queue {
    /// Bound on the backlog; `None` for the default.
    pub bound: Option<Bound>,
    /// Which packet is dropped when the queue is full.
    pub drop: DropAt,
    /// AQM that drops or marks packets before the queue is full.
    pub policy: Policy,
}

/// Active queue management (AQM): drops or marks packets before a queue is full.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Policy {
    /// None: first in, first out.
    #[default]
    Fifo,
    /// RED: random early detection.
    Red(Red),
    /// CHOKe: RED that compares packets of flows. It is a queue of its own.
    Choke(Choke),
    /// CoDel: controlled delay.
    Codel(CodelConfig),
    /// PIE: proportional integral controller, enhanced.
    Pie(PieConfig),
    /// SFB: stochastic fair Blue. It is a queue of its own.
    Sfb(SfbConfig),
    /// DualPI2: two coupled queues, one of them for packets with ECT(1). It is a queue of its own, first
    /// in, first out in each half.
    DualPi2(DualPi2Config),
}

/// Makes identical AQMs that share their parameters.
type Maker = Box<dyn Fn() -> Box<dyn Aqm> + Send>;

fn maker(policy: impl Aqm + Clone + 'static) -> Maker {
    Box::new(move || Box::new(policy.clone()) as Box<dyn Aqm>)
}

/// An AQM, given by its parameters.
pub(crate) trait Manages: Parameters {
    /// Makes the engine's AQM, one for each FIFO; `None` if it is a complete queue of its own.
    fn maker(&self) -> Option<Maker> {
        None
    }

    /// All effective settings, for display.
    fn effective(&self) -> String {
        self.words()
    }
}

/// A type of queue.
struct Type {
    name: &'static str,
    /// Title for display, before the parameters.
    title: &'static str,
    doc: &'static str,
    /// Its name in the schema.
    schema: &'static str,
    /// Makes it with all defaults.
    plain: fn() -> Policy,
    /// The keys that only this type has.
    keys: fn() -> Vec<&'static dyn Key>,
}

const TYPES: &[Type] = &[
    Type {
        name: "fifo",
        title: "FIFO",
        doc: "First in, first out.",
        schema: "QueueParts",
        plain: || Policy::Fifo,
        keys: Vec::new,
    },
    Type {
        name: "red",
        title: "RED",
        doc: "Random early detection, by the average of what waits (Floyd and Jacobson 1993).",
        schema: "RedQueue",
        plain: || Policy::Red(Red::default()),
        keys: keys::keys::<Red>,
    },
    Type {
        name: "gred",
        title: "RED",
        doc: "`red` with `gentle = true`.",
        schema: "GredQueue",
        plain: || Policy::Red(Red::gentle()),
        keys: || keys::keys::<Red>().into_iter().filter(|key| key.name() != "gentle").collect(),
    },
    Type {
        name: "choke",
        title: "CHOKe",
        doc: "RED that also compares arriving packets with waiting ones, and drops both if they are of one flow (Pan, Prabhakar and Psounis 2000).",
        schema: "ChokeQueue",
        plain: || Policy::Choke(Choke::default()),
        keys: keys::keys::<Choke>,
    },
    Type {
        name: "codel",
        title: "CoDel",
        doc: "Controlled delay, by how long packets have waited (RFC 8289).",
        schema: "CodelQueue",
        plain: || Policy::Codel(CodelConfig::default()),
        keys: keys::keys::<CodelConfig>,
    },
    Type {
        name: "pie",
        title: "PIE",
        doc: "Proportional integral controller enhanced: drops with a probability that follows the queue delay (RFC 8033).",
        schema: "PieQueue",
        plain: || Policy::Pie(PieConfig::default()),
        keys: keys::keys::<PieConfig>,
    },
    Type {
        name: "sfb",
        title: "SFB",
        doc: "Stochastic fair Blue: one queue that finds and limits flows that do not respond (Feng, Kandlur, Saha and Shin 2001).",
        schema: "SfbQueue",
        plain: || Policy::Sfb(SfbConfig::default()),
        keys: keys::keys::<SfbConfig>,
    },
    Type {
        name: "dualpi2",
        title: "DualPI2",
        doc: "Two coupled queues that share the link and one bound, one of them for low latency: ECT(1) and CE (RFC 9332).",
        schema: "DualPi2Queue",
        plain: || Policy::DualPi2(DualPi2Config::default()),
        keys: keys::keys::<DualPi2Config>,
    },
];

const BOUND_HELP: &str = "or a bound, like \"13 packets\" or \"64kB\"";
pub(crate) const BOUND: Or<ByHand<Bound>> = Or("default", PACKETS_OR_BYTES);
/// A queue of a class or of flows.
pub(crate) const QUEUE: ByHand<Queue> = ByHand {
    words: || "as [`queue`](#queue)".into(),
    schema: Queue::schema,
    read: Queue::read,
    write: |queue| Some(queue.value()),
};
pub(crate) const DROP: Choice<DropAt> =
    Choice { what: "place to drop", choices: &[("tail", DropAt::Tail), ("head", DropAt::Head)] };

impl Keyed for Queue {
    const ROWS: &'static [Row<Self>] = &[
        Row::new(
            "type",
            &TypeName,
            "Queue management algorithm.",
            |queue| Some(text(queue.policy.name())),
            |queue, node, _| {
                queue.policy = (type_of(node)?.plain)();
                Ok(())
            },
        ),
        row!("bound", bound, BOUND, "Queue bound."),
        row!(
            "drop",
            drop,
            DROP,
            "Which packet to drop when the queue is full: the arriving one, or the oldest."
        ),
    ];
}

/// The name of a type.
struct TypeName;

impl Kind for TypeName {
    fn schema(&self, _: &mut Definitions) -> Json {
        json!({ "enum": names() })
    }

    fn words(&self) -> String {
        words_of(names().into_iter())
    }
}

fn names() -> Vec<&'static str> {
    TYPES.iter().map(|of| of.name).collect()
}

impl Type {
    /// All keys of a queue of this type.
    fn keys(&self) -> Vec<&'static dyn Key> {
        let mut all = keys::keys::<Queue>();
        all.retain(|key| !(self.plain)().is_whole_queue() || key.name() != "drop");
        all.extend((self.keys)());
        all
    }

    fn has(&self, name: &str) -> bool {
        self.keys().iter().any(|key| key.name() == name || key.aliases().contains(&name))
    }
}

/// All keys that any type of queue has.
pub(crate) fn all_keys() -> Vec<&'static str> {
    let mut all: Vec<&str> = TYPES.iter().flat_map(Type::keys).map(Key::name).collect();
    all.sort_unstable();
    all.dedup();
    all
}

impl Queue {
    pub(crate) fn read(node: &Node, around: Surroundings<'_>) -> Result<Self, Problem> {
        match &node.value {
            Value::Table(table) => Self::read_table(node, table, around),
            Value::String(text) if text.trim().starts_with(|c: char| c.is_ascii_alphabetic()) => {
                match text.trim() {
                    "default" => Ok(Self::default()),
                    _ => Ok(Self { policy: (type_of(node)?.plain)(), ..Self::default() }),
                }
            }
            _ => Ok(Self { bound: BOUND.read(node, around)?, ..Self::default() }),
        }
    }

    fn read_table(node: &Node, table: &Table, around: Surroundings<'_>) -> Result<Self, Problem> {
        let named = table.optional("type", type_of)?;
        only(table, named.unwrap_or(&TYPES[0]))?;
        let mut queue: Self = keys::read(node, table, around)?;
        if let Some(parameters) = queue.policy.parameters_mut() {
            parameters.read(table, &node.span, around)?;
        }
        Ok(queue)
    }

    /// The engine's queue. `default` is the bound if none is given.
    pub(crate) fn build(self, default: Bound) -> Box<dyn queue::Queue> {
        let bound = self.bound.unwrap_or(default);
        match self.policy {
            Policy::Choke(choke) => Box::new(aqm::Choke::new(choke.config(), bound)),
            Policy::Sfb(config) => Box::new(aqm::Sfb::new(config, bound)),
            Policy::DualPi2(config) => Box::new(aqm::DualPi2::new(config, bound)),
            policy => match policy.maker() {
                Some(make) => Box::new(Fifo::managed(bound, self.drop, make())),
                None => Box::new(Fifo::new(bound, self.drop)),
            },
        }
    }

    /// Makes identical stores: the storage of packets in a class or flow of a scheduler, which enforces the
    /// bound itself.
    pub(crate) fn stores(self, default: Bound) -> Box<dyn Fn() -> Store> {
        match (self.policy, self.policy.maker()) {
            (policy, _) if policy.is_whole_queue() => Box::new(move || Store::Queue(self.build(default))),
            (_, Some(make)) => Box::new(move || Store::Managed(make())),
            (_, None) => Box::new(|| Store::Plain),
        }
    }

    /// The AQM for each flow of a set, if any.
    pub(crate) fn per_flow(self) -> Option<PolicyPerFlow> {
        self.policy.maker().map(PolicyPerFlow::new)
    }

    /// As written in a file.
    pub(crate) fn value(self) -> Value {
        match (self.drop, self.policy, self.bound) {
            (DropAt::Tail, Policy::Fifo, None) => text("default"),
            (DropAt::Tail, Policy::Fifo, Some(bound)) => text(bound),
            _ => Value::Table(self.table()),
        }
    }

    /// As a table, even if there is a shorter form.
    pub(crate) fn table(self) -> Table {
        let mut table = Table::default();
        self.write(&mut table);
        if let Some(parameters) = self.policy.parameters() {
            parameters.write(&mut table);
        }
        table
    }

    /// A copy of the queue with one key set.
    pub(crate) fn with(self, key: &str, value: &Node, around: Surroundings<'_>) -> Result<Self, Problem> {
        let mut table = self.table();
        if key == "type" {
            // Keys that the new type does not have are removed.
            let known = type_of(value).map(Type::keys).unwrap_or_default();
            table.keep(&known.into_iter().map(Key::name).collect::<Vec<_>>());
        }
        table.set(key, value.clone());
        let whole = Node::new(Value::Table(table));
        Self::read(&whole, around).map_err(|problem| problem.put_at(&value.span))
    }

    /// Whether `drop` applies to it.
    pub(crate) fn has_place_to_drop(self) -> bool {
        !self.policy.is_whole_queue()
    }

    /// The schema of a queue.
    pub(crate) fn schema(definitions: &mut Definitions) -> Json {
        let of = |kind: &Type, definitions: &mut Definitions| {
            schema::define(definitions, kind.schema, |definitions| {
                let mut table = schema::tagged(kind.name, kind.doc, &kind.keys(), definitions);
                if kind.name == TYPES[0].name {
                    table["required"] = json!([]);
                }
                table
            })
        };
        schema::define(definitions, "Queue", |definitions| {
            let mut any = vec![schema::bound(definitions), TypeName.schema(definitions)];
            any.extend(TYPES.iter().map(|kind| of(kind, definitions)));
            json!({ "description": "Where packets wait for the transmitter.", "anyOf": any })
        })
    }
}

/// The queue type with this name.
fn type_of(node: &Node) -> Result<&'static Type, Problem> {
    let name = node.text("a type of queue")?.trim();
    TYPES.iter().find(|of| of.name == name).ok_or_else(|| {
        let problem = Problem::new(format!("{} is not a type of queue", node.found())).at(&node.span);
        suggest(problem, name, &names()).help(BOUND_HELP)
    })
}

/// Checks that a table has only keys of this type. The error names the type that a wrong key belongs to.
fn only(table: &Table, of: &Type) -> Result<(), Problem> {
    keys::only(table, &of.keys()).map_err(|problem| {
        let Some((key, _)) = table.iter().find(|(key, _)| !of.has(&key.name)) else { return problem };
        let others = TYPES.iter().filter(|other| other.has(&key.name));
        match &others.map(|other| other.name).collect::<Vec<_>>()[..] {
            [] => problem,
            types => problem.help(format!("`{}` requires the type {}", key.name, one_of(types))),
        }
    })
}

impl Policy {
    pub(crate) fn parameters(&self) -> Option<&dyn Manages> {
        match self {
            Self::Fifo => None,
            Self::Red(red) => Some(red),
            Self::Choke(choke) => Some(choke),
            Self::Codel(config) => Some(config),
            Self::Pie(config) => Some(config),
            Self::Sfb(config) => Some(config),
            Self::DualPi2(config) => Some(config),
        }
    }

    pub(crate) fn parameters_mut(&mut self) -> Option<&mut dyn Parameters> {
        match self {
            Self::Fifo => None,
            Self::Red(red) => Some(red),
            Self::Choke(choke) => Some(choke),
            Self::Codel(config) => Some(config),
            Self::Pie(config) => Some(config),
            Self::Sfb(config) => Some(config),
            Self::DualPi2(config) => Some(config),
        }
    }

    /// Whether it is a complete queue of its own, which drops at the tail, and no AQM of a FIFO.
    pub(crate) fn is_whole_queue(self) -> bool {
        matches!(self, Self::Choke(_) | Self::Sfb(_) | Self::DualPi2(_))
    }

    /// Makes the engine's AQM, one for each FIFO; `None` if there is no AQM, or if it is a complete queue
    /// of its own.
    fn maker(self) -> Option<Maker> {
        self.parameters()?.maker()
    }

    fn of_type(self) -> &'static Type {
        let is_alike = |of: &&Type| core::mem::discriminant(&(of.plain)()) == core::mem::discriminant(&self);
        TYPES.iter().find(is_alike).expect("every policy has a type")
    }

    /// Its type, as written in a file.
    pub fn name(self) -> &'static str {
        self.of_type().name
    }

    /// All effective settings, for display; `None` without AQM.
    pub(crate) fn words(self) -> Option<String> {
        let current = self.parameters()?.effective();
        Some(format!("{}, {current}", self.of_type().title))
    }
}

/// The keys of queues and AQMs, by the names of their tables in the reference.
pub(crate) fn tables() -> Vec<(&'static str, Vec<&'static dyn Key>)> {
    let own = TYPES
        .iter()
        .map(|of| (of.name, (of.keys)()))
        .filter(|(name, keys)| *name != "gred" && !keys.is_empty());
    std::iter::once(("queue", keys::keys::<Queue>())).chain(own).collect()
}
