//! The state of `top`, and how keys and answers change it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use narrows_core::queue::Bound;
use narrows_core::{Bytes, Duration, Rate};
use narrows_live::control::{CurrentDirection, CurrentScenario};
use narrows_live::run_record::About;
use narrows_scenario::LinkFlags;

use super::editor::Editor;
use super::model::{Key, Line, Model};
use super::order::Order;
use super::source::{Event, Refused, Wanted};

/// Maximum number of changes that can be undone.
const MOST_UNDO: usize = 100;

/// The page shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Page {
    /// All links.
    #[default]
    Table,
    /// One link.
    Link,
    Help,
}

/// The prompt in the last line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Prompt {
    Filter(Editor),
    /// An assignment.
    Change(Editor),
}

/// Connection to the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Contact {
    /// It has not answered yet.
    #[default]
    Awaited,
    Answers,
    /// Its answer is late.
    Silent(String),
    Ended,
}

/// Actions outside the state.
#[derive(Clone, Debug)]
pub(super) enum Effect {
    Quit,
    /// Query the run now.
    Look,
    Change(Wanted),
}

/// Assignments to a run, empty for the only one; and whether they undo others.
type Assignments = (String, Vec<String>, bool);

/// The state.
#[derive(Debug, Default)]
pub(super) struct App {
    pub(super) about: About,
    pub(super) contact: Contact,
    model: Model,
    /// The model shown while the display is frozen.
    frozen: Option<Box<Model>>,
    /// The settings of the run; in a group, by the names of its runs.
    settings: BTreeMap<String, Arc<CurrentScenario>>,
    pub(super) order: Order,
    pub(super) page: Page,
    pub(super) prompt: Option<Prompt>,
    /// The selected line.
    selected: Option<Key>,
    /// The first line shown, and the number of visible lines.
    pub(super) first: usize,
    pub(super) room: usize,
    /// Scroll position in the details of a link.
    pub(super) scrolled: u16,
    /// The last action, in words.
    pub(super) message: String,
    /// Why a change was refused.
    pub(super) refusal: Option<String>,
    /// Whether a change is in progress.
    pub(super) is_changing: bool,
    /// A change deferred until settings of this generation or later arrive, because the current ones are
    /// known to be outdated.
    deferred: Option<Assignments>,
    known_generation: BTreeMap<String, u64>,
    undo: VecDeque<(String, Vec<String>)>,
}

impl App {
    pub(super) fn new(about: About) -> Self {
        Self { about, ..Self::default() }
    }

    /// The model to show.
    pub(super) fn model(&self) -> &Model {
        self.frozen.as_deref().unwrap_or(&self.model)
    }

    pub(super) fn is_paused(&self) -> bool {
        self.frozen.is_some()
    }

    pub(super) fn pause(&mut self) {
        self.frozen = match self.frozen.take() {
            Some(_) => None,
            None => Some(Box::new(self.model.clone())),
        };
    }

    /// The lines to show.
    pub(super) fn lines(&self) -> Vec<&Line> {
        self.order.lines(self.model())
    }

    /// The index of the selected line; the first line if none is selected.
    pub(super) fn position(&self, lines: &[&Line]) -> usize {
        let is_it = |line: &&Line| Some(&line.key) == self.selected.as_ref();
        lines.iter().position(is_it).unwrap_or(0)
    }

    /// The selected line.
    pub(super) fn line(&self) -> Option<&Line> {
        // A link whose details are shown stays selected, whatever the filter.
        let own = self.selected.as_ref().and_then(|key| self.model().line(key));
        let lines = self.lines();
        match self.page {
            Page::Link if own.is_some() => own,
            _ => lines.get(self.position(&lines)).copied(),
        }
    }

    /// Moves the selection by this many lines, within the list.
    pub(super) fn go(&mut self, places: isize) {
        let lines = self.lines();
        let last = lines.len().saturating_sub(1);
        let at = self.position(&lines).saturating_add_signed(places).min(last);
        let key = lines.get(at).map(|line| line.key.clone());
        self.selected = key.or(self.selected.take());
        self.scrolled = 0;
    }

    /// Scrolls so that the selected line is visible.
    pub(super) fn scroll(&mut self, room: usize) {
        let lines = self.lines();
        let (count, at) = (lines.len(), self.position(&lines));
        self.room = room;
        self.first = self.first.min(count.saturating_sub(room)).min(at).max((at + 1).saturating_sub(room));
    }

    /// Processes an event from the run.
    pub(super) fn take(&mut self, event: Event) -> Option<Effect> {
        match event {
            Event::Answer(stats, settings) => {
                self.model.take(&stats, &settings);
                return self.answered([(String::new(), settings)].into());
            }
            Event::Group(answer) => {
                self.model.take_group(&answer);
                let settings = answer.answers.into_iter().map(|(run, (_, settings))| (run, settings));
                return self.answered(settings.collect());
            }
            Event::Silent(why) => self.contact = Contact::Silent(why),
            Event::Gone => self.contact = Contact::Ended,
            Event::Back(about) => {
                (self.about, self.contact, self.model) = (*about, Contact::Awaited, Model::default());
                self.settings.clear();
                self.known_generation.clear();
                self.deferred = None;
                self.undo.clear();
                self.message = "a run of this name has started".into();
            }
            Event::Changed(wanted, result) => return self.changed(*wanted, result),
            Event::End => return Some(Effect::Quit),
            Event::Key(_) | Event::Resized => {}
        }
        None
    }

