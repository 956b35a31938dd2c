//! `sleep` in a script: what follows happens later, on the timeline of the scenario.

use std::collections::BTreeSet;

use narrows_core::{Duration, Time};

use super::Script;
use super::scenario::Said;
use super::script::Trees;
use crate::link::Way;
use crate::netem;
use crate::problem::Problem;
use crate::{Scenario, ScenarioError};

/// The most disciplines, classes and filters that are looked at for all steps together, and what a step counts besides: at each
/// step all of them are.
const MOST: usize = 100_000;
const STEP: usize = 10;

/// Changes at an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// How long after the start.
    pub at: Duration,
    /// After how long it happens again, and so on.
    pub every: Option<Duration>,
    /// Each key that changes, as in `link.up.rate`, and its value as in a file.
    pub set: Vec<(String, String)>,
}

impl Step {
    /// As a part of a scenario file.
    pub(super) fn text(&self) -> String {
        let every = self.every.map_or(String::new(), |every| format!("every = \"{every}\"\n"));
        let mut text = format!("\n[[timeline]]\nat = \"{}\"\n{every}[timeline.set]\n", self.at);
        for (key, value) in &self.set {
            text += &format!("\"{key}\" = {value}\n");
        }
        text
    }

    /// The assignments, for [`Scenario::schedule`].
    pub fn assignments(&self) -> Vec<String> {
        self.set.iter().map(|(key, value)| format!("{key}={}", value.replace('\n', " "))).collect()
    }
}

impl Script {
    /// What changes after the start, in order of time. A discipline that is deleted takes its settings along, and leaves the
    /// packets in it, which Linux drops.
    ///
    /// # Errors
    /// As [`Script::placed`], and if a link cannot change in this way while it runs.
    pub fn steps(&self, exact: bool) -> Result<Vec<Step>, ScenarioError> {
        if self.later.is_empty() {
            return Ok(Vec::new());
        }
        let mut placed = self.placed(exact)?;
        let mut before = self.said(&placed)?;
        let mut at_turn = before.clone();
        let start = self.network_text(&placed);
        // Tables of distributions are in files, which are looked up when the scenario is read.
        let names_files =
            |all: &Said| all.values().any(|value| value.contains("file = ") || value.contains(".dist"));
        let mut scenario =
            if names_files(&before) { None } else { Some(Scenario::parse(&start, &self.name)?) };
        let mut trees = Trees::default();
        self.execute(0..self.later[0].before, &mut trees)?;
        let (mut steps, mut looked_at, mut overtaking) = (Vec::new(), 0, BTreeSet::new());
        for (number, moment) in self.later.iter().enumerate() {
            let end = self.later.get(number + 1).map_or(self.commands.len(), |next| next.before);
            let wrong = |problem: Problem| self.error(problem.put_at(&self.commands[moment.before].span));
            self.execute(moment.before..end, &mut trees)?;
            looked_at += trees.size() + STEP;
            if looked_at > MOST {
                return Err(wrong(
                    Problem::new("too many changes of too many disciplines and classes after `sleep`")
                        .help("write the rates as a trace: docs/traces.md"),
                ));
            }
            for device in self.settings(&mut trees, exact)? {
                for place in placed.iter_mut().filter(|place| place.device.name == device.name) {
                    place.device.clone_from(&device);
                }
            }
            let after = self.said(&placed)?;
            let mut set = changes(&before, &after).map_err(wrong)?;
            if !trees.keep_order() {
                overtake(&mut set, &after, &mut overtaking);
            }
            let repeats = self.repeats.as_ref().filter(|turn| moment.at > turn.from);
            let step = Step { at: moment.at, every: repeats.map(|turn| turn.to - turn.from), set };
            if let Some(scenario) = scenario.as_mut().filter(|_| !names_files(&after)) {
                scenario
                    .assign_at(Time::ZERO + moment.at, &step.assignments())
                    .map_err(|error| wrong(error.without_place()))?;
            }
            if !step.set.is_empty() {
                steps.push(step);
            }
            before = after;
            if self.repeats.as_ref().is_some_and(|turn| moment.at <= turn.from) {
                at_turn.clone_from(&before);
            }
        }
        match &self.repeats {
            Some(turn) if at_turn != before => Err(self.error(
                Problem::new("a loop that never ends, and whose turns leave something else each time")
                    .at(&turn.span)
                    .help("write out the turns that are to happen: for i in $(seq 1 100); do …; done"),
            )),
            _ => Ok(steps),
        }
    }
}

/// Lets packets with a new delay overtake those with the one before, as netem does (`tfifo_enqueue` in `sch_netem.c`). `done`
/// are the keys of directions that do already.
fn overtake(set: &mut Vec<(String, String)>, after: &Said, done: &mut BTreeSet<String>) {
    let changes: Vec<String> =
        set.iter().filter_map(|(key, _)| Some(key.strip_suffix(".delay")?.to_owned() + ".order")).collect();
    for order in changes {
        if after.keys().any(|key| path(key) == order) {
            continue;
        }
        let resets = set.iter().any(|(key, _)| *key == order);
        if resets || !done.contains(&order) {
            set.retain(|(key, _)| *key != order);
            set.push((order.clone(), "\"allow\"".into()));
            done.insert(order);
        }
    }
}

/// A key of a direction, as in `link.up.rate`.
fn path((link, way, key): &(String, Way, &str)) -> String {
    format!("{link}.{}.{key}", way.name())
}

/// The keys whose values are different, and those that are gone.
fn changes(before: &Said, after: &Said) -> Result<Vec<(String, String)>, Problem> {
    let new = after.iter().filter(|(key, value)| before.get(key) != Some(value));
    let mut all: Vec<_> = new.map(|(key, value)| (path(key), value.clone())).collect();
    for key in before.keys().filter(|key| !after.contains_key(key)) {
        let plain = netem::plain(key.2).ok_or_else(|| {
            Problem::new(format!("after `sleep`, a script cannot take away the `{}` of a link", key.2))
                .help("start the run with it, or without it")
        })?;
        all.push((path(key), plain.to_owned()));
    }
    Ok(all)
}
