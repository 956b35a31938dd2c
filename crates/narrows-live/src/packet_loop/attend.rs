//! Between turns: waiting, and what is not a packet: signals, requests, changes.

use std::os::fd::BorrowedFd;

use narrows_core::{Duration, Time};
use narrows_io::wait::{EndSignals, Waiting, wait_from};
use narrows_report::RunInfo;
use narrows_scenario::ScenarioError;

use super::crew::What;
use super::{End, LoopError, PacketLoop, WAKE_EARLY, all_notes, exchange};
use crate::cabling::FarEnd;
use crate::control::{Reply, Request, ScenarioInForce};

/// How soon a port whose interface is full is tried again.
const RETRY: Duration = Duration::from_micros(100);
/// Changes, and steps of the timeline that were left out, that a report lists.
const MOST_NOTES: usize = 24;

impl PacketLoop {
    /// Waits until an instant, or until a packet, a signal, a request, another thread or what ends the run comes.
    pub(super) fn attend(
        &mut self,
        until: Time,
        ready: Option<BorrowedFd<'_>>,
        signals: &mut EndSignals,
    ) -> Result<Option<End>, LoopError> {
        let control = self.control.take();
        let clients: Vec<_> = control.iter().flat_map(|(control, _)| control.descriptors()).collect();
        let crew = self.crew.called().cloned();
        let mut others: Vec<Waiting<'_>> = vec![Waiting::readable(signals)];
        others.extend(ready.iter().map(Waiting::readable));
        others.extend(crew.iter().map(|crew| Waiting::readable(&**crew)));
        let before_clients = others.len();
        for (client, reads, writes) in &clients {
            if *reads {
                others.push(Waiting::readable(client));
            }
            if *writes {
                others.push(Waiting::writable(client));
            }
        }
        let slept = self.sleep(until, &others);
        drop(others);
        drop(clients);
        self.control = control;
        let found = slept?;
        if found[0]
            && let Some(signal) = signals.take().map_err(LoopError::Wait)?
        {
            return Ok(Some(End::Signal(signal)));
        }
        // All that others say without being asked is that they have failed.
        while self.crew.next()?.is_some() {}
        if found[before_clients..].contains(&true)
            && let Some((mut control, info)) = self.control.take()
        {
            let mut failed = None;
            control.serve(|request| match self.answer(request, &info) {
                Ok(reply) => reply,
                Err(error) => {
                    let reply = Reply::Error(error.to_string());
                    failed = Some(error);
                    reply
                }
            });
            self.control = Some((control, info));
            if let Some(error) = failed {
                return Err(error);
            }
        }
        if ready.is_some() && found[1] {
            // What the program sent last is in the sockets.
            self.turn()?;
            return Ok(Some(End::Ready));
        }
        Ok(None)
    }

