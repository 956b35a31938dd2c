//! Class trees of shapers: parents, and checks that the classes form a tree.

use std::collections::{BTreeMap, BTreeSet};

use super::Class;
use super::class::place;
use crate::node::Node;
use crate::problem::{Found, Problem, one_of};

/// Who is above whom among classes.
pub(crate) struct Tree<'a> {
    classes: &'a [Class],
    numbers: BTreeMap<&'a str, usize>,
    parents: BTreeSet<&'a str>,
}

impl<'a> Tree<'a> {
    pub(crate) fn of(classes: &'a [Class]) -> Self {
        let numbers =
            classes.iter().enumerate().map(|(number, class)| (class.name.as_str(), number)).collect();
        let parents = classes.iter().filter_map(|class| class.parent.as_deref()).collect();
        Self { classes, numbers, parents }
    }

    /// The index of the class of this name.
    pub(crate) fn number(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).copied()
    }

    /// The index of a class's parent.
    pub(crate) fn parent(&self, index: usize) -> Option<usize> {
        self.number(self.classes[index].parent.as_ref()?)
    }

    /// Whether a class has no children.
    pub(crate) fn is_leaf(&self, index: usize) -> bool {
        !self.parents.contains(self.classes[index].name.as_str())
    }

    /// The indices of the classes without children.
    pub(crate) fn leaves(&self) -> impl Iterator<Item = usize> {
        (0..self.classes.len()).filter(|&index| self.is_leaf(index))
    }

    /// The number of ancestors of a class.
    pub(crate) fn depth(&self, index: usize) -> usize {
        std::iter::successors(self.parent(index), |&above| self.parent(above)).count()
    }
}

/// Checks that parents exist, precede their children, and have no packets of their own.
pub(super) fn check(classes: &[Class], nodes: &[Node]) -> Result<(), Problem> {
    let tree = Tree::of(classes);
    for (index, class) in classes.iter().enumerate() {
        let Some(name) = class.parent.as_ref() else { continue };
        let at = |problem: Problem| problem.at(place(&nodes[index], "parent")).inside("parent");
        let Some(above) = tree.number(name) else {
            let names: Vec<&str> = classes.iter().map(|class| class.name.as_str()).collect();
            let problem = at(Problem::new(format!("there is no class {}", Found(name))));
            let others: Vec<&str> = names.into_iter().filter(|other| *other != class.name).collect();
            return Err(problem.did_you_mean(name, others.iter().copied()).help(format!(
                "the class above `{}`: {}; or none",
                class.name,
                one_of(&others)
            )));
        };
        // If every parent precedes its children, there is no cycle.
        if above < index {
            continue;
        }
        let way: Vec<usize> =
            std::iter::successors(Some(above), |&above| tree.parent(above)).take(classes.len() + 1).collect();
        if let Some(round) = way.iter().position(|&other| other == index) {
            let names: Vec<&str> = way[..=round].iter().map(|&other| classes[other].name.as_str()).collect();
            return Err(at(Problem::new(format!(
                "`{}` is its own ancestor: its parent is {}",
                class.name,
                names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", whose parent is ")
            )))
            .help("the classes are a tree: one of them has no parent"));
        }
        return Err(at(Problem::new(format!("`{name}` follows its child `{}`", class.name)))
            .also(place(&nodes[above], "name"), "the parent")
            .help("put a class before its children"));
    }
    for (index, class) in classes.iter().enumerate().filter(|(index, _)| !tree.is_leaf(*index)) {
        let own = [
            ("match", !class.matches.is_empty()),
            ("queue", class.queue.is_some()),
            ("scheduler", class.child.is_some()),
            ("netem", class.child.is_some()),
        ];
        let table = nodes[index].table("").ok();
        let key = own
            .iter()
            .filter(|(_, is_there)| *is_there)
            .find_map(|(key, _)| table.and_then(|table| table.key(key)));
        if let Some(key) = key {
            return Err(Problem::new(format!(
                "`{}` in the class `{}`, which has children",
                key.name, class.name
            ))
            .at(&key.span)
            .help("only leaf classes hold packets: set it there"));
        }
    }
    Ok(())
}
