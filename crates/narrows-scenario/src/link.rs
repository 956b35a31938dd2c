//! Links between hosts, routers and junctions, and reading them from a file.

mod preset;

use std::ops::Range;

use narrows_core::Time;
use serde_json::{Value as Json, json};

use crate::direction::{Direction, KEYS};
use crate::files::Files;
use crate::host::Host;
use crate::keys::kind::{Boolean, ByHand, Described, Form, Integer, Text, text};
use crate::keys::schema::{self, Definitions};
use crate::keys::{self, Key, Keyed, Row, row};
use crate::node::{self, Node, Table, Value};
use crate::problem::Problem;
use crate::rules_link::{self, RulesLink};
use crate::said_twice::said_twice;
use crate::surroundings::Surroundings;
pub use crate::way::Way;
pub(crate) use preset::{Beside, apply, settle};

/// A wire between two hosts or junctions.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Unique among the links.
    pub name: String,
    /// The hosts or junctions that it joins: "up" is from the first to the second.
    pub between: [String; 2],
    /// Routing cost, used by routers. Default: 1.
    pub cost: u32,
    /// What the link is made of.
    pub medium: Medium,
    /// If other links share its medium: the names of all stations there, those at the first ends of the links,
    /// in order; its own comes first.
    pub stations: Vec<String>,
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
    /// One half-duplex medium that both directions contend for: the engine's link `NAME`, with lane 0 up
    /// and lane 1 down.
    Shared(Box<Direction>),
    /// The medium of another link, on which this one is a further station: two more lanes of that link.
    Joined(Box<Joined>),
    /// Rules that send packets to pipes: the engine's rules `NAME`, and a link `NAME.NUMBER` for each pipe.
    /// Up is ipfw's "out", and down is its "in".
    Rules(Box<RulesLink>),
}

/// A link on the medium of another.
#[derive(Clone, Debug, PartialEq)]
pub struct Joined {
    /// The other link.
    pub medium: String,
    /// The number of its station there, from 1.
    pub station: u8,
    /// A copy of the settings of the medium.
    pub(crate) direction: Direction,
}

/// The maximum number of links on one medium: each has two of the engine's 255 lanes.
pub(crate) const MOST_STATIONS: usize = 127;

/// One direction of one engine link.
#[derive(Clone, Debug)]
pub struct Lane<'a> {
    /// The engine's name for the link.
    pub link: String,
    /// Its lane.
    pub lane: u8,
    /// Its direction along the link of the scenario.
    pub way: Way,
    /// The settings that apply to its packets.
    pub direction: &'a Direction,
}

impl Link {
    /// How many elements of the engine a packet on it visits: with rules, the rules and a pipe, and where a pipe is not the
    /// last of them, the rules once more.
    pub(crate) fn most_visits(&self) -> usize {
        match &self.medium {
            Medium::Rules(rules) if rules.one_pass => 2,
            Medium::Rules(rules) => 2 + 2 * rules.pipes.len().min(usize::from(u8::MAX)),
            Medium::Duplex { .. } | Medium::Shared(_) | Medium::Joined(_) => 1,
        }
    }

    /// The settings for this direction; `None` for a link with rules, where the rules decide.
    pub fn direction(&self, way: Way) -> Option<&Direction> {
        match (&self.medium, way) {
            (Medium::Duplex { up, .. }, Way::Up) => Some(up),
            (Medium::Duplex { down, .. }, Way::Down) => Some(down),
            (Medium::Shared(both), _) => Some(both),
            (Medium::Joined(joined), _) => Some(&joined.direction),
            (Medium::Rules(_), _) => None,
        }
    }

    /// The rules, if the link has any.
    pub fn rules(&self) -> Option<&RulesLink> {
        match &self.medium {
            Medium::Rules(rules) => Some(rules),
            _ => None,
        }
    }

    /// The engine's name for the link, or for the rules, in this direction.
    pub fn core_name(&self, way: Way) -> String {
        match &self.medium {
            Medium::Duplex { .. } => format!("{}.{}", self.name, way.name()),
            Medium::Shared(_) | Medium::Rules(_) => self.name.clone(),
            Medium::Joined(joined) => joined.medium.clone(),
        }
    }

