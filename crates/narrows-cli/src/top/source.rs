//! Event sources. Each has its own thread, so that keys never wait for the run: one queries the run, one
//! makes changes, one reads keys, one waits for signals.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use narrows_io::clock::{MonotonicTime, clock_monotonic};
use narrows_io::wait::{EndSignals, Waiting, wait};
use narrows_live::control::{
    self, Client, ControlError, CurrentScenario, Liveness, Stale, Stats, known_runs,
};
use narrows_live::group::known_group;
use narrows_live::run_record::About;
use narrows_scenario::Scenario;
use ratatui::crossterm::event::{self, KeyEvent, KeyEventKind};

use super::group::GroupAnswer;

/// Query interval.
const EACH: Duration = Duration::from_secs(1);
/// Queries take at most one part in this many of the time of a run with very many links; the interval grows
/// accordingly, up to a maximum. For 1,000 links a packet thread needs 3 ms to report its counters: at more
/// than a thousandth of the time this would show in its p99.9.
const PART: u32 = 50;
const SELDOM: Duration = Duration::from_secs(10);
/// Interval of looking for a new run with that name.
const AGAIN: Duration = Duration::from_secs(2);

/// Events.
#[derive(Debug)]
pub(super) enum Event {
    Key(KeyEvent),
    /// The terminal was resized.
    Resized,
    /// A signal, or the terminal is gone.
    End,
    /// The run answered, with its current settings.
    Answer(Box<Stats>, Arc<CurrentScenario>),
    /// The runs of a group answered.
    Group(Box<GroupAnswer>),
    /// The run does not answer, and why.
    Silent(String),
    /// The run has ended.
    Gone,
    /// A run with that name has started.
    Back(Box<About>),
    /// A change was made or refused.
    Changed(Box<Wanted>, Result<Made, Refused>),
}

/// A requested change.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// The run, in a group; empty for the only one.
    pub(super) run: String,
    pub(super) assignments: Vec<String>,
    /// The settings on which it is based.
    pub(super) settings: Arc<CurrentScenario>,
    /// Whether it undoes another change.
    pub(super) is_undo: bool,
}

/// The result of a change.
#[derive(Debug)]
pub(super) struct Made {
    /// The run's generation after it.
    pub(super) generation: u64,
    /// Assignments that undo it; empty if impossible.
    pub(super) undo: Vec<String>,
}

/// Why a change was not made.
#[derive(Debug)]
pub(super) enum Refused {
    /// Others changed the run meanwhile.
    Stale(Stale),
    /// Another reason, in words.
    Other(String),
}

/// The run, and the name to find it again.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) client: Client,
    pub(super) about: About,
    /// Its process number, from its socket.
    number: Option<String>,
}

impl Run {
    /// The requested run, if it listens.
    pub(super) fn find(run: Option<&str>) -> Result<Self, ControlError> {
        let client = Client::find(run)?;
        client.process()?;
        let known = known_runs(&control::run_folder()).map(|(known, _)| known).unwrap_or_default();
        let about = known.into_iter().rfind(|known| known.socket == client.path()).map(|known| known.about);
        let number = client.path().file_stem().map(|name| name.to_string_lossy().into_owned());
        Ok(Self { client, about: about.unwrap_or_default(), number })
    }

    /// The path of its scenario file, as far as it can be found, so that files named in it can be found:
    /// relative to the folder of the run.
    fn file(&self) -> PathBuf {
        let folder = Path::new("/proc").join(self.number.as_deref().unwrap_or("self")).join("cwd");
        let file = folder.join(&self.about.title);
        if file.is_file() { file } else { folder.join("the run") }
    }
}

