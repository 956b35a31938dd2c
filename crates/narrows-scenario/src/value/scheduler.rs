//! Schedulers: `"fq_codel"`, `"none"`, `{ type = "qfq", classes = [{ name = "voip", weight = 8, match = { … } }, …] }`, or
//! `{ type = "drr", flows = 1024, by = "source" }`.

mod build;
mod cbq;
mod child;
mod class;
mod dcf;
mod filter;
mod hpd;
mod htb;
mod kind;
mod tbf;
mod tree;

pub use cbq::{Cbq, CbqClass};
pub use child::Child;
pub use class::Class;
pub use dcf::Dcf;
pub use filter::Filter;
pub use hpd::{Hpd, HpdParameters};
pub use htb::HtbClass;
pub use kind::Kind as SchedulerKind;
pub use tbf::Tbf;
pub use tree::{Shape, ShapedBy};

pub(crate) use build::Plan;
pub(crate) use class::all_keys as class_keys;
pub(crate) use dcf::RATES as DCF_RATES;
use kind::Serves;
pub(crate) use tree::{below_one_packet, burst as bucket_burst, depth, parent, rate as bucket_rate};

use narrows_core::Bytes;
use narrows_core::aqm::{CodelConfig, PieConfig};
use narrows_core::classify::Identity;
use narrows_core::queue::Bound;
use narrows_core::sched::Weight;

use crate::keys::{self, Form};
use crate::node::{Node, Table, Value, suggest};
use crate::problem::{Problem, one_of};
use crate::units;
use crate::value::condition::Surroundings;
use crate::value::inline::Inline;
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
    pub dcf: Dcf,
    /// The parameters of hybrid proportional delay that are not of a class.
    pub hpd: Hpd,
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
        /// Into how many; nothing for 1024.
        count: Option<u32>,
        /// What makes a flow; nothing for the default.
        by: Option<Identity>,
    },
    /// By the TOS byte, into three bands.
    Bands,
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

/// The keys of a scheduler of this kind.
fn all_of(kind: Kind) -> Vec<&'static str> {
    let about = kind.about();
    let mut keys = vec!["type", "bound"];
    match about.serves {
        Serves::Classes => keys.extend(["classes", "filters", "default"]),
        Serves::ClassesOrFlows => keys.extend(["classes", "filters", "default", "flows", "by"]),
        Serves::Flows => keys.extend(["flows", "by"]),
        Serves::Bands => {}
    }
    keys.extend(about.quantum.map(|_| "quantum"));
    keys.extend((about.keys)());
    keys
}

/// Every key that some kind of scheduler has.
pub(crate) fn all_keys() -> Vec<&'static str> {
    let mut all: Vec<&str> = Kind::ALL.into_iter().flat_map(all_of).collect();
    all.sort_unstable();
    all.dedup();
    all
}

