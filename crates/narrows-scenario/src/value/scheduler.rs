//! Schedulers: `"fq_codel"`, `"none"`, `{ type = "qfq", classes = [{ name = "voip", weight = 8, match = { … } }, …] }`, or
//! `{ type = "drr", flows = 1024, by = "source" }`.

mod abe;
mod assigned;
mod bucket;
mod build;
mod cake;
mod cake_filter;
mod cbq;
mod cbs;
mod child;
mod class;
mod classes;
mod csma_cd;
mod dcf;
mod delayed;
mod ets;
mod filter;
mod fq;
mod hfsc;
mod hhf;
mod hpd;
mod htb;
mod kind;
mod matches;
mod own;
mod plan;
mod plugin;
mod rows;
mod sfq;
mod shape;
mod station;
mod taprio;
mod tbf;
mod tins;
mod tree;

pub use abe::Abe;
pub use build::DirectionClass;
pub use cbq::{Cbq, CbqClass};
pub(crate) use cbs::Cbs;
pub use child::{Around, Child};
pub use class::Class;
pub use delayed::Delayed;
pub(crate) use ets::Ets;
pub use filter::Filter;
pub use hfsc::{HfscClass, ServiceCurve};
pub use hpd::Hpd;
pub(crate) use hpd::class_words as hpd_words;
pub use htb::HtbClass;
pub use kind::Kind as SchedulerKind;
pub use own::SchedulerParameters;
pub use plugin::Plugin;
pub use shape::ShapedBy;
pub use station::Station;
pub(crate) use taprio::Taprio;
pub use tbf::Tbf;

pub(crate) use bucket::{BURST, below_one_packet};
pub(crate) use cake::Cake;
pub(crate) use cake_filter::CakeFilter;
pub(crate) use class::all_keys as class_keys;
pub(crate) use filter::DROP;
use kind::Serves;
pub(crate) use matches::MATCHES;
pub(crate) use plan::Plan;
pub(crate) use rows::{all_keys, registry, tables};
pub(crate) use station::RATES as DCF_RATES;
pub(crate) use tree::Tree;

use narrows_core::Bytes;
use narrows_core::classify::Identity;
use narrows_core::queue::Bound;
use narrows_core::sched::{HpdClass, PacedFqConfig, Weight};

use crate::keys::kind::text;
use crate::keys::{self, Form, Parameters};
use crate::node::{Node, Table, Value, suggest};
use crate::problem::{Problem, one_of};
use crate::value::FeedUse;
use crate::value::condition::Surroundings;
use crate::value::queue::Policy;
use kind::Kind;

/// A scheduler that shares a link's transmitter among classes or flows.
#[derive(Clone, Debug, PartialEq)]
pub struct Scheduler {
    /// Algorithm.
    pub kind: SchedulerKind,
    /// How packets are divided among queues.
    pub serves: Division,
    /// Bound on the total backlog; `None` for the default.
    pub bound: Option<Bound>,
    /// Quantum of weight 1, if the algorithm has one; `None` for the default.
    pub quantum: Option<Bytes>,
    /// AQM of each flow's queue, if the algorithm includes one.
    pub policy: Policy,
    /// Parameters specific to this algorithm.
    pub own: SchedulerParameters,
}

/// How a scheduler divides packets among queues.
#[derive(Clone, Debug, PartialEq)]
pub enum Division {
    /// By classes.
    Classes {
        /// The classes, in the order in which their conditions are tried.
        classes: Vec<Class>,
        /// Filters that assign packets to classes, in the order in which they are tried; empty if the
        /// classes have conditions.
        filters: Vec<Filter>,
        /// With filters, the class of packets that match none of them.
        default: Option<String>,
        /// Whether a packet that matches no class is dropped. If `false`, one of the classes takes every
        /// packet.
        drops_rest: bool,
    },
    /// By hashing a flow identity.
    Flows {
        /// Number of flow queues.
        count: u32,
        /// The flow identity; `None` for the default.
        by: Option<Identity>,
    },
    /// Into classes fixed by the algorithm: three bands by the TOS byte, two colours by
    /// DSCP, or tins by DSCP.
    Own,
}

impl Division {
    /// Whether filters, not the conditions of classes, assign packets; there may be none, and then all packets share a fate.
    pub(crate) fn has_filters(&self) -> bool {
        let Self::Classes { classes, filters, default, drops_rest } = self else { return false };
        let takes_all = || Tree::of(classes).leaves().any(|at| classes[at].matches.is_empty());
        !filters.is_empty() || default.is_some() || *drops_rest && takes_all()
    }
}

/// Default number of flow queues, as in FQ-CoDel (RFC 8290, 5.2.1) and Linux.
const FLOWS: u32 = 1024;
/// Maximum number of flow queues, as in Linux.
const MOST_FLOWS: i64 = 65_536;