/// Queries the run repeatedly; immediately on `hurry`.
pub(super) fn ask(mut run: Run, hurry: &Receiver<()>, events: &Sender<Event>) {
    let mut settings: Option<Arc<CurrentScenario>> = None;
    loop {
        let begun = clock_monotonic();
        let event = match look(&run.client, &mut settings) {
            Ok((stats, settings)) => Event::Answer(Box::new(stats), settings),
            // An answer that cannot be parsed is from another version.
            Err(ControlError::Broken { cause, .. }) if cause.kind() == ErrorKind::InvalidData => {
                Event::Silent(format!("the run is of another version of narrows: {cause}"))
            }
            Err(ControlError::Nobody { .. } | ControlError::Broken { .. }) => Event::Gone,
            Err(error) => Event::Silent(error.to_string()),
        };
        let gone = matches!(event, Event::Gone);
        // A timeout costs the run no time.
        let is_silent = matches!(event, Event::Silent(_));
        if events.send(event).is_err() {
            return;
        }
        if gone {
            let Some(name) = run.about.name.clone() else { return };
            run = loop {
                thread::sleep(AGAIN);
                if let Ok(run) = Run::find(Some(name.as_str())) {
                    break run;
                }
            };
            settings = None;
            if events.send(Event::Back(Box::new(run.about.clone()))).is_err() {
                return;
            }
            continue;
        }
        if !pause(begun, is_silent, hurry) {
            return;
        }
    }
}

/// Waits for the next query; false if there is to be none.
fn pause(begun: MonotonicTime, is_silent: bool, hurry: &Receiver<()>) -> bool {
    let took = Duration::from_nanos(clock_monotonic().as_nanos().saturating_sub(begun.as_nanos()));
    let apart = if is_silent { EACH } else { EACH.max(took * PART).min(SELDOM).saturating_sub(took) };
    let waited = hurry.recv_timeout(apart);
    while hurry.try_recv().is_ok() {}
    waited != Err(RecvTimeoutError::Disconnected)
}

/// Queries the runs of a group repeatedly, also when there are none for a while.
pub(super) fn ask_group(name: &str, hurry: &Receiver<()>, events: &Sender<Event>) {
    let mut settings: BTreeMap<String, Option<Arc<CurrentScenario>>> = BTreeMap::new();
    loop {
        let begun = clock_monotonic();
        let event = match known_group(&control::run_folder(), name) {
            Ok(Some(group)) => {
                let mut answers = BTreeMap::new();
                for run in group.links.iter().filter_map(|link| link.run.as_ref()) {
                    let called = run.name();
                    let settings = settings.entry(called.clone()).or_default();
                    // One that does not answer is shown without figures.
                    if let Ok((stats, settings)) = look(&Client::at(&run.socket), settings) {
                        answers.insert(called, (Box::new(stats), settings));
                    }
                }
                Event::Group(Box::new(GroupAnswer { name: name.to_owned(), group, answers }))
            }
            Ok(None) => Event::Gone,
            Err(error) => Event::Silent(error.to_string()),
        };
        let has_answer = matches!(event, Event::Group(_));
        if events.send(event).is_err() || !pause(begun, !has_answer, hurry) {
            return;
        }
    }
}

/// What is watched: a run, or a group of runs.
#[derive(Clone, Debug)]
pub(super) enum Target {
    Run(Box<Run>),
    Group(String),
}

impl Target {
    /// The run of this name or else the group; by default the only run, or else the only group.
    pub(super) fn find(which: Option<&str>) -> Result<Self, ControlError> {
        let folder = control::run_folder();
        let error = match Run::find(which) {
            Ok(run) => return Ok(Self::Run(Box::new(run))),
            Err(error) => error,
        };
        let group = match (&error, which) {
            (ControlError::NoSuchRun { .. } | ControlError::NoRun(_), Some(name)) => {
                let known = known_group(&folder, name).ok().flatten();
                known.map(|_| name.to_owned())
            }
            (ControlError::SeveralRuns(_), None) => {
                let (known, _) = known_runs(&folder).unwrap_or_default();
                let alive = known.into_iter().filter(|run| run.liveness == Liveness::GoingOn);
                let groups: BTreeSet<_> =
                    alive.map(|run| run.about.membership.map(|membership| membership.group)).collect();
                groups.into_iter().reduce(|_, _| None).flatten()
            }
            _ => None,
        };
        group.map(Self::Group).ok_or(error)
    }

    /// The description of the run.
    pub(super) fn about(&self) -> About {
        match self {
            Self::Run(run) => run.about.clone(),
            Self::Group(_) => About::default(),
        }
    }
}

