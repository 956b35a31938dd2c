//! Queues that share the transmitter of a pipe.

use std::ops::Range;

use narrows_core::Bytes;
use narrows_core::classify::FlowMask;
use narrows_core::sched::Weight;
use serde_json::json;

use super::mask::{MASK, most, without_mask};
use super::sharing::Sharing;
use crate::keys::kind::{ByHand, Given, Integer};
use crate::keys::quantity::PACKET_SIZE;
use crate::keys::{self, Keyed, Kind, Row, row};
use crate::node::{Node, Table, Value};
use crate::problem::Problem;
use crate::said_twice::said_twice;
use crate::surroundings::Surroundings;
use crate::value::{Losing, Loss, LossModel, Queue, SchedulerKind};

/// A queue to which rules send packets; with a mask, one queue for each flow.
#[derive(Clone, Debug, PartialEq)]
pub struct PipeQueue {
    /// Number of its pipe.
    pub pipe: u32,
    /// Weight relative to the other queues; `None` for 1, or if the scheduler has no weights.
    pub weight: Option<Weight>,
    /// Priority band, if the scheduler has bands: lower numbers go first.
    pub priority: u32,
    /// Longest expected packet; `None` for 1500 bytes.
    pub longest: Option<Bytes>,
    /// Mask that creates a separate queue for each flow.
    pub mask: Option<FlowMask>,
    /// The queue of each flow; `None` for a queue like the pipe's.
    pub queue: Option<Queue>,
    /// Loss of packets before they enter their flow.
    pub loss: Option<LossModel>,
    /// Maximum number of flows that exist at a time due to the mask.
    pub most: u32,
}

impl Default for PipeQueue {
    /// A queue without a pipe.
    fn default() -> Self {
        Self {
            pipe: 0,
            weight: None,
            priority: 0,
            longest: None,
            mask: None,
            queue: None,
            loss: None,
            most: Self::MOST,
        }
    }
}

const PIPE: Integer = Integer {
    what: "the number of a pipe",
    low: *super::NUMBERS.start() as i64,
    high: *super::NUMBERS.end() as i64,
};
const WEIGHT: ByHand<Weight> = ByHand {
    words: || "whole number, 1 to 4294967295".into(),
    schema: |_| json!({ "type": "integer", "minimum": 1, "maximum": u32::MAX }),
    read: |node, _| {
        let weight = node.integer("a weight", 1..1 << 32)?;
        Ok(Weight::new(weight as u32).unwrap_or(Weight::ONE)) // in range
    },
    write: |weight| Some(Value::Integer(weight.to_string())),
};
const PRIORITY: Integer = Integer { what: "a priority", low: 0, high: PipeQueue::LAST as i64 };
const QUEUE: ByHand<Queue> = ByHand {
    words: || "as [above](#queue)".into(),
    schema: Queue::schema,
    read: |node, around| check_queue(Queue::read(node, around)?, node),
    write: |queue| Some(queue.value()),
};
const LOSS: ByHand<Option<LossModel>> = ByHand {
    words: || "probability or table".into(),
    schema: |definitions| Losing.schema(definitions),
    read: read_loss,
    write: |loss| Some(Node::typed(&loss.as_ref()?.text(), 0).value),
};
const MOST: Integer = most("a number of flows");

impl Keyed for PipeQueue {
    const ROWS: &'static [Row<Self>] = &[
        row!("pipe", pipe, PIPE, "Number of the pipe it feeds.")
            .required_with("name the pipe it feeds: pipe = 5"),
        row!(
            "weight",
            weight,
            Given(WEIGHT),
            "Weight relative to other queues, per flow with a mask; for `wf2q+`, `drr`, `qfq`, `gfq` and `kps`."
        )
        .default("1"),
        row!("priority", priority, PRIORITY, "Priority for `prio`; lower goes first."),
        row!(
            "longest",
            longest,
            Given(PACKET_SIZE),
            "Maximum expected packet length, for `qfq`, `gfq` and `kps`."
        )
        .default("1500 bytes"),
        row!("mask", mask, MASK, "Create a queue per flow, each with this weight."),
        row!(
            "most",
            most,
            MOST,
            "Maximum number of flows the mask creates. Further flows share one more queue and are counted."
        ),
        row!(
            "queue",
            queue,
            Given(QUEUE),
            "Bound and queue management, per flow with a mask; not `choke`, `sfb` or `dualpi2`."
        )
        .default("that of the pipe"),
        row!("loss", loss, LOSS, "Loss before the queue, like `loss` of a link at `ingress`.")
            .default("none"),
    ];
}

impl PipeQueue {
    /// Default maximum number of flows that a mask creates.
    pub const MOST: u32 = 65_536;
    /// Default of the longest packet that a scheduler expects.
    pub const LONGEST: Bytes = Bytes::new(1500);
    /// The highest priority number, which goes last.
    pub(crate) const LAST: u32 = 65_535;

    /// A queue of this pipe with default settings.
    pub fn of(pipe: u32) -> Self {
        Self { pipe, ..Self::default() }
    }

