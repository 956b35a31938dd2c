//! Pipes.

use narrows_core::Duration;
use narrows_core::classify::FlowMask;
use serde_json::Value as Json;

use super::mask::{MASK, most, without_mask};
use super::queues::Places;
use super::sharing::Sharing;
use crate::bound::DefaultBound;
use crate::direction::Direction;
use crate::keys::kind::Integer;
use crate::keys::quantity::Time;
use crate::keys::schema::{self, Definitions};
use crate::keys::{self, Keyed, Parameters, Row, row};
use crate::node::{Node, Table};
use crate::problem::Problem;
use crate::said_twice::said_twice;
use crate::surroundings::Surroundings;
use crate::value::Scheduler;

/// A link to which rules send packets: outgoing packets use its first lane, incoming ones its second.
#[derive(Clone, Debug, PartialEq)]
pub struct Pipe {
    /// The settings that apply to its packets.
    pub direction: Direction,
    /// The scheduler that shares the transmitter among its queues; `None` for the default, `wf2q+`.
    pub sharing: Option<Sharing>,
    /// Mask that creates a separate link for each flow.
    pub mask: Option<FlowMask>,
    /// Maximum number of links that exist at a time due to the mask.
    pub most: u32,
    /// Links and flows created on first use are removed after being empty for this long.
    pub idle: Duration,
    pub(crate) run: Run,
}

/// State of a pipe that exists only during a run. All values compare equal.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    /// How often a pipe with this number was rebuilt.
    pub(crate) generation: u32,
    /// The flow set of each queue.
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

const MOST: Integer = most("a number of links");

impl Keyed for Pipe {
    /// The keys of a pipe besides those of a direction.
    const ROWS: &'static [Row<Self>] = &[
        row!("mask", mask, MASK, "Create a link per flow, on its first packet (ipfw's dynamic pipes)."),
        row!(
            "most",
            most,
            MOST,
            "Maximum number of links the mask creates. Further flows share one more link and are counted."
        ),
        row!("idle", idle, Time::POSITIVE, "Remove links and flows created by masks after this idle time."),
    ];
}

impl Pipe {
    /// Default maximum number of links that a mask creates.
    pub const MOST: u32 = 4096;
    /// Default time until empty links and flows are removed.
    pub const IDLE: Duration = Duration::from_secs(1);

    /// The engine's name for its link.
    pub(crate) fn core_name(&self, rules: &str, number: u32) -> String {
        match self.run.generation {
            0 => format!("{rules}.{number}"),
            again => format!("{rules}.{number}-{}", again + 1),
        }
    }

    /// The pipe without the state of a run.
    pub(super) fn without_memory(&self) -> Self {
        let Self { direction, sharing, mask, most, idle, run: _ } = self;
        let (direction, run) = (direction.clone(), Run::default());
        Self { direction, sharing: *sharing, mask: *mask, most: *most, idle: *idle, run }
    }

    /// Whether both create links on first use for the same flows, and the same maximum number.
    pub(super) fn is_instanced_like(&self, other: &Self) -> bool {
        let of = |pipe: &Self| pipe.mask.map(|mask| (mask, pipe.most, pipe.idle));
        of(self) == of(other)
    }

    /// All keys of a pipe.
    pub(crate) fn keys() -> Vec<&'static str> {
        [keys::names::<Direction>(), keys::names::<Self>()].concat()
    }

    /// Reads `[links.NAME.pipes.NUMBER]`.
    pub(crate) fn read(node: &Node, around: Surroundings<'_>) -> Result<Self, Vec<Problem>> {
        let table = node.table("a table of what the pipe does").map_err(|problem| vec![problem])?;
        let mut problems = table.unknown_keys(&Self::keys());
        let mut pipe = Self::default();
        for (key, node) in table.iter().filter(|(key, _)| Self::keys().contains(&key.name.as_str())) {
            problems.extend(pipe.set(&key.name, node, around).err());
        }
        problems.extend(said_twice(table));
        if let (Some((name, problem)), true) = (pipe.conflict(), problems.is_empty()) {
            let place = table.key(name).map_or(&node.span, |key| &key.span);
            problems.push(problem.at(place).inside(name));
        }
        if let (Some(key), None) = (table.key("most"), pipe.mask) {
            problems.push(without_mask(key, "links"));
        }
        if problems.is_empty() { Ok(pipe) } else { Err(problems) }
    }

    /// As written in a file.
    pub(crate) fn table(&self) -> Table {
        let mut table = keys::written(&self.direction);
        if let Some(sharing) = self.sharing {
            table.put("scheduler", sharing.value());
        }
        self.write(&mut table);
        table
    }

    /// The schema of a pipe.
    pub(crate) fn schema(definitions: &mut Definitions) -> Json {
        schema::define(definitions, "Pipe", |definitions| {
            let all = [keys::keys::<Direction>(), keys::keys::<Self>()].concat();
            let doc = "A link to which rules send packets: all that one direction of a link does, and what makes links on first use.";
            schema::object(doc, &all, definitions)
        })
    }

    /// Sets one key, or one part.
    pub(crate) fn set(&mut self, key: &str, node: &Node, around: Surroundings<'_>) -> Result<(), Problem> {
        let inside = |problem: Problem| problem.inside(key);
        match key {
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
            _ => match keys::named::<Self>(key) {
                Some(row) => row.set(self, node, around).map_err(inside)?,
                None => self.direction.set(key, node, around)?,
            },
        }
        Ok(())
    }

    /// Returns the first conflict among its settings: the key to report, and the problem.
    pub(crate) fn conflict(&self) -> Option<(&'static str, Problem)> {
        if let Some(conflict) = self.direction.conflict() {
            return Some(conflict);
        }
        self.mask?;
        if let Some(feed) = self.direction.feeds().first() {
            let problem = Problem::new(format!("the feed `{}` in a pipe with a mask", feed.name));
            return Some((
                "delay",
                problem
                    .help("each flow has its own link there, but there is one feed: give each flow a pipe"),
            ));
        }
        None
    }

    /// The scheduler that its queues share it by; `None` for a scheduler that classifies flows itself.
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

    /// Parses a key as the number of a pipe or queue.
    pub(crate) fn number(name: &str) -> Option<u32> {
        let plain = !name.starts_with('0') && name.bytes().all(|byte| byte.is_ascii_digit());
        name.parse().ok().filter(|number| plain && super::NUMBERS.contains(number))
    }
}
