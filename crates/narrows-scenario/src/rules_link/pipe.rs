//! Pipes.

use narrows_core::classify::FlowMask;
use narrows_core::{Bytes, Duration};

use crate::bound::DefaultBound;
use crate::direction::{self, Direction};
use crate::link::check_table;
use crate::node::{Node, Value};
use crate::problem::Problem;
use crate::rules_link::queues::Places;
use crate::units;
use crate::value::{self, Scheduler, SchedulerKind, Surroundings};

/// A link to which rules send packets, outgoing ones by its first lane and incoming ones by its second.
#[derive(Clone, Debug, PartialEq)]
pub struct Pipe {
    /// What packets meet there.
    pub direction: Direction,
    /// How its queues share the transmitter; nothing for the default, `wf2q+`.
    pub sharing: Option<Sharing>,
    /// Makes a link of its own for each flow that this tells apart.
    pub mask: Option<FlowMask>,
    /// The most links at a time that a mask makes.
    pub most: u32,
    /// Links and flows that were made on first use are given up when nothing has been in them for so long.
    pub idle: Duration,
    pub(crate) run: Run,
}

/// How queues share the transmitter of their pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// The algorithm: one of [`Sharing::KINDS`].
    pub kind: SchedulerKind,
    /// The quantum of weight 1, where the algorithm has one; nothing for the default.
    pub quantum: Option<Bytes>,
}

impl Default for Sharing {
    /// As ipfw has it.
    fn default() -> Self {
        Self { kind: SchedulerKind::Wf2q, quantum: None }
    }
}

impl Sharing {
    /// The schedulers that queues can share a pipe by.
    pub const KINDS: [SchedulerKind; 6] = [
        SchedulerKind::Fifo,
        SchedulerKind::Prio,
        SchedulerKind::Drr,
        SchedulerKind::Wf2q,
        SchedulerKind::Qfq,
        SchedulerKind::Gfq,
    ];

    /// Reads what says no more than the algorithm and its quantum; nothing for what says more, or names another algorithm.
    fn read(node: &Node, around: Surroundings<'_>) -> Result<Option<Self>, Problem> {
        let kind_of = |node: &Node| match &node.value {
            Value::String(text) => {
                SchedulerKind::from_name(text.trim()).filter(|kind| Self::KINDS.contains(kind))
            }
            _ => None,
        };
        match &node.value {
            Value::Table(table)
                if table.iter().all(|(key, _)| ["type", "quantum"].contains(&key.name.as_str())) =>
            {
                let Some(kind) = table.get("type").and_then(kind_of) else { return Ok(None) };
                if let (Some(key), None) = (table.key("quantum"), kind.about().quantum) {
                    return Err(Problem::new(format!("`{}` has no quantum", kind.name())).at(&key.span));
                }
                let quantum = table.optional("quantum", |node| Scheduler::read_quantum(node, around))?;
                Ok(Some(Self { kind, quantum }))
            }
            _ => Ok(kind_of(node).map(|kind| Self { kind, quantum: None })),
        }
    }

    /// The quantum in force, where there is one.
    pub fn quantum(self) -> Option<Bytes> {
        self.quantum.or(self.kind.about().quantum)
    }

    /// Whether queues have weights.
    pub(crate) fn has_weights(self) -> bool {
        self.kind.about().weights
    }

    pub(crate) fn text(self) -> String {
        let name = self.kind.name();
        match self.quantum {
            None => format!("\"{name}\""),
            Some(quantum) => format!("{{ type = \"{name}\", quantum = \"{quantum}\" }}"),
        }
    }
}

/// What a run remembers of a pipe and no file says. Two are equal whatever they are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    /// How often a pipe of this number was made anew.
    pub(crate) generation: u32,
    /// Which flow set of the pipe's queue is which queue.
    pub(crate) places: Places,
}

impl PartialEq for Run {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Default for Pipe {
    fn default() -> Self {
        Self {
            direction: Direction::default(),
            sharing: None,
            mask: None,
            most: Self::MOST,
            idle: Self::IDLE,
            run: Run::default(),
        }
    }
}

/// The keys of a pipe besides those of a direction.
pub(crate) const OWN_KEYS: &[&str] = &["mask", "most", "idle"];

impl Pipe {
    /// The most links that a mask makes, where it is not said.
    pub const MOST: u32 = 4096;
    /// The most that it can be said to make.
    const MOST_OF_ALL: i64 = 1 << 20;
    /// How long links and flows stay idle, where it is not said.
    pub const IDLE: Duration = Duration::from_secs(1);

    /// The engine's name of its link.
    pub(crate) fn core_name(&self, rules: &str, number: u32) -> String {
        match self.run.generation {
            0 => format!("{rules}.{number}"),
            again => format!("{rules}.{number}-{}", again + 1),
        }
    }

