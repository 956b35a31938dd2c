//! The current and future configuration: the scenario with its timeline, and requested changes.
//!
//! All text is parsed and all files are opened here; a packet thread gets [steps](Step) of engine changes, each with
//! its instant. Timeline steps are prepared [some time ahead](WINDOW). The effect of a step depends on the
//! configuration before it, so a requested change comes with the steps that follow it.

use std::collections::VecDeque;
use std::sync::Arc;

use narrows_core::{Duration, Time};
use narrows_scenario::ipfw::Command;
use narrows_scenario::{EngineChange, FeedUse, NamedFile, Scenario, ScenarioError, Timeline};

use crate::control::{Checked, Reply, Stale};
use crate::data::changes::{FirstPacket, Logged, Step};

/// How far ahead timeline steps are prepared; and the maximum number of them, apart from those at the same instant.
const WINDOW: Duration = Duration::from_secs(2);
const MOST_STEPS: usize = 256;
/// The maximum number of changes, and of skipped timeline steps, listed in a report.
const MOST_NOTES: usize = 24;

/// What to change.
#[derive(Clone, Debug)]
pub(super) enum What {
    /// Values of links.
    Set(Vec<String>),
    /// Execute ipfw commands.
    Ipfw { link: Option<String>, file: String, commands: String },
}

/// The scenario as configured up to an instant.
#[derive(Clone, Debug)]
struct State {
    scenario: Scenario,
    timeline: Timeline,
    notes: Notes,
    /// The number of changes, and the most recent ones.
    generation: u64,
    recent: VecDeque<String>,
    /// The instant of the last change.
    changed_at: Time,
}

/// The changes to list in the report, which are limited.
#[derive(Clone, Debug, Default)]
struct Notes {
    listed: Vec<String>,
    /// How many more there were.
    unlisted: u64,
}

impl Notes {
    fn add(&mut self, note: impl FnOnce() -> String) {
        if self.listed.len() < MOST_NOTES {
            self.listed.push(note());
        } else {
            self.unlisted += 1;
        }
    }
}

impl State {
    /// Another change has been made.
    fn changed(&mut self, at: Time, what: &str) {
        self.generation += 1;
        self.changed_at = at;
        if self.recent.len() == MOST_NOTES {
            self.recent.pop_front();
        }
        let note = format!("changed at {at}: {what}");
        self.recent.push_back(note.clone());
        self.notes.add(|| note);
    }

    /// The reply to a client that knows an earlier generation.
    fn stale(&self, known: u64) -> Stale {
        let since = usize::try_from(self.generation.saturating_sub(known)).unwrap_or(usize::MAX);
        let before = self.recent.len().saturating_sub(since);
        Stale { generation: self.generation, changes: self.recent.iter().skip(before).cloned().collect() }
    }

    /// Applies the timeline up to an instant.
    fn advance(&mut self, until: Time) {
        while self.timeline.peek().is_some_and(|at| at <= until)
            && let Some(event) = self.timeline.next()
        {
            match self.scenario.change_at(event.at, &event.changes) {
                Ok(_) => self.changed(event.at, &event.changes.join(", ")),
                // The timeline was checked when the scenario was read; a later change may have made a step invalid.
                Err(error) => {
                    self.notes.add(|| format!("the timeline at {} was left out: {error}", event.at));
                }
            }
        }
    }
}

/// How far steps have been prepared, and the configuration at that point.
#[derive(Clone, Debug)]
struct Ahead {
    scenario: Scenario,
    timeline: Timeline,
    /// All steps up to this instant have been prepared.
    horizon: Time,
    /// Instants at which such steps change which feeds exist, or what their writers see.
    feeds_change: VecDeque<Time>,
}

