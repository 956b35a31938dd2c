//! Classes: `{ name = "voip", weight = 8, match = { dscp = "ef" }, queue = "codel", longest = "300 bytes" }`.

use std::ops::Range;

use narrows_core::Bytes;
use narrows_core::sched::{Drr, HpdClass, Weight};
use serde_json::json;

use super::delayed::{DELAYED, Delayed};
use super::kind::Kind;
use super::matches::{MATCHES, read_matches};
use super::shape::ShapedBy;
use super::{Around, Child, Scheduler, Station};
use crate::keys::kind::{ByHand, Given, Text, text};
use crate::keys::quantity::{PACKET_SIZE, PACKETS, Size};
use crate::keys::{self, Form, Keyed, Parameters, Row, row};
use crate::node::{Key, Node, Table, Value, check_class_name};
use crate::problem::{Problem, one_of};
use crate::value::condition::{Match, Surroundings};
use crate::value::exact_netem::EXACT_NETEM;
use crate::value::queue::{QUEUE, Queue};

/// A class of packets with its own queue in a scheduler.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// Name, unique in its scheduler.
    pub name: String,
    /// Weight relative to the other classes; `None` for 1, or if the algorithm has no weights.
    pub weight: Option<Weight>,
    /// Bytes per turn; `None` if they follow from the weight, or if the algorithm has no turns.
    pub quantum: Option<Bytes>,
    /// Its conditions, of which one must match. If empty, it takes packets that no earlier class takes.
    pub matches: Vec<Match>,
    /// Its queue; `None` for a queue like the direction's.
    pub queue: Option<Queue>,
    /// Longest expected packet; `None` for the limit in the conditions, or else 1500 bytes.
    pub longest: Option<Bytes>,
    /// Parameters for hybrid proportional delay.
    pub hpd: HpdClass,
    /// Parameters of a station, for `dcf`.
    pub station: Station,
    /// What replaces its queue.
    pub child: Option<Child>,
    /// Its parent class in the tree of a shaper, if any.
    pub parent: Option<String>,
    /// Its shaping parameters, in a shaper.
    pub shape: Option<ShapedBy>,
}