    /// The engine links that this link becomes, each with its name and settings. For a link with rules, its
    /// pipes in the order of their numbers.
    pub fn directions(&self) -> Vec<(String, &Direction)> {
        match &self.medium {
            Medium::Duplex { up, down } => {
                vec![(self.core_name(Way::Up), up), (self.core_name(Way::Down), down)]
            }
            Medium::Shared(both) => vec![(self.name.clone(), both)],
            Medium::Joined(_) => Vec::new(),
            Medium::Rules(rules) => rules.directions(&self.name),
        }
    }

    /// The lanes of these engine links; within each link, up before down.
    pub fn lanes(&self) -> Vec<Lane<'_>> {
        let lane = |link: &str, lane, way, direction| Lane { link: link.into(), lane, way, direction };
        match &self.medium {
            Medium::Duplex { up, down } => vec![
                lane(&self.core_name(Way::Up), 0, Way::Up, up),
                lane(&self.core_name(Way::Down), 0, Way::Down, down),
            ],
            Medium::Joined(joined) => {
                let Joined { medium, station, direction } = &**joined;
                [Way::Up, Way::Down].map(|way| lane(medium, lane_of(*station, way), way, direction)).into()
            }
            Medium::Shared(_) | Medium::Rules(_) => {
                let both = |(name, direction): (String, _)| {
                    [lane(&name, 0, Way::Up, direction), lane(&name, 1, Way::Down, direction)]
                };
                self.directions().into_iter().flat_map(both).collect()
            }
        }
    }

    /// For each pipe that commands have deleted or rebuilt during the run, this link with that pipe alone.
    pub fn former_pipes(&self) -> impl Iterator<Item = Self> {
        let alone = |rules| Self {
            name: self.name.clone(),
            between: self.between.clone(),
            cost: self.cost,
            medium: Medium::Rules(Box::new(rules)),
            stations: Vec::new(),
        };
        self.rules().into_iter().flat_map(RulesLink::former).map(alone)
    }

    /// The source end and the destination end in this direction.
    pub fn ends(&self, way: Way) -> [&str; 2] {
        let [first, second] = [self.between[0].as_str(), self.between[1].as_str()];
        match way {
            Way::Up => [first, second],
            Way::Down => [second, first],
        }
    }

    /// The largest MTU of its directions, or that of the given one.
    pub(crate) fn mtu(&self, way: Option<Way>) -> Option<u32> {
        let ways = [Way::Up, Way::Down].into_iter().filter(|of| way.is_none_or(|way| way == *of));
        ways.filter_map(|way| Some(self.direction(way)?.settings.mtu?.bytes)).max()
    }

    /// The directions that `way` selects, `None` for both; empty for a link with rules.
    pub(crate) fn directions_mut(&mut self, way: Option<Way>) -> Vec<&mut Direction> {
        match (&mut self.medium, way) {
            (Medium::Duplex { up, .. }, Some(Way::Up)) => vec![up],
            (Medium::Duplex { down, .. }, Some(Way::Down)) => vec![down],
            (Medium::Duplex { up, down }, None) => vec![up, down],
            (Medium::Shared(both), _) => vec![both],
            (Medium::Rules(_) | Medium::Joined(_), _) => Vec::new(),
        }
    }

    /// Returns the first conflict among its settings: the direction, the key to report, and the problem.
    pub(crate) fn conflict(&self) -> Option<(Way, &'static str, Problem)> {
        let check = |way| self.direction(way)?.conflict().map(|(key, problem)| (way, key, problem));
        [Way::Up, Way::Down].into_iter().find_map(check)
    }

    /// The context for reading values of this link that take effect at this instant.
    pub(crate) fn surroundings<'a>(
        &self,
        hosts: &'a [String],
        stations: &'a [String],
        files: &'a Files,
        at: Time,
    ) -> Surroundings<'a> {
        let shared = !matches!(self.medium, Medium::Duplex { .. });
        Surroundings { hosts, shared, stations, files, at }
    }
}