    /// Sleeps until an instant, a frame, an answer of a feed, or one of these descriptors; says which of them are ready.
    pub(super) fn sleep(&mut self, until: Time, others: &[Waiting<'_>]) -> Result<Vec<bool>, LoopError> {
        let sends_in_waiting = self.sends_in_waiting();
        let ends = self.looks.descriptors(&self.ports);
        let mut waiting = others.to_vec();
        let caller = self.feeds.as_ref().map(|feeds| feeds.caller());
        waiting.extend(caller.iter().map(Waiting::readable));
        let wall_clock = self.batch.steady_offset();
        waiting.extend(wall_clock.iter().map(|&clock| Waiting::readable(clock)));
        waiting.extend(ends.iter().map(Waiting::readable));
        let now = self.clock.now();
        // A port whose interface is full must be tried again before long.
        let until = if self.is_stuck { until.min(now + RETRY) } else { until };
        let deadline = (until < Time::NEVER).then(|| self.clock.reading(until));
        let from = self.clock.reading(now);
        let exchanged = match &mut self.exchange {
            Some(exchange) if sends_in_waiting => {
                let sockets = exchange::sockets(&self.ports, &self.looks);
                Some(exchange.exchange(&sockets, from, &mut waiting, deadline).map_err(LoopError::Wait)?)
            }
            _ => None,
        };
        let ready_count = match &exchanged {
            Some(exchanged) => exchanged.waited.map(|(ready_count, _)| ready_count),
            None => Some(wait_from(from, &mut waiting, deadline).map_err(LoopError::Wait)?),
        };
        let mut found: Vec<bool> = waiting.iter().map(Waiting::is_ready).collect();
        drop(waiting);
        match exchanged {
            Some(exchanged) => self.exchanged(exchanged)?,
            None => self.clock.go_on(),
        }
        let mut rest = found.split_off(others.len()).into_iter();
        if let Some(feeds) = &self.feeds
            && rest.next() == Some(true)
        {
            feeds.called();
        }
        if self.batch.steady_offset().is_some() && rest.next() == Some(true) {
            self.batch.sample_offset_anew().map_err(LoopError::Wait)?;
        }
        let exchange = self.exchange.as_ref();
        let has_come = |place| exchange.is_some_and(|exchange| exchange.holds(place));
        self.looks.woken(rest.enumerate().map(|(place, found)| found || has_come(place)));
        if now < until && ready_count == Some(0) {
            self.learn_from(self.clock.now().since(until));
        }
        Ok(found)
    }

    /// A timer was late by this: at once the next sleep ends earlier, or by and by the sleeps get longer again.
    fn learn_from(&mut self, late: Duration) {
        let (now, wanted) = (self.wake_early.nanos(), late.nanos().saturating_mul(2));
        let next = if wanted > now { wanted } else { now - (now - wanted) / 16 };
        self.wake_early = Duration::from_nanos(next.clamp(*WAKE_EARLY.start(), *WAKE_EARLY.end()));
    }

    pub(super) fn answer(&mut self, request: Request, info: &RunInfo) -> Result<Reply, LoopError> {
        // Brings the engine to now: on a quiet network its last turn may be long ago.
        self.turn()?;
        match request {
            Request::Set { assignments } => Ok(match self.change(What::Set(assignments))? {
                Ok(_) => Reply::Ok(serde_json::Value::Null),
                Err(error) => Reply::Error(error),
            }),
            Request::Ipfw { link, file, commands } => {
                Ok(match self.change(What::Ipfw { link, file, commands })? {
                    Ok(text) => Reply::Ok(serde_json::json!({ "text": text.unwrap_or_default() })),
                    Err(error) => Reply::Error(error),
                })
            }
            Request::Feeds {} => Ok(match serde_json::to_value(self.all_places()?) {
                Ok(places) => Reply::Ok(places),
                Err(error) => Reply::Error(error.to_string()),
            }),
            Request::Scenario {} => Ok(match serde_json::to_value(ScenarioInForce::of(&self.scenario)) {
                Ok(scenario) => Reply::Ok(scenario),
                Err(error) => Reply::Error(error.to_string()),
            }),
            Request::Stats {} => {
                let mut info = info.clone();
                info.update(&self.scenario);
                let others = self.accounts(&info)?;
                self.count_lost()?;
                info.span = (Time::ZERO, self.clock.now());
                let own = self.account(&info);
                info.notes.extend(all_notes(&own, &others));
                let report = self.report(&info, own, others);
                let text = report.text().to_string();
                Ok(match serde_json::to_value(report) {
                    Ok(report) => Reply::Ok(serde_json::json!({ "report": report, "text": text })),
                    Err(error) => Reply::Error(error.to_string()),
                })
            }
        }
    }

    /// Asks the sockets how many packets the kernel had no room for.
    pub(super) fn count_lost(&mut self) -> Result<(), LoopError> {
        for port in &mut self.ports {
            let Some(cable) = &mut port.cable else { continue };
            let statistics = cable.end.statistics()?;
            self.meter.send_failed(port.id, statistics.refused - port.refused);
            port.refused = statistics.refused;
            let dropped = statistics.dropped + cable.far.as_mut().map_or(0, FarEnd::dropped);
            let new = dropped.saturating_sub(port.ring_drops);
            self.meter.receive_ring_dropped(port.id, new);
            if let Some(recorder) = self.recorder.as_mut().filter(|_| new > 0) {
                recorder.lost(self.engine.now(), port.id, new)?;
            }
            port.ring_drops = dropped.max(port.ring_drops);
        }
        Ok(())
    }

    /// Changes links by assignments such as `access.down.rate=2mbit`: all of them, or none where one is wrong.
    pub(super) fn assign(
        &mut self,
        at: Time,
        assignments: &[String],
    ) -> Result<Result<(), ScenarioError>, LoopError> {
        // As the recorder keeps it: a trace that is set begins at that instant, in a replay, too.
        let at = at.max(self.engine.now());
        let changes = match self.scenario.assign_at(at, assignments) {
            Ok(changes) => changes,
            Err(error) => return Ok(Err(error)),
        };
        if let Some(recorder) = &mut self.recorder {
            recorder.files(&self.scenario)?;
            recorder.changed(at, assignments)?;
        }
        self.note(|| format!("changed at {at}: {}", assignments.join(", ")));
        for (link, change) in changes {
            if let Some(link) = self.engine.link(&link) {
                self.engine.change(at, link, change);
            }
        }
        self.update_feeds();
        Ok(Ok(()))
    }

    /// Whether packets are inside the network, or wait for an interface.
    pub(crate) fn holds_packets(&self) -> bool {
        self.engine.inside() > 0 || !self.sending.is_empty()
    }

    /// Adds what has happened just now to the notes of the report.
    pub(crate) fn note_now(&mut self, note: &str) {
        let now = self.clock.now();
        self.note(|| format!("at {now}: {note}"));
    }

    /// Adds to the notes of the report, which stays short.
    pub(super) fn note(&mut self, note: impl FnOnce() -> String) {
        if self.notes.len() < MOST_NOTES {
            self.notes.push(note());
        } else {
            self.unlisted += 1;
        }
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let more = (self.unlisted > 0).then(|| format!("and {} more", self.unlisted));
        self.notes.iter().cloned().chain(more).chain(self.routers.notes()).collect()
    }
}
