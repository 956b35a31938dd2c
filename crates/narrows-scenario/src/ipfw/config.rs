//! `pipe | queue | sched N config …`: the settings of pipes, queues and schedulers, as keys of a scenario.

mod options;
mod read;

pub(crate) use options::gilbert_elliott;
pub(super) use options::{AQMS, COMMON, SCHEDULERS, SchedulerType, shares, threshold};
pub(super) use read::{object_number, read};

use narrows_core::Rate;
use narrows_core::classify::FlowMask;
use narrows_core::queue::Bound;

use crate::dialect::{number_of, text_of};
use crate::node::{Node, Table, Value};
use crate::units;

/// What `config` configures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Object {
    /// `pipe`, or `link`: a link.
    Pipe,
    /// `queue`, or `flowset`: a set of flows of a scheduler.
    Queue,
    /// `sched`: shares the link with the same number among its queues.
    Scheduler,
}

impl Object {
    /// `pipe`, `queue` or `sched`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pipe => "pipe",
            Self::Queue => "queue",
            Self::Scheduler => "sched",
        }
    }
}

/// The settings in one line. What the line does not mention is unset.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The kind of object.
    pub object: Object,
    /// Its number, 1 to 65,534.
    pub number: u32,
    /// `mask`: one instance for each value of these bits.
    pub mask: Option<FlowMask>,
    /// The settings as keys of a pipe or queue, with two exceptions: the `bound` of a queue is separate
    /// from `queue`, its AQM; and RED thresholds have no unit, as they use the unit of the bound.
    pub(crate) keys: Table,
}

impl Config {
    /// An object without settings.
    pub(crate) fn new(object: Object, number: u32) -> Self {
        Self { object, number, mask: None, keys: Table::default() }
    }

    /// A pipe, and the scheduler that its line configures, if it has a `type`. They share the mask.
    pub(crate) fn split(&self) -> (Self, Option<Self>) {
        let mut pipe = self.clone();
        let Some((_, kind)) = pipe.keys.take("scheduler").filter(|_| self.object == Object::Pipe) else {
            return (self.clone(), None);
        };
        let mut scheduler = Self { mask: self.mask, ..Self::new(Object::Scheduler, self.number) };
        scheduler.keys.put("scheduler", kind.value);
        (pipe, Some(scheduler))
    }

    /// The scheduler of a queue.
    pub fn parent(&self) -> Option<u32> {
        number_of(&self.keys, "pipe")
    }

    /// Whether it sets this key.
    pub(crate) fn says(&self, key: &str) -> bool {
        self.keys.get(key).is_some()
    }

    pub(super) fn rate(&self) -> Rate {
        self.keys.get("rate").and_then(|node| units::rate(node).ok()).unwrap_or(Rate::UNLIMITED)
    }

    pub(super) fn bound(&self) -> Option<Bound> {
        units::bound(self.keys.get("bound")?).ok()
    }

    /// The AQM of the queue, and its keys; `None` for drop tail.
    pub(super) fn managed(&self) -> Option<&Table> {
        self.keys.get("queue")?.table("").ok()
    }

    /// The type of scheduler, and its keys.
    pub(super) fn scheduler(&self) -> Option<(&'static SchedulerType, &Table)> {
        let keys = self.keys.get("scheduler")?.table("").ok()?;
        let name = text_of(keys, "type");
        Some((SCHEDULERS.iter().find(|kind| kind.name == name)?, keys))
    }
}

/// Adds these defaults for keys that are not set.
pub(super) fn or_usual(keys: &Table, usual: &[&[(&str, &str)]]) -> Table {
    let all = usual.iter().copied().flatten();
    all.fold(keys.clone(), |keys, (key, value)| keys.and(key, Node::typed(value, 0).value))
}

/// A table that has only a `type`.
pub(crate) fn of_type(name: &str) -> Table {
    let mut table = Table::default();
    table.put("type", Value::String(name.into()));
    table
}
