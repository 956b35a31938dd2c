//! Scheduled changes: `[[timeline]]`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use narrows_core::{Duration, Time as Instant};
use serde_json::json;

use crate::assign::Assignment;
use crate::ipfw::Written;
use crate::keys::compound::Group;
use crate::keys::kind::{ByHand, Choice, Given, Integer, text};
use crate::keys::quantity::Time;
use crate::keys::{Keyed, Row, row};
use crate::node::{Key, Node, Table, Value};
use crate::problem::Problem;

/// An entry of the timeline.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Entry {
    pub(crate) at: Duration,
    pub(crate) from: Origin,
    pub(crate) every: Option<Duration>,
    /// Total number of rounds, if `every` is given; `None` for the rest of the run.
    pub(crate) times: Option<u64>,
    pub(crate) set: Vec<Assignment>,
    /// Made after the assignments.
    pub(crate) ipfw: Vec<Written>,
}

impl Entry {
    /// Its changes as text, for [`Scenario::change_at`](crate::Scenario::change_at).
    pub(crate) fn texts(&self) -> Vec<String> {
        self.set.iter().map(Assignment::text).chain(self.ipfw.iter().map(Written::to_string)).collect()
    }
}

/// The instant that `at` counts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Origin {
    #[default]
    Start,
    FirstPacket,
}

/// Minimum time between rounds. Faster changes belong in a trace; as a timeline they would take all the
/// time of a live run.
const SHORTEST_ROUND: Duration = Duration::from_millis(1);

const TIMES: Integer = Integer { what: "a number of times", low: 1, high: Integer::NO_END };
const FROM: Choice<Origin> =
    Choice { what: "origin", choices: &[("start", Origin::Start), ("first-packet", Origin::FirstPacket)] };
const SET_HELP: &str = "write set = { \"access.down.rate\" = \"2mbit\" }";
const SET: ByHand<Vec<Assignment>> = ByHand {
    words: || "table".into(),
    schema: |_| json!({ "type": "object", "additionalProperties": true }),
    read: |node, _| {
        let table =
            node.table("a table of keys and their new values").map_err(|problem| problem.help(SET_HELP))?;
        let set = Assignment::read_table(table)?;
        if set.is_empty() {
            Err(Problem::new("an empty table: nothing would change").at(&node.span).help(SET_HELP))
        } else {
            Ok(set)
        }
    },
    write: |set| {
        let mut table = Table::default();
        set.iter().for_each(|assignment| table.put(&assignment.path(), assignment.value().clone()));
        Some(Value::Table(table))
    },
};
const IPFW_EXAMPLE: &str = "write ipfw = { net = [\"delete 100\", \"add 100 deny udp from any to any\"] }";
const IPFW: ByHand<Vec<Written>> = ByHand {
    words: || "table of lists".into(),
    schema: |_| json!({ "type": "object", "additionalProperties": { "type": "array", "items": { "type": "string" } } }),
    read: |node, _| {
        let help = |problem: Problem| problem.help(IPFW_EXAMPLE);
        let mut all = Vec::new();
        for (link, commands) in
            node.table("a table of links with rules, each with commands").map_err(help)?.iter()
        {
            let inside = |problem: Problem| problem.inside(&link.name);
            for command in commands.list("a list of commands of ipfw").map_err(help).map_err(inside)? {
                all.push(Written::read(&link.name, command).map_err(help).map_err(inside)?);
            }
        }
        match all.is_empty() {
            true => Err(help(Problem::new("no commands: nothing would change").at(&node.span))),
            false => Ok(all),
        }
    },
    write: |all| {
        let mut table: Vec<(&str, Vec<Node>)> = Vec::new();
        for command in all {
            let text = Node::new(text(&command.text));
            match table.last_mut().filter(|(link, _)| *link == command.link) {
                Some((_, commands)) => commands.push(text),
                None => table.push((&command.link, vec![text])),
            }
        }
        let key = |name: &str| Key { name: name.into(), span: 0..0 };
        let links = table.into_iter().map(|(link, commands)| (key(link), Node::new(Value::Array(commands))));
        (!all.is_empty()).then(|| Value::Table(links.collect()))
    },
};
/// The entries, each a table of the file.
pub(crate) const ENTRY: Group<Entry> =
    Group::new("Step", "Something changes.", "a table: at = \"5s\", set = { … }");

