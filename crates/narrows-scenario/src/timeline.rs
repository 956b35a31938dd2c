//! What changes when: `[[timeline]]`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use narrows_core::{Duration, Time};

use crate::assign::Assignment;
use crate::node::{Node, Value};
use crate::problem::Problem;
use crate::units;

/// An entry of the timeline.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) at: Duration,
    pub(crate) from: Origin,
    pub(crate) every: Option<Duration>,
    /// How often in all; nothing for as long as the run lasts.
    pub(crate) times: Option<u64>,
    pub(crate) set: Vec<Assignment>,
}

/// What `at` counts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Origin {
    #[default]
    Start,
    FirstPacket,
}

pub(crate) const ORIGINS: &[(&str, Origin)] =
    &[("start", Origin::Start), ("first-packet", Origin::FirstPacket)];
pub(crate) const KEYS: &[&str] = &["at", "from", "set", "every", "times"];

/// What changes more often than this is a trace, not a timeline, and would take all the time of a live run.
const SHORTEST_ROUND: Duration = Duration::from_millis(1);

/// Reads one `[[timeline]]`.
pub(crate) fn read(node: &Node) -> Result<Entry, Problem> {
    let table = node.table("a table: at = \"5s\", set = { … }")?;
    table.only(KEYS)?;
    let every = table.optional("every", |node| match units::time(node)? {
        every if every < SHORTEST_ROUND => Err(node.expected("a time of 1ms or more")),
        every => Ok(every),
    })?;
    let times =
        table.optional("times", |node| node.integer("a number of times", 1..i64::MAX))?.map(|n| n as u64);
    if let (Some(key), None) = (table.key("times"), every) {
        return Err(Problem::new("`times` without `every`")
            .at(&key.span)
            .help("say how long a round is: every = \"10s\""));
    }
    let set = table.required("set", &node.span, |node| {
        let set = Assignment::read_table(node.table("what to set: { \"access.down.rate\" = \"2mbit\" }")?)?;
        if set.is_empty() { Err(node.expected("something to set")) } else { Ok(set) }
    })?;
    Ok(Entry {
        at: table.required("at", &node.span, units::time)?,
        from: table.optional("from", |node| node.choice("origin", ORIGINS))?.unwrap_or_default(),
        every,
        times: if every.is_some() { times } else { Some(1) },
        set,
    })
}

/// What changes when, in order of time; at one instant in the order of the file. Loops without an end are unrolled as
/// they are taken.
#[derive(Clone, Debug)]
pub struct Timeline {
    entries: Vec<Entry>,
    /// The next round of each entry whose origin is known: its instant, the entry, and the number of the round.
    due: BinaryHeap<Reverse<(Time, usize, u64)>>,
    /// Entries that count from the first packet.
    waiting: Vec<usize>,
}

/// Something changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineEvent {
    /// When.
    pub at: Time,
    /// What, for [`Scenario::assign_all`](crate::Scenario::assign_all).
    pub set: Vec<String>,
}

impl Timeline {
    pub(crate) fn new(entries: Vec<Entry>) -> Self {
        let mut timeline = Self { entries, due: BinaryHeap::new(), waiting: Vec::new() };
        for index in 0..timeline.entries.len() {
            match timeline.entries[index].from {
                Origin::Start => timeline.begin(index, Time::ZERO),
                Origin::FirstPacket => timeline.waiting.push(index),
            }
        }
        timeline
    }

    fn begin(&mut self, index: usize, origin: Time) {
        self.due.push(Reverse((origin + self.entries[index].at, index, 1)));
    }

    /// Says that the first packet came at this instant; entries that count from it are due from then on. Later calls
    /// do nothing.
    pub fn first_packet(&mut self, at: Time) {
        for index in std::mem::take(&mut self.waiting) {
            self.begin(index, at);
        }
    }

    /// Whether there are entries that count from the first packet, which has not come yet.
    pub fn awaits_first_packet(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The instant of the next event, so far as it is known.
    pub fn peek(&self) -> Option<Time> {
        self.due.peek().map(|Reverse((at, ..))| *at).filter(|at| *at < Time::NEVER)
    }

    /// The next event's entry; the entry's next round takes its place.
    pub(crate) fn pop(&mut self) -> Option<(Time, usize)> {
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
        Some(TimelineEvent { at, set: self.entries[index].set.iter().map(Assignment::text).collect() })
    }
}

/// Reads the list of entries.
pub(crate) fn list(node: &Node) -> Result<&[Node], Problem> {
    match &node.value {
        Value::Array(items) => Ok(items),
        _ => Err(node.expected("a list of tables").help("write [[timeline]] with two brackets")),
    }
}