    /// Reads `[links.NAME.queues.NUMBER]`.
    pub(crate) fn read(
        node: &Node,
        around: Surroundings<'_>,
        sharing: impl Fn(u32) -> Option<Option<Sharing>>,
    ) -> Result<Self, Vec<Problem>> {
        let one = |problem: Problem| vec![problem];
        let table = node.table("a table of what the queue does: { pipe = 5, weight = 20 }").map_err(one)?;
        let mut problems = table.unknown_keys(&keys::names::<Self>());
        let mut queue = Self::default();
        problems.extend(keys::read_all(&mut queue, table, &node.span, around));
        problems.extend(said_twice(table));
        if let Some(sharing) = sharing(queue.pipe) {
            problems.extend(queue.unused(sharing).into_iter().filter_map(|(key, problem)| {
                let place = table.key(key)?;
                Some(problem.at(&place.span).inside(key))
            }));
        }
        if let (Some(key), None) = (table.key("most"), queue.mask) {
            problems.push(without_mask(key, "flows"));
        }
        if problems.is_empty() { Ok(queue) } else { Err(problems) }
    }

    /// Sets one key, or one part.
    pub(crate) fn set(&mut self, key: &str, node: &Node, around: Surroundings<'_>) -> Result<(), Problem> {
        self.set_unchecked(key, node, around).map_err(|problem| problem.inside(key))
    }

    fn set_unchecked(&mut self, key: &str, node: &Node, around: Surroundings<'_>) -> Result<(), Problem> {
        if let Some(row) = keys::named::<Self>(key) {
            return row.set(self, node, around);
        }
        let part = key.strip_prefix("queue.");
        let part = part.ok_or_else(|| Problem::new(format!("a queue has no `{key}`")).at(&node.span))?;
        let queue = self.queue.unwrap_or_default().with(part, node, around)?;
        self.queue = Some(check_queue(queue, node)?);
        Ok(())
    }

    /// The settings that this scheduler, or with `None` one that classifies flows itself, does not use: the
    /// key, and why.
    pub(crate) fn unused(&self, sharing: Option<Sharing>) -> Vec<(&'static str, Problem)> {
        let has = |is: bool, key| is.then_some(key);
        let given = [
            has(self.weight.is_some(), "weight"),
            has(self.priority > 0, "priority"),
            has(self.longest.is_some(), "longest"),
            has(self.mask.is_some(), "mask"),
            has(self.queue.is_some(), "queue"),
            has(self.loss.is_some(), "loss"),
        ];
        let unused = given.into_iter().flatten().filter(|key| !Self::uses(sharing, key));
        unused
            .map(|key| {
                let Some(sharing) = sharing else {
                    let problem =
                        Problem::new(format!("`{key}` in a queue whose pipe separates flows itself"));
                    return (key, problem.help("such a pipe treats the packets of all its queues alike"));
                };
                let problem = Problem::new(format!("`{}` does not use `{key}`", sharing.kind.name()));
                (
                    key,
                    problem.help(match key {
                        "weight" => "queues have weights with `wf2q+`, `drr`, `qfq`, `gfq` and `kps`",
                        "priority" => "queues have priorities with `prio`",
                        _ => "only `qfq`, `gfq` and `kps` sort queues by their longest packets",
                    }),
                )
            })
            .collect()
    }

    fn uses(sharing: Option<Sharing>, key: &str) -> bool {
        let Some(sharing) = sharing else { return false };
        match key {
            "weight" => sharing.has_weights(),
            "priority" => sharing.kind == SchedulerKind::Prio,
            "longest" => sharing.kind.wants_longest(),
            _ => true,
        }
    }

    /// The queue without settings that its pipe does not use.
    pub(crate) fn tidied(mut self, sharing: Option<Sharing>) -> Self {
        for (key, _) in self.clone().unused(sharing) {
            match key {
                "weight" => self.weight = None,
                "priority" => self.priority = 0,
                "longest" => self.longest = None,
                "mask" => (self.mask, self.most) = (None, Self::MOST),
                "queue" => self.queue = None,
                _ => self.loss = None,
            }
        }
        self
    }

    /// Everything except the weight, where the pipe's queue is `of_pipe`.
    pub(super) fn as_it_waits(&self, of_pipe: Queue) -> Self {
        Self { weight: None, queue: Some(self.queue.unwrap_or(of_pipe)), ..self.clone() }
    }

    /// The effective weight.
    pub fn weight(&self) -> Weight {
        self.weight.unwrap_or(Weight::ONE)
    }
}

/// A loss model, alone or under `ingress`, which means the same here.
fn read_loss(node: &Node, around: Surroundings<'_>) -> Result<Option<LossModel>, Problem> {
    if let Value::Table(table) = &node.value
        && let Some(key) = ["wire", "with-delay"].into_iter().find_map(|key| table.key(key))
    {
        return Err(Problem::new(format!(
            "`{}` in a queue, which supports loss before the queue only",
            key.name
        ))
        .at(&key.span)
        .help("set it in the pipe"));
    }
    let loss = Loss::read(node, around)?;
    Ok(loss.ingress.or(loss.wire))
}

/// Rejects queues that are complete queues of their own, which cannot serve flows.
fn check_queue(queue: Queue, node: &Node) -> Result<Queue, Problem> {
    if !queue.policy.is_whole_queue() {
        return Ok(queue);
    }
    let name = queue.policy.name();
    Err(Problem::new(format!("`{name}` is the whole queue of a link, not one of several"))
        .at(&node.span)
        .help(format!(
            "take `codel`, `pie`, `red` or `fifo`, or give the packets a pipe with queue = \"{name}\""
        )))
}

/// The place where a queue's table names its pipe.
pub(crate) fn place_of_pipe<'a>(table: &'a Table, otherwise: &'a Range<usize>) -> &'a Range<usize> {
    table.get("pipe").map_or(otherwise, |node| &node.span)
}
