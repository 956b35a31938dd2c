//! Commands as text, for a link with rules: in a timeline and in an input log.

use std::fmt;
use std::ops::Range;

use crate::node::Node;
use crate::problem::Problem;

/// A command and its link. Equality ignores the place.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub(crate) link: String,
    pub(crate) text: String,
    /// The place in the file.
    pub(crate) place: Range<usize>,
}

impl PartialEq for Written {
    fn eq(&self, other: &Self) -> bool {
        (&self.link, &self.text) == (&other.link, &other.text)
    }
}

/// As in an input log: `ipfw net delete 100`.
impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{} {}", self.link, self.text)
    }
}

/// What such a text starts with. No assignment does: a link's name has no space.
const PREFIX: &str = "ipfw ";

/// The link and the command of a text; `None` if it is something else.
pub(crate) fn split(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix(PREFIX)?.split_once(' ')
}

impl Written {
    /// A command of a scenario.
    pub(crate) fn read(link: &str, node: &Node) -> Result<Self, Problem> {
        // Several are read as the lines of a file, where leading white space and a last backslash join lines.
        let text = node.text("a command of ipfw")?.trim();
        if text.is_empty() || text.contains(['\n', '\r']) || text.ends_with('\\') {
            return Err(Problem::new("a command is one line of text").at(&node.span));
        }
        Ok(Self { link: link.into(), text: text.into(), place: node.span.clone() })
    }
}
