//! Classes: `{ name = "voip", weight = 8, match = { dscp = "ef" }, queue = "codel", longest = "300 bytes" }`.

use std::ops::Range;

use narrows_core::Bytes;
use narrows_core::classify::Condition;
use narrows_core::sched::{Refused, Weight};

use super::kind::Kind;
use super::{Division, Serves};
use crate::node::{Key, Node, Table, Value, check_name};
use crate::problem::Problem;
use crate::units;
use crate::value::condition::{Match, Surroundings};
use crate::value::inline::Inline;
use crate::value::queue::Queue;

/// Packets that share a queue behind a scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Unique in its scheduler.
    pub name: String,
    /// Its share relative to the others; nothing for 1, or where the algorithm knows no weights.
    pub weight: Option<Weight>,
    /// What belongs to it: packets that fulfil one of these conditions. None for what no class before it takes.
    pub matches: Vec<Match>,
    /// Where its packets wait; nothing for a queue like that of the direction.
    pub queue: Option<Queue>,
    /// The longest packet that is expected; nothing for what the conditions say, or else 1500 bytes.
    pub longest: Option<Bytes>,
}

pub(crate) const KEYS: &[&str] = &["name", "weight", "match", "queue", "longest"];

impl Class {
    /// A class that takes every packet.
    pub(crate) fn all() -> Self {
        Self { name: "all".into(), weight: None, matches: Vec::new(), queue: None, longest: None }
    }

    fn read(kind: Kind, node: &Node, surroundings: Surroundings<'_>) -> Result<Self, Problem> {
        let about = kind.about();
        let table = node.table("a class: { name = \"voip\", match = { dscp = \"ef\" } }")?;
        let unused = |key: &str, why: &str| match table.key(key) {
            Some(key) => Err(Problem::new(format!("`{}` has no use for `{}`", kind.name(), key.name))
                .at(&key.span)
                .help(why)),
            None => Ok(()),
        };
        if !about.weights {
            unused(
                "weight",
                match kind {
                    Kind::Prio => "its classes are bands in order: the first goes before all others",
                    Kind::Dcf => "its classes are stations, which all contend alike",
                    _ => "it sends in the order of arrival",
                },
            )?;
        }
        if !about.longest {
            unused("longest", "only `qfq` and `gfq` sort classes by their longest packets")?;
        }
        table.only(KEYS)?;
        let name = table.required("name", &node.span, |node| {
            let name = node.text("a name")?.to_string();
            check_name(&Key { name: name.clone(), span: node.span.clone() }, "class")?;
            Ok(name)
        })?;
        let matches = table.optional("match", |node| match &node.value {
            Value::Array(items) if items.is_empty() => {
                Err(Problem::new(format!("no packet can be in the class `{name}`"))
                    .at(&node.span)
                    .help("a list of conditions holds when one of them does, and this one is empty"))
            }
            Value::Array(items) => items.iter().map(|item| Match::read(item, surroundings)).collect(),
            _ => Ok(vec![Match::read(node, surroundings)?]),
        })?;
        Ok(Self {
            name,
            weight: table
                .optional("weight", |node| node.integer("a weight", 1..1 << 32))?
                .and_then(|weight| Weight::new(weight as u32)),
            matches: matches.unwrap_or_default(),
            queue: table.optional("queue", Queue::read)?,
            longest: table.optional("longest", units::packet_size)?,
        })
    }

    pub(crate) fn text(&self) -> String {
        let mut table = Inline::default();
        table.quoted("name", Some(&self.name));
        table.plain("weight", self.weight);
        let matches: Vec<String> = self.matches.iter().map(Match::text).collect();
        table.plain(
            "match",
            match &matches[..] {
                [] => None,
                [one] => Some(one.clone()),
                _ => Some(format!("[{}]", matches.join(", "))),
            },
        );
        table.plain("queue", self.queue.map(Queue::text));
        table.quoted("longest", self.longest);
        table.finish()
    }

    /// The longest packet in force: given, or what the conditions let in, or a full packet.
    pub fn longest(&self) -> Bytes {
        let of = |one: &Match| one.length.as_ref().map(|range| *range.end()).filter(|most| *most < u32::MAX);
        let most = self.matches.iter().map(of).try_fold(0, |most, one| Some(one?.max(most)));
        let matched = most.filter(|most| (1..65_536).contains(most));
        self.longest.unwrap_or(Bytes::new(matched.map_or(1500, u64::from)))
    }

    /// What belongs to it when there are others, in one line, for people.
    pub fn describe(&self) -> String {
        match &self.matches[..] {
            [] => "every other packet".into(),
            matches => matches.iter().map(Match::to_string).collect::<Vec<_>>().join("; or "),
        }
    }
}

