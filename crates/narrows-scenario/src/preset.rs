//! Presets: links by name, each with the measurements that its values come from.
//!
//! A preset is data: `preset/NAME.toml` has the keys of both directions, what they come to, what of that is measured, the
//! sources, and what was not measured and how it was chosen. To add one, add that file and a line to [`ALL`]; traces that it names
//! stand in `embedded.rs`.
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

/// A link by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a few words.
    pub about: String,
    /// What of it is measured, in a few words.
    pub measured: String,
    /// What it comes to.
    pub figures: PresetFigures,
    /// Where its values come from.
    pub sources: Vec<PresetSource>,
    /// What was not measured, and how it was chosen.
    pub chosen: Vec<String>,
    up: Table,
    down: Table,
}

/// What a preset comes to; nothing where it sets none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PresetFigures {
    /// The rate from the server to the client; where it changes, its mean.
    pub down: Option<Rate>,
    /// The rate from the client to the server.
    pub up: Option<Rate>,
    /// The round trip of an idle link, typically.
    pub round_trip: Option<Duration>,
}

/// A publication.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PresetSource {
    /// Its title.
    pub title: String,
    /// Who wrote it.
    pub authors: String,
    /// When, where it has a date.
    pub year: Option<u16>,
    /// Where it is.
    pub link: String,
    /// What of it the preset uses.
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
    /// The names of all presets.
    pub fn names() -> Vec<&'static str> {
        ALL.iter().map(|(name, _)| *name).collect()
    }

    /// The preset of this name.
    ///
    /// # Errors
    /// When there is none: which there are.
    pub fn named(name: &str) -> Result<Self, ScenarioError> {
        let node = Node { span: 0..name.len(), value: Value::String(name.into()) };
        Self::read(&node).map_err(|problem| ScenarioError::new("preset", name, vec![problem]))
    }

    /// The preset that a value names.
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

    /// The keys that it sets for one way.
    pub(crate) fn table(&self, way: Way) -> &Table {
        match way {
            Way::Up => &self.up,
            Way::Down => &self.down,
        }
    }

    /// The keys that it sets for one way, each with its value as it stands in a file.
    pub fn keys(&self, way: Way) -> Vec<(String, String)> {
        self.table(way).iter().map(|(key, node)| (key.name.clone(), node.toml())).collect()
    }
}

const FIGURES: Group<PresetFigures> = Group::new("PresetFigures", "Its figures.", "");
const SOURCES: List<Group<PresetSource>> =
    List { what: "a list of sources", most: 20, one: Group::new("PresetSource", "A publication.", "") };
const CHOSEN: Items<Text> =
    Items { words: "list of sentences", expected: "a list of sentences", of: Text("a sentence") };
/// The keys of one way: what they are is checked where they are applied.
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