/// Queries once. Reads the settings if the run's generation has changed.
fn look(
    run: &Client,
    settings: &mut Option<Arc<CurrentScenario>>,
) -> Result<(Stats, Arc<CurrentScenario>), ControlError> {
    let stats = run.stats()?;
    let current = match settings.as_ref().filter(|known| known.generation == stats.generation) {
        Some(known) => known.clone(),
        None => Arc::new(run.scenario()?),
    };
    *settings = Some(current.clone());
    Ok((stats, current))
}

/// Applies changes one after the other.
pub(super) fn change(target: &Target, wanted: &Receiver<Wanted>, events: &Sender<Event>) {
    while let Ok(wanted) = wanted.recv() {
        let result = match target {
            Target::Run(run) => make(run, &wanted),
            Target::Group(_) => Run::find(Some(&wanted.run))
                .map_err(|error| Refused::Other(error.to_string()))
                .and_then(|run| make(&run, &wanted)),
        };
        if events.send(Event::Changed(Box::new(wanted), result)).is_err() {
            return;
        }
    }
}

fn make(run: &Run, wanted: &Wanted) -> Result<Made, Refused> {
    // A restarted run has another socket.
    let again = run.about.name.as_ref().and_then(|name| Client::find(Some(name.as_str())).ok());
    let client = again.as_ref().unwrap_or(&run.client);
    let undo = undo(&run.file(), wanted).unwrap_or_default();
    match client.set(wanted.assignments.clone(), Some(wanted.settings.generation)) {
        Ok(changed) => Ok(Made { generation: changed.generation, undo }),
        Err(ControlError::Stale(stale)) => Err(Refused::Stale(stale)),
        Err(error) => Err(Refused::Other(error.to_string())),
    }
}

/// The assignments that undo a change: the difference from its result to the previous settings.
fn undo(file: &Path, wanted: &Wanted) -> Option<Vec<String>> {
    let before = Scenario::parse(&wanted.settings.toml, &file.to_string_lossy()).ok()?;
    let mut after = before.clone();
    after.set(&wanted.assignments).ok()?;
    Some(after.difference(&before).assignments)
}

/// Reads keys.
pub(super) fn keys(events: &Sender<Event>) {
    loop {
        let event = match event::read() {
            Ok(event::Event::Key(key)) if key.kind != KeyEventKind::Release => Event::Key(key),
            Ok(event::Event::Resize(..)) => Event::Resized,
            Ok(_) => continue,
            // The terminal is gone.
            Err(_) => Event::End,
        };
        let is_over = matches!(event, Event::End);
        if events.send(event).is_err() || is_over {
            return;
        }
    }
}

/// Waits for a signal to end.
pub(super) fn signals(mut signals: EndSignals, events: &Sender<Event>) -> io::Result<()> {
    loop {
        wait(&mut [Waiting::readable(&signals)], None)?;
        if signals.take()?.is_some() {
            let _ = events.send(Event::End);
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NET: &str = "\
[hosts.a]
[hosts.b]
[links.l]
between = [\"a\", \"b\"]
delay = \"5ms\"
up = { rate = \"10mbit\", scheduler = { type = \"drr\", classes = [{ name = \"x\", weight = 3 }] } }
";

    fn undone(assignment: &str) -> Option<Vec<String>> {
        let settings = CurrentScenario {
            generation: 0,
            toml: NET.into(),
            links: Vec::new(),
            ports: Vec::new(),
            directions: Vec::new(),
        };
        let assignments = vec![assignment.to_owned()];
        let wanted = Wanted { run: String::new(), assignments, settings: Arc::new(settings), is_undo: false };
        undo(Path::new("net.toml"), &wanted)
    }

    #[test]
    fn a_change_is_taken_back_by_what_was_there_before() {
        let some = |text: &str| Some(vec![text.to_owned()]);
        assert_eq!(undone("l.up.rate=1mbit"), some("l.up.rate=10mbit"));
        assert_eq!(undone("l.delay=9ms"), some("l.delay=5ms"));
        assert_eq!(undone("l.down.outage=true"), some("l.down.outage=false"));
        assert_eq!(undone("l.up.rate=10mbit"), Some(Vec::new()), "nothing changes");
        let back = undone("l.up.scheduler.x.weight=4").unwrap();
        assert!(back[0].starts_with("l.up.scheduler=") && back[0].contains("weight = 3"), "{back:?}");
        assert_eq!(undone("l.up.rate=soon"), None);
    }
}