impl Ahead {
    /// Prepares the steps up to an instant, or fewer if they are many: returns a list for each of `copies` packet
    /// threads.
    fn steps(&mut self, until: Time, copies: usize) -> Vec<Vec<Step>> {
        let mut all: Vec<Vec<Step>> = (0..copies).map(|_| Vec::new()).collect();
        let (mut count, mut feeds) = (0, feeds_of(&self.scenario));
        while let Some(at) = self.timeline.peek().filter(|&at| at <= until) {
            if count >= MOST_STEPS && at > self.horizon {
                return all;
            }
            let Some(event) = self.timeline.next() else { break };
            (self.horizon, count) = (event.at, count + 1);
            let before = (copies > 1).then(|| self.scenario.clone());
            let logged = Arc::new(Logged { files: Vec::new(), texts: event.changes });
            for (copy, steps) in all.iter_mut().enumerate() {
                let changes = match before.clone().filter(|_| copy > 0) {
                    Some(mut before) => before.change_at(at, &logged.texts),
                    None => self.scenario.change_at(at, &logged.texts),
                };
                // Errors are reported when the instant is reached.
                if let Ok(changes) = changes {
                    steps.push(Step { at, changes, logged: logged.clone() });
                }
            }
            let feeds_before = std::mem::replace(&mut feeds, feeds_of(&self.scenario));
            if feeds != feeds_before {
                self.feeds_change.push_back(at);
            }
        }
        self.horizon = self.horizon.max(until);
        all
    }

    /// What a packet thread does when the first packet arrives, if it is awaited. There is only one thread then.
    fn first_packet(&self) -> Option<FirstPacket> {
        if !self.timeline.awaits_first_packet() {
            return None;
        }
        let mut ahead = self.clone();
        Some(Box::new(move |at| ahead.begin(at).pop().unwrap_or_default()))
    }

    /// The first packet has arrived. Returns the steps that follow it.
    fn begin(&mut self, at: Time) -> Vec<Vec<Step>> {
        while self.timeline.peek().is_some_and(|step| step <= at)
            && let Some(event) = self.timeline.next()
        {
            // Errors were reported at their instant.
            let _ = self.scenario.change_at(event.at, &event.changes);
        }
        self.horizon = at;
        self.timeline.first_packet(at);
        self.steps(at + WINDOW, 1)
    }
}

/// A run's scenario, its timeline and its changes.
pub(super) struct Plan {
    now: State,
    /// `None` if there is nothing to come.
    ahead: Option<Ahead>,
    /// How many of the scenario's files have been sent to packet threads.
    logged_files: usize,
}

/// Why a change is not made.
#[derive(Debug)]
pub(super) enum Refusal {
    Wrong(ScenarioError),
    Stale(Stale),
}

impl From<ScenarioError> for Refusal {
    fn from(error: ScenarioError) -> Self {
        Self::Wrong(error)
    }
}

impl From<Refusal> for Reply {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Wrong(error) => Self::Error(error.to_string()),
            Refusal::Stale(stale) => Self::Stale(stale),
        }
    }
}

/// A change that is ready to be sent, for an instant.
pub(super) struct Prepared {
    state: State,
    ahead: Option<Ahead>,
    logged_files: usize,
    pub(super) at: Time,
    /// Whether anything is changed: some commands only print.
    pub(super) is_change: bool,
    /// For each packet thread: what to do at the instant, and after it.
    pub(super) steps: Vec<(Step, VecDeque<Step>)>,
    /// Commands that print something, in order, and the link of their rules.
    pub(super) prints: Option<(String, Vec<Command>)>,
}

impl Prepared {
    /// The run's generation after this change.
    pub(super) fn generation(&self) -> u64 {
        self.state.generation
    }

    pub(super) fn first_packet(&self) -> Option<FirstPacket> {
        self.ahead.as_ref()?.first_packet()
    }
}

impl Plan {
    pub(super) fn new(scenario: Scenario) -> Self {
        let timeline = scenario.timeline();
        let logged_files = scenario.files().len();
        let (notes, recent) = (Notes::default(), VecDeque::new());
        let now = State { scenario, timeline, notes, generation: 0, recent, changed_at: Time::ZERO };
        Self { ahead: ahead_of(&now, Time::ZERO), now, logged_files }
    }

