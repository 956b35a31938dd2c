//! Links: what joins two hosts or junctions, and reading one from a file.

use std::ops::Range;

use narrows_core::Time;

use crate::direction::{Direction, KEYS};
use crate::files::Files;
use crate::host::Host;
use crate::netem;
use crate::node::{Key, Node, Table};
use crate::problem::Problem;
use crate::rules_link::{self, RulesLink};
use crate::surroundings::Surroundings;

/// A wire between two hosts or junctions.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Unique among the links.
    pub name: String,
    /// The hosts or junctions that it joins: "up" is from the first to the second.
    pub between: [String; 2],
    /// What it adds to the length of a path, for routers; 1 if it is not given.
    pub cost: u32,
    /// What is in between.
    pub medium: Medium,
}

/// What a link is made of.
#[derive(Clone, Debug, PartialEq)]
pub enum Medium {
    /// A wire for each direction: the engine's links `NAME.up` and `NAME.down`.
    Duplex {
        /// From the first to the second.
        up: Box<Direction>,
        /// From the second to the first.
        down: Box<Direction>,
    },
    /// One medium that both directions contend for, half duplex: the engine's link `NAME`, with lane 0 up and lane 1
    /// down.
    Shared(Box<Direction>),
    /// Rules that send packets to pipes: the engine's rules `NAME`, and a link `NAME.NUMBER` for each pipe. Up is what
    /// ipfw calls "out", and down is "in".
    Rules(Box<RulesLink>),
}

/// One way of one link of the engine.
#[derive(Clone, Debug)]
pub struct Lane<'a> {
    /// The engine's name of the link.
    pub link: String,
    /// Its lane.
    pub lane: u8,
    /// Which way that is.
    pub way: Way,
    /// What packets meet there.
    pub direction: &'a Direction,
}

/// Which way along a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    /// From the first to the second of `between`.
    Up,
    /// From the second to the first.
    Down,
}

impl Way {
    /// `up` or `down`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}

impl Link {
    /// What packets meet on this way. Nothing for a link with rules: that is for those to say.
    pub fn direction(&self, way: Way) -> Option<&Direction> {
        match (&self.medium, way) {
            (Medium::Duplex { up, .. }, Way::Up) => Some(up),
            (Medium::Duplex { down, .. }, Way::Down) => Some(down),
            (Medium::Shared(both), _) => Some(both),
            (Medium::Rules(_), _) => None,
        }
    }

    /// The rules, where the link has some.
    pub fn rules(&self) -> Option<&RulesLink> {
        match &self.medium {
            Medium::Rules(rules) => Some(rules),
            _ => None,
        }
    }

    /// The engine's name of the link, or of the rules, for this way.
    pub fn core_name(&self, way: Way) -> String {
        match self.medium {
            Medium::Duplex { .. } => format!("{}.{}", self.name, way.name()),
            Medium::Shared(_) | Medium::Rules(_) => self.name.clone(),
        }
    }

    /// The engine's links that this one becomes: name and values. Those of a link with rules are its pipes, in the order of
    /// their numbers.
    pub fn directions(&self) -> Vec<(String, &Direction)> {
        match &self.medium {
            Medium::Duplex { up, down } => {
                vec![(self.core_name(Way::Up), up), (self.core_name(Way::Down), down)]
            }
            Medium::Shared(both) => vec![(self.name.clone(), both)],
            Medium::Rules(rules) => rules.directions(&self.name),
        }
    }

    /// The lanes of these, those up before those down in each link of the engine.
    pub fn lanes(&self) -> Vec<Lane<'_>> {
        let lane = |link: &str, lane, way, direction| Lane { link: link.into(), lane, way, direction };
        match &self.medium {
            Medium::Duplex { up, down } => vec![
                lane(&self.core_name(Way::Up), 0, Way::Up, up),
                lane(&self.core_name(Way::Down), 0, Way::Down, down),
            ],
            Medium::Shared(_) | Medium::Rules(_) => {
                let both = |(name, direction): (String, _)| {
                    [lane(&name, 0, Way::Up, direction), lane(&name, 1, Way::Down, direction)]
                };
                self.directions().into_iter().flat_map(both).collect()
            }
        }
    }

    /// Where one comes from and gets to on this way.
    pub fn ends(&self, way: Way) -> [&str; 2] {
        let [first, second] = [self.between[0].as_str(), self.between[1].as_str()];
        match way {
            Way::Up => [first, second],
            Way::Down => [second, first],
        }
    }

