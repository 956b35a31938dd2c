//! What was laid down beforehand: `{ pattern = { file = "x.pattern" } }`, or `{ pattern = "x.pattern" }`.

use std::sync::Arc;

use narrows_core::model::DelayModel;
use narrows_core::model::selector::Selector;
use narrows_core::{Corruption, Duration};

use crate::files::NamedFile;
use crate::node::{Node, Value, toml_string};
use crate::pattern::{About, Pattern};
use crate::problem::{Found, Problem};
use crate::value::condition::Surroundings;

/// A pattern file, as a link uses it.
#[derive(Clone, Debug)]
pub struct PatternUse {
    /// The file.
    pub file: NamedFile,
    /// What is in it.
    pub pattern: Arc<Pattern>,
}

/// Two uses are equal when their files are.
impl PartialEq for PatternUse {
    fn eq(&self, other: &Self) -> bool {
        self.file == other.file
    }
}

impl PatternUse {
    /// Reads a pattern that must be about `about`.
    pub(crate) fn read(node: &Node, about: About, around: Surroundings<'_>) -> Result<Self, Problem> {
        let file = match &node.value {
            Value::Table(table) => {
                table.only(&["file"])?;
                table.get("file").ok_or_else(|| Problem::new("`file` is missing").at(&node.span))?
            }
            _ => node,
        };
        let read = |file: &NamedFile| Pattern::read(&file.name, &file.contents);
        let (found, pattern) = around.files.parse(file, read)?;
        if pattern.about() != about {
            let title = format!("{} is a pattern of {}", Found(&found.name), pattern.about());
            let problem =
                Problem::new(title).at(&file.span).help(format!("a pattern of {about} is wanted here"));
            return Err(match pattern.about() {
                About::Rate => problem.help("rates by pattern are a trace: trace = \"FILE\""),
                _ => problem,
            });
        }
        Ok(Self { file: found, pattern: Arc::new(pattern) })
    }

    /// The engine's selector of packets: of a pattern of losses.
    pub(crate) fn selector(&self) -> Box<dyn Selector> {
        Box::new(self.pattern.selector().expect("a pattern of losses selects packets"))
    }

    /// What flips bits in the engine: of a pattern of bit errors.
    pub(crate) fn corruption(&self) -> Corruption {
        match self.pattern.bits() {
            Some(bits) => Corruption::Pattern(bits),
            None => Corruption::Packets(self.selector()),
        }
    }

    /// The engine's model: of a pattern of delays.
    pub(crate) fn delays(&self) -> Box<dyn DelayModel> {
        Box::new(self.pattern.delays().expect("it is about delays"))
    }

    /// The longest of its delays.
    pub(crate) fn longest_delay(&self) -> Option<Duration> {
        self.pattern.delay_changes()?.iter().map(|(_, delay)| *delay).max()
    }

    /// As it stands in a file.
    pub(crate) fn text(&self) -> String {
        format!("{{ file = {} }}", toml_string(&self.file.name))
    }
}

/// For people.
impl std::fmt::Display for PatternUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let plural = if self.pattern.length() == 1 { "" } else { "s" };
        write!(
            f,
            "the pattern {}, {} {}{plural} long",
            self.file.name,
            self.pattern.length(),
            self.pattern.per()
        )
    }
}
