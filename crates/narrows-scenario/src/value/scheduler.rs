//! Schedulers: `"fq_codel"`, `"none"`, `{ type = "qfq", classes = [{ name = "voip", weight = 8, match = { … } }, …] }`, or
//! `{ type = "drr", flows = 1024, by = "source" }`.

mod abe;
mod assigned;
mod bucket;
mod build;
mod cbq;
mod child;
mod class;
mod classes;
mod csma_cd;
mod dcf;
mod filter;
mod hpd;
mod htb;
mod kind;
mod plan;
mod plugin;
mod shape;
mod tbf;
mod tree;

pub use abe::Abe;
pub use build::DirectionClass;
pub use cbq::{Cbq, CbqClass};
pub use child::Child;
pub use class::Class;
pub use filter::Filter;
pub use hpd::Hpd;
pub(crate) use hpd::class_words as hpd_words;
pub use htb::HtbClass;
pub use kind::Kind as SchedulerKind;
pub use plugin::Plugin;
pub use shape::ShapedBy;
pub use tbf::Tbf;

pub(crate) use bucket::{BURST, below_one_packet};
pub(crate) use class::all_keys as class_keys;
pub(crate) use dcf::RATES as DCF_RATES;
use kind::Serves;
pub(crate) use plan::Plan;
pub(crate) use tree::{depth, parent};

use narrows_core::Bytes;
use narrows_core::aqm::{CodelConfig, PieConfig};
use narrows_core::classify::Identity;
use narrows_core::queue::Bound;
use narrows_core::sched::{CsmaCdConfig, DcfConfig, HpdClass, Weight};
use serde_json::{Value as Json, json};

use crate::keys::kind::{ByHand, Choice, Given, Integer, Text, text};
use crate::keys::quantity::Size;
use crate::keys::schema::{self, Definitions};
use crate::keys::{self, Form, Key, Keyed, Parameters, Row, row};
use crate::node::{Node, Table, Value, suggest};
use crate::problem::{Problem, one_of};
use crate::value::condition::{Match, Surroundings};
use crate::value::queue::{self, Policy};
use kind::Kind;

/// What shares a link's transmitter among classes or flows.
#[derive(Clone, Debug, PartialEq)]
pub struct Scheduler {
    /// The algorithm.
    pub kind: SchedulerKind,
    /// What it serves.
    pub serves: Division,
    /// How much may wait in all; nothing for the default.
    pub bound: Option<Bound>,
    /// The quantum of weight 1, where the algorithm has one; nothing for the default.
    pub quantum: Option<Bytes>,
    /// What manages the queue of each flow, where the algorithm brings its own.
    pub policy: Policy,
    /// The parameters of a DCF.
    pub dcf: DcfConfig,
    /// The parameters of CSMA/CD.
    pub csma_cd: CsmaCdConfig,
    /// The parameters of hybrid proportional delay that are not of a class.
    pub hpd: Hpd,
    /// The parameters of alternative best effort.
    pub abe: Abe,
    /// The module of a scheduler that is loaded.
    pub plugin: Plugin,
    /// The parameters of a token bucket.
    pub tbf: Option<Tbf>,
    /// The parameters of class based queueing.
    pub cbq: Option<Cbq>,
}

/// How a scheduler tells packets apart.
#[derive(Clone, Debug, PartialEq)]
pub enum Division {
    /// By classes.
    Classes {
        /// The classes, in the order in which their conditions are tried.
        classes: Vec<Class>,
        /// Which class a packet is in, in the order in which they are tried; none where the classes say it.
        filters: Vec<Filter>,
        /// With filters, the class of packets that none of them takes.
        default: Option<String>,
        /// Whether a packet that belongs to none is dropped; else one of the classes takes every packet.
        drops_rest: bool,
    },
    /// By hashing what makes a flow.
    Flows {
        /// Into how many.
        count: u32,
        /// What makes a flow; nothing for the default.
        by: Option<Identity>,
    },
    /// Into classes of the algorithm's own: by the TOS byte into three bands, or by DSCP into two colours.
    Own,
}

