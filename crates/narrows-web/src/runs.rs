//! Queries runs. Each run that is being viewed is queried once a second, however many viewers there are: tabs and
//! scrapes share answers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use narrows_live::control::{
    Client, ControlError, CurrentScenario, Event, Liveness, Stats, known_runs, run_folder,
};
use narrows_live::group::{GroupLink, KnownGroup, known_group};
use narrows_live::run_record::About;
use serde::Serialize;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use crate::metrics::Observed;

/// How often a run is queried.
const EACH: Duration = Duration::from_secs(1);
/// For a run with very many links, querying takes at most one part in this of the time, by longer intervals between
/// queries: its packet threads have to collect their counters.
const PART: u32 = 50;
const SELDOM: Duration = Duration::from_secs(10);
/// Up to this many directions, collecting takes a packet thread a fraction of a millisecond; how long an answer takes
/// then depends on how busy the host is.
const SMALL: usize = 64;
/// Events kept for later viewers.
const MOST_EVENTS: usize = 500;
/// The maximum number of runs queried for a scrape or a group. A run accepts 32 connections, and hardly anyone has this many
/// runs.
const MOST_RUNS: usize = 64;

/// A run in the list.
#[derive(Debug, Serialize)]
pub(crate) struct Listed {
    /// The key by which it is requested.
    pub(crate) key: String,
    pub(crate) number: u32,
    pub(crate) answers: bool,
    pub(crate) about: About,
}

/// The latest state of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    /// Incremented with each query.
    pub(crate) number: u64,
    pub(crate) answer: Option<Arc<Answer>>,
    /// Why there is no answer now.
    pub(crate) gone: Option<Arc<str>>,
}

/// One answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) stats: Stats,
    pub(crate) settings: Arc<CurrentScenario>,
    pub(crate) about: About,
    pub(crate) events: Arc<Vec<Event>>,
    /// The total lateness of all packets.
    late_ns: u64,
    /// Events that are no longer kept.
    pub(crate) missed: u64,
    /// Distinguishes a run from a later one with the same name.
    socket: std::path::PathBuf,
}

/// A group of runs that are one network.
pub(crate) struct Group {
    pub(crate) nodes: Vec<String>,
    pub(crate) links: Vec<LinkOfGroup>,
}

/// A link of a group.
pub(crate) struct LinkOfGroup {
    pub(crate) ends: [String; 2],
    /// The key of the run that is the link, and its latest answer.
    pub(crate) run: Option<String>,
    pub(crate) answer: Option<Arc<Answer>>,
}

/// The runs that may be viewed.
#[derive(Debug)]
pub(crate) struct Runs {
    /// Set if only one run is shown.
    only: Option<String>,
    watched: Mutex<BTreeMap<String, watch::Sender<View>>>,
}

impl Runs {
    pub(crate) fn new(only: Option<String>) -> Self {
        Self { only, watched: Mutex::default() }
    }

    /// Whether this run may be viewed.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == key)
    }

    pub(crate) fn only(&self) -> Option<&str> {
        self.only.as_deref()
    }

    /// The runs in progress, oldest first.
    pub(crate) fn list(&self) -> Result<Vec<Listed>, String> {
        let (all, _) = known_runs(&run_folder()).map_err(|error| error.to_string())?;
        let alive = all.into_iter().filter(|run| run.liveness != Liveness::Dead);
        let meant = alive.filter(|run| self.only.as_deref().is_none_or(|only| run.is_called(only)));
        let listed = meant.map(|run| Listed {
            key: self.only.clone().unwrap_or_else(|| run.name()),
            number: run.number,
            answers: run.liveness == Liveness::GoingOn,
            about: run.about,
        });
        Ok(listed.collect())
    }

    /// Subscribes to a run.
    pub(crate) fn watch(self: &Arc<Self>, key: &str) -> watch::Receiver<View> {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = watched.get(key) {
            return sender.subscribe();
        }
        let (sender, receiver) = watch::channel(View::default());
        watched.insert(key.into(), sender.clone());
        tokio::spawn(keep(self.clone(), key.into(), sender));
        receiver
    }

    /// The latest answer of a run; `None` if there is none now.
    async fn answer(self: &Arc<Self>, key: &str) -> Option<Arc<Answer>> {
        let mut looks = self.watch(key);
        let known = looks.wait_for(|view| view.number > 0).await.map(|view| view.clone()).unwrap_or_default();
        known.answer.filter(|_| known.gone.is_none())
    }

    /// A group, with the answers of its runs by their keys. `None` if there is none of that name, or only one run is
    /// shown.
    pub(crate) async fn group(self: &Arc<Self>, name: String) -> Result<Option<Group>, String> {
        if self.only.is_some() {
            return Ok(None);
        }
        let known = spawn_blocking(move || known_group(&run_folder(), &name)).await;
        let known = known.map_err(|failure| failure.to_string())?.map_err(|error| error.to_string())?;
        let Some(KnownGroup { nodes, links }) = known else { return Ok(None) };
        let mut shown = Vec::new();
        let mut asked = 0;
        for GroupLink { ends, run } in links {
            let run = run.map(|run| run.name());
            let answer = match &run {
                Some(key) if asked < MOST_RUNS => {
                    asked += 1;
                    self.answer(key).await
                }
                _ => None,
            };
            shown.push(LinkOfGroup { ends, run, answer });
        }
        Ok(Some(Group { nodes, links: shown }))
    }

    /// The answers of all runs, for a scrape.
    pub(crate) async fn observe(self: &Arc<Self>) -> Vec<Observed> {
        let runs = self.clone();
        let keys = spawn_blocking(move || runs.list()).await.ok().and_then(Result::ok).unwrap_or_default();
        let mut keys: Vec<String> = keys.into_iter().map(|run| run.key).take(MOST_RUNS).collect();
        if let Some(only) = self.only().filter(|_| keys.is_empty()) {
            keys.push(only.into());
        }
        let mut all = Vec::new();
        for key in keys {
            let answer = self.answer(&key).await;
            let late_ns = answer.as_ref().map_or(0, |answer| answer.late_ns);
            let answer =
                answer.map(|answer| (answer.stats.clone(), CurrentScenario::clone(&answer.settings)));
            all.push(Observed { run: key, answer, late_ns });
        }
        all
    }
}