    fn answered(&mut self, settings: BTreeMap<String, Arc<CurrentScenario>>) -> Option<Effect> {
        (self.contact, self.settings) = (Contact::Answers, settings);
        let (run, assignments, is_undo) = self.deferred.take()?;
        self.want(run, assignments, is_undo)
    }

    fn changed(&mut self, wanted: Wanted, result: Result<super::source::Made, Refused>) -> Option<Effect> {
        self.is_changing = false;
        let text = wanted.assignments.join(" ");
        match result {
            Ok(made) => {
                self.known_generation.insert(wanted.run.clone(), made.generation);
                self.prompt = None;
                if wanted.is_undo {
                    self.undo.pop_back();
                    self.message = format!("taken back: {}", self.set_line(&wanted.run, &wanted.assignments));
                } else {
                    let can = if made.undo.is_empty() { "" } else { " (u: undo)" };
                    self.message = format!("done: {}{can}", self.set_line(&wanted.run, &wanted.assignments));
                    if !made.undo.is_empty() {
                        self.undo.push_back((wanted.run.clone(), made.undo));
                    }
                    if self.undo.len() > MOST_UNDO {
                        self.undo.pop_front();
                    }
                }
            }
            Err(Refused::Stale(stale)) => {
                self.known_generation.insert(wanted.run.clone(), stale.generation);
                let again = if wanted.is_undo { "u" } else { "Enter" };
                self.refusal = Some(format!(
                    "{text} was not set: the run has changed since its settings were read.\n\n{}\n\nThe settings were reloaded; {again} sets it anyway.",
                    stale.changes.join("\n")
                ));
            }
            Err(Refused::Other(why)) => self.refusal = Some(why),
        }
        Some(Effect::Look)
    }

    /// Applies an assignment that was typed.
    pub(super) fn change(&mut self, assignment: &str) -> Option<Effect> {
        let run = self.line().map(|line| line.run.clone()).unwrap_or_default();
        self.want(run, vec![assignment.trim().to_owned()], false)
    }

    /// Undoes the last change.
    pub(super) fn take_back(&mut self) -> Option<Effect> {
        let Some((run, assignments)) = self.undo.back().cloned() else {
            self.message = "nothing to undo".into();
            return None;
        };
        self.want(run, assignments, true)
    }

    fn want(&mut self, run: String, assignments: Vec<String>, is_undo: bool) -> Option<Effect> {
        if self.contact == Contact::Ended {
            self.message = "the run has ended".into();
            return None;
        }
        if self.is_changing {
            self.message = "the last change is still in progress".into();
            return None;
        }
        let Some(settings) = self.settings.get(&run).cloned() else {
            self.message = "the run has not answered yet".into();
            return None;
        };
        self.message = format!("asked: {}", self.set_line(&run, &assignments));
        if settings.generation < self.known_generation.get(&run).copied().unwrap_or(0) {
            self.deferred = Some((run, assignments, is_undo));
            return Some(Effect::Look);
        }
        self.is_changing = true;
        Some(Effect::Change(Wanted { run, assignments, settings, is_undo }))
    }

    /// The equivalent `narrows set` command. `run` is empty for the only run.
    pub(super) fn set_line(&self, run: &str, assignments: &[String]) -> String {
        let quoted = assignments.iter().map(|text| {
            match text.contains([' ', '"', '{', '\'', '*', '$', '&', '|', ';', '<', '>', '(']) {
                true => format!("'{}'", text.replace('\'', r"'\''")),
                false => text.clone(),
            }
        });
        let own = self.about.name.as_ref().map(ToString::to_string);
        let run = own.or_else(|| Some(run.to_owned()).filter(|run| !run.is_empty()));
        let run = run.map_or(String::new(), |run| format!(" --run {run}"));
        format!("narrows set{run} {}", quoted.collect::<Vec<_>>().join(" "))
    }

    /// The assignment that takes the link down or up: this direction, or both.
    pub(super) fn outage(&self, both: bool) -> Option<String> {
        let settings = &self.line().filter(|line| !line.is_unshaped)?.settings;
        let link = settings.link.as_str();
        let whole = link.strip_suffix(".up").or(link.strip_suffix(".down")).unwrap_or(link);
        Some(format!("{}.outage={}", if both { whole } else { link }, !settings.outage))
    }

    /// The keys of the selected link, each with its current value if that is one of a few words.
    pub(super) fn keys(&self) -> Vec<(String, Option<String>)> {
        let Some(settings) = self.line().map(|line| &line.settings) else { return Vec::new() };
        let first = ["rate", "delay", "loss", "queue", "outage"];
        let known = LinkFlags::known().into_iter().map(|flag| flag.name);
        let rest = known
            .filter(|name| !first.contains(name) && !["preset", "netem-up", "netem-down"].contains(name));
        let all = first.into_iter().chain(rest);
        all.map(|key| (key.to_owned(), value(settings, key))).collect()
    }
}

/// The value of a key as typed, if it is one of a few words.
fn value(settings: &CurrentDirection, key: &str) -> Option<String> {
    match key {
        "rate" => {
            settings.rate_bps.filter(|bps| *bps > 0).map(|bps| Rate::from_bits_per_second(bps).to_string())
        }
        "delay" => settings.delay_ns.map(|nanos| Duration::from_nanos(nanos).to_string()),
        "queue" => {
            let packets = settings.bound_packets.map(Bound::Packets);
            packets
                .or(settings.bound_bytes.map(|bytes| Bound::Bytes(Bytes::new(bytes))))
                .map(|bound| bound.to_string())
        }
        "outage" => Some((!settings.outage).to_string()),
        _ => None,
    }
}