/// The number of flows, as in FQ-CoDel (RFC 8290, 5.2.1) and Linux.
const FLOWS: u32 = 1024;
/// The most, as in Linux.
const MOST_FLOWS: i64 = 65_536;

pub(crate) const IDENTITIES: &[(&str, Identity)] = &[
    ("5-tuple", Identity::FiveTuple),
    ("source", Identity::Source),
    ("destination", Identity::Destination),
    ("addresses", Identity::Addresses),
];

const QUANTUM: Size = Size { low: 256, high: 1 << 20, expected: "a quantum from 256 to 1048576 bytes" };
const COUNT: Integer = Integer { what: "a number of flows", low: 1, high: MOST_FLOWS };
const BY: Choice<Identity> = Choice { what: "way to tell flows apart", choices: IDENTITIES };

/// A key whose value is read together with others: a scheduler's type, which says what keys there are, and its classes.
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
                Division::Classes { filters, default, .. } if default.is_some() && filters.is_empty() => {
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

/// As it stands in a file; nothing for no entries.
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
fn keys_of(kind: Kind) -> Vec<&'static dyn Key> {
    let about = kind.about();
    let (classes, flows) = match about.serves {
        Serves::Classes => (true, false),
        Serves::ClassesOrFlows => (true, true),
        Serves::Flows => (false, true),
        Serves::Bands | Serves::Colours => (false, false),
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

/// Every key that some kind of scheduler has.
pub(crate) fn all_keys() -> Vec<&'static str> {
    let mut all: Vec<&str> = Kind::ALL.into_iter().flat_map(keys_of).map(|key| key.name()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

impl Default for Scheduler {
    /// One that has all keys of schedulers.
    fn default() -> Self {
        Self::plain(Kind::Drr)
    }
}

impl Scheduler {
    /// Reads a scheduler; nothing for `"none"`.
    pub(crate) fn read(node: &Node, surroundings: Surroundings<'_>) -> Result<Option<Self>, Problem> {
        match &node.value {
            Value::Table(table) => {
                let missing = |p: Problem| p.help(format!("say which scheduler: {}", one_of(&Kind::names())));
                // Its file says enough.
                let by_file = table.key("plugin").map(|_| Kind::Plugin);
                let kind = table.optional("type", read_kind)?.or(by_file);
                let Some(kind) = kind else {
                    return Err(missing(Problem::new("`type` is missing").at(&node.span)));
                };
                Self::read_parts(kind, node, table, surroundings).map(Some)
            }
            Value::String(text) if text.trim() == "none" => Ok(None),
            _ => Self::read_parts(read_kind(node)?, node, &Table::default(), surroundings).map(Some),
        }
    }

    fn read_parts(
        kind: Kind,
        node: &Node,
        table: &Table,
        surroundings: Surroundings<'_>,
    ) -> Result<Self, Problem> {
        only(table, kind)?;
        let mut scheduler = Self {
            serves: Division::read(kind, node, table, surroundings)?,
            tbf: (kind == Kind::Tbf).then(Tbf::default),
            cbq: (kind == Kind::Cbq).then(Cbq::default),
            ..Self::plain(kind)
        };
        keys::Parameters::read(
            &mut scheduler,
            &table.and("type", text(kind.name())),
            &node.span,
            surroundings,
        )?;
        if let Some(own) = scheduler.own_mut() {
            own.read(table, &node.span, surroundings)?;
        }
        // The algorithm itself has the last word on weights.
        match scheduler.try_it() {
            Ok(()) => Ok(scheduler),
            Err(refusal) => Err(classes::refused(table, node, &refusal, kind)),
        }
    }

    /// The parameters that only this kind has.
    fn own(&self) -> Option<&dyn Parameters> {
        match self.kind {
            Kind::Dcf => Some(&self.dcf),
            Kind::CsmaCd => Some(&self.csma_cd),
            Kind::Hpd => Some(&self.hpd),
            Kind::Abe => Some(&self.abe),
            Kind::Plugin => Some(&self.plugin),
            Kind::Tbf => self.tbf.as_ref().map(|own| own as _),
            Kind::Cbq => self.cbq.as_ref().map(|own| own as _),
            _ => self.policy.parameters().map(|own| own as _),
        }
    }

    fn own_mut(&mut self) -> Option<&mut dyn Parameters> {
        match self.kind {
            Kind::Dcf => Some(&mut self.dcf),
            Kind::CsmaCd => Some(&mut self.csma_cd),
            Kind::Hpd => Some(&mut self.hpd),
            Kind::Abe => Some(&mut self.abe),
            Kind::Plugin => Some(&mut self.plugin),
            Kind::Tbf => self.tbf.as_mut().map(|own| own as _),
            Kind::Cbq => self.cbq.as_mut().map(|own| own as _),
            _ => self.policy.parameters_mut(),
        }
    }

    pub(crate) fn read_quantum(node: &Node, around: Surroundings<'_>) -> Result<Bytes, Problem> {
        QUANTUM.read(node, around)
    }

    /// Whether the algorithm can serve this, where it was not read.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        let name = self.kind.name();
        match &self.serves {
            Division::Classes { classes, .. } if classes.is_empty() && self.kind.needs_classes() => {
                Err(Problem::new(format!("`{name}` has no classes")).help("it serves named classes in order"))
            }
            _ if self.kind == Kind::Plugin && !self.plugin.is_given() => {
                Err(Problem::new("`plugin` has no module")
                    .help("write all of it: { plugin = \"FILE.wasm\" }"))
            }
            _ if self.kind == Kind::Tbf && self.tbf.is_none() => {
                Err(Problem::new("`tbf` has no rate and burst")
                    .help("write all of it: { type = \"tbf\", rate = \"1mbit\", burst = \"5kB\" }"))
            }
            Division::Classes { classes, .. }
                if matches!(self.kind, Kind::Htb | Kind::Cbq)
                    && classes.iter().any(|class| class.shape.is_none()) =>
            {
                Err(Problem::new(format!("a class of `{name}` has no rate"))
                    .help("write all of it, with its rates"))
            }
            Division::Classes { classes, .. } => self.try_it().map_err(|refusal| {
                let class = refusal.class.and_then(|index| classes.get(index));
                Problem::new(match class {
                    Some(class) => format!("`{name}` does not take the class `{}`: {refusal}", class.name),
                    None => format!("`{name}` does not take this: {refusal}"),
                })
            }),
            _ => Ok(()),
        }
    }

    /// The weight of a class in force, where the algorithm knows weights.
    pub(crate) fn weight(&self, class: &Class) -> Option<Weight> {
        self.kind.about().weights.then_some(class.weight.unwrap_or(Weight::ONE))
    }

    /// Whether packets are sorted into classes alike.
    pub(crate) fn sorts_like(&self, other: &Self) -> bool {
        match (&self.serves, &other.serves) {
            (
                Division::Classes { classes, filters, default, drops_rest },
                Division::Classes { classes: those, filters: others, default: usual, drops_rest: drops },
            ) => {
                classes.iter().map(|class| &class.matches).eq(those.iter().map(|class| &class.matches))
                    && (filters, default, drops_rest) == (others, usual, drops)
            }
            _ => true,
        }
    }

    /// Whether only weights, parameters that a class may change while it runs, the conditions of classes, and the bound of the
    /// whole differ.
    pub(crate) fn is_tuned_like(&self, other: &Self) -> bool {
        let plain = |scheduler: &Self| {
            let mut plain = Self { bound: None, ..scheduler.clone() };
            if let Division::Classes { classes, filters, default, drops_rest } = &mut plain.serves {
                for class in classes {
                    // Queues are compared with what they inherit.
                    (class.weight, class.queue, class.hpd) = (None, None, HpdClass::default());
                    class.matches.clear();
                }
                filters.clear();
                (*default, *drops_rest) = (None, false);
            }
            // What follows from it is the bound of the whole.
            if let Some(tbf) = &mut plain.tbf {
                tbf.latency = None;
            }
            plain
        };
        plain(self) == plain(other)
    }

    /// The same classes, as far as another algorithm can serve them.
    pub(crate) fn converted(&self, kind: Kind) -> Self {
        let about = kind.about();
        let serves = match (&self.serves, about.serves) {
            (
                Division::Classes { classes, filters, default, drops_rest },
                Serves::Classes | Serves::ClassesOrFlows,
            ) => {
                let class = |class: &Class| Class {
                    weight: class.weight.filter(|_| about.weights),
                    longest: class.longest.filter(|_| about.longest),
                    hpd: if kind == Kind::Hpd { class.hpd } else { HpdClass::default() },
                    parent: class.parent.clone().filter(|_| kind == self.kind),
                    shape: class.shape.filter(|_| kind == self.kind),
                    ..class.clone()
                };
                // Of a tree the classes that have packets stay.
                let stay = (0..classes.len()).filter(|&at| kind == self.kind || tree::is_leaf(classes, at));
                Division::Classes {
                    classes: stay.map(|at| class(&classes[at])).collect(),
                    filters: filters.clone(),
                    default: default.clone(),
                    drops_rest: *drops_rest,
                }
            }
            (flows @ Division::Flows { .. }, Serves::Flows | Serves::ClassesOrFlows) => flows.clone(),
            _ => Self::plain(kind).serves,
        };
        let own_policy = Self::plain(kind).policy;
        let same_policy = core::mem::discriminant(&own_policy) == core::mem::discriminant(&self.policy);
        Self {
            kind,
            serves,
            bound: self.bound,
            quantum: self.quantum.filter(|_| about.quantum.is_some()),
            policy: if same_policy { self.policy } else { own_policy },
            dcf: if kind == Kind::Dcf { self.dcf } else { DcfConfig::default() },
            csma_cd: if kind == Kind::CsmaCd { self.csma_cd } else { CsmaCdConfig::default() },
            hpd: if kind == Kind::Hpd { self.hpd } else { Hpd::default() },
            abe: if kind == Kind::Abe { self.abe.clone() } else { Abe::default() },
            plugin: if kind == Kind::Plugin { self.plugin.clone() } else { Plugin::default() },
            tbf: self.tbf.filter(|_| kind == Kind::Tbf),
            cbq: self.cbq.filter(|_| kind == Kind::Cbq),
        }
    }

    /// With every default.
    pub(crate) fn plain(kind: Kind) -> Self {
        Self {
            kind,
            serves: Division::default_of(kind),
            bound: None,
            quantum: None,
            policy: match kind {
                Kind::FqCodel => Policy::Codel(CodelConfig::default()),
                Kind::FqPie => Policy::Pie(PieConfig::default()),
                _ => Policy::Fifo,
            },
            dcf: DcfConfig::default(),
            csma_cd: CsmaCdConfig::default(),
            hpd: Hpd::default(),
            abe: Abe::default(),
            plugin: Plugin::default(),
            tbf: None,
            cbq: None,
        }
    }

    /// The quantum in force, where there is one.
    pub fn quantum(&self) -> Option<Bytes> {
        self.quantum.or(self.kind.about().quantum)
    }

    /// How many flows, and by what, where it serves flows.
    pub(crate) fn flows(&self) -> Option<(u32, Identity)> {
        self.serves.flows(self.kind)
    }

    /// Whether it, or what stands in its classes, holds packets back whatever the link's rate.
    pub(crate) fn holds_back(&self) -> bool {
        let inside = |class: &Class| match &class.child {
            Some(Child::Scheduler(inner)) => inner.holds_back(),
            Some(Child::Netem(_)) => true,
            None => false,
        };
        self.kind.is_shaper() || self.named().iter().any(inside)
    }

    /// Whether what waits is in flows that share one bound.
    pub fn has_flows(&self) -> bool {
        matches!(self.serves, Division::Flows { .. })
    }

    /// As it stands in a file.
    pub(crate) fn value(&self) -> Value {
        if *self == Self::plain(self.kind) { text(self.kind.name()) } else { Value::Table(self.table()) }
    }

    /// As a table, even where it could be shorter.
    pub(crate) fn table(&self) -> Table {
        let mut table = Table::default();
        self.write(&mut table);
        if let Some(own) = self.own() {
            own.write(&mut table);
        }
        table
    }

    /// What the schema says of one.
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

/// What the schema says of schedulers of this kind.
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

impl Division {
    fn read(kind: Kind, node: &Node, table: &Table, surroundings: Surroundings<'_>) -> Result<Self, Problem> {
        let flows = [table.key("flows"), table.key("by")].into_iter().flatten().next();
        if let (Some(key), Some(other)) = (table.key("classes"), flows) {
            return Err(Problem::new("both classes and flows")
                .at(&key.span)
                .also(&other.span, "flows")
                .help("a scheduler serves named classes, or flows that it separates itself"));
        }
        if let Some(list) = table.get("classes") {
            return classes::read_all(kind, list, table, surroundings);
        }
        if let Some(key) = table.key("filters") {
            return Err(Problem::new("`filters` without `classes`").at(&key.span));
        }
        if let Some(key) = table.key("default") {
            return Err(Problem::new("`default` without `classes`").at(&key.span));
        }
        if kind.needs_classes() {
            return Err(Problem::new(format!("`{}` has no classes", kind.name())).at(&node.span).help(match kind {
                Kind::Prio => "add some, in order of priority: classes = [{ name = \"voip\", match = { dscp = \"ef\" } }, { name = \"rest\" }]",
                _ => "add some: classes = [{ name = \"all\", rate = \"10mbit\" }, { name = \"web\", parent = \"all\", rate = \"4mbit\" }]",
            }));
        }
        Ok(Self::default_of(kind))
    }

    fn default_of(kind: Kind) -> Self {
        match kind.about().serves {
            Serves::Classes => {
                Self::Classes { classes: Vec::new(), filters: Vec::new(), default: None, drops_rest: false }
            }
            Serves::ClassesOrFlows | Serves::Flows => Self::Flows { count: FLOWS, by: None },
            Serves::Bands | Serves::Colours => Self::Own,
        }
    }

    /// How many flows, and by what, where there are flows.
    pub(crate) fn flows(&self, kind: Kind) -> Option<(u32, Identity)> {
        match self {
            Self::Flows { count, by } => {
                // The stations of a medium are those who send.
                let usual = if kind.is_medium_access() { Identity::Source } else { Identity::FiveTuple };
                Some((*count, by.unwrap_or(usual)))
            }
            _ => None,
        }
    }
}

pub(crate) fn identity_name(identity: Identity) -> &'static str {
    IDENTITIES.iter().find(|(_, known)| *known == identity).map_or("5-tuple", |(name, _)| name)
}

fn read_kind(node: &Node) -> Result<Kind, Problem> {
    let names = Kind::names();
    let name = node.text(&format!("a scheduler: {}", one_of(&names)))?.trim();
    Kind::from_name(name).ok_or_else(|| {
        suggest(Problem::new(format!("{} is not a scheduler", node.found())).at(&node.span), name, &names)
    })
}

/// That a table has only keys of this kind; says which kind has the one that it should not have.
fn only(table: &Table, kind: Kind) -> Result<(), Problem> {
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
        ("match", keys::keys::<Match>()),
        ("hpd", keys::keys::<Hpd>()),
        ("hpd-class", keys::keys::<HpdClass>()),
        ("abe", keys::keys::<Abe>()),
        ("plugin", keys::keys::<Plugin>()),
        ("tbf", keys::keys::<Tbf>()),
        ("htb-class", keys::keys::<HtbClass>()),
        ("cbq", keys::keys::<Cbq>()),
        ("cbq-class", keys::keys::<CbqClass>()),
        ("dcf", keys::keys::<DcfConfig>()),
        ("csma-cd", keys::keys::<CsmaCdConfig>()),
    ];
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
        };
        let quantum = about.quantum.map_or(String::new(), |quantum| quantum.to_string());
        table += &format!("| `\"{}\"` | {serves} | {quantum} | {} |\n", about.name, about.words);
    }
    table
}
