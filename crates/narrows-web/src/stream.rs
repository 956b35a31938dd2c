//! The event stream of a run: server-sent events, each a line of JSON.
//!
//! A slow reader gets fewer events, not delayed ones: newer events replace those not read yet.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use http_body::Frame;
use narrows_live::control::{CurrentScenario, Event};
use narrows_live::run_record::About;
use narrows_report::{Now, Report};
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::sync::watch::Receiver;

use crate::runs::{Answer, View};

/// The present state of a run.
#[derive(Serialize)]
struct Tick<'a> {
    generation: u64,
    trust: &'static str,
    trust_line: String,
    now: Option<&'a Now>,
    report: &'a Report,
}

/// The current configuration.
#[derive(Serialize)]
struct Settings<'a> {
    about: &'a About,
    settings: &'a CurrentScenario,
}

/// Events.
#[derive(Serialize)]
struct Happened<'a> {
    /// Whether earlier events belong to another run.
    anew: bool,
    missed: u64,
    events: &'a [Event],
}

/// What a reader of the stream already has.
#[derive(Default)]
struct Known {
    settings: Option<Arc<CurrentScenario>>,
    event: u64,
}

/// Puts a state into the words that one reader still needs.
pub(crate) trait Tell<S> {
    /// The messages about this state.
    fn tell(&mut self, state: &S) -> String;
}

/// The stream of a run's state from now on.
pub(crate) fn stream(looks: Receiver<View>) -> Body {
    tell_each(looks, Known::default())
}

/// An event stream that tells a reader of each state, or of the newest one if it reads slowly.
pub(crate) fn tell_each<S: Clone + Send + Sync + 'static>(
    mut states: Receiver<S>,
    mut known: impl Tell<S> + Send + 'static,
) -> Body {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        loop {
            // Wait for room first, then send the newest state.
            let Ok(room) = sender.reserve().await else { return };
            let state = states.borrow_and_update().clone();
            room.send(Bytes::from(known.tell(&state)));
            tokio::select! {
                changed = states.changed() => if changed.is_err() { return },
                () = sender.closed() => return,
            }
        }
    });
    Body::new(Stream(receiver))
}

impl Tell<View> for Known {
    fn tell(&mut self, view: &View) -> String {
        match (&view.gone, &view.answer) {
            (Some(why), _) => {
                *self = Self::default();
                message("gone", &**why)
            }
            (None, Some(answer)) => self.tell_answer(answer),
            // No state yet.
            (None, None) => ":\n\n".into(),
        }
    }
}

impl Known {
    fn tell_answer(&mut self, answer: &Answer) -> String {
        let mut text = String::new();
        let is_same = |known: &Arc<CurrentScenario>| Arc::ptr_eq(known, &answer.settings);
        if !self.settings.as_ref().is_some_and(is_same) {
            text += &message("settings", &Settings { about: &answer.about, settings: &answer.settings });
            self.settings = Some(answer.settings.clone());
        }
        let last = answer.events.last().map_or(0, |event| event.number);
        if last != self.event {
            let anew = last < self.event || self.event == 0;
            let after = if anew { 0 } else { self.event };
            let from = answer.events.partition_point(|event| event.number <= after);
            let events = Happened { anew, missed: answer.missed, events: &answer.events[from..] };
            text += &message("events", &events);
            self.event = last;
        }
        let report = &answer.stats.report;
        text += &message(
            "tick",
            &Tick {
                generation: answer.stats.generation,
                trust: report.trust_word(),
                trust_line: report.trust_line(),
                now: answer.stats.now.as_ref(),
                report,
            },
        );
        text
    }
}

pub(crate) fn message(event: &str, data: &(impl Serialize + ?Sized)) -> String {
    // JSON has no line feeds. A report can always be serialised, as runs do it.
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("event: {event}\ndata: {data}\n\n")
}

/// A body that is fed by a channel.
struct Stream(mpsc::Receiver<Bytes>);

impl HttpBody for Stream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|data| data.map(|data| Ok(Frame::data(data))))
    }
}