pub(crate) const IDENTITIES: &[(&str, Identity)] = &[
    ("5-tuple", Identity::FiveTuple),
    ("source", Identity::Source),
    ("destination", Identity::Destination),
    ("addresses", Identity::Addresses),
];

impl Default for Scheduler {
    /// A scheduler with all keys.
    fn default() -> Self {
        Self::plain(Kind::Drr)
    }
}

impl Scheduler {
    /// Reads a scheduler; `None` for `"none"`.
    pub(crate) fn read(node: &Node, surroundings: Surroundings<'_>) -> Result<Option<Self>, Problem> {
        match &node.value {
            Value::Table(table) => {
                let missing = |p: Problem| p.help(format!("say which scheduler: {}", one_of(&Kind::names())));
                // The file of a plugin implies the type.
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
        rows::only(table, kind)?;
        let mut scheduler =
            Self { serves: Division::read(kind, node, table, surroundings)?, ..Self::plain(kind) };
        keys::Parameters::read(
            &mut scheduler,
            &table.and("type", text(kind.name())),
            &node.span,
            surroundings,
        )?;
        for own in [scheduler.own.parameters_mut(), scheduler.policy.parameters_mut()].into_iter().flatten() {
            own.read(table, &node.span, surroundings)?;
        }
        classes::check_strict(scheduler.strict(), scheduler.named(), table)?;
        // The algorithm itself makes the final check of weights.
        match scheduler.try_it() {
            Ok(()) => Ok(scheduler),
            Err(refusal) => Err(classes::refused(table, node, &refusal, kind)),
        }
    }

    pub(crate) fn read_quantum(node: &Node, around: Surroundings<'_>) -> Result<Bytes, Problem> {
        rows::QUANTUM.read(node, around)
    }

    /// Checks that the algorithm supports these settings, for a scheduler that was not read from a file.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        let name = self.kind.name();
        match &self.serves {
            Division::Classes { classes, .. } if classes.is_empty() && self.kind.needs_classes() => {
                Err(Problem::new(format!("`{name}` has no classes")).help("it serves named classes in order"))
            }
            Division::Classes { classes, .. }
                if matches!(self.kind, Kind::Htb | Kind::Hfsc | Kind::Cbq)
                    && classes.iter().any(|class| class.shape.is_none()) =>
            {
                let what = if self.kind == Kind::Hfsc { "service curve" } else { "rate" };
                Err(Problem::new(format!("a class of `{name}` has no {what}"))
                    .help(format!("write all of it, with its {what}s")))
            }
            _ if let Some(missing) = self.own.missing() => Err(missing),
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

    /// The effective weight of a class, if the algorithm uses weights and the class has no quantum instead.
    pub(crate) fn weight(&self, class: &Class) -> Option<Weight> {
        let has_weight = self.kind.about().weights && class.quantum.is_none();
        has_weight.then_some(class.weight.unwrap_or(Weight::ONE))
    }

    /// The number of its first classes that are served in strict priority before the others.
    pub(crate) fn strict(&self) -> usize {
        self.own.get::<Ets>().map_or(0, |ets| ets.strict as usize)
    }

    /// Whether this class is one of those.
    pub(crate) fn is_strict(&self, class: &Class) -> bool {
        self.named().iter().take(self.strict()).any(|strict| strict.name == class.name)
    }

    /// The effective bytes per turn of each class, if quanta divide the rate: without weights, or if any class
    /// has a quantum of its own.
    pub(crate) fn turns(&self) -> impl Fn(&Class) -> Option<u64> {
        let has_quanta =
            !self.kind.about().weights || self.named().iter().any(|class| class.quantum.is_some());
        move |class| {
            let base = self.quantum().filter(|_| has_quanta && !self.is_strict(class))?;
            let by_weight = || base.get() * u64::from(class.weight.unwrap_or(Weight::ONE).get()); // below 2⁵³
            Some(class.quantum.map_or_else(by_weight, Bytes::get))
        }
    }

    /// Whether both classify packets the same way.
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

    /// Whether the two differ only in weights and quanta of classes, parameters that a class may change
    /// during a run, conditions of classes, and the total bound.
    pub(crate) fn is_tuned_like(&self, other: &Self) -> bool {
        let plain = |scheduler: &Self| {
            let mut plain = Self { bound: None, ..scheduler.clone() };
            if let Division::Classes { classes, filters, default, drops_rest } = &mut plain.serves {
                for class in classes {
                    // Queues are compared after inheritance.
                    (class.weight, class.quantum, class.queue) = (None, None, None);
                    class.hpd = HpdClass::default();
                    class.station.rate = None;
                    class.matches.clear();
                }
                filters.clear();
                (*default, *drops_rest) = (None, false);
            }
            // The latency determines only the total bound.
            if let Some(tbf) = plain.own.get_mut::<Tbf>() {
                tbf.latency = None;
            }
            plain
        };
        plain(self) == plain(other)
    }

    /// The same classes, as far as another algorithm supports them.
    pub(crate) fn converted(&self, kind: Kind) -> Self {
        let about = kind.about();
        let serves = match (&self.serves, about.serves) {
            (
                Division::Classes { classes, filters, default, drops_rest },
                Serves::Classes | Serves::ClassesOrFlows,
            ) => {
                let class = |class: &Class| Class {
                    weight: class.weight.filter(|_| about.weights),
                    quantum: class.quantum.filter(|_| about.quantum.is_some()),
                    longest: class.longest.filter(|_| about.longest),
                    hpd: if kind == Kind::Hpd { class.hpd } else { HpdClass::default() },
                    station: if kind == Kind::Dcf { class.station.clone() } else { Station::default() },
                    parent: class.parent.clone().filter(|_| kind == self.kind),
                    shape: class.shape.filter(|_| kind == self.kind),
                    ..class.clone()
                };
                // In a class tree, the leaf classes stay.
                let tree = Tree::of(classes);
                let stay = (0..classes.len()).filter(|&at| kind == self.kind || tree.is_leaf(at));
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
            own: if kind == self.kind { self.own.clone() } else { (about.own)() },
        }
    }

    /// This algorithm with all defaults.
    pub(crate) fn plain(kind: Kind) -> Self {
        Self {
            kind,
            serves: Division::default_of(kind),
            bound: None,
            quantum: None,
            policy: (kind.about().policy)(),
            own: (kind.about().own)(),
        }
    }

    /// The effective quantum, if there is one.
    pub fn quantum(&self) -> Option<Bytes> {
        self.quantum.or(self.kind.about().quantum)
    }

    /// Number of flow queues and flow identity, if it schedules flows.
    pub(crate) fn flows(&self) -> Option<(u32, Identity)> {
        self.serves.flows(self.kind)
    }

    /// Whether it, or anything in its classes, delays packets independently of the link's rate (not
    /// work-conserving).
    pub(crate) fn holds_back(&self) -> bool {
        let inside = |class: &Class| match &class.child {
            Some(Child::Scheduler(inner)) => inner.holds_back(),
            Some(Child::Netem(_) | Child::Around(_) | Child::Delayed(_)) => true,
            None => false,
        };
        // A tree of shares only is work-conserving.
        let limits = |class: &Class| match class.shape {
            Some(ShapedBy::Hfsc(class)) => class.ul.is_some() || class.ls().is_none(),
            _ => true,
        };
        let shapes = self.kind.is_shaper() && (self.named().is_empty() || self.named().iter().any(limits));
        let is_paced = self.own.get::<PacedFqConfig>().is_some_and(|own| own.max_rate.is_some());
        shapes || is_paced || self.is_shaping_cake() || self.named().iter().any(inside)
    }

    /// The feeds of delay lines in its classes, and in those of inner schedulers.
    pub(crate) fn feeds<'a>(&'a self) -> Vec<&'a FeedUse> {
        let of = |child: Option<&'a Child>| match child {
            Some(Child::Scheduler(inner)) => inner.feeds(),
            Some(Child::Around(around)) => around.inner.feeds(),
            Some(Child::Delayed(delayed)) => delayed.delay.feeds(),
            _ => Vec::new(),
        };
        self.named().iter().flat_map(|class| of(class.child.as_ref())).collect()
    }

    /// Whether the backlog is in flow queues that share one bound.
    pub fn has_flows(&self) -> bool {
        matches!(self.serves, Division::Flows { .. })
    }

    /// As written in a file.
    pub(crate) fn value(&self) -> Value {
        if *self == Self::plain(self.kind) { text(self.kind.name()) } else { Value::Table(self.table()) }
    }

    /// As a table, even if there is a shorter form.
    pub(crate) fn table(&self) -> Table {
        let mut table = Table::default();
        self.write(&mut table);
        if let Some(policy) = self.policy.parameters() {
            policy.write(&mut table);
        }
        if let Some(own) = self.own.parameters() {
            own.write(&mut table);
        }
        table
    }
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
                Kind::Prio | Kind::Ets | Kind::Taprio => "add some, in order of priority: classes = [{ name = \"voip\", match = { dscp = \"ef\" } }, { name = \"rest\" }]",
                Kind::Hfsc => "add some: classes = [{ name = \"voice\", sc = { umax = \"250 bytes\", dmax = \"5ms\", rate = \"100kbit\" } }, { name = \"rest\", ls = \"1mbit\" }]",
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
            Serves::Bands | Serves::Colours | Serves::Tins | Serves::Sizes => Self::Own,
        }
    }

    /// Number of flow queues and flow identity, if packets are divided into flows.
    pub(crate) fn flows(&self, kind: Kind) -> Option<(u32, Identity)> {
        match self {
            Self::Flows { count, by } => {
                // On a shared medium, flows are the sending stations.
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
