//! The list of a scheduler's classes: checks which of them can get packets, and which one takes the rest.

use std::collections::{BTreeMap, HashMap};

use narrows_core::classify::Condition;
use narrows_core::sched::Refused;

use super::class::place;
use super::filter::{self, Filter};
use super::kind::Kind;
use super::plan::{Refusal, Why};
use super::tree::{self, Tree};
use super::{Class, Division, Serves, dcf};
use crate::node::{Node, Table, Value};
use crate::problem::{Found, Problem};
use crate::value::condition::Surroundings;

/// Reads the classes in a scheduler's table, and whether one of them takes every packet.
pub(super) fn read_all(
    kind: Kind,
    list: &Node,
    table: &Table,
    surroundings: Surroundings<'_>,
) -> Result<Division, Problem> {
    debug_assert!(matches!(kind.about().serves, Serves::Classes | Serves::ClassesOrFlows));
    let has_filters = filter::key(table).is_some();
    let (classes, nodes) =
        read_list(kind, list, has_filters, surroundings).map_err(|problem| problem.inside("classes"))?;
    let filters = filter::key(table)
        .map(|list| Filter::read_all(list, &classes, nodes, surroundings))
        .transpose()
        .map_err(|problem| problem.inside("filters"))?;
    if let Some(filters) = filters {
        let default = table.optional("default", |node| match node.text("")?.trim() {
            "drop" => Ok(None),
            _ => filter::leaf(node, &classes, &Tree::of(&classes)).map(Some),
        })?;
        return match default {
            Some(default) => {
                Ok(Division::Classes { drops_rest: default.is_none(), classes, filters, default })
            }
            None => Err(Problem::new("packets that no filter takes have no class")
                .at(table.key("filters").map_or(&list.span, |key| &key.span))
                .inside("filters")
                .help("name their class: default = \"NAME\", or drop them: default = \"drop\"")),
        };
    }
    let drops_rest = table
        .optional("default", |node| match &node.value {
            Value::String(text) if classes.iter().any(|class| class.name == text.trim()) => {
                Err(Problem::new(format!("{} is not a choice for other packets", Found(text)))
                    .at(&node.span)
                    .help(
                        "a class without `match` takes all other packets; with `filters`, name a class here",
                    ))
            }
            _ => node.choice("class of this scheduler, or `drop`", &[("drop", true)]),
        })?
        .unwrap_or_default();
    let default_class = Tree::of(&classes).leaves().find(|&index| classes[index].matches.is_empty());
    match (default_class, drops_rest) {
        (None, false) => Err(Problem::new("unmatched packets have no class")
            .at(&list.span)
            .inside("classes")
            .help("end with a class without `match`, such as { name = \"rest\" }, or drop them: default = \"drop\"")),
        (Some(class), true) => {
            let key = table.key("default").map_or(&list.span, |key| &key.span);
            let name = &classes[class].name;
            Err(Problem::new(format!("there is nothing to drop: the class `{name}` takes every packet"))
                .at(key)
                .inside("default")
                .also(place(&nodes[class], "name"), "it has no `match`"))
        }
        _ => Ok(Division::Classes { classes, filters: Vec::new(), default: None, drops_rest }),
    }
}

fn read_list<'a>(
    kind: Kind,
    list: &'a Node,
    has_filters: bool,
    surroundings: Surroundings<'_>,
) -> Result<(Vec<Class>, &'a [Node]), Problem> {
    const ALLOWED: &str =
        "a list of classes: [{ name = \"voip\", match = { dscp = \"ef\" } }, { name = \"rest\" }]";
    let nodes = list.list(ALLOWED)?;
    if nodes.is_empty() {
        return Err(Problem::new("no classes").at(&list.span).help(format!("write {ALLOWED}")));
    }
    let mut classes: Vec<Class> = Vec::new();
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    for node in nodes {
        let class = Class::read_of(kind, node, surroundings)?;
        if let Some(other) = numbers.insert(class.name.clone(), classes.len()) {
            return Err(Problem::new(format!("duplicate class `{}`", class.name))
                .at(place(node, "name"))
                .also(place(&nodes[other], "name"), "the other"));
        }
        classes.push(class);
    }
    tree::check(&classes, nodes)?;
    dcf::check_hidden(&classes, nodes)?;
    if kind.has_one_class() && classes.len() > 1 {
        return Err(Problem::new(format!("`{}` with {} classes", kind.name(), classes.len()))
            .at(place(&nodes[1], "name"))
            .help(
                "it limits all of them together: put an inner scheduler with classes into its only class",
            ));
    }
    if !has_filters {
        check_reach(&classes, nodes, surroundings.hosts)?;
    }
    Ok((classes, nodes))
}

