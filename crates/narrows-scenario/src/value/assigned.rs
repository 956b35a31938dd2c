//! Parts of a value that an assignment sets alone: `delay.correlation`, `loss.gilbert-elliott.p`, `queue.target`,
//! `scheduler.quantum`, `scheduler.voip.weight`, `scheduler.voip.queue.bound`.
//!
//! The value in force is written down as in a file, the part is put in its place, and the whole is read again: so nothing
//! is allowed here that is not allowed there.

use super::chance::Chance;
use super::condition::Surroundings;
use super::corrupt::Corrupt;
use super::delay::Delay;
use super::loss::Loss;
use super::policer::PolicerUse;
use super::queue::{self, Queue};
use super::reorder::Reorder;
use super::scheduler::{self, Child, Division, Scheduler, SchedulerKind, WAITS_IN};
use super::slots::Slots;
use super::trace::TraceUse;
use crate::node::{Node, Table, Value};
use crate::problem::{Found, Problem, one_of};

/// Whether a path after the link's name is such a part, as far as that can be told without the link.
pub(crate) fn is_part(path: &str) -> bool {
    match path.split('.').collect::<Vec<_>>()[..] {
        ["queue", key] => queue::all_keys().contains(&key),
        ["scheduler", key] => scheduler::all_keys().contains(&key),
        ["scheduler", _, key] => scheduler::class_keys().contains(&key) && key != "name",
        ["scheduler", _, "queue", key] => queue::all_keys().contains(&key),
        // A scheduler in a class of another.
        ["scheduler", _, "scheduler", ref inner @ ..] if !inner.is_empty() => {
            is_part(&format!("scheduler.{}", inner.join(".")))
        }
        // What may stand deeper is said when the whole is read.
        [key, part, ..] => keys(key).is_some_and(|keys| keys.contains(&part)),
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
            let keys: Vec<&str> = scheduler::class_keys().into_iter().filter(|key| *key != "name").collect();
            Some(with(&format!("scheduler.{class}"), &keys))
        }
        ["scheduler", class, "scheduler", ref inner @ ..] if !inner.is_empty() => {
            let all = allowed(&format!("scheduler.{}", inner.join(".")))?;
            Some(all.into_iter().map(|path| format!("scheduler.{class}.{path}")).collect())
        }
        ["scheduler", class, "queue", _] => Some(with(&format!("scheduler.{class}.queue"), &queue_keys)),
        [key, ..] => keys(key).map(|keys| with(key, &keys)),
        _ => None,
    }
}

/// The keys of the tables that a value may be, where parts of it can be set.
fn keys(key: &str) -> Option<Vec<&'static str>> {
    match key {
        "delay" => Some(Delay::keys()),
        "loss" => Some(Loss::keys()),
        "duplicate" => Some(Chance::KEYS.to_vec()),
        "corrupt" => Some(Corrupt::KEYS.to_vec()),
        "reorder" => Some(Reorder::KEYS.to_vec()),
        "slots" => Some(Slots::KEYS.to_vec()),
        "trace" => Some(TraceUse::KEYS.to_vec()),
        "policer" => Some(PolicerUse::KEYS.to_vec()),
        _ => None,
    }
}

/// The table that `text` is, with the part at `path` set. Tables on the way are made where there are none.
pub(crate) fn with_part(text: &str, path: &[&str], value: &Node) -> Node {
    let mut whole = node(table(text));
    let (last, way) = path.split_last().expect("a path has a key");
    let mut inner = &mut whole;
    for key in way {
        let table = as_table(inner);
        if table.get(key).is_none() {
            table.set(key, node(Table::default()));
        }
        inner = table.get_mut(key).expect("it has just been set");
    }
    as_table(inner).set(last, value.clone());
    whole
}

/// The node as a table; whatever else it was is no more.
fn as_table(node: &mut Node) -> &mut Table {
    if !matches!(node.value, Value::Table(_)) {
        node.value = Value::Table(Table::default());
    }
    match &mut node.value {
        Value::Table(table) => table,
        _ => unreachable!("it has just been made one"),
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
        let queue_of_all = queue;
        let (class, rest) = match *path {
            ["type"] => {
                let name = value.text("").unwrap_or_default().trim();
                return match SchedulerKind::from_name(name) {
                    Some(kind) => Self::read(&node(self.converted(kind).table()), surroundings)
                        .map_err(|p| p.put_at(&value.span)),
                    None => Self::read(value, surroundings),
                };
            }
            [key] => {
                let mut table = self.table();
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
            return Err(problem
                .did_you_mean(class, names.iter().copied())
                .help(format!("classes: {}", one_of(&names))));
        };
        let queue = match *rest {
            ["queue", key] => Some(classes[index].queue.unwrap_or(queue).with(key, value, surroundings)?),
            _ => None,
        };
        let inner = match *rest {
            ["scheduler", ref path @ ..] if !path.is_empty() => match &classes[index].child {
                Some(Child::Scheduler(inner)) => inner.with(path, value, queue_of_all, surroundings)?,
                _ => {
                    return Err(Problem::new(format!("there is no scheduler in the class `{class}`"))
                        .at(&value.span)
                        .help("set the whole, such as scheduler={ type = \"fq_codel\" }"));
                }
            },
            _ => None,
        };
        let mut whole = self.table();
        let Some(Node { value: Value::Array(items), .. }) = whole.get_mut("classes") else {
            unreachable!("a scheduler with classes is written with them");
        };
        let Value::Table(item) = &mut items[index].value else {
            unreachable!("a class is written as a table");
        };
        // A class waits in one thing: what is set takes the place of the others.
        if WAITS_IN.contains(&rest[0]) {
            let mut stays = scheduler::class_keys();
            stays.retain(|key| *key == rest[0] || !WAITS_IN.contains(key));
            item.keep(&stays);
        }
        match (queue, inner) {
            (Some(queue), _) => item.set("queue", Node::new(queue.value())),
            (None, Some(inner)) => item.set("scheduler", Node::new(inner.value())),
            (None, None) => item.set(rest[0], value.clone()),
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