    /// The number of changes, as of the last call of [`Plan::advance`].
    pub(super) fn generation(&self) -> u64 {
        self.now.generation
    }

    /// The instant of the last change, as of the last call of [`Plan::advance`].
    pub(super) fn changed_at(&self) -> Time {
        self.now.changed_at
    }

    /// The changes since that generation, oldest first; only the last ones if there are many.
    pub(super) fn changes_since(&self, generation: u64) -> Vec<String> {
        if generation == self.now.generation { Vec::new() } else { self.now.stale(generation).changes }
    }

    /// The current scenario, as of the last call of [`Plan::advance`].
    pub(super) fn scenario(&self) -> &Scenario {
        &self.now.scenario
    }

    /// What the first packet changes, if the timeline depends on it.
    pub(super) fn first_packet(&self) -> Option<FirstPacket> {
        self.ahead.as_ref()?.first_packet()
    }

    /// The first packet has arrived: packet threads know it, and have prepared the steps that follow it.
    pub(super) fn first_packet_came(&mut self, at: Time) {
        let Some(ahead) = &mut self.ahead else { return };
        *ahead = Ahead {
            scenario: self.now.scenario.clone(),
            timeline: self.now.timeline.clone(),
            horizon: Time::ZERO,
            feeds_change: VecDeque::new(),
        };
        ahead.begin(at);
        self.now.timeline.first_packet(at);
    }

    /// Advances to `now`. Returns the instant, if any, at which a step on the way changed the feeds.
    #[must_use]
    pub(super) fn advance(&mut self, now: Time) -> Option<Time> {
        let made = self.ahead.as_ref().map_or(now, |ahead| ahead.horizon);
        self.now.advance(now.min(made));
        let instants = &mut self.ahead.as_mut()?.feeds_change;
        let passed = instants.iter().take_while(|&&at| at <= now).count();
        instants.drain(..passed).next_back()
    }

    /// When to prepare more steps, or when a step changes the feeds; never if neither will happen.
    pub(super) fn wake(&self) -> Time {
        let feeds = self.ahead.as_ref().and_then(|ahead| ahead.feeds_change.front().copied());
        self.follow_at().min(feeds.unwrap_or(Time::NEVER))
    }

    fn follow_at(&self) -> Time {
        let next = self.ahead.as_ref().and_then(|ahead| ahead.timeline.peek());
        next.map_or(Time::NEVER, |next| next.before(WINDOW))
    }

    /// Prepares the steps that are near enough: a list for each of `copies` packet threads.
    pub(super) fn follow(&mut self, now: Time, copies: usize) -> Option<Vec<Vec<Step>>> {
        if now < self.follow_at() {
            return None;
        }
        let ahead = self.ahead.as_mut()?;
        // Further than necessary, so that this is not done for each step.
        Some(ahead.steps(now + WINDOW + WINDOW, copies))
    }

    /// Whether later changes may open files that the scenario does not use yet.
    pub(super) fn open_files(&mut self, may: bool) {
        self.now.scenario.open_files(may);
    }

    /// The effect of assignments, if they were made at an instant.
    pub(super) fn check(&self, assignments: Vec<String>, at: Time) -> Result<Checked, Refusal> {
        let after = self.prepare(&What::Set(assignments), None, at, 1)?;
        let undo = after.state.scenario.difference(&self.now.scenario).assignments;
        Ok(Checked { generation: self.now.generation, undo })
    }

