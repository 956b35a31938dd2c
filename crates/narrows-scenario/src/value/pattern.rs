//! Predefined patterns: `{ pattern = { file = "x.pattern" } }`, or `{ pattern = "x.pattern" }`.

use std::sync::Arc;

use narrows_core::model::DelayModel;
use narrows_core::model::selector::Selector;
use narrows_core::{Corruption, Duration};

use crate::files::NamedFile;
use serde_json::Value as Json;

use crate::keys::compound::{Group, Short};
use crate::keys::kind::Compound;
use crate::keys::schema::Definitions;
use crate::keys::{Form, Keyed, Kind, Row, row};
use crate::node::{Node, Value};
use crate::pattern::{About, Pattern};
use crate::problem::{Found, Problem};
use crate::value::condition::Surroundings;
use crate::value::file::{self, FILE};

/// A link's use of a pattern file.
#[derive(Clone, Debug)]
pub struct PatternUse {
    /// The file.
    pub file: NamedFile,
    /// The parsed pattern.
    pub pattern: Arc<Pattern>,
}

/// Uses are equal if their files are.
impl PartialEq for PatternUse {
    fn eq(&self, other: &Self) -> bool {
        self.file == other.file
    }
}

/// The keys of its table.
#[derive(Default)]
struct Parts {
    file: Option<NamedFile>,
}

impl Keyed for Parts {
    const ROWS: &'static [Row<Self>] = &[row!("file", file, FILE, "File name.").required()];
}

const PARTS: Short<Parts> = Short {
    key: "file",
    words: "name of a file",
    table: Group::new("PatternParts", "A pattern file.", "{ file = \"x.pattern\" }"),
};

/// A pattern of this kind of values.
pub(crate) struct PatternOf(pub(crate) About);

impl Kind for PatternOf {
    fn schema(&self, definitions: &mut Definitions) -> Json {
        PARTS.schema(definitions)
    }

    fn words(&self) -> String {
        PARTS.words()
    }

    fn compound(&self) -> Option<&dyn Compound> {
        Some(&PARTS)
    }
}

impl Form<PatternUse> for PatternOf {
    fn read(&self, node: &Node, around: Surroundings<'_>) -> Result<PatternUse, Problem> {
        PARTS.read(node, around)?;
        let (file, about) = (file::place(node), self.0);
        let read = |file: &NamedFile| Pattern::read_any(&file.name, &file.contents);
        let (found, pattern) = around.files.parse(file, read)?;
        if pattern.about() != about {
            let title = format!("{} is a pattern of {}", Found(&found.name), pattern.about());
            let problem = Problem::new(title).at(&file.span).help(format!("expected a pattern of {about}"));
            return Err(match pattern.about() {
                About::Rate => problem.help("rates by pattern are a trace: trace = \"FILE\""),
                _ => problem,
            });
        }
        Ok(PatternUse { file: found, pattern: Arc::new(pattern) })
    }

    /// Always writes a table.
    fn write(&self, pattern: &PatternUse) -> Option<Value> {
        PARTS.table.write(&Parts { file: Some(pattern.file.clone()) })
    }
}

impl PatternUse {
    /// The engine's packet selector, for a pattern of losses.
    pub(crate) fn selector(&self) -> Box<dyn Selector> {
        Box::new(self.pattern.selector().expect("a pattern of losses selects packets"))
    }

    /// The engine's bit errors, for a pattern of bit errors.
    pub(crate) fn corruption(&self) -> Corruption {
        match self.pattern.bits() {
            Some(bits) => Corruption::Pattern(bits),
            None => Corruption::Packets(self.selector()),
        }
    }

    /// The engine's delay model, for a pattern of delays.
    pub(crate) fn delays(&self) -> Box<dyn DelayModel> {
        Box::new(self.pattern.delays().expect("it concerns delays"))
    }

    /// The largest delay.
    pub(crate) fn longest_delay(&self) -> Option<Duration> {
        self.pattern.delay_changes()?.iter().map(|(_, delay)| *delay).max()
    }
}

/// For display.
impl std::fmt::Display for PatternUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let plural = if self.pattern.length() == 1 { "" } else { "s" };
        write!(f, "the pattern {}, {} {}{plural}", self.file.name, self.pattern.length(), self.pattern.per())
    }
}
