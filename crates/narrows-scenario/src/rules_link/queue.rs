//! Queues that share the transmitter of a pipe.

use std::ops::Range;

use narrows_core::Bytes;
use narrows_core::classify::FlowMask;
use narrows_core::sched::Weight;

use super::pipe::{Pipe, Sharing};
use crate::link::check_table;
use crate::node::{Node, Table, Value};
use crate::problem::Problem;
use crate::units;
use crate::value::{self, Loss, LossModel, Policy, Queue, SchedulerKind, Surroundings};

/// A queue to which rules send packets, or with a mask one for each flow.
#[derive(Clone, Debug, PartialEq)]
pub struct PipeQueue {
    /// The number of the pipe.
    pub pipe: u32,
    /// Its share relative to the other queues; nothing for 1, or where the scheduler knows no weights.
    pub weight: Option<Weight>,
    /// Its band where the scheduler knows bands: lower ones go first.
    pub priority: u32,
    /// The longest packet that is expected; nothing for 1500 bytes.
    pub longest: Option<Bytes>,
    /// Makes a queue of its own for each flow that this tells apart.
    pub mask: Option<FlowMask>,
    /// How packets wait, in each flow; nothing for a queue like that of the pipe.
    pub queue: Option<Queue>,
    /// Packets that are lost before they come to their flow.
    pub loss: Option<LossModel>,
    /// The most flows at a time that a mask makes.
    pub most: u32,
}

/// The keys of a queue.
pub(crate) const KEYS: &[&str] = &["pipe", "weight", "priority", "longest", "mask", "queue", "loss", "most"];

impl PipeQueue {
    /// The most flows that a mask makes, where it is not said.
    pub const MOST: u32 = 65_536;
    /// The most that it can be said to make.
    const MOST_OF_ALL: i64 = 1 << 20;
    /// The length of a packet that schedulers expect at most, where it is not said.
    pub const LONGEST: Bytes = Bytes::new(1500);
    /// The highest priority, which goes last.
    pub(crate) const LAST: u32 = 65_535;

    /// A queue of this pipe that says no more.
    pub fn of(pipe: u32) -> Self {
        Self {
            pipe,
            weight: None,
            priority: 0,
            longest: None,
            mask: None,
            queue: None,
            loss: None,
            most: Self::MOST,
        }
    }

    /// Reads `[links.NAME.queues.NUMBER]`.
    pub(crate) fn read(
        node: &Node,
        around: Surroundings<'_>,
        sharing: impl Fn(u32) -> Option<Option<Sharing>>,
    ) -> Result<Self, Vec<Problem>> {
        let one = |problem: Problem| vec![problem];
        let table = node.table("a table of what the queue does: { pipe = 5, weight = 20 }").map_err(one)?;
        let mut problems = table.unknown_keys(KEYS);
        let pipe = table.required("pipe", &node.span, read_pipe);
        let mut queue = match pipe {
            Ok(pipe) => Self::of(pipe),
            Err(problem) => {
                problems.push(problem.help("say which pipe it is in front of: pipe = 5"));
                return Err(problems);
            }
        };
        for (key, node) in table.iter().filter(|(key, _)| KEYS.contains(&key.name.as_str())) {
            problems.extend(queue.set(&key.name, node, around).err());
        }
        check_table(table, &mut |result| problems.extend(result.err()));
        if let Some(sharing) = sharing(queue.pipe) {
            problems.extend(queue.unused(sharing).into_iter().filter_map(|(key, problem)| {
                let place = table.key(key)?;
                Some(problem.at(&place.span).inside(key))
            }));
        }
        if let (Some(key), None) = (table.key("most"), queue.mask) {
            let problem = Problem::new("`most` without a mask, which makes flows").at(&key.span);
            problems.push(problem.help("say what tells flows apart: mask = { src-ip = \"0xffffffff\" }"));
        }
        if problems.is_empty() { Ok(queue) } else { Err(problems) }
    }

    /// Sets what one key, or one part, says.
    pub(crate) fn set(&mut self, key: &str, node: &Node, around: Surroundings<'_>) -> Result<(), Problem> {
        self.set_unchecked(key, node, around).map_err(|problem| problem.inside(key))
    }