    /// The directions that `way` stands for, or both; none of a link with rules.
    pub(crate) fn directions_mut(&mut self, way: Option<Way>) -> Vec<&mut Direction> {
        match (&mut self.medium, way) {
            (Medium::Duplex { up, .. }, Some(Way::Up)) => vec![up],
            (Medium::Duplex { down, .. }, Some(Way::Down)) => vec![down],
            (Medium::Duplex { up, down }, None) => vec![up, down],
            (Medium::Shared(both), _) => vec![both],
            (Medium::Rules(_), _) => Vec::new(),
        }
    }

    /// Where its values do not go together: the way, the key that stands for it, and why.
    pub(crate) fn conflict(&self) -> Option<(Way, &'static str, Problem)> {
        let check = |way| self.direction(way)?.conflict().map(|(key, problem)| (way, key, problem));
        [Way::Up, Way::Down].into_iter().find_map(check)
    }

    /// What its values may refer to that come into force at this instant.
    pub(crate) fn surroundings<'a>(
        &self,
        hosts: &'a [String],
        files: &'a Files,
        at: Time,
    ) -> Surroundings<'a> {
        Surroundings { hosts, shared: !matches!(self.medium, Medium::Duplex { .. }), files, at }
    }
}

/// A link from a file, with the places that later errors point at.
pub(crate) struct Placed {
    pub(crate) link: Link,
    pub(crate) key: Range<usize>,
    pub(crate) ends: [Range<usize>; 2],
}

/// Reads `[links.NAME]`. `hosts` are all hosts.
pub(crate) fn read(key: &Key, node: &Node, hosts: &[Host], files: &Files) -> Result<Placed, Vec<Problem>> {
    let one = |problem: Problem| vec![problem];
    let table = node.table("a table of what the link does").map_err(one)?;
    let with_rules = rules_link::KEYS.iter().find_map(|key| table.key(key));
    let mut known = vec!["between"];
    match with_rules {
        Some(_) => known.extend(["cost"].iter().chain(rules_link::KEYS)),
        None => {
            known.extend(["shared", "cost", "up", "down"].iter().chain(KEYS.iter()).chain(rules_link::KEYS))
        }
    }
    let mut problems = match with_rules {
        Some(with) => rules_link::unknown_keys(table, &known, with),
        None => table.unknown_keys(&known),
    };
    let mut keep = |result: Result<(), Problem>| problems.extend(result.err());

    let mut link = Link {
        name: key.name.clone(),
        between: Default::default(),
        cost: 1,
        medium: Medium::Shared(Box::default()),
    };
    keep(table.optional("cost", |node| node.integer("a cost", 1..65_536)).map(|cost| {
        link.cost = cost.map_or(1, |cost| cost as u32);
    }));
    let missing = || {
        Problem::new("`between` is missing")
            .at(&key.span)
            .help("say which two hosts it joins: between = [\"client\", \"server\"]")
    };
    let mut ends = [key.span.clone(), key.span.clone()];
    match table.optional("between", between).and_then(|ends| ends.ok_or_else(missing)) {
        Ok(found) => {
            let [(first, first_span), (second, second_span)] = found;
            link.between = [first, second];
            ends = [first_span, second_span];
        }
        Err(problem) => keep(Err(problem)),
    }
    if with_rules.is_some() {
        match rules_link::read(table, key, hosts, files) {
            Ok(rules) => link.medium = Medium::Rules(Box::new(rules)),
            Err(all) => all.into_iter().for_each(|problem| keep(Err(problem))),
        }
    } else {
        read_wire(&mut link, key, table, hosts, files, &mut keep);
    }
    if problems.is_empty() { Ok(Placed { link, key: key.span.clone(), ends }) } else { Err(problems) }
}