/// Reads the classes of a scheduler, which stand in its table, and whether there is one for every packet.
pub(super) fn read_all(
    kind: Kind,
    list: &Node,
    table: &Table,
    surroundings: Surroundings<'_>,
) -> Result<Division, Problem> {
    debug_assert!(matches!(kind.about().serves, Serves::Classes | Serves::ClassesOrFlows));
    let (classes, nodes) =
        read_list(kind, list, surroundings).map_err(|problem| problem.inside("classes"))?;
    let drops_rest = table
        .optional("default", |node| node.choice("thing to do with other packets", &[("drop", true)]))?
        .unwrap_or_default();
    let default_class = classes.iter().position(|class| class.matches.is_empty());
    match (default_class, drops_rest) {
        (None, false) => Err(Problem::new("packets that fulfil no `match` have no class")
            .at(&list.span)
            .inside("classes")
            .help("end with a class without `match`, such as { name = \"rest\" }, or drop them: default = \"drop\"")),
        (Some(class), true) => {
            let key = table.key("default").map_or(&list.span, |key| &key.span);
            let name = &classes[class].name;
            Err(Problem::new(format!("no packet is left to drop: the class `{name}` takes every one"))
                .at(key)
                .inside("default")
                .also(place(&nodes[class], "name"), "it has no `match`"))
        }
        _ => Ok(Division::Classes { classes, drops_rest }),
    }
}

fn read_list<'a>(
    kind: Kind,
    list: &'a Node,
    surroundings: Surroundings<'_>,
) -> Result<(Vec<Class>, &'a [Node]), Problem> {
    const ALLOWED: &str =
        "a list of classes: [{ name = \"voip\", match = { dscp = \"ef\" } }, { name = \"rest\" }]";
    let nodes = list.list(ALLOWED)?;
    if nodes.is_empty() {
        return Err(Problem::new("no classes").at(&list.span).help(format!("write {ALLOWED}")));
    }
    let mut classes: Vec<Class> = Vec::new();
    for node in nodes {
        let class = Class::read(kind, node, surroundings)?;
        if let Some(other) = classes.iter().position(|other| other.name == class.name) {
            return Err(Problem::new(format!("two classes are called `{}`", class.name))
                .at(place(node, "name"))
                .also(place(&nodes[other], "name"), "the other"));
        }
        classes.push(class);
    }
    check_reach(&classes, nodes, surroundings.hosts)?;
    Ok((classes, nodes))
}

/// That each class can get a packet.
fn check_reach(classes: &[Class], nodes: &[Node], hosts: &[String]) -> Result<(), Problem> {
    let mut earlier: Vec<(usize, Condition)> = Vec::new();
    for (index, class) in classes.iter().enumerate() {
        if let Some(rest) = classes[..index].iter().position(|class| class.matches.is_empty()) {
            return Err(Problem::new(format!(
                "no packet gets to the class `{}`: `{}` takes every one",
                class.name, classes[rest].name
            ))
            .at(place(&nodes[index], "name"))
            .also(place(&nodes[rest], "name"), "it has no `match`")
            .help("the class without `match` takes what no class before it takes: it stands last"));
        }
        let own: Vec<Condition> = class.matches.iter().map(|one| one.symbolic(hosts)).collect();
        let possible: Vec<&Condition> = own.iter().filter(|one| !one.is_impossible()).collect();
        if possible.is_empty() && !own.is_empty() {
            return Err(Problem::new(format!("no packet can be in the class `{}`", class.name))
                .at(place(&nodes[index], "match"))
                .help("the parts of its `match` contradict each other: all of them must hold"));
        }
        let covering = |one: &&Condition| earlier.iter().find(|(_, other)| other.covers(one));
        let covered: Option<Vec<usize>> =
            possible.iter().map(|one| covering(one).map(|(by, _)| *by)).collect();
        if let Some(&by) = covered.as_ref().and_then(|all| all.first()) {
            return Err(Problem::new(format!(
                "no packet gets to the class `{}`: `{}` takes them before",
                class.name, classes[by].name
            ))
            .at(place(&nodes[index], "match"))
            .also(place(&nodes[by], "match"), "this holds for each of them")
            .help("the first class whose `match` holds takes a packet: let the narrower one come first"));
        }
        earlier.extend(own.into_iter().map(|one| (index, one)));
    }
    Ok(())
}

/// Where a key of a class stands, or else the class.
fn place<'a>(node: &'a Node, key: &str) -> &'a Range<usize> {
    let table = match &node.value {
        Value::Table(table) => Some(table),
        _ => None,
    };
    table.and_then(|table| table.get(key)).map_or(&node.span, |value| &value.span)
}

/// That the algorithm does not take a class.
pub(super) fn refused(table: &Table, node: &Node, index: usize, refused: Refused, kind: Kind) -> Problem {
    let key = match refused {
        Refused::Weight { .. } | Refused::Sum { .. } | Refused::NoWeights => "weight",
        Refused::Longest { .. } => "longest",
        _ => "name",
    };
    let class = table.get("classes").and_then(|list| list.list("").ok()).and_then(|list| list.get(index));
    let span = class.map_or(&node.span, |class| place(class, key));
    let problem = Problem::new(format!("`{}` does not take this: {refused}", kind.name())).at(span);
    match class {
        Some(_) => problem.inside(key).inside("classes"),
        None => problem,
    }
}