impl Scheduler {
    /// Reads a scheduler; nothing for `"none"`.
    pub(crate) fn read(node: &Node, surroundings: Surroundings<'_>) -> Result<Option<Self>, Problem> {
        match &node.value {
            Value::Table(table) => {
                let missing = |p: Problem| p.help(format!("say which scheduler: {}", one_of(&Kind::names())));
                let kind = table.optional("type", read_kind)?;
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
        let quantum = table.optional("quantum", Self::read_quantum)?;
        let scheduler = Self {
            kind,
            serves: Division::read(kind, node, table, surroundings)?,
            bound: table.optional("bound", |node| queue::BOUND.read(node, surroundings))?.flatten(),
            quantum,
            policy: match kind {
                Kind::FqCodel => Policy::Codel(keys::read(node, table, surroundings)?),
                Kind::FqPie => Policy::Pie(keys::read(node, table, surroundings)?),
                _ => Policy::Fifo,
            },
            dcf: if kind == Kind::Dcf { Dcf::read(table)? } else { Dcf::default() },
            hpd: if kind == Kind::Hpd { Hpd::read(table)? } else { Hpd::default() },
            tbf: if kind == Kind::Tbf { Some(Tbf::read(node, table)?) } else { None },
            cbq: if kind == Kind::Cbq { Some(Cbq::read(node, table)?) } else { None },
        };
        // The algorithm itself has the last word on weights.
        match scheduler.try_it() {
            Ok(()) => Ok(scheduler),
            Err(refusal) => Err(class::refused(table, node, &refusal, kind)),
        }
    }

    pub(crate) fn read_quantum(node: &Node) -> Result<Bytes, Problem> {
        match units::size(node)? {
            size if (256..=1 << 20).contains(&size.get()) => Ok(size),
            _ => Err(node.expected("a quantum from 256 to 1048576 bytes")),
        }
    }

    /// Whether the algorithm can serve this, where it was not read.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        let name = self.kind.name();
        match &self.serves {
            Division::Classes { classes, .. } if classes.is_empty() && self.kind.needs_classes() => {
                Err(Problem::new(format!("`{name}` has no classes"))
                    .help("it serves classes that are named, the first first"))
            }
            _ if self.kind == Kind::Tbf && self.tbf.is_none() => {
                Err(Problem::new("`tbf` has no rate and burst")
                    .help("write the whole: { type = \"tbf\", rate = \"1mbit\", burst = \"5kB\" }"))
            }
            Division::Classes { classes, .. }
                if matches!(self.kind, Kind::Htb | Kind::Cbq)
                    && classes.iter().any(|class| class.shape.is_none()) =>
            {
                Err(Problem::new(format!("a class of `{name}` has no rate"))
                    .help("write the whole, with its rates"))
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

    /// Whether only weights, parameters that a class may change while it runs, and the bound of the whole differ.
    pub(crate) fn is_tuned_like(&self, other: &Self) -> bool {
        let plain = |scheduler: &Self| {
            let mut plain = Self { bound: None, ..scheduler.clone() };
            if let Division::Classes { classes, .. } = &mut plain.serves {
                for class in classes {
                    // Queues are compared with what they inherit.
                    (class.weight, class.queue, class.hpd) = (None, None, HpdParameters::default());
                }
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
                    hpd: if kind == Kind::Hpd { class.hpd } else { HpdParameters::default() },
                    shape: class.shape.clone().filter(|_| kind == self.kind),
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
            dcf: if kind == Kind::Dcf { self.dcf } else { Dcf::default() },
            hpd: if kind == Kind::Hpd { self.hpd } else { Hpd::default() },
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
            dcf: Dcf::default(),
            hpd: Hpd::default(),
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

    pub(crate) fn text(&self) -> String {
        if *self == Self::plain(self.kind) {
            return format!("\"{}\"", self.kind.name());
        }
        self.table_text()
    }

    /// As a table, even where it could be shorter.
    pub(crate) fn table_text(&self) -> String {
        let mut table = Inline::default();
        table.quoted("type", Some(self.kind.name()));
        table.quoted("bound", self.bound);
        table.quoted("quantum", self.quantum);
        let mut own = Table::default();
        self.policy.write(&mut own);
        table.entries(&own);
        self.dcf.write(&mut table);
        self.hpd.write(&mut table);
        if let Some(tbf) = self.tbf {
            tbf.write(&mut table);
        }
        if let Some(cbq) = self.cbq {
            cbq.write(&mut table);
        }
        match &self.serves {
            Division::Bands => {}
            Division::Flows { count, by } => {
                table.plain("flows", *count);
                table.quoted("by", by.map(identity_name));
            }
            Division::Classes { classes, filters, default, drops_rest } => {
                if !classes.is_empty() {
                    let classes: Vec<String> = classes.iter().map(Class::text).collect();
                    table.plain("classes", Some(format!("[{}]", classes.join(", "))));
                }
                if !filters.is_empty() || default.is_some() {
                    let filters: Vec<String> = filters.iter().map(Filter::text).collect();
                    table.plain("filters", Some(format!("[{}]", filters.join(", "))));
                }
                table.quoted("default", default.as_deref().or(drops_rest.then_some("drop")));
            }
        }
        table.finish()
    }
}

impl Division {
    fn read(kind: Kind, node: &Node, table: &Table, surroundings: Surroundings<'_>) -> Result<Self, Problem> {
        let flows = [table.key("flows"), table.key("by")].into_iter().flatten().next();
        if let (Some(key), Some(other)) = (table.key("classes"), flows) {
            return Err(Problem::new("both classes and flows")
                .at(&key.span)
                .also(&other.span, "flows")
                .help(
                    "a scheduler serves the classes that are named, or flows that it tells apart by itself",
                ));
        }
        if let Some(list) = table.get("classes") {
            return class::read_all(kind, list, table, surroundings);
        }
        if let Some(key) = table.key("filters") {
            return Err(Problem::new("`filters` without `classes`").at(&key.span));
        }
        if let Some(key) = table.key("default") {
            return Err(Problem::new("`default` without `classes`").at(&key.span));
        }
        if kind.needs_classes() {
            return Err(Problem::new(format!("`{}` has no classes", kind.name())).at(&node.span).help(match kind {
                Kind::Prio => "give it some, the first of which goes first: classes = [{ name = \"voip\", match = { dscp = \"ef\" } }, { name = \"rest\" }]",
                _ => "give it some: classes = [{ name = \"all\", rate = \"10mbit\" }, { name = \"web\", parent = \"all\", rate = \"4mbit\" }]",
            }));
        }
        if flows.is_none() {
            return Ok(Self::default_of(kind));
        }
        Ok(Self::Flows {
            count: table
                .optional("flows", |node| node.integer("a number of flows", 1..MOST_FLOWS + 1))?
                .map(|count| count as u32),
            by: table.optional("by", |node| node.choice("way to tell flows apart", IDENTITIES))?,
        })
    }

    fn default_of(kind: Kind) -> Self {
        match kind.about().serves {
            Serves::Classes => {
                Self::Classes { classes: Vec::new(), filters: Vec::new(), default: None, drops_rest: false }
            }
            Serves::ClassesOrFlows | Serves::Flows => Self::Flows { count: None, by: None },
            Serves::Bands => Self::Bands,
        }
    }

    /// How many flows, and by what, where there are flows.
    pub(crate) fn flows(&self, kind: Kind) -> Option<(u32, Identity)> {
        match self {
            Self::Flows { count, by } => {
                // The stations of a medium are those who send.
                let usual = if kind == Kind::Dcf { Identity::Source } else { Identity::FiveTuple };
                Some((count.unwrap_or(FLOWS), by.unwrap_or(usual)))
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
        let problem = Problem::new(format!("{} is no scheduler", node.found())).at(&node.span);
        match name {
            "kps" => problem
                .help("of KPS there is no public description to build it from; `gfq` is in its place")
                .help(format!("allowed: {}", one_of(&names))),
            _ => suggest(problem, name, &names),
        }
    })
}

/// That a table has only keys of this kind; says which kind has the one that it should not have.
fn only(table: &Table, kind: Kind) -> Result<(), Problem> {
    table.only(&all_of(kind)).map_err(|problem| {
        let unknown = table.iter().find(|(key, _)| !all_of(kind).contains(&key.name.as_str()));
        let Some((key, _)) = unknown else { return problem };
        let has = |kind: &Kind| all_of(*kind).contains(&key.name.as_str());
        match &Kind::ALL.into_iter().filter(has).map(Kind::name).collect::<Vec<_>>()[..] {
            [] => problem,
            names => problem.help(format!("`{}` goes with {}", key.name, one_of(names))),
        }
    })
}