/// Queries a run repeatedly, as long as anybody is subscribed.
async fn keep(runs: Arc<Runs>, key: String, sender: watch::Sender<View>) {
    let mut view = View::default();
    loop {
        let begun = Instant::now();
        let (named, before) = (key.clone(), view.answer.clone());
        let looked = spawn_blocking(move || look(&named, before.as_deref())).await;
        let took = begun.elapsed();
        view.number += 1;
        let is_there = match looked {
            Ok(Ok(answer)) => {
                view.answer = Some(Arc::new(answer));
                view.gone = None;
                true
            }
            Ok(Err(error)) => {
                view.gone = Some(said(&error).into());
                false
            }
            Err(failure) => {
                view.gone = Some(failure.to_string().into());
                false
            }
        };
        sender.send_replace(view.clone());
        let directions = view.answer.as_ref().map_or(0, |answer| answer.stats.report.directions.len());
        let is_large = is_there && directions > SMALL;
        let apart = if is_large { EACH.max(took * PART).min(SELDOM) } else { EACH };
        sleep(apart.saturating_sub(took)).await;
        // Kept between scrapes that are a few seconds apart: a new start would have to wait for an answer.
        let mut watched = runs.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if sender.receiver_count() == 0 {
            watched.remove(&key);
            return;
        }
    }
}

fn said(error: &ControlError) -> String {
    match error {
        ControlError::Nobody { .. } | ControlError::NoSuchRun { .. } | ControlError::NoRun(_) => {
            "The run has ended. This page goes on when a run of that name begins.".into()
        }
        error => error.to_string(),
    }
}

fn look(key: &str, before: Option<&Answer>) -> Result<Answer, ControlError> {
    let run = Client::find(Some(key))?;
    // A run started after that is another run, whose events count from the first.
    let before = before.filter(|before| before.socket == run.path());
    let stats = run.stats()?;
    let settings = match before.filter(|before| before.settings.generation == stats.generation) {
        Some(before) => before.settings.clone(),
        None => Arc::new(run.scenario()?),
    };
    let known = before.map_or_else(Arc::default, |before| before.events.clone());
    let new = run.events(known.last().map_or(0, |event| event.number))?;
    let missed = before.map_or(0, |before| before.missed) + new.missed;
    let events = if new.events.is_empty() {
        known
    } else {
        let all = known.len() + new.events.len();
        Arc::new(known.iter().cloned().chain(new.events).skip(all.saturating_sub(MOST_EVENTS)).collect())
    };
    let late =
        stats.report.lateness.as_ref().map_or(0, |late| late.quantiles.mean_ns * late.quantiles.packets);
    let late_ns = before.map_or(late, |before| before.late_ns.max(late));
    let about = match before {
        Some(before) => before.about.clone(),
        None => about(&run),
    };
    Ok(Answer { stats, settings, late_ns, about, events, missed, socket: run.path().into() })
}

fn about(run: &Client) -> About {
    let known = known_runs(&run_folder()).map(|(known, _)| known).unwrap_or_default();
    known.into_iter().rfind(|known| known.socket == run.path()).map(|known| known.about).unwrap_or_default()
}
