//! The main loop of virtual time: inputs in, events out.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use narrows_core::{Duration, Time};
use narrows_report::{ApplicationInfo, Report, RunInfo, SourceInfo, SourceMeter};

use crate::changes::Changes;
use crate::error::SimError;
use crate::watched::Watched;
use narrows_traffic::Sources;

/// For a run without a duration, once all inputs have arrived: how long nothing may happen inside the network before
/// packets count as stuck behind a link that is down. Changes that repeat for ever may never bring it up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3_600);

/// Within a span this short, responsive senders send at most [`RUSH`] inputs. More means that the path between them
/// takes no time and the run would never end: a thousand million packets a second are beyond any link.
pub(crate) const MOMENT: Duration = Duration::from_millis(1);
/// The maximum number of inputs within a [`MOMENT`].
pub(crate) const RUSH: u64 = 2_000_000;

/// Sources between two calls of the [`Watch`]: a fraction of a millisecond.
const LOOK: u32 = 1_024;

/// A callback that watches a run: it receives the current instant from time to time and decides whether to continue.
/// When and how often it is called changes no event.
pub type Watch<'a> = &'a mut dyn FnMut(Time) -> ControlFlow<()>;

/// A run in progress.
pub(crate) struct Drive<'a> {
    pub(crate) network: Watched,
    inputs: Sources,
    changes: Box<dyn Changes>,
    /// The number of changes made.
    pub(crate) changes_made: u64,
    /// Sources between two polls; changes no event.
    poll_every: u32,
    /// The maximum number of inputs in a [`MOMENT`], where some sources respond.
    rush: u64,
    watch: Watch<'a>,
    /// Steps since the last call of the watch.
    unwatched: u32,
}

/// What the report says about a scenario's own traffic.
pub(crate) struct TrafficInfo {
    pub(crate) sources: Vec<SourceInfo>,
    pub(crate) applications: Vec<(u32, ApplicationInfo)>,
}

impl TrafficInfo {
    /// Adds the results to a report, after a run of this length: of all parts of the run, each with its sources and their
    /// meters.
    pub(crate) fn report<'a>(
        &self,
        report: &mut Report,
        parts: impl IntoIterator<Item = (&'a Sources, &'a [SourceMeter])>,
        length: Duration,
    ) {
        let (mut counted, mut applications) = (Vec::new(), BTreeMap::new());
        for (sources, meters) in parts {
            counted.extend((0u32..).map(|source| sources.place(source)).zip(meters).take(meters.len()));
            applications.extend(sources.applications());
        }
        report.generated = SourceMeter::reports(&self.sources, counted);
        let app =
            |(place, info): &(u32, ApplicationInfo)| Some(applications.get(place)?.report(info, length));
        report.applications = self.applications.iter().filter_map(app).collect();
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) at: Time,
    /// The run ended with packets inside that no event would release.
    pub(crate) stuck: bool,
    /// The watch stopped the run before its end.
    pub(crate) broken_off: bool,
}

impl<'a> Drive<'a> {
    pub(crate) fn new(
        network: Watched,
        inputs: Sources,
        changes: Box<dyn Changes>,
        watch: Watch<'a>,
    ) -> Self {
        Self { network, inputs, changes, changes_made: 0, poll_every: 1, rush: RUSH, watch, unwatched: 0 }
    }

    /// Whether the watch stops the run, at the instant that the run has reached.
    fn is_over(&mut self, at: Time) -> bool {
        self.unwatched += 1;
        if self.unwatched < LOOK {
            return false;
        }
        self.unwatched = 0;
        (self.watch)(at).is_break()
    }

    /// Ends a run early: packets inside stay there.
    fn break_off(&mut self, at: Time) -> Result<End, SimError> {
        self.network.finish(at)?;
        Ok(End { at, stuck: false, broken_off: true })
    }

    /// Runs until `until`: inputs before that instant, and events up to and including it. Without `until`, runs until
    /// all inputs have been taken and the network is empty. Changes later than that are not made.
    pub(crate) fn run(&mut self, until: Option<Time>) -> Result<End, SimError> {
        if self.inputs.respond() {
            self.network.arrived = Some(Vec::new());
            return self.run_responding(until);
        }
        let last = until.unwrap_or(Time::NEVER);
        let mut unpolled = 0;
        while let Some(at) = self.inputs.peek().filter(|&at| at < last) {
            self.change_until(at)?;
            let Some((at, port, packet)) = self.inputs.take()? else { break };
            self.network.hand_in(at, port, packet, None)?;
            unpolled += 1;
            if unpolled >= self.poll_every {
                self.network.poll(at)?;
                unpolled = 0;
            }
            if self.is_over(at) {
                return self.break_off(at);
            }
        }
        self.network.poll(self.network.engine.now())?;
        let end = match until {
            Some(at) => {
                self.change_until(at)?;
                End { at, stuck: false, broken_off: false }
            }
            None => self.empty()?,
        };
        self.network.finish(end.at)?;
        Ok(end)
    }