    /// Computes the effect of a change at an instant, and the steps that follow it, for `copies` packet threads. If a
    /// generation is given, the change is rejected for any other.
    pub(super) fn prepare(
        &self,
        what: &What,
        meant_for: Option<u64>,
        at: Time,
        copies: usize,
    ) -> Result<Prepared, Refusal> {
        let mut state = self.now.clone();
        state.advance(at);
        if let Some(known) = meant_for.filter(|&known| known != state.generation) {
            return Err(Refusal::Stale(state.stale(known)));
        }
        let before = (copies > 1).then(|| state.scenario.clone());
        let applied = apply(&mut state.scenario, what, at)?;
        let mut all_changes = vec![applied.changes];
        for _ in 1..copies {
            let mut again = before.clone().unwrap_or_else(|| state.scenario.clone());
            all_changes.push(apply(&mut again, what, at)?.changes);
        }
        let is_change = !applied.texts.is_empty();
        if is_change {
            state.changed(at, &applied.summary);
        }
        let files = state.scenario.files();
        let new_files: Vec<NamedFile> = files.iter().skip(self.logged_files).cloned().collect();
        let logged = Arc::new(Logged { files: new_files, texts: applied.texts });
        let mut ahead = ahead_of(&state, at);
        let follow = match &mut ahead {
            Some(ahead) => ahead.steps(at + WINDOW, copies),
            None => (0..copies).map(|_| Vec::new()).collect(),
        };
        let step = |changes| Step { at, changes, logged: logged.clone() };
        let steps = all_changes.into_iter().map(step).zip(follow.into_iter().map(VecDeque::from));
        Ok(Prepared {
            steps: steps.collect(),
            state,
            ahead,
            logged_files: files.len(),
            at,
            is_change,
            prints: applied.prints,
        })
    }

    /// A change has been made.
    pub(super) fn commit(&mut self, prepared: Prepared) {
        (self.now, self.ahead) = (prepared.state, prepared.ahead);
        self.logged_files = prepared.logged_files;
    }

    /// Adds a note to the report.
    pub(super) fn note(&mut self, note: impl FnOnce() -> String) {
        self.now.notes.add(note);
    }

    /// The changes and notes.
    pub(super) fn notes(&self) -> Vec<String> {
        let Notes { listed, unlisted } = &self.now.notes;
        listed.iter().cloned().chain((*unlisted > 0).then(|| format!("and {unlisted} more"))).collect()
    }
}

fn ahead_of(state: &State, horizon: Time) -> Option<Ahead> {
    let State { scenario, timeline, .. } = state;
    let is_over = timeline.peek().is_none() && !timeline.awaits_first_packet();
    let (scenario, timeline) = (scenario.clone(), timeline.clone());
    (!is_over).then(|| Ahead { scenario, timeline, horizon, feeds_change: VecDeque::new() })
}

/// The feeds of a scenario: link, name, and what their writers see.
pub(super) fn feeds_of(scenario: &Scenario) -> Vec<(String, FeedUse)> {
    let links = scenario.links.iter().flat_map(|link| link.directions());
    let feeds = links.flat_map(|(name, direction)| {
        direction.feeds().into_iter().map(|feed| (name.clone(), feed.clone())).collect::<Vec<_>>()
    });
    feeds.collect()
}

/// The effect of a change.
struct Applied {
    changes: Vec<EngineChange>,
    /// As text for the input log.
    texts: Vec<String>,
    /// As text for the report.
    summary: String,
    prints: Option<(String, Vec<Command>)>,
}

fn apply(scenario: &mut Scenario, what: &What, at: Time) -> Result<Applied, ScenarioError> {
    match what {
        What::Set(texts) => {
            let of_link = |(link, change)| EngineChange::Link { link, change };
            let changes = scenario.assign_at(at, texts)?.into_iter().map(of_link).collect();
            Ok(Applied { changes, texts: texts.clone(), summary: texts.join(", "), prints: None })
        }
        What::Ipfw { link, file, commands } => {
            let commands = scenario.ipfw_commands(link.as_deref(), file, commands)?;
            let change = scenario.ipfw_change(at, &commands)?;
            let (texts, summary) = (change.texts().to_vec(), change.summary());
            let changes = scenario.take_up(change);
            let printing = commands.commands.into_iter().map(|(command, _)| command).filter(Command::prints);
            Ok(Applied { changes, texts, summary, prints: Some((commands.link, printing.collect())) })
        }
    }
}
