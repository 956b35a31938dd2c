//! Live changes as text: `access.down.rate=2mbit`.
//!
//! ```text
//! LINK[.up|.down].KEY[.PART]=VALUE
//! LINK.NUMBER.KEY[.PART]=VALUE
//! LINK.queue-NUMBER.KEY[.PART]=VALUE
//! ```
//!
//! The second and third forms address pipes and queues of a link with rules. KEY is a key of the link's
//! table; without a direction it applies to both. PART is a key of the table that the value is or could be
//! (`delay.correlation`, `loss.wire`, `loss.gilbert-elliott.p`, `queue.bound`, `scheduler.quantum`), or a
//! class of a scheduler and its key (`scheduler.voip.weight`). Setting a PART leaves the other parts
//! unchanged; setting a whole table replaces the old value. VALUE is written as in a file, with or without
//! quotes. The input log stores assignments in this form: the same text at the same instant always makes
//! the same change to the same scenario and its files.

use std::ops::Range;

use crate::direction::{self, KEYS, PARTS};
use crate::keys;
use crate::node::{Node, Table, Value};
use crate::problem::{Found, Problem, one_of};
use crate::rules_link::{Pipe, PipeQueue};
use crate::way::Way;

/// One change of one key. Equality ignores the position in the text.
#[derive(Clone, Debug)]
pub(crate) struct Assignment {
    pub(crate) link: String,
    pub(crate) of: Of,
    pub(crate) key: String,
    /// Span of the path in the text.
    pub(crate) place: Range<usize>,
    pub(crate) node: Node,
}

/// The part of a link that changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// Both directions, or the shared medium.
    Whole,
    Way(Way),
    /// The pipe with this number.
    Pipe(u32),
    /// The queue with this number.
    Queue(u32),
}

impl Of {
    /// The part of a link that this path component names.
    fn read(part: &str) -> Option<Self> {
        match part {
            "up" => Some(Self::Way(Way::Up)),
            "down" => Some(Self::Way(Way::Down)),
            _ => match part.strip_prefix("queue-") {
                Some(number) => Pipe::number(number).map(Self::Queue),
                None => Pipe::number(part).map(Self::Pipe),
            },
        }
    }

    /// Its text form, including the leading dot.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Whole => String::new(),
            Self::Way(way) => format!(".{}", way.name()),
            Self::Pipe(number) => format!(".{number}"),
            Self::Queue(number) => format!(".queue-{number}"),
        }
    }

    /// Whether this part can have such a key, as far as can be told without the link.
    fn has(self, key: &str) -> bool {
        let of_direction = || KEYS.contains(&key) || PARTS.contains(&key) || direction::is_part(key);
        match self {
            Self::Whole | Self::Way(_) => of_direction(),
            Self::Pipe(_) => of_direction() || keys::named::<Pipe>(key).is_some(),
            Self::Queue(_) => {
                keys::named::<PipeQueue>(key).is_some()
                    || key.starts_with("queue.") && direction::is_part(key)
            }
        }
    }

    fn known(self, key: &str) -> Vec<String> {
        let of_direction = KEYS.iter().chain(PARTS).map(ToString::to_string);
        match self {
            Self::Queue(_) => keys::names::<PipeQueue>().into_iter().map(Into::into).collect(),
            _ => match (direction::allowed_parts(key), self) {
                (Some(parts), _) => parts,
                (None, Self::Pipe(_)) => {
                    of_direction.chain(keys::names::<Pipe>().into_iter().map(Into::into)).collect()
                }
                (None, _) => of_direction.collect(),
            },
        }
    }
}

impl PartialEq for Assignment {
    fn eq(&self, other: &Self) -> bool {
        (&self.link, self.of, &self.key, &self.node) == (&other.link, other.of, &other.key, &other.node)
    }
}

impl Assignment {
    /// Parses the text form, which starts at offset `start` in a larger text.
    pub(crate) fn parse(text: &str, start: usize) -> Result<Self, Problem> {
        let Some((path, value)) = text.split_once('=') else {
            return Err(Problem::new(format!("{} has no `=`", Found(text)))
                .at(&(start..start + text.len()))
                .help("write LINK.KEY=VALUE or LINK.down.KEY=VALUE, such as access.down.rate=2mbit"));
        };
        let place = start..start + path.trim_end().len();
        let blank = value.len() - value.trim_start().len();
        let node = Node::typed(value.trim(), start + path.len() + 1 + blank);
        Self::new(path.trim(), place, node)
    }

    fn new(path: &str, place: Range<usize>, node: Node) -> Result<Self, Problem> {
        let (link, rest) = path.split_once('.').unwrap_or((path, ""));
        let (first, after) = rest.split_once('.').unwrap_or((rest, ""));
        let (of, key) = Of::read(first).map_or((Of::Whole, rest), |of| (of, after));
        if of.has(key) {
            return Ok(Self { link: link.into(), of, key: key.into(), place, node });
        }
        if let Some((way, key)) = key.split_once('.').filter(|(_, key)| KEYS.contains(key)) {
            return Err(Problem::new(format!("{} is not a direction", Found(way)))
                .at(&place)
                .help(format!("write {link}.up.{key}, {link}.down.{key}, or {link}.{key} for both")));
        }
        let known = of.known(key);
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let mut problem = match key {
            "" => Problem::new(format!("{} names no key of a link", Found(path))),
            key => Problem::new(format!("unknown key {}", Found(key))),
        };
        problem = problem.did_you_mean(key, known.iter().copied());
        Err(problem.at(&place).help(format!("allowed: {}", one_of(&known))))
    }

    /// Reads a table of assignments. Keys are paths or nested tables.
    pub(crate) fn read_table(table: &Table) -> Result<Vec<Self>, Problem> {
        let mut all = Vec::new();
        collect(table, "", &mut all)?;
        Ok(all)
    }

    /// The text form.
    pub(crate) fn text(&self) -> String {
        format!("{}={}", self.path(), self.node.typed_text())
    }

    /// The path that is set: `access.down.rate`.
    pub(crate) fn path(&self) -> String {
        format!("{}{}.{}", self.link, self.of.text(), self.key)
    }

    /// The new value.
    pub(crate) fn value(&self) -> &Value {
        &self.node.value
    }

    pub(crate) fn place(&self) -> &Range<usize> {
        &self.node.span
    }
}

fn collect(table: &Table, prefix: &str, all: &mut Vec<Assignment>) -> Result<(), Problem> {
    for (key, node) in table.iter() {
        let path = if prefix.is_empty() { key.name.clone() } else { format!("{prefix}.{}", key.name) };
        // Tables nest down to a link or one of its directions, pipes or queues. A table below a key is a
        // value.
        let parts: Vec<&str> = path.split('.').collect();
        let holds_paths = match parts[..] {
            [_] => true,
            [_, part] => Of::read(part).is_some(),
            _ => false,
        };
        match &node.value {
            Value::Table(inner) if holds_paths => collect(inner, &path, all)?,
            _ => all.push(Assignment::new(&path, key.span.clone(), node.clone())?),
        }
    }
    Ok(())
}