/// The lane of a station on a medium.
pub(crate) fn lane_of(station: u8, way: Way) -> u8 {
    2 * station + u8::from(way == Way::Down)
}

const BETWEEN: ByHand<[String; 2]> = ByHand {
    words: || "list of two names".into(),
    schema: |_| json!({ "type": "array", "items": { "type": "string" }, "minItems": 2, "maxItems": 2 }),
    read: |node, _| between(node),
    write: |ends| Some(Value::Array(ends.iter().map(|end| Node::new(text(end))).collect())),
};
const NAME: Text = Text("the name of a link");
const COST: Integer = Integer { what: "a cost", low: 1, high: 65_535 };
const DIRECTION: Described = Described {
    words: || "table".into(),
    schema: |definitions| {
        schema::define(definitions, "Direction", |definitions| {
            schema::object("What one direction of a link does.", &keys::keys::<Direction>(), definitions)
        })
    },
};

impl Default for Link {
    /// A wire without ends that does nothing.
    fn default() -> Self {
        let medium = Medium::Duplex { up: Box::default(), down: Box::default() };
        Self { name: String::new(), between: Default::default(), cost: 1, medium, stations: Vec::new() }
    }
}

impl Keyed for Link {
    /// The keys that belong neither to a direction nor to a link with rules.
    const ROWS: &'static [Row<Self>] = &[
        row!(
            "between",
            between,
            BETWEEN,
            "The two hosts, junctions, routers or switches it connects. **Up** is from the first to the second, **down** from the second to the first."
        )
        .required_with("name the two hosts it joins: between = [\"client\", \"server\"]"),
        Row::apart("preset", &crate::preset::Name, "[Preset](presets.md) from published measurements. Other keys of the link override it, in any order.", |_: &Self| None)
            .default("none"),
        Row::new(
            "shared",
            &Boolean,
            "Whether both directions share one medium (half duplex).",
            |link: &Self| Boolean.write(&matches!(link.medium, Medium::Shared(_))),
            |link: &mut Self, node, _| {
                if node.boolean()? {
                    link.medium = Medium::Shared(Box::default());
                }
                Ok(())
            },
        ),
        Row::new(
            "medium",
            &NAME,
            "Join the [medium](#stations-on-one-medium) of this `shared` link as a further station; the link then has no other keys but `between` and `cost`.",
            |link: &Self| match &link.medium {
                Medium::Joined(joined) => NAME.write(&joined.medium),
                _ => None,
            },
            |link: &mut Self, node, around| {
                let medium = NAME.read(node, around)?;
                link.medium =
                    Medium::Joined(Box::new(Joined { medium, station: 0, direction: Direction::default() }));
                Ok(())
            },
        )
        .default("its own"),
        row!("cost", cost, COST, "Cost of the link in shortest-path routing, for [routers](#routers)."),
        Row::apart("up", &DIRECTION, "Keys for the direction from the first to the second.", |link: &Self| link.own(Way::Up)),
        Row::apart("down", &DIRECTION, "Keys for the direction from the second to the first.", |link: &Self| link.own(Way::Down)),
    ];
}

impl Link {
    /// The settings that both directions share.
    fn both(&self) -> Table {
        match &self.medium {
            Medium::Duplex { up, down } => {
                let (mut up, down) = (keys::written(&**up), keys::written(&**down));
                up.retain(|key, node| down.get(key) == Some(node));
                up
            }
            Medium::Shared(both) => keys::written(&**both),
            Medium::Rules(_) | Medium::Joined(_) => Table::default(),
        }
    }

    /// The settings of this direction only.
    fn own(&self, way: Way) -> Option<Value> {
        let Medium::Duplex { .. } = self.medium else { return None };
        let both = self.both();
        let mut own = keys::written(self.direction(way)?);
        own.retain(|key, node| both.get(key) != Some(node));
        (!own.is_empty()).then_some(Value::Table(own))
    }