    /// Like [`Drive::run`], but arrivals cause further inputs: each instant at which something happens is polled
    /// separately, before any later input.
    fn run_responding(&mut self, until: Option<Time>) -> Result<End, SimError> {
        let last = until.unwrap_or(Time::NEVER);
        let mut patience = Time::ZERO + PATIENCE;
        let (mut moment, mut inputs) = (Time::ZERO, 0);
        loop {
            let event = self.network.engine.next_event().filter(|&at| at <= last).unwrap_or(Time::NEVER);
            let input = self.inputs.peek().filter(|&at| at < last).unwrap_or(Time::NEVER);
            let open = self.network.engine.inside() > 0 || input < Time::NEVER;
            let change = match self.changes.peek() {
                Some(at) if open && at <= patience.min(last) => at,
                _ => Time::NEVER,
            };
            let next = event.min(change).min(input);
            if next == Time::NEVER {
                break;
            }
            if self.is_over(next) {
                return self.break_off(self.network.engine.now());
            }
            if event == next {
                self.network.poll(next)?;
            } else if change == next {
                self.change_until(next)?;
            } else {
                if next.since(moment) >= MOMENT {
                    (moment, inputs) = (next, 0);
                }
                inputs += 1;
                if inputs > self.rush {
                    return Err(SimError::Rush { at: next, most: self.rush });
                }
                if let Some((at, port, packet)) = self.inputs.take()? {
                    self.network.hand_in(at, port, packet, None)?;
                }
            }
            if change != next || event == next {
                patience = next + PATIENCE;
            }
            if let Some(arrived) = &mut self.network.arrived
                && !arrived.is_empty()
            {
                arrived.drain(..).for_each(|arrived| self.inputs.arrive(arrived));
            }
        }
        let at = until.unwrap_or(self.network.engine.now());
        let stuck = until.is_none() && self.network.engine.inside() > 0;
        if until.is_some() {
            self.change_until(at)?;
        }
        self.network.finish(at)?;
        Ok(End { at, stuck, broken_off: false })
    }

    /// Runs until the network is empty.
    fn empty(&mut self) -> Result<End, SimError> {
        let mut limit = self.network.engine.now() + PATIENCE;
        while self.network.engine.inside() > 0 {
            let event = self.network.engine.next_event();
            let next = match (event, self.changes.peek()) {
                (Some(event), Some(change)) => event.min(change),
                (Some(at), None) => at,
                (None, Some(at)) if at <= limit => at,
                (None, _) => break,
            };
            if event == Some(next) {
                limit = next + PATIENCE;
            }
            self.change_until(next)?;
            self.network.poll(next)?;
            if self.is_over(next) {
                return Ok(End { at: next, stuck: false, broken_off: true });
            }
        }
        let engine = &self.network.engine;
        Ok(End { at: engine.now(), stuck: engine.inside() > 0, broken_off: false })
    }

    /// Updates the report's information on classes.
    pub(crate) fn update(&self, info: &mut RunInfo) {
        self.changes.update(info);
    }

    /// Adds the results of a scenario's traffic to a report, after a run of this length.
    pub(crate) fn report_traffic(&self, report: &mut Report, traffic: &TrafficInfo, length: Duration) {
        traffic.report(report, [(&self.inputs, &self.network.traffic[..])], length);
    }

    /// Makes the changes due up to and including `at`, before packets that arrive at the same instant.
    fn change_until(&mut self, at: Time) -> Result<(), SimError> {
        while let Some(due) = self.changes.peek().filter(|&due| due <= at) {
            let changes = self.changes.take()?;
            self.network.make(due, changes)?;
            self.changes_made += 1;
        }
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn poll_every(&mut self, inputs: u32) {
        self.poll_every = inputs;
    }

    #[cfg(test)]
    pub(crate) fn rush(&mut self, inputs: u64) {
        self.rush = inputs;
    }
}

#[cfg(test)]
mod aimd;
#[cfg(test)]
mod tests;
