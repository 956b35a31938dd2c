//! Parts of a queue or a scheduler that an assignment sets alone: `queue.target`, `scheduler.quantum`,
//! `scheduler.voip.weight`, `scheduler.voip.queue.bound`.
//!
//! The value in force is written down as in a file, the part is put in its place, and the whole is read again: so nothing
//! is allowed here that is not allowed there.

use super::condition::Surroundings;
use super::queue::{self, Queue};
use super::scheduler::{self, Division, Scheduler, SchedulerKind};
use crate::node::{Node, Table, Value};
use crate::problem::{Found, Problem, nearest, one_of};

/// Whether a path after the link's name is such a part, as far as that can be told without the link.
pub(crate) fn is_part(path: &str) -> bool {
    match path.split('.').collect::<Vec<_>>()[..] {
        ["queue", key] => queue::all_keys().contains(&key),
        ["scheduler", key] => scheduler::all_keys().contains(&key),
        ["scheduler", _, key] => scheduler::CLASS_KEYS.contains(&key) && key != "name",
        ["scheduler", _, "queue", key] => queue::all_keys().contains(&key),
        _ => false,
    }
}

/// The paths like this one that there are, if it is about a queue or a scheduler.
pub(crate) fn allowed(path: &str) -> Option<Vec<String>> {
    let with = |prefix: &str, keys: &[&str]| keys.iter().map(|key| format!("{prefix}.{key}")).collect();
    let queue_keys = queue::all_keys();
    match path.split('.').collect::<Vec<_>>()[..] {
        ["queue", _] => Some(with("queue", &queue_keys)),
        ["scheduler", _] => Some(with("scheduler", &scheduler::all_keys())),
        ["scheduler", class, _] => {
            Some(with(&format!("scheduler.{class}"), &["weight", "match", "queue", "longest"]))
        }
        ["scheduler", class, "queue", _] => Some(with(&format!("scheduler.{class}.queue"), &queue_keys)),
        _ => None,
    }
}

impl Queue {
    /// The queue with one key set.
    pub(crate) fn with(self, key: &str, value: &Node) -> Result<Self, Problem> {
        let mut table = table(&self.table_text());
        if key == "type" {
            // What another type has no use for goes.
            table.keep(&queue::keys(value.text("").unwrap_or_default().trim()));
        }
        table.set(key, value.clone());
        Self::read(&node(table)).map_err(|problem| problem.put_at(&value.span))
    }
}

impl Scheduler {
    /// The scheduler with one key, or one key of a class, set. `queue` is that of classes that have none of their own.
    pub(crate) fn with(
        &self,
        path: &[&str],
        value: &Node,
        queue: Queue,
        surroundings: Surroundings<'_>,
    ) -> Result<Option<Self>, Problem> {
        let (class, rest) = match *path {
            ["type"] => {
                let name = value.text("").unwrap_or_default().trim();
                return match SchedulerKind::from_name(name) {
                    Some(kind) => {
                        let text = self.converted(kind).table_text();
                        Self::read(&node(table(&text)), surroundings).map_err(|p| p.put_at(&value.span))
                    }
                    None => Self::read(value, surroundings),
                };
            }
            [key] => {
                let mut table = table(&self.table_text());
                table.set(key, value.clone());
                return Self::read(&node(table), surroundings).map_err(|p| p.put_at(&value.span));
            }
            [class, ref rest @ ..] => (class, rest),
            [] => return Ok(Some(self.clone())),
        };
        let classes = match &self.serves {
            Division::Classes { classes, .. } if !classes.is_empty() => classes,
            _ => {
                return Err(Problem::new(format!(
                    "this `{}` has no classes that are named",
                    self.kind.name()
                ))
                .at(&value.span));
            }
        };
        let Some(index) = classes.iter().position(|known| known.name == class) else {
            let names: Vec<&str> = classes.iter().map(|class| class.name.as_str()).collect();
            let problem = Problem::new(format!("no class is called {}", Found(class))).at(&value.span);
            let problem = match nearest(class, names.iter().copied()) {
                Some(near) => problem.help(format!("did you mean `{near}`?")),
                None => problem,
            };
            return Err(problem.help(format!("classes: {}", one_of(&names))));
        };
        let queue = match *rest {
            ["queue", key] => Some(classes[index].queue.unwrap_or(queue).with(key, value)?),
            _ => None,
        };
        let mut whole = table(&self.table_text());
        let Some(Node { value: Value::Array(items), .. }) = whole.get_mut("classes") else {
            unreachable!("a scheduler with classes is written with them");
        };
        let Value::Table(item) = &mut items[index].value else {
            unreachable!("a class is written as a table");
        };
        match queue {
            Some(queue) => item.set("queue", Node::typed(&queue.text(), 0)),
            None => item.set(rest[0], value.clone()),
        }
        Self::read(&node(whole), surroundings).map_err(|problem| problem.put_at(&value.span))
    }
}

/// The table that a text is.
fn table(text: &str) -> Table {
    match Node::typed(text, 0).value {
        Value::Table(table) => table,
        _ => unreachable!("what is written as a table is one"),
    }
}

fn node(table: Table) -> Node {
    Node { span: 0..0, value: Value::Table(table) }
}