impl Keyed for Entry {
    const ROWS: &'static [Row<Self>] = &[
        row!("at", at, Time::ANY, "Time of the change.").required(),
        row!("from", from, FROM, "Origin of `at`: the start of the run, or the first packet at any port."),
        row!(
            "set",
            set,
            SET,
            "New values: paths such as `access.down.rate`, or nested tables, with values as in a link's table. A table replaces the whole value; to set one part only, quote its path: `\"access.loss.wire\"`."
        )
        .default("nothing"),
        row!(
            "ipfw",
            ipfw,
            IPFW,
            "Commands of [ipfw](ipfw.md#changing-a-run) for links with rules, in order, each link with a list: `ipfw = { net = [\"delete 100\"] }`. They follow the values of `set`."
        )
        .default("none"),
        row!("every", every, Given(Time::at_least(SHORTEST_ROUND)), "Repeat with this period.")
            .default("once only"),
        row!("times", times, Given(TIMES), "Total number of times; only with `every`.")
            .default("until the end of the run"),
    ];

    fn check(&self, table: &Table, span: &Range<usize>) -> Result<(), Problem> {
        if self.set.is_empty() && self.ipfw.is_empty() {
            return Err(Problem::new("nothing changes").at(span).help(SET_HELP).help(IPFW_EXAMPLE));
        }
        match (table.key("times"), self.every) {
            (Some(key), None) => Err(Problem::new("`times` without `every`")
                .at(&key.span)
                .help("set the period: every = \"10s\"")),
            _ => Ok(()),
        }
    }
}

/// Scheduled changes in order of time; those at one instant in the order of the file. Endless loops are
/// unrolled on demand.
#[derive(Clone, Debug)]
pub struct Timeline {
    entries: Vec<Entry>,
    /// The next round of each entry whose origin is known: its instant, the entry, and the round's number.
    due: BinaryHeap<Reverse<(Instant, usize, u64)>>,
    /// Entries that count from the first packet, which has not arrived.
    waiting: Vec<usize>,
}

/// One scheduled change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineEvent {
    /// Its instant.
    pub at: Instant,
    /// The changes, for [`Scenario::change_at`](crate::Scenario::change_at): values as in `access.rate=1mbit`, and commands
    /// as in `ipfw net delete 100`.
    pub changes: Vec<String>,
}

impl Timeline {
    pub(crate) fn new(entries: Vec<Entry>) -> Self {
        let mut timeline = Self { entries, due: BinaryHeap::new(), waiting: Vec::new() };
        for index in 0..timeline.entries.len() {
            match timeline.entries[index].from {
                Origin::Start => timeline.begin(index, Instant::ZERO),
                Origin::FirstPacket => timeline.waiting.push(index),
            }
        }
        timeline
    }

    fn begin(&mut self, index: usize, origin: Instant) {
        self.due.push(Reverse((origin + self.entries[index].at, index, 1)));
    }

    /// Reports the instant of the first packet, from which some entries count. Later calls have no effect.
    pub fn first_packet(&mut self, at: Instant) {
        for index in std::mem::take(&mut self.waiting) {
            self.begin(index, at);
        }
    }

    /// Whether entries still wait for the first packet.
    pub fn awaits_first_packet(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The instant of the next event, as far as it is known.
    pub fn peek(&self) -> Option<Instant> {
        self.due.peek().map(|Reverse((at, ..))| *at).filter(|at| *at < Instant::NEVER)
    }

    /// Removes and returns the next event's entry, and schedules the entry's next round.
    pub(crate) fn pop(&mut self) -> Option<(Instant, usize)> {
        self.peek()?;
        let Reverse((at, index, round)) = self.due.pop()?;
        let entry = &self.entries[index];
        if let Some(every) = entry.every.filter(|_| entry.times.is_none_or(|times| round < times)) {
            self.due.push(Reverse((at + every, index, round + 1)));
        }
        Some((at, index))
    }
}

impl Iterator for Timeline {
    type Item = TimelineEvent;

    fn next(&mut self) -> Option<TimelineEvent> {
        let (at, index) = self.pop()?;
        Some(TimelineEvent { at, changes: self.entries[index].texts() })
    }
}