    /// The table as written in a file.
    pub(crate) fn table(&self) -> Table {
        let mut table = keys::written(self);
        table.extend(self.both());
        table.extend(self.rules().map(keys::written).unwrap_or_default());
        table
    }

    /// The schema of what a link does: all keys but its ends.
    pub(crate) fn schema_without_ends(definitions: &mut Definitions) -> Json {
        schema::define(definitions, "LinkKeys", |definitions| {
            let mut keys = all_keys();
            keys.retain(|key| !["between", "rules"].contains(&key.name()));
            let mut link = schema::object("What each of several links does.", &keys, definitions);
            link["required"] = json!([]);
            link
        })
    }

    /// The schema of a link.
    pub(crate) fn schema(definitions: &mut Definitions) -> Json {
        schema::define(definitions, "Link", |definitions| {
            let doc = "A wire with a queue for each direction, or one medium that both share. Values here count for both directions.";
            let mut link = schema::object(doc, &all_keys(), definitions);
            // `rules` is required only in a link with rules.
            link["required"] = json!(["between"]);
            link
        })
    }
}

/// All keys that any kind of link has.
fn all_keys() -> Vec<&'static dyn Key> {
    [keys::keys::<Link>(), keys::keys::<Direction>(), keys::keys::<RulesLink>()].concat()
}

/// Reads `[links.NAME]`. `hosts` are all hosts, and `names` their names.
pub(crate) fn read(
    key: &node::Key,
    node: &Node,
    hosts: &[Host],
    names: &[String],
    stations: &[String],
    files: &Files,
) -> Result<Link, Vec<Problem>> {
    let table = node.table("a table of what the link does").map_err(|problem| vec![problem])?;
    let of_rules = keys::names::<RulesLink>();
    let with_rules = of_rules.iter().find_map(|key| table.key(key));
    let joins = table.key("medium");
    let known: Vec<&str> = match (with_rules, joins) {
        (Some(_), _) => ["between", "cost"].into_iter().chain(of_rules).collect(),
        (None, Some(_)) => vec!["between", "cost", "medium"],
        (None, None) => all_keys().into_iter().map(Key::name).collect(),
    };
    let mut problems = match (with_rules, joins) {
        (Some(with), _) => rules_link::unknown_keys(table, &known, with),
        (None, Some(_)) => keys_of_medium(table, &known),
        (None, None) => table.unknown_keys(&known),
    };
    let mut own = table.clone();
    own.keep(&known);
    let mut link = Link { name: key.name.clone(), stations: stations.to_vec(), ..Link::default() };
    problems.extend(keys::read_all(&mut link, &own, &key.span, Surroundings::of_files(files)));
    if with_rules.is_some() {
        match rules_link::read(table, key, hosts, files) {
            Ok(rules) => link.medium = Medium::Rules(Box::new(rules)),
            Err(all) => problems.extend(all),
        }
    } else if joins.is_none() {
        read_wire(&mut link, key, table, (names, stations), files, &mut problems);
    }
    if problems.is_empty() { Ok(link) } else { Err(problems) }
}

/// The keys that a link on the medium of another must not have.
fn keys_of_medium(table: &Table, known: &[&str]) -> Vec<Problem> {
    let everywhere: Vec<&str> = all_keys().into_iter().map(Key::name).collect();
    let of_medium = |(key, _): (&node::Key, &Node)| {
        let name = key.name.as_str();
        (everywhere.contains(&name) && !known.contains(&name)).then(|| {
            Problem::new(format!("a link on the medium of another has no `{name}` of its own"))
                .at(&key.span)
                .help("all on one medium share its settings: set it at the link that `medium` names")
        })
    };
    let mut others = table.clone();
    others.keep(&everywhere);
    let mut unknown = table.clone();
    unknown.retain(|key, _| others.get(key).is_none());
    let mut problems = unknown.unknown_keys(known);
    problems.extend(table.iter().filter_map(of_medium));
    problems
}

/// Where the ends of a link that was read from this node are in the text.
pub(crate) fn places_of_ends(node: &Node) -> Vec<Range<usize>> {
    let ends = node.table("").ok().and_then(|table| table.get("between")).map(|node| node.list(""));
    ends.into_iter().flatten().flatten().map(|end| end.span.clone()).collect()
}