const WEIGHT: ByHand<Weight> = ByHand {
    words: || "whole number, 1 to 4294967295".into(),
    schema: |_| json!({ "type": "integer", "minimum": 1 }),
    read: |node, _| {
        let weight = node.integer("a weight", 1..1 << 32)?;
        Ok(Weight::new(weight as u32).unwrap_or(Weight::ONE)) // in range
    },
    write: |weight| Some(Value::Integer(weight.to_string())),
};
/// The algorithm's own range, which includes that of `htb`.
const QUANTUM: Size = Size { low: 1, high: Drr::MOST.get(), expected: "a quantum from 1 byte to 1 GiB" };
const NAME: ByHand<String> = ByHand {
    words: || "name".into(),
    schema: |_| json!({ "type": "string" }),
    read: |node, _| {
        let name = node.text("a name")?.to_string();
        check_class_name(&Key { name: name.clone(), span: node.span.clone() })?;
        Ok(name)
    },
    write: |name| Some(text(name)),
};
const SCHEDULER: ByHand<Option<Scheduler>> = ByHand {
    words: || "as [`scheduler`](#scheduler)".into(),
    schema: Scheduler::schema,
    read: Scheduler::read,
    write: |scheduler| scheduler.as_ref().map(Scheduler::value),
};
impl Keyed for Class {
    const ROWS: &'static [Row<Self>] = &[
        row!("name", name, NAME, "Name of the class, unique in its scheduler; used in reports and assignments.").required(),
        row!("parent", parent, Given(Text("the name of a class")), "Parent class, defined earlier.").default("none"),
        row!("weight", weight, Given(WEIGHT), "Weight relative to other classes; for `drr`, `wf2q+`, `qfq`, `gfq` and `kps`.").default("1"),
        row!("quantum", quantum, Given(QUANTUM), "Bytes per turn, instead of a weight; for `drr` and `ets`.").default("`weight` times the scheduler's `quantum`; for `ets` its `quantum`"),
        Row::new(
            "match",
            &MATCHES,
            "Packets of the class: those that match the condition, or any condition of a list.",
            |of: &Self| MATCHES.write(&of.matches),
            |of: &mut Self, node, around| {
                of.matches = read_matches(node, &format!("the class `{}`", of.name), around)?;
                Ok(())
            },
        )
        .default("every packet that no class before it takes"),
        row!("queue", queue, Given(QUEUE), "Queue of the class.").default("that of the direction"),
        row!("longest", longest, Given(PACKET_SIZE), "Maximum expected packet length; `qfq`, `gfq` and `kps` group classes by it. Longer packets are still served.").default("what its `match` lets in, if that says so, or 1500 bytes"),
        Row::new(
            "scheduler",
            &SCHEDULER,
            "[Inner scheduler](#schedulers-in-classes), instead of a queue.",
            |of: &Self| match &of.child {
                Some(child) => child.scheduler().map(Scheduler::value),
                None => None,
            },
            |of: &mut Self, node, around| {
                if let Some(inner) = SCHEDULER.read(node, around)? {
                    of.child = Some(match of.child.take() {
                        Some(Child::Netem(netem)) => Child::Around(Box::new(Around { netem, inner })),
                        _ => Child::Scheduler(Box::new(inner)),
                    });
                }
                Ok(())
            },
        )
        .default("none"),
        Row::new(
            "netem",
            &EXACT_NETEM,
            "NetEm's single queue, [bit for bit](#netem-exact-netem), instead of a queue, or around the inner `scheduler`.",
            |of: &Self| match &of.child {
                Some(child) => child.netem().map(text),
                None => None,
            },
            |of: &mut Self, node, around| {
                if let Some(netem) = EXACT_NETEM.read(node, around)? {
                    of.child = Some(match of.child.take() {
                        Some(Child::Scheduler(inner)) => Child::Around(Box::new(Around { netem, inner: *inner })),
                        _ => Child::Netem(netem),
                    });
                }
                Ok(())
            },
        )
        .default("none"),
        Row::new(
            "delay",
            &DELAYED,
            "[Delay line](#a-delay-line-in-a-class), instead of a queue.",
            |of: &Self| match &of.child {
                Some(Child::Delayed(delayed)) => DELAYED.write(delayed),
                _ => None,
            },
            |of: &mut Self, node, around| {
                of.child = Some(Child::Delayed(Box::new(DELAYED.read(node, around)?)));
                Ok(())
            },
        )
        .default("none"),
        Row::new(
            "line-limit",
            &PACKETS,
            "Maximum number of packets in that delay line.",
            |of: &Self| match &of.child {
                Some(Child::Delayed(delayed)) if delayed.limit != Delayed::LIMIT => PACKETS.write(&delayed.limit),
                _ => None,
            },
            |of: &mut Self, node, around| {
                let limit = PACKETS.read(node, around)?;
                match &mut of.child {
                    Some(Child::Delayed(delayed)) => {
                        delayed.limit = limit;
                        Ok(())
                    }
                    _ => Err(Problem::new("`line-limit` without `delay`")
                        .at(&node.span)
                        .help("it bounds the delay line of a class; the bound of a queue is `queue`")),
                }
            },
        )
        .default("1000 packets"),
    ];

    fn check(&self, table: &Table, _: &Range<usize>) -> Result<(), Problem> {
        let stand: Vec<_> = WAITS_IN.iter().filter_map(|key| table.key(key)).collect();
        let is_around =
            matches!(stand[..], [first, second] if first.name == "scheduler" && second.name == "netem");
        if let ([first, second, ..], false) = (&stand[..], is_around) {
            return Err(Problem::new(format!("both `{}` and `{}` in one class", first.name, second.name))
                .at(&second.span)
                .also(&first.span, "the other")
                .help("a class has a queue, an inner scheduler, netem or a delay line: use one of them, or netem around a scheduler"));
        }
        if let (Some(weight), Some(quantum)) = (table.key("weight"), table.key("quantum")) {
            return Err(Problem::new("both `weight` and `quantum` in one class")
                .at(&quantum.span)
                .also(&weight.span, "the other")
                .help(
                    "a turn is `weight` times the scheduler's quantum, or `quantum` bytes: use one of them",
                ));
        }
        Ok(())
    }
}

/// The keys for the queue of a class, of which one is given.
pub(crate) const WAITS_IN: [&str; 4] = ["queue", "scheduler", "netem", "delay"];

impl Default for Class {
    fn default() -> Self {
        Self::all()
    }
}

/// The keys of a class in this kind of scheduler. For a scheduler without class parameters of its own,
/// includes the keys that it rejects with an explanation.
pub(super) fn keys_of(kind: Kind) -> Vec<&'static dyn keys::Key> {
    let own = (kind.about().class_keys)();
    let mut all = keys::keys::<Class>();
    all.retain(|key| match key.name() {
        "parent" => ShapedBy::plain(kind).is_some(),
        "weight" | "longest" | "quantum" => own.is_empty(),
        _ => true,
    });
    all.extend(own);
    all
}