    /// The same pipe in no run.
    pub(super) fn without_memory(&self) -> Self {
        let Self { direction, sharing, mask, most, idle, run: _ } = self;
        let (direction, run) = (direction.clone(), Run::default());
        Self { direction, sharing: *sharing, mask: *mask, most: *most, idle: *idle, run }
    }

    /// Whether links are made on first use for the same flows, and as many.
    pub(super) fn is_instanced_like(&self, other: &Self) -> bool {
        let of = |pipe: &Self| pipe.mask.map(|mask| (mask, pipe.most, pipe.idle));
        of(self) == of(other)
    }

    /// All keys of a pipe.
    pub(crate) fn keys() -> Vec<&'static str> {
        [&direction::KEYS[..], OWN_KEYS].concat()
    }

    /// Reads `[links.NAME.pipes.NUMBER]`.
    pub(crate) fn read(node: &Node, around: Surroundings<'_>) -> Result<Self, Vec<Problem>> {
        let table = node.table("a table of what the pipe does").map_err(|problem| vec![problem])?;
        let mut problems = table.unknown_keys(&Self::keys());
        let mut pipe = Self::default();
        for (key, node) in table.iter().filter(|(key, _)| Self::keys().contains(&key.name.as_str())) {
            problems.extend(pipe.set(&key.name, node, around).err());
        }
        check_table(table, &mut |result| problems.extend(result.err()));
        if let (Some((name, problem)), true) = (pipe.conflict(), problems.is_empty()) {
            let place = table.key(name).map_or(&node.span, |key| &key.span);
            problems.push(problem.at(place).inside(name));
        }
        if let (Some(key), None) = (table.key("most"), pipe.mask) {
            problems.push(
                Problem::new("`most` without a mask, which makes links")
                    .at(&key.span)
                    .help("say what tells flows apart: mask = { src-ip = \"0xffffffff\" }"),
            );
        }
        if problems.is_empty() { Ok(pipe) } else { Err(problems) }
    }

    /// Sets what one key, or one part, says.
    pub(crate) fn set(&mut self, key: &str, node: &Node, around: Surroundings<'_>) -> Result<(), Problem> {
        let inside = |problem: Problem| problem.inside(key);
        match key {
            "mask" => self.mask = value::read_mask(node, around).map_err(inside)?,
            "most" => {
                let most = node.integer("a number of links", 1..Self::MOST_OF_ALL + 1).map_err(inside)?;
                self.most = most as u32; // at most 2²⁰
            }
            "idle" => self.idle = units::positive_time(node).map_err(inside)?,
            "scheduler" => match Sharing::read(node, around).map_err(inside)? {
                Some(sharing) => {
                    self.sharing = Some(sharing);
                    self.direction.scheduler = None;
                }
                None => {
                    self.direction.set(key, node, around)?;
                    self.sharing = None;
                }
            },
            "scheduler.quantum" if self.direction.scheduler.is_none() => {
                let sharing = self.sharing.unwrap_or_default();
                if sharing.kind.about().quantum.is_none() {
                    let problem = Problem::new(format!("`{}` has no quantum", sharing.kind.name()));
                    return Err(inside(problem.at(&node.span)));
                }
                let quantum = Scheduler::read_quantum(node, around).map_err(inside)?;
                self.sharing = Some(Sharing { quantum: Some(quantum), ..sharing });
            }
            _ => self.direction.set(key, node, around)?,
        }
        Ok(())
    }

    /// Where its values do not go together: the key that stands for it, and why.
    pub(crate) fn conflict(&self) -> Option<(&'static str, Problem)> {
        if let Some(conflict) = self.direction.conflict() {
            return Some(conflict);
        }
        self.mask?;
        if let Some(feed) = self.direction.effective_delay().feeds().first() {
            let problem = Problem::new(format!("the feed `{}` in a pipe with a mask", feed.name));
            return Some((
                "delay",
                problem.help(
                    "each flow has a link of its own there, and there is one feed: give each flow a pipe",
                ),
            ));
        }
        None
    }

    /// The scheduler that its queues share it by; nothing where it tells flows apart by itself.
    pub(crate) fn shares_by(&self) -> Option<Sharing> {
        match &self.direction.scheduler {
            None => Some(self.sharing.unwrap_or_default()),
            Some(_) => None,
        }
    }

    pub(super) fn set_default_bound(&mut self, beside: Option<Duration>) {
        let direction = &mut self.direction;
        let own = direction.mean_delay().filter(|_| direction.says_delay()).map(|delay| delay + delay);
        let round_trip = match (own, beside) {
            (Some(own), Some(beside)) => Some(own + beside),
            (one, other) => one.or(other),
        };
        direction.default_bound = DefaultBound::new(direction.mean_rate(), round_trip);
    }

    /// The number that a key names, of a pipe or queue.
    pub(crate) fn number(name: &str) -> Option<u32> {
        let plain = !name.starts_with('0') && name.bytes().all(|byte| byte.is_ascii_digit());
        name.parse().ok().filter(|number| plain && super::NUMBERS.contains(number))
    }
}