/// Reads the keys of a wire or a shared medium.
fn read_wire(
    link: &mut Link,
    key: &node::Key,
    table: &Table,
    (hosts, stations): (&[String], &[String]),
    files: &Files,
    problems: &mut Vec<Problem>,
) {
    let is_shared = matches!(link.medium, Medium::Shared(_));
    let around = link.surroundings(hosts, stations, files, Time::ZERO);
    let preset = table.get("preset");
    if let Some(node) = preset {
        let applied = apply(link, node, |way| beside(table, way), around);
        problems.extend(applied.err().map(|problem| problem.inside("preset")));
    }
    problems.extend(set_all(link, None, table, around));
    for way in [Way::Up, Way::Down] {
        let (Some(inner), Some(inner_key)) = (table.get(way.name()), table.key(way.name())) else { continue };
        if is_shared {
            problems.push(
                Problem::new(format!("a shared medium has no `{}` of its own", way.name()))
                    .at(&inner_key.span)
                    .help("both directions share one wire: set its values in the link's own table"),
            );
            continue;
        }
        let wrong = match inner.table("a table of what this direction does") {
            Ok(inner) => {
                let unknown = inner.unknown_keys(&KEYS);
                [unknown, set_all(link, Some(way), inner, around)].concat()
            }
            Err(problem) => vec![problem],
        };
        problems.extend(wrong.into_iter().map(|problem| problem.inside(way.name())));
    }
    for way in [Way::Up, Way::Down].into_iter().filter(|_| preset.is_some()) {
        let beside = beside(table, way);
        link.directions_mut(Some(way)).into_iter().for_each(|direction| settle(direction, &beside));
    }
    if let Some((way, place, problem)) = link.conflict() {
        problems.push(place_conflict(table, way, place, problem).at(&key.span));
    }
}

/// The keys that a link's table sets for one direction, alone or together with the other.
fn beside(table: &Table, way: Way) -> Beside {
    let own = table.get(way.name()).and_then(|node| node.table("").ok());
    let all = table.iter().chain(own.into_iter().flat_map(Table::iter));
    let mut beside = Beside::default();
    all.filter(|(key, _)| KEYS.contains(&key.name.as_str()))
        .for_each(|(key, node)| beside.add(&key.name, node));
    beside
}

/// Sets the keys of a table for one direction or for both; returns the problems. A key for both directions
/// reports one problem only.
fn set_all(link: &mut Link, way: Option<Way>, table: &Table, around: Surroundings<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (key, node) in table.iter().filter(|(key, _)| KEYS.contains(&key.name.as_str())) {
        let set = |direction: &mut Direction| direction.set(&key.name, node, around);
        problems.extend(link.directions_mut(way).into_iter().try_for_each(set).err());
    }
    problems.extend(said_twice(table));
    problems
}

/// Points the problem at the conflicting key: the direction's own, or else the one for both.
fn place_conflict(table: &Table, way: Way, name: &str, problem: Problem) -> Problem {
    let own = table.get(way.name()).and_then(|node| node.table("").ok()).and_then(|inner| inner.key(name));
    match (own, table.key(name)) {
        (Some(key), _) => problem.at(&key.span).inside(name).inside(way.name()),
        (None, Some(key)) => problem.at(&key.span).inside(name),
        (None, None) => problem,
    }
}

fn between(node: &Node) -> Result<[String; 2], Problem> {
    const ALLOWED: &str = "two names, such as [\"client\", \"server\"]";
    let [first, second] = node.list(ALLOWED)? else { return Err(node.expected(ALLOWED)) };
    let end = |node: &Node| Ok(node.text("the name of a host, junction, router or switch")?.to_string());
    let ends = [end(first)?, end(second)?];
    if ends[0] == ends[1] {
        return Err(Problem::new(format!("both ends of the link are `{}`", ends[0]))
            .at(&second.span)
            .help("a link joins two hosts, junctions or routers"));
    }
    Ok(ends)
}