/// All keys that a class of any scheduler has.
pub(crate) fn all_keys() -> Vec<&'static str> {
    let mut all: Vec<&str> = Kind::ALL.into_iter().flat_map(keys_of).map(|key| key.name()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

impl Class {
    /// A class that takes every packet.
    pub(crate) fn all() -> Self {
        Self {
            name: "all".into(),
            weight: None,
            quantum: None,
            matches: Vec::new(),
            queue: None,
            longest: None,
            hpd: HpdClass::default(),
            station: Station::default(),
            child: None,
            parent: None,
            shape: None,
        }
    }

    /// Reads a class of this kind of scheduler.
    pub(super) fn read_of(kind: Kind, node: &Node, surroundings: Surroundings<'_>) -> Result<Self, Problem> {
        let about = kind.about();
        let table = node.table("a class: { name = \"voip\", match = { dscp = \"ef\" } }")?;
        let unused = |key: &str, why: &str| match table.key(key) {
            Some(key) => Err(Problem::new(format!("`{}` does not use `{}`", kind.name(), key.name))
                .at(&key.span)
                .help(why)),
            None => Ok(()),
        };
        if !about.weights && kind != Kind::Cbq {
            unused(
                "weight",
                match kind {
                    Kind::Ets => "its first classes are strict, and the others share by `quantum`",
                    Kind::Prio | Kind::Taprio => {
                        "its classes are bands in order: the first goes before all others"
                    }
                    Kind::Dcf | Kind::CsmaCd => "its classes are stations, which all contend alike",
                    Kind::Hpd => "it keeps delays in proportion: set `ddp`; the smallest is served best",
                    Kind::Hfsc => "its classes share by their curves: `ls`",
                    Kind::Htb => "its classes share by their rates, priorities and quanta",
                    _ => "it sends first in, first out",
                },
            )?;
        }
        if !about.longest {
            unused("longest", "only `qfq`, `gfq` and `kps` sort classes by their longest packets")?;
        }
        if about.quantum.is_none() && kind != Kind::Htb {
            unused("quantum", "only `drr` and `ets` give each class turns of so many bytes")?;
        }
        for key in keys::names::<HpdClass>().into_iter().filter(|_| kind != Kind::Hpd) {
            unused(key, "it is a parameter of hybrid proportional delay: `hpd`")?;
        }
        only(table, kind)?;
        let mut class = Self { name: String::new(), shape: ShapedBy::plain(kind), ..Self::all() };
        class.read(table, &node.span, surroundings)?;
        // The `weight` of `cbq` is a parameter of its own.
        class.weight = class.weight.filter(|_| about.weights);
        // As is the `quantum` of `htb`.
        class.quantum = class.quantum.filter(|_| about.quantum.is_some());
        if kind == Kind::Hpd {
            class.hpd.read(table, &node.span, surroundings)?;
        }
        if kind == Kind::Dcf {
            class.station.read(table, &node.span, surroundings)?;
        }
        if let Some(shape) = &mut class.shape {
            shape.parameters_mut().read(table, &node.span, surroundings)?;
        }
        Ok(class)
    }

    /// As written in a file.
    pub(crate) fn value(&self) -> Value {
        let mut table = Table::default();
        self.write(&mut table);
        self.hpd.write(&mut table);
        self.station.write(&mut table);
        if let Some(shape) = &self.shape {
            shape.parameters().write(&mut table);
        }
        Value::Table(table)
    }

    /// The effective longest packet: given, or limited by the conditions, or a full packet.
    pub fn longest(&self) -> Bytes {
        let of = |one: &Match| one.length.as_ref().map(|range| *range.end()).filter(|most| *most < u32::MAX);
        let most = self.matches.iter().map(of).try_fold(0, |most, one| Some(one?.max(most)));
        let matched = most.filter(|most| (1..65_536).contains(most));
        self.longest.unwrap_or(Bytes::new(matched.map_or(1500, u64::from)))
    }

    /// What belongs to it when there are other classes, in one line for display.
    pub fn describe(&self) -> String {
        match &self.matches[..] {
            [] => "every other packet".into(),
            matches => matches.iter().map(Match::to_string).collect::<Vec<_>>().join("; or "),
        }
    }
}

/// Checks that a class has only keys for this kind of scheduler. The error names the kind that a wrong key
/// belongs to.
fn only(table: &Table, kind: Kind) -> Result<(), Problem> {
    keys::only(table, &keys_of(kind)).map_err(|problem| {
        let Some(key) = keys::unknown(table, &keys_of(kind)) else { return problem };
        let has = |kind: &Kind| keys_of(*kind).iter().any(|known| known.name() == key.name);
        match &Kind::ALL.into_iter().filter(has).map(Kind::name).collect::<Vec<_>>()[..] {
            [] => problem,
            names => problem.help(format!("`{}` applies to classes of {}", key.name, one_of(names))),
        }
    })
}

/// The place of a key of a class, or else of the class.
pub(super) fn place<'a>(node: &'a Node, key: &str) -> &'a Range<usize> {
    let table = match &node.value {
        Value::Table(table) => Some(table),
        _ => None,
    };
    table.and_then(|table| table.get(key)).map_or(&node.span, |value| &value.span)
}
