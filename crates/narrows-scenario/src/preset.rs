//! Presets: named link settings, each with the measurements that its values come from.
//!
//! A preset is data: `preset/NAME.toml` has the keys of both directions, their summary figures, which of
//! them were measured, the sources, and for values that were not measured, how they were chosen. To add a
//! preset, add that file and a line to [`ALL`]; traces that it names go into `embedded.rs`.
//!
//! ```
//! use narrows_scenario::Preset;
//!
//! let preset = Preset::named("4g")?;
//! assert!(preset.sources.iter().any(|source| source.link.starts_with("https://")));
//! assert!(Preset::named("4gg").is_err());
//! # Ok::<(), narrows_scenario::ScenarioError>(())
//! ```

mod show;

pub use show::presets_page;

use narrows_core::{Duration, Rate};
use serde_json::json;

use crate::files::Files;
use crate::keys::compound::{Group, Items, List};
use crate::keys::kind::{ByHand, Given, Integer, Kind, Text};
use crate::keys::quantity::{ANY_RATE, Time};
use crate::keys::{self, Keyed, Row, row};
use crate::node::{Node, Table, Value, suggest};
use crate::problem::{Problem, ScenarioError};
use crate::surroundings::Surroundings;
use crate::way::Way;

/// Named link settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Preset {
    /// Name.
    pub name: &'static str,
    /// Short description of the link.
    pub about: String,
    /// Short statement of what was measured.
    pub measured: String,
    /// Summary figures.
    pub figures: PresetFigures,
    /// Sources of its values.
    pub sources: Vec<PresetSource>,
    /// Values that were not measured, and how they were chosen.
    pub chosen: Vec<String>,
    up: Table,
    down: Table,
}

/// Summary figures of a preset; `None` for those it does not set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PresetFigures {
    /// Rate from the server to the client; the mean if it varies.
    pub down: Option<Rate>,
    /// Rate from the client to the server.
    pub up: Option<Rate>,
    /// Typical round-trip time of the idle link.
    pub round_trip: Option<Duration>,
}

/// A publication.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PresetSource {
    /// Title.
    pub title: String,
    /// Authors.
    pub authors: String,
    /// Year of publication, if known.
    pub year: Option<u16>,
    /// Link to it.
    pub link: String,
    /// What the preset uses from it.
    pub gives: String,
}

/// A preset's name and the text of its file.
macro_rules! files {
    ($($name:literal),+ $(,)?) => { &[$(($name, include_str!(concat!("preset/", $name, ".toml")))),+] };
}

/// All presets, in the order in which they are listed.
const ALL: &[(&str, &str)] = files![
    "3g",
    "4g",
    "5g",
    "dsl",
    "cable",
    "fibre",
    "wifi",
    "wifi-crowded",
    "geo-satellite",
    "leo-satellite",
    "train",
    "transatlantic",
    "data-centre",
    "vpn",
    "lighthouse-slow-4g",
    "webpagetest-3g",
    "webpagetest-cable",
];

impl Preset {
    /// Names of all presets.
    pub fn names() -> Vec<&'static str> {
        ALL.iter().map(|(name, _)| *name).collect()
    }

    /// Returns the preset with this name.
    ///
    /// # Errors
    /// If there is none. The error lists the presets.
    pub fn named(name: &str) -> Result<Self, ScenarioError> {
        let node = Node { span: 0..name.len(), value: Value::String(name.into()) };
        Self::read(&node).map_err(|problem| ScenarioError::new("preset", name, vec![problem]))
    }

    /// Reads the preset that a value names.
    pub(crate) fn read(node: &Node) -> Result<Self, Problem> {
        let names = Self::names();
        let name = node.text("the name of a preset")?.trim();
        let Some((name, text)) = ALL.iter().find(|(known, _)| *known == name) else {
            let problem = Problem::new(format!("{} is not a preset", node.found())).at(&node.span);
            let problem = suggest(problem, name, &names);
            return Err(problem.help("`narrows preset list` describes each"));
        };
        let files = Files::default();
        let table = Node::document(text)?;
        keys::only(&table, &keys::keys::<Self>())?;
        let preset: Self =
            keys::read(&Node::new(Value::Table(table.clone())), &table, Surroundings::of_files(&files))?;
        Ok(Self { name, ..preset })
    }

    /// The keys that it sets for one direction.
    pub(crate) fn table(&self, way: Way) -> &Table {
        match way {
            Way::Up => &self.up,
            Way::Down => &self.down,
        }
    }

    /// The keys that it sets for one direction, each with its value as written in a file.
    pub fn keys(&self, way: Way) -> Vec<(String, String)> {
        self.table(way).iter().map(|(key, node)| (key.name.clone(), node.toml())).collect()
    }
}

const FIGURES: Group<PresetFigures> = Group::new("PresetFigures", "Its figures.", "");
const SOURCES: List<Group<PresetSource>> =
    List { what: "a list of sources", most: 20, one: Group::new("PresetSource", "A publication.", "") };
const CHOSEN: Items<Text> =
    Items { words: "list of sentences", expected: "a list of sentences", of: Text("a sentence") };
/// The keys of one direction. They are checked where they are applied.
const DIRECTION: ByHand<Table> = ByHand {
    words: || "table".into(),
    schema: |_| json!({ "type": "object" }),
    read: |node, _| node.table("a table of what this direction does").cloned(),
    write: |table| Some(Value::Table(table.clone())),
};

impl Keyed for Preset {
    const ROWS: &'static [Row<Self>] = &[
        row!("about", about, Text("what it is"), "What it is.").required(),
        row!("measured", measured, Text("what of it is measured"), "What was measured.").required(),
        row!("figures", figures, FIGURES, "Its figures.").required(),
        row!("chosen", chosen, CHOSEN, "What was not measured.").required(),
        row!("up", up, DIRECTION, "From the client.").required(),
        row!("down", down, DIRECTION, "From the server.").required(),
        row!("sources", sources, SOURCES, "Where the values come from.").required(),
    ];
}

impl Keyed for PresetFigures {
    const ROWS: &'static [Row<Self>] = &[
        row!("down", down, Given(ANY_RATE), "The rate down."),
        row!("up", up, Given(ANY_RATE), "The rate up."),
        row!("round-trip", round_trip, Given(Time::POSITIVE), "The round trip."),
    ];
}

const YEAR: Given<Integer> = Given(Integer { what: "a year", low: 1900, high: 2200 });

impl Keyed for PresetSource {
    const ROWS: &'static [Row<Self>] = &[
        row!("title", title, Text("a title"), "Its title.").required(),
        row!("authors", authors, Text("names"), "Who wrote it.").required(),
        row!("year", year, YEAR, "When."),
        row!("link", link, Text("a link"), "Where it is.").required(),
        row!("gives", gives, Text("a sentence"), "What of it is used.").required(),
    ];
}

/// The name of a preset, as the value of a key.
pub(crate) struct Name;

impl Kind for Name {
    fn schema(&self, _: &mut keys::schema::Definitions) -> serde_json::Value {
        json!({ "type": "string", "enum": Preset::names() })
    }

    fn words(&self) -> String {
        "[name](presets.md)".into()
    }
}

#[cfg(test)]
mod tests;