    fn set_unchecked(&mut self, key: &str, node: &Node, around: Surroundings<'_>) -> Result<(), Problem> {
        match key {
            "pipe" => self.pipe = read_pipe(node)?,
            "weight" => {
                let weight = node.integer("a weight", 1..1 << 32)?;
                self.weight = Weight::new(weight as u32);
            }
            "priority" => self.priority = node.integer("a priority", 0..i64::from(Self::LAST) + 1)? as u32,
            "longest" => self.longest = Some(units::packet_size(node)?),
            "mask" => self.mask = value::read_mask(node, around)?,
            "queue" => self.queue = Some(check_queue(Queue::read(node, around)?, node)?),
            "loss" => self.loss = read_loss(node, around)?,
            "most" => {
                let most = node.integer("a number of flows", 1..Self::MOST_OF_ALL + 1)?;
                self.most = most as u32; // at most 2²⁰
            }
            _ => match key.strip_prefix("queue.") {
                Some(part) => {
                    let queue = self.queue.unwrap_or_default().with(part, node, around)?;
                    self.queue = Some(check_queue(queue, node)?);
                }
                None => return Err(Problem::new(format!("a queue has no `{key}`")).at(&node.span)),
            },
        }
        Ok(())
    }

    /// What it says that this scheduler, or one that tells flows apart by itself, has no use for: the key, and why.
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
                        Problem::new(format!("`{key}` in a queue whose pipe tells flows apart by itself"));
                    return (key, problem.help("such a pipe takes the packets of all its queues alike"));
                };
                let problem = Problem::new(format!("`{}` has no use for `{key}`", sharing.kind.name()));
                (
                    key,
                    problem.help(match key {
                        "weight" => "queues have weights with `wf2q+`, `drr`, `qfq` and `gfq`",
                        "priority" => "queues have priorities with `prio`",
                        _ => "only `qfq` and `gfq` sort queues by their longest packets",
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

    /// Without what its pipe has no use for.
    pub(crate) fn tidied(mut self, pipe: &Pipe) -> Self {
        for (key, _) in self.clone().unused(pipe.shares_by()) {
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

    /// All of it but the weight, where the pipe's queue is like this.
    pub(super) fn as_it_waits(&self, of_pipe: Queue) -> Self {
        Self { weight: None, queue: Some(self.queue.unwrap_or(of_pipe)), ..self.clone() }
    }

    /// As it stands in a file: keys and values.
    pub(crate) fn entries(&self) -> Vec<(&'static str, String)> {
        let mut entries = vec![("pipe", self.pipe.to_string())];
        let mut add = |key, value: Option<String>| entries.extend(value.map(|value| (key, value)));
        add("weight", self.weight.map(|weight| weight.to_string()));
        add("priority", (self.priority > 0).then(|| self.priority.to_string()));
        add("longest", self.longest.map(|longest| format!("\"{longest}\"")));
        add("mask", self.mask.map(value::mask_toml));
        add("most", (self.most != Self::MOST).then(|| self.most.to_string()));
        add("queue", self.queue.map(Queue::text));
        add("loss", self.loss.as_ref().map(LossModel::text));
        entries
    }

    /// The weight in force.
    pub fn weight(&self) -> Weight {
        self.weight.unwrap_or(Weight::ONE)
    }
}

fn read_pipe(node: &Node) -> Result<u32, Problem> {
    let range = i64::from(*super::NUMBERS.start())..i64::from(*super::NUMBERS.end()) + 1;
    Ok(node.integer("the number of a pipe", range)? as u32) // at most 65,534
}

/// A model by itself, or that at `ingress`, which means the same here.
fn read_loss(node: &Node, around: Surroundings<'_>) -> Result<Option<LossModel>, Problem> {
    if let Value::Table(table) = &node.value
        && let Some(key) = ["wire", "with-delay"].into_iter().find_map(|key| table.key(key))
    {
        return Err(Problem::new(format!(
            "`{}` in a queue, which loses packets before they get to it",
            key.name
        ))
        .at(&key.span)
        .help("say it in the pipe"));
    }
    let loss = Loss::read(node, around)?;
    Ok(loss.ingress.or(loss.wire))
}

/// A queue of its own kind serves no flows.
fn check_queue(queue: Queue, node: &Node) -> Result<Queue, Problem> {
    match queue.policy {
        Policy::DualPi2(_) => Err(Problem::new(
            "`dualpi2` is the whole queue of a link, and not one of several",
        )
        .at(&node.span)
        .help("take `codel`, `pie`, `red` or `fifo`, or give the packets a pipe with queue = \"dualpi2\"")),
        _ => Ok(queue),
    }
}

/// Whether a table names a queue that is not there.
pub(crate) fn place_of_pipe<'a>(table: &'a Table, otherwise: &'a Range<usize>) -> &'a Range<usize> {
    table.get("pipe").map_or(otherwise, |node| &node.span)
}