/// Checks that each class can get packets.
fn check_reach(classes: &[Class], nodes: &[Node], hosts: &[String]) -> Result<(), Problem> {
    let mut earlier = Conditions::default();
    let mut rest: Option<usize> = None;
    for index in Tree::of(classes).leaves() {
        let class = &classes[index];
        if let Some(rest) = rest {
            return Err(Problem::new(format!(
                "no packet reaches the class `{}`: `{}` takes every packet",
                class.name, classes[rest].name
            ))
            .at(place(&nodes[index], "name"))
            .also(place(&nodes[rest], "name"), "it has no `match`")
            .help("a class without `match` takes all other packets: it must be last"));
        }
        if class.matches.is_empty() {
            rest = Some(index);
        }
        let own: Vec<Condition> = class.matches.iter().map(|one| one.symbolic(hosts)).collect();
        let possible: Vec<&Condition> = own.iter().filter(|one| !one.is_impossible()).collect();
        if possible.is_empty() && !own.is_empty() {
            return Err(Problem::new(format!("no packet can be in the class `{}`", class.name))
                .at(place(&nodes[index], "match"))
                .help("the parts of its `match` contradict each other; all must hold"));
        }
        let covered: Option<Vec<usize>> = possible.iter().map(|one| earlier.covering(one)).collect();
        if let Some(&by) = covered.as_ref().and_then(|all| all.first()) {
            return Err(Problem::new(format!(
                "no packet reaches the class `{}`: `{}` takes them first",
                class.name, classes[by].name
            ))
            .at(place(&nodes[index], "match"))
            .also(place(&nodes[by], "match"), "this holds for each of them")
            .help("the first matching class takes a packet: put the narrower one first"));
        }
        own.into_iter().for_each(|one| earlier.add(index, one));
    }
    Ok(())
}

/// Conditions, each of a class, by the fields in which they ask for one value: thousands of them are compared in little time.
#[derive(Default)]
struct Conditions {
    all: Vec<(usize, Condition)>,
    /// Places in `all`, in order, of those that ask for these values and for no other single value.
    by_values: HashMap<OnlyValues, Vec<usize>>,
}

type OnlyValues = [Option<u128>; 6];

impl Conditions {
    fn add(&mut self, class: usize, condition: Condition) {
        self.by_values.entry(condition.only_values()).or_default().push(self.all.len());
        self.all.push((class, condition));
    }

    /// The class of the first condition that covers this one: it asks for the same single values, or for some of them.
    fn covering(&self, one: &Condition) -> Option<usize> {
        let values = one.only_values();
        let some = |kept: u32| core::array::from_fn(|at| values[at].filter(|_| kept >> at & 1 == 1));
        let fields =
            (0..values.len()).filter(|&at| values[at].is_some()).fold(0, |fields, at| fields | 1_u32 << at);
        let subsets = (0..=fields).filter(|kept| kept & !fields == 0).map(some);
        let places = subsets.filter_map(|values: OnlyValues| self.by_values.get(&values));
        let first =
            places.filter_map(|places| places.iter().find(|&&at| self.all[at].1.covers(one))).min()?;
        Some(self.all[*first].0)
    }
}

/// Checks that the strict classes exist, and have no quanta.
pub(super) fn check_strict(strict: usize, classes: &[Class], table: &Table) -> Result<(), Problem> {
    if let Some(key) = table.get("strict").filter(|_| strict > classes.len()) {
        return Err(Problem::new(format!("{strict} strict classes, and there are {}", classes.len()))
            .at(&key.span)
            .inside("strict"));
    }
    let nodes: &[Node] = table.get("classes").and_then(|list| list.list("").ok()).unwrap_or_default();
    let has_quantum = |(class, _): &(&Class, &Node)| class.quantum.is_some();
    match classes.iter().zip(nodes).take(strict).find(has_quantum) {
        Some((class, node)) => {
            Err(Problem::new(format!("`quantum` in the class `{}`, which is strict", class.name))
                .at(place(node, "quantum"))
                .inside("quantum")
                .inside("classes")
                .help(format!(
                    "`strict = {strict}` serves the first classes before the others, without turns"
                )))
        }
        None => Ok(()),
    }
}

/// The problem for a class that the algorithm rejects, or for all of them.
pub(super) fn refused(table: &Table, node: &Node, refusal: &Refusal, kind: Kind) -> Problem {
    let key = match refusal.why {
        Why::Refused(Refused::Weight { .. } | Refused::Sum { .. } | Refused::NoWeights) => "weight",
        Why::Refused(Refused::Longest { .. }) => "longest",
        _ => "name",
    };
    let classes = table.get("classes").and_then(|list| list.list("").ok());
    let class = classes.zip(refusal.class).and_then(|(list, index)| list.get(index));
    let span = class.map_or(&node.span, |class| place(class, key));
    let problem = match refusal.why {
        Why::Refused(Refused::Flows { most }) => {
            Problem::new(format!("`{}` has at most {most} classes", kind.name())).at(span)
        }
        _ => Problem::new(format!("`{}` does not take this: {refusal}", kind.name())).at(span),
    };
    match class {
        Some(_) => problem.inside(key).inside("classes"),
        None => problem,
    }
}
