//! Classes below others, as shapers have them: who is whose parent, and whether that is a tree.

use narrows_core::{Bytes, Rate};

use super::Class;
use super::cbq::{self, CbqClass};
use super::class::place;
use super::htb::{self, HtbClass};
use super::kind::Kind;
use crate::node::{Node, Table};
use crate::problem::{Found, Problem, one_of};
use crate::units;
use crate::value::inline::Inline;

/// What a class of a shaper is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The class above it, if there is one.
    pub parent: Option<String>,
    /// How it is shaped.
    pub by: ShapedBy,
}

/// How a class is shaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapedBy {
    /// By token buckets.
    Htb(HtbClass),
    /// By its idle times.
    Cbq(CbqClass),
}

/// The keys of a class of this kind of shaper, besides those of all classes.
pub(super) fn keys(kind: Kind) -> Vec<&'static str> {
    match kind {
        Kind::Htb => [&["parent"], htb::KEYS].concat(),
        Kind::Cbq => [&["parent", "weight"], cbq::CLASS_KEYS].concat(),
        _ => Vec::new(),
    }
}

impl Shape {
    pub(super) fn read(kind: Kind, node: &Node, table: &Table) -> Result<Option<Self>, Problem> {
        let by = match kind {
            Kind::Htb => ShapedBy::Htb(HtbClass::read(node, table)?),
            Kind::Cbq => ShapedBy::Cbq(CbqClass::read(node, table)?),
            _ => return Ok(None),
        };
        let parent = table.optional("parent", |node| node.text("the name of a class").map(str::to_owned))?;
        Ok(Some(Self { parent, by }))
    }

    /// The rate that is its own.
    pub fn rate(&self) -> Rate {
        match self.by {
            ShapedBy::Htb(class) => class.rate,
            ShapedBy::Cbq(class) => class.rate,
        }
    }

    pub(super) fn write(&self, table: &mut Inline) {
        match self.by {
            ShapedBy::Htb(class) => class.write(table),
            ShapedBy::Cbq(class) => class.write(table),
        }
    }

    /// What it may do, in one line.
    pub(crate) fn words(&self, is_leaf: bool) -> String {
        match self.by {
            ShapedBy::Htb(class) => class.words(is_leaf),
            ShapedBy::Cbq(class) => class.words(is_leaf),
        }
    }
}

/// The number of the class above this one.
pub(crate) fn parent(classes: &[Class], index: usize) -> Option<usize> {
    let name = classes[index].shape.as_ref()?.parent.as_ref()?;
    classes.iter().position(|class| class.name == *name)
}

/// Whether no class is below this one.
pub(crate) fn is_leaf(classes: &[Class], index: usize) -> bool {
    let name = &classes[index].name;
    !classes.iter().filter_map(|class| class.shape.as_ref()).any(|shape| shape.parent.as_ref() == Some(name))
}

/// How many classes are above this one.
pub(crate) fn depth(classes: &[Class], index: usize) -> usize {
    std::iter::successors(parent(classes, index), |&above| parent(classes, above)).count()
}

/// That parents are there, stand before their children, and have no packets of their own.
pub(super) fn check(classes: &[Class], nodes: &[Node]) -> Result<(), Problem> {
    for (index, class) in classes.iter().enumerate() {
        let Some(name) = class.shape.as_ref().and_then(|shape| shape.parent.as_ref()) else { continue };
        let at = |problem: Problem| problem.at(place(&nodes[index], "parent")).inside("parent");
        let Some(above) = parent(classes, index) else {
            let names: Vec<&str> = classes.iter().map(|class| class.name.as_str()).collect();
            let problem = at(Problem::new(format!("no class is called {}", Found(name))));
            let others: Vec<&str> = names.into_iter().filter(|other| *other != class.name).collect();
            return Err(problem.did_you_mean(name, others.iter().copied()).help(format!(
                "the class above `{}`: {}; or none",
                class.name,
                one_of(&others)
            )));
        };
        let way: Vec<usize> = std::iter::successors(Some(above), |&above| parent(classes, above))
            .take(classes.len() + 1)
            .collect();
        if let Some(round) = way.iter().position(|&other| other == index) {
            let names: Vec<&str> = way[..=round].iter().map(|&other| classes[other].name.as_str()).collect();
            return Err(at(Problem::new(format!(
                "`{}` is below itself: its parent is {}",
                class.name,
                names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", whose parent is ")
            )))
            .help("the classes are a tree: one of them has no parent"));
        }
        if above > index {
            return Err(at(Problem::new(format!(
                "`{name}` stands after `{}`, which is below it",
                class.name
            )))
            .also(place(&nodes[above], "name"), "the parent")
            .help("let a class stand before those below it"));
        }
    }
    for (index, class) in classes.iter().enumerate().filter(|(index, _)| !is_leaf(classes, *index)) {
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
                "`{}` in the class `{}`, which has others below it",
                key.name, class.name
            ))
            .at(&key.span)
            .help("packets wait in the classes at the ends of the tree: say it there"));
        }
    }
    Ok(())
}

/// A rate that a bucket can have.
pub(crate) fn rate(node: &Node) -> Result<Rate, Problem> {
    match units::rate(node)? {
        Rate::UNLIMITED | Rate::DOWN => Err(node.expected("a rate, such as \"1mbit\"")),
        rate => Ok(rate),
    }
}

/// A number of bytes above zero, which a bucket holds.
pub(crate) fn burst(node: &Node) -> Result<Bytes, Problem> {
    match units::size(node)? {
        size if (1..=1 << 32).contains(&size.get()) => Ok(size),
        _ => Err(node.expected("a size from 1 byte to 4 GiB")),
    }
}

/// That a bucket does not hold a packet.
pub(crate) fn below_one_packet(burst: Bytes, packet: Bytes) -> Problem {
    Problem::new(format!("a burst of {burst} is less than one packet of {packet}, which would never go"))
        .help("usual is what the rate is in 10 ms, and at least 1600 bytes")
}
