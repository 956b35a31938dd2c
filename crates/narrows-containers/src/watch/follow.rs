//! Follows an engine, or a lab, in a thread of its own: first what runs, then events, again after it was restarted.

use std::path::PathBuf;
use std::sync::mpsc::{SendError, Sender};
use std::thread;
use std::time::Duration;

use narrows_io::clock::{MonotonicTime, clock_monotonic};

use super::Message;
use crate::container::Container;
use crate::engine::{Engine, EngineError, Events};
use crate::event::{Event, Happening};
use crate::lab::events::LabEvents;

/// The waits between attempts to reach an engine that does not answer.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Where events come from.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) engine: Engine,
    /// The name and value of the label of all containers that are meant.
    pub(super) label: Option<(&'static str, String)>,
    /// The program `containerlab`, whose events are followed instead of the engine's.
    pub(super) containerlab: Option<PathBuf>,
}

/// Its events.
enum Following {
    Engine(Events),
    Lab(LabEvents),
}

impl Source {
    pub(super) fn label(&self) -> Option<(&'static str, &str)> {
        self.label.as_ref().map(|(name, value)| (*name, value.as_str()))
    }

    /// Its events from now on, and then what runs, so that nothing is missed in between.
    fn open(&self) -> Result<(Following, Vec<Container>), String> {
        let following = match (&self.containerlab, &self.label) {
            (Some(program), Some((_, lab))) => Following::Lab(LabEvents::start(program, lab)?),
            _ => Following::Engine(self.engine.events().map_err(silent)?),
        };
        Ok((following, listed(&self.engine, self.label()).map_err(silent)?))
    }
}

impl Following {
    fn next_event(&mut self) -> Result<Event, String> {
        match self {
            Self::Lab(events) => events.next_event(),
            Self::Engine(events) => match events.next_event() {
                Ok(Some(event)) => Ok(event),
                Ok(None) => Err(silent("it has closed the connection")),
                Err(error) => Err(silent(error)),
            },
        }
    }
}

fn silent(why: impl std::fmt::Display) -> String {
    format!("the engine does not answer: {why}")
}

/// What an engine says.
#[derive(Debug)]
pub(super) enum News {
    /// All containers that run.
    Listed(Vec<Container>),
    /// An event that came at an instant, and the state of its container, unless that is gone.
    Event(Event, MonotonicTime, Option<Container>),
    /// It does not answer any more, for this reason.
    Lost(String),
}

/// Nobody listens any more.
pub(super) struct Unheard;

impl<T> From<SendError<T>> for Unheard {
    fn from(_: SendError<T>) -> Self {
        Self
    }
}

/// Starts the thread, which ends when nobody listens any more.
pub(super) fn follow(source: Source, to: Sender<Message>) {
    thread::spawn(move || {
        let mut wait = FIRST_WAIT;
        loop {
            let followed = once(&source, &to, &mut wait);
            let Ok(lost) = followed else { return };
            if to.send(Message::News(News::Lost(lost))).is_err() {
                return;
            }
            thread::sleep(wait);
            wait = LONGEST_WAIT.min(wait * 2);
        }
    });
}

/// Follows one connection, until it is lost for the reason that is returned.
fn once(source: &Source, to: &Sender<Message>, wait: &mut Duration) -> Result<String, Unheard> {
    let mut events = match source.open() {
        Ok((events, all)) => {
            to.send(Message::News(News::Listed(all)))?;
            events
        }
        Err(error) => return Ok(error),
    };
    loop {
        let event = match events.next_event() {
            Ok(event) => event,
            Err(error) => return Ok(error),
        };
        let at = clock_monotonic();
        // Started is not yet followed: a program may end at once.
        *wait = FIRST_WAIT;
        match described(&source.engine, &event) {
            Ok(container) => to.send(Message::News(News::Event(event, at, container)))?,
            Err(error) => return Ok(silent(error)),
        }
    }
}

/// The container of an event, where that matters. While Docker starts or restarts a container, it does not describe it,
/// and who asks waits: so one that joins a network is looked for elsewhere first, and one that has ended not at all.
fn described(engine: &Engine, event: &Event) -> Result<Option<Container>, EngineError> {
    match (event.happening, &event.network) {
        (Happening::Ended | Happening::Disconnected, _) => Ok(None),
        (Happening::Connected, Some(network)) => match engine.starting(&event.container, network)? {
            Some(container) => Ok(Some(container)),
            None => engine.container(&event.container),
        },
        (Happening::Started | Happening::Connected, _) => engine.container(&event.container),
    }
}

/// All containers that run. One that ends meanwhile is left out.
pub(super) fn listed(engine: &Engine, label: Option<(&str, &str)>) -> Result<Vec<Container>, EngineError> {
    let mut all = Vec::new();
    for id in engine.running(label)? {
        all.extend(engine.container(&id)?);
    }
    Ok(all)
}
