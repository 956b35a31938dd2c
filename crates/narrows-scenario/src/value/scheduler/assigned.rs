//! Parts of a scheduler that an assignment sets alone: `scheduler.quantum`, `scheduler.voip.weight`,
//! `scheduler.voip.queue.bound`.

use super::class::{WAITS_IN, all_keys};
use super::{Child, Division, Scheduler, SchedulerKind};
use crate::node::{Node, Table, Value};
use crate::problem::{Found, Problem, one_of};
use crate::value::condition::Surroundings;
use crate::value::queue::Queue;

impl Scheduler {
    /// The scheduler with one key, or one key of a class, set. `queue` is the queue of classes that have
    /// none of their own.
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
                return Err(
                    Problem::new(format!("this `{}` has no named classes", self.kind.name())).at(&value.span)
                );
            }
        };
        let Some(index) = classes.iter().position(|known| known.name == class) else {
            let names: Vec<&str> = classes.iter().map(|class| class.name.as_str()).collect();
            let problem = Problem::new(format!("there is no class {}", Found(class))).at(&value.span);
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
                Some(Child::Around(around)) => around.inner.with(path, value, queue_of_all, surroundings)?,
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
        // A class has one kind of queue: the new one replaces the others.
        if WAITS_IN.contains(&rest[0]) {
            let mut stays = all_keys();
            let of_line = |key: &str| key == "line-limit" && rest[0] != "delay";
            // A part of a scheduler inside netem leaves netem around it.
            let around = matches!(classes[index].child, Some(Child::Around(_))) && rest.len() > 1;
            stays.retain(|key| {
                *key == rest[0] || around && *key == "netem" || !WAITS_IN.contains(key) && !of_line(key)
            });
            item.keep(&stays);
        }
        // So do weight and quantum.
        match rest[0] {
            "weight" => item.remove("quantum"),
            "quantum" if self.quantum().is_some() => item.remove("weight"),
            _ => {}
        }
        match (queue, inner) {
            (Some(queue), _) => item.set("queue", Node::new(queue.value())),
            (None, Some(inner)) => item.set("scheduler", Node::new(inner.value())),
            (None, None) => item.set(rest[0], value.clone()),
        }
        Self::read(&node(whole), surroundings).map_err(|problem| problem.put_at(&value.span))
    }
}

fn node(table: Table) -> Node {
    Node::new(Value::Table(table))
}
