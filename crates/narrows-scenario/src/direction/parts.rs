//! Parts of a value that an assignment can set alone: `delay.correlation`, `loss.gilbert-elliott.p`,
//! `queue.target`, `scheduler.quantum`, `scheduler.voip.weight`, `scheduler.voip.queue.bound`.
//!
//! The current value is converted to its table in a file, the part is replaced, and the whole table is read
//! again. So an assignment accepts exactly what a file accepts.

use super::Direction;
use crate::keys::{self, Key};
use crate::node::{Node, Value};
use crate::problem::Problem;
use crate::value::{self, Surroundings};

/// The most used parts of values that an assignment can set alone. Tables have more.
pub(crate) const PARTS: &[&str] =
    &["delay.order", "delay.correlation", "queue.bound", "queue.drop", "loss.ingress", "loss.wire"];

/// Whether a path after the link's name is such a part, as far as can be told without the link.
pub(crate) fn is_part(path: &str) -> bool {
    match path.split('.').collect::<Vec<_>>()[..] {
        ["queue", key] => value::queue_keys().contains(&key),
        ["scheduler", key] => value::scheduler_keys().contains(&key),
        ["scheduler", _, key] => value::class_keys().contains(&key) && key != "name",
        ["scheduler", _, "queue", key] => value::queue_keys().contains(&key),
        // A scheduler nested in a class of another.
        ["scheduler", _, "scheduler", ref inner @ ..] if !inner.is_empty() => {
            is_part(&format!("scheduler.{}", inner.join(".")))
        }
        // Deeper keys are checked when the whole table is read.
        [key, part, ..] => keys_of(key).is_some_and(|keys| keys.contains(&part)),
        _ => false,
    }
}

/// The valid paths similar to this one, if it concerns a queue or a scheduler.
pub(crate) fn allowed(path: &str) -> Option<Vec<String>> {
    let with = |prefix: &str, keys: &[&str]| keys.iter().map(|key| format!("{prefix}.{key}")).collect();
    let queue_keys = value::queue_keys();
    match path.split('.').collect::<Vec<_>>()[..] {
        ["queue", _] => Some(with("queue", &queue_keys)),
        ["scheduler", _] => Some(with("scheduler", &value::scheduler_keys())),
        ["scheduler", class, _] => {
            let keys: Vec<&str> = value::class_keys().into_iter().filter(|key| *key != "name").collect();
            Some(with(&format!("scheduler.{class}"), &keys))
        }
        ["scheduler", class, "scheduler", ref inner @ ..] if !inner.is_empty() => {
            let all = allowed(&format!("scheduler.{}", inner.join(".")))?;
            Some(all.into_iter().map(|path| format!("scheduler.{class}.{path}")).collect())
        }
        ["scheduler", class, "queue", _] => Some(with(&format!("scheduler.{class}.queue"), &queue_keys)),
        [key, ..] => keys_of(key).map(|keys| with(key, &keys)),
        _ => None,
    }
}

/// The keys of the table that a value is or may be, if its parts can be set.
fn keys_of(key: &str) -> Option<Vec<&'static str>> {
    let compound = keys::named::<Direction>(key)?.kind().compound()?;
    Some(keys::all_names(&compound.keys()))
}

impl Direction {
    /// Sets one part of a value and leaves the others unchanged.
    pub(super) fn set_part(
        &mut self,
        key: &str,
        path: &str,
        node: &Node,
        around: Surroundings<'_>,
    ) -> Result<(), Problem> {
        let mut parts: Vec<&str> = path.split('.').collect();
        match (key, &self.scheduler) {
            ("queue", _) => {
                self.queue = self.queue.with(path, node, around)?;
                return Ok(());
            }
            ("scheduler", Some(scheduler)) => {
                self.scheduler = scheduler.with(&parts, node, self.queue, around)?;
                return Ok(());
            }
            ("scheduler", None) => {
                return Err(Problem::new("there is no scheduler to change a part of")
                    .at(&node.span)
                    .help("set the whole, such as scheduler={ type = \"drr\", classes = [ … ] }"));
            }
            // A loss model without a place is loss on the wire.
            ("loss", _) if !matches!(parts[0], "ingress" | "wire" | "with-delay") => parts.insert(0, "wire"),
            _ => {}
        }
        let value = match key {
            "delay" => Some(self.effective_delay().value()),
            _ => keys::named::<Self>(key).and_then(|row| row.get(self)),
        };
        let kind = keys::named::<Self>(key).map(Key::kind);
        let compound = kind.and_then(|kind| kind.compound());
        let Some(table) = value.zip(compound).and_then(|(value, compound)| compound.table(value)) else {
            return Err(Problem::new(format!("there is no `{key}` to change a part of"))
                .at(&node.span)
                .help(format!("set the whole: {key}=VALUE")));
        };
        let whole = Node::new(keys::with_part(kind, Some(Value::Table(table)), &parts, node));
        self.set_unchecked(key, &whole, around).map_err(|problem| problem.put_at(&node.span))?;
        if key == "delay" {
            // The delay now includes it.
            self.jitter = None;
        }
        Ok(())
    }
}