/// Reads what the keys say of a wire or a shared medium.
fn read_wire(
    link: &mut Link,
    key: &Key,
    table: &Table,
    hosts: &[Host],
    files: &Files,
    keep: &mut dyn FnMut(Result<(), Problem>),
) {
    let shared = table.optional("shared", Node::boolean);
    if !matches!(shared, Ok(Some(true))) {
        link.medium = Medium::Duplex { up: Box::default(), down: Box::default() };
    }
    let is_shared = matches!(link.medium, Medium::Shared(_));
    keep(shared.map(|_| ()));
    let hosts: Vec<String> = hosts.iter().map(|host| host.name.clone()).collect();
    let around = link.surroundings(&hosts, files, Time::ZERO);
    set_all(link, None, table, around, keep);
    for way in [Way::Up, Way::Down] {
        let (Some(inner), Some(inner_key)) = (table.get(way.name()), table.key(way.name())) else { continue };
        if is_shared {
            keep(Err(Problem::new(format!("a shared medium has no `{}` of its own", way.name()))
                .at(&inner_key.span)
                .help("both directions contend for one wire: its values stand in the link's own table")));
            continue;
        }
        match inner.table("a table of what this direction does") {
            Ok(inner) => {
                let inside = |problem: Problem| problem.inside(way.name());
                inner.unknown_keys(&KEYS).into_iter().for_each(|p| keep(Err(inside(p))));
                set_all(link, Some(way), inner, around, &mut |result| keep(result.map_err(inside)));
            }
            Err(problem) => keep(Err(problem.inside(way.name()))),
        }
    }
    if let Some((way, place, problem)) = link.conflict() {
        keep(Err(place_conflict(table, way, place, problem).at(&key.span)));
    }
}

/// Sets what the keys of a table say for one way, or for both. One problem is enough for a key that stands for both.
fn set_all(
    link: &mut Link,
    way: Option<Way>,
    table: &Table,
    around: Surroundings<'_>,
    keep: &mut dyn FnMut(Result<(), Problem>),
) {
    for (key, node) in table.iter().filter(|(key, _)| KEYS.contains(&key.name.as_str())) {
        let set = |direction: &mut Direction| direction.set(&key.name, node, around);
        keep(link.directions_mut(way).into_iter().try_for_each(set));
    }
    check_table(table, keep);
}

/// Keys of a direction's table that mean the same thing twice.
pub(crate) fn check_table(table: &Table, keep: &mut dyn FnMut(Result<(), Problem>)) {
    beside_netem(table, keep);
    let beside = table.key("order");
    let within =
        table.get("delay").and_then(|delay| delay.table("").ok()).and_then(|delay| delay.key("order"));
    if let (Some(beside), Some(within)) = (beside, within) {
        keep(Err(Problem::new("the order of packets is said twice")
            .at(&beside.span)
            .also(&within.span, "here too")
            .help("keep one of the two")));
    }
}

/// Refuses keys beside `netem` that its words mean: which of the two counts would be up to the order of the file.
fn beside_netem(table: &Table, keep: &mut dyn FnMut(Result<(), Problem>)) {
    let Some((words, node)) = table.key("netem").zip(table.get("netem")) else { return };
    let Ok(qdisc) = netem::read(node) else { return };
    if qdisc.seed().is_some() {
        keep(Err(Problem::new("`seed` in the words of one link")
            .at(&node.span)
            .inside("netem")
            .help("there is one seed for all draws of a scenario, which stands at its top: seed = 7")));
    }
    let Ok(assignments) = qdisc.assignments() else { return };
    let both = assignments.iter().find_map(|(key, text)| Some((table.key(key)?, text)));
    if let Some((key, text)) = both {
        keep(Err(Problem::new(format!("`{}` beside `netem`, which means {} = {text}", key.name, key.name))
            .at(&key.span)
            .also(&words.span, "here")
            .inside(&key.name)
            .help("leave one of the two out")));
    }
}

/// Points at the key that does not go with another: the direction's own, or else the one for both.
fn place_conflict(table: &Table, way: Way, name: &str, problem: Problem) -> Problem {
    let own = table.get(way.name()).and_then(|node| node.table("").ok()).and_then(|inner| inner.key(name));
    match (own, table.key(name)) {
        (Some(key), _) => problem.at(&key.span).inside(name).inside(way.name()),
        (None, Some(key)) => problem.at(&key.span).inside(name),
        (None, None) => problem,
    }
}

fn between(node: &Node) -> Result<[(String, Range<usize>); 2], Problem> {
    const ALLOWED: &str = "two names, such as [\"client\", \"server\"]";
    let [first, second] = node.list(ALLOWED)? else { return Err(node.expected(ALLOWED)) };
    let end = |node: &Node| {
        Ok((node.text("the name of a host, junction or router")?.to_string(), node.span.clone()))
    };
    let ends @ [a, b] = &[end(first)?, end(second)?];
    if a.0 == b.0 {
        return Err(Problem::new(format!("both ends of the link are `{}`", a.0))
            .at(&b.1)
            .help("a link joins two hosts, junctions or routers"));
    }
    Ok(ends.clone())
}
