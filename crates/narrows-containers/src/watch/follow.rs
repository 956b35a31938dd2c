//! Follows an engine in a thread of its own: first what runs, then events, again after it was restarted.

use std::sync::mpsc::{SendError, Sender};
use std::thread;
use std::time::Duration;

use narrows_io::clock::{MonotonicTime, clock_monotonic};

use super::Message;
use crate::container::Container;
use crate::engine::{Engine, EngineError};
use crate::event::{Event, Happening};

/// The waits between attempts to reach an engine that does not answer.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

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
struct Unheard;

impl<T> From<SendError<T>> for Unheard {
    fn from(_: SendError<T>) -> Self {
        Self
    }
}

/// Starts the thread, which ends when nobody listens any more.
pub(super) fn follow(engine: Engine, project: Option<String>, to: Sender<Message>) {
    thread::spawn(move || {
        let mut wait = FIRST_WAIT;
        loop {
            let followed = once(&engine, project.as_deref(), &to, &mut wait);
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
fn once(
    engine: &Engine,
    project: Option<&str>,
    to: &Sender<Message>,
    wait: &mut Duration,
) -> Result<String, Unheard> {
    // Before the list, so that nothing is missed in between.
    let opened = engine.events().and_then(|events| Ok((events, listed(engine, project)?)));
    let mut events = match opened {
        Ok((events, all)) => {
            *wait = FIRST_WAIT;
            to.send(Message::News(News::Listed(all)))?;
            events
        }
        Err(error) => return Ok(error.to_string()),
    };
    loop {
        let event = match events.next_event() {
            Ok(Some(event)) => event,
            Ok(None) => return Ok("it has closed the connection".into()),
            Err(error) => return Ok(error.to_string()),
        };
        let at = clock_monotonic();
        match described(engine, &event) {
            Ok(container) => to.send(Message::News(News::Event(event, at, container)))?,
            Err(error) => return Ok(error.to_string()),
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
pub(super) fn listed(engine: &Engine, project: Option<&str>) -> Result<Vec<Container>, EngineError> {
    let mut all = Vec::new();
    for id in engine.running(project)? {
        all.extend(engine.container(&id)?);
    }
    Ok(all)
}
