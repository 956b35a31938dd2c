//! Handles requests of clients of the control socket.

use std::os::fd::BorrowedFd;

use narrows_core::{Duration, Time};
use narrows_io::host::time_is_virtual;
use narrows_io::wait::{EndSignals, Waiting, wait};
use narrows_report::RunInfo;
use narrows_scenario::ipfw::Command;

use super::Director;
use super::ipfw::Printer;
use super::plan::{Prepared, What, feeds_of};
use crate::control::{Changed, CurrentScenario, Happening, Reply, ReplyLine, Request, Stats, Status};
use crate::data::LoopError;
use crate::data::changes::Asked;
use crate::data::decision::Decision;
use crate::data::orders::{Answer, Order};
use crate::data::sample::RulesSample;
use crate::entrance::Entrances;

/// How far ahead a change is first planned: about the time to tell all packet threads. In virtual time that takes
/// almost none.
const LEAD: Duration = Duration::from_millis(1);
const LEAD_IN_VIRTUAL_TIME: Duration = Duration::from_micros(10);
/// How often a change is planned again, each time further ahead, if the host is too busy to tell all threads in time.
const TRIES: usize = 10;
/// How long packet threads have to return their counters before the reply goes without them.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// Ends a portion of longer work: packet threads may have waited for this processor.
pub(super) fn let_others_run() {
    std::thread::yield_now();
}

/// What ends waiting for packet threads.
#[derive(Clone, Copy)]
pub(super) struct Hurry<'a> {
    ready: Option<BorrowedFd<'a>>,
    signals: &'a EndSignals,
}

impl Director {
    /// Serves the clients of the control socket that have sent something.
    pub(super) fn serve(
        &mut self,
        ready: Option<BorrowedFd<'_>>,
        signals: &EndSignals,
    ) -> Result<(), LoopError> {
        let Some((mut control, info)) = self.control.take() else { return Ok(()) };
        let mut failed = None;
        control.serve(|request, from| {
            self.asking = Some(from);
            self.answer(request, &info, Hurry { ready, signals }).unwrap_or_else(|error| {
                let line = Reply::Error(error.to_string()).into();
                failed = Some(error);
                line
            })
        });
        self.asking = None;
        self.control = Some((control, info));
        failed.map_or(Ok(()), Err)
    }

    fn answer(&mut self, request: Request, info: &RunInfo, hurry: Hurry<'_>) -> Result<ReplyLine, LoopError> {
        Ok(match request {
            Request::Set { mut assignments, generation, known_files_only } => {
                self.open_files(!known_files_only);
                let rebindings = match self.take_rebindings(&mut assignments) {
                    Ok(rebindings) => rebindings,
                    Err(why) => return Ok(Reply::Error(why).into()),
                };
                match self.change(&What::Set(assignments), generation, hurry)? {
                    Ok(changed) => {
                        self.rebind(&rebindings);
                        ReplyLine::ok(&changed)
                    }
                    Err(refusal) => return Ok(refusal.into()),
                }
            }
            Request::Check { assignments, known_files_only } => {
                self.open_files(!known_files_only);
                self.hear()?;
                self.advance();
                match self.plan.check(assignments, self.clock.now()) {
                    Ok(checked) => ReplyLine::ok(&checked),
                    Err(refusal) => return Ok(Reply::from(refusal).into()),
                }
            }
            Request::Ipfw { link, file, commands, generation } => {
                self.open_files(true);
                match self.change(&What::Ipfw { link, file, commands }, generation, hurry)? {
                    Ok(changed) => ReplyLine::ok(&changed),
                    Err(refusal) => return Ok(refusal.into()),
                }
            }
            Request::Feeds {} => ReplyLine::ok(&self.places()),
            Request::Scenario {} => {
                self.advance();
                ReplyLine::ok(&CurrentScenario::of(self.plan.scenario(), self.plan.generation()))
            }
            Request::Stats {} => {
                let report = self.report_so_far(info, hurry)?;
                let now = self.present(info, hurry)?;
                let_others_run();
                let mut text = report.text().to_string();
                let_others_run();
                if let Some(now) = &now {
                    text += &format!("\nnow\n{}", now.text());
                }
                ReplyLine::ok(&Stats { generation: self.plan.generation(), report, now, text })
            }
            Request::Status {} => {
                let report = self.report_so_far(info, hurry)?;
                ReplyLine::ok(&Status {
                    generation: self.plan.generation(),
                    trust: report.trust_word().into(),
                    inside_packets: report.conservation.inside_packets,
                    delivered: self.recent_rates(),
                })
            }
            Request::Now {} => {
                self.hear()?;
                self.advance();
                let now = self.present(info, hurry)?;
                let Some(now) = now else {
                    let why = "too many links for rates; stats shows their counters";
                    return Ok(Reply::Error(why.into()).into());
                };
                ReplyLine::ok(&now)
            }
            Request::Events { after } => {
                self.hear()?;
                self.advance();
                ReplyLine::ok(&self.events.since(after))
            }
            Request::Packets { after } => ReplyLine::ok(&self.packets(after, hurry)?),
            Request::Hosts {} => {
                ReplyLine::ok(&self.entrances.as_ref().map(Entrances::hosts).unwrap_or_default())
            }
            Request::Enter { host } => {
                let Some(entrances) = &self.entrances else {
                    let why = "this run uses existing interfaces and has no hosts of its own";
                    return Ok(Reply::Error(why.into()).into());
                };
                match entrances.of(&host, self.feed_environment()) {
                    Ok(entrance) => {
                        self.has_let_in = true;
                        self.happened(Happening::Entered, format!("a program for host {host}"));
                        ReplyLine::ok(&entrance)
                    }
                    Err(why) => return Ok(Reply::Error(why).into()),
                }
            }
            Request::End {} => {
                self.asked_to_end = true;
                self.happened(Happening::Ending, "asked to end".into());
                ReplyLine::ok(&())
            }
        })
    }

    /// Whether the next change may open files, if its client may.
    fn open_files(&mut self, may: bool) {
        self.plan.open_files(may && self.asking.is_some_and(|client| client.opens_files));
    }

    /// Makes a change at one instant on all packet threads, or says why it is invalid. If a generation is given, it
    /// is rejected for any other.
    fn change(
        &mut self,
        what: &What,
        meant_for: Option<u64>,
        hurry: Hurry<'_>,
    ) -> Result<Result<Changed, Reply>, LoopError> {
        self.hear()?;
        self.advance();
        // First without an instant close ahead, so that files are read and errors are found before time matters.
        match self.plan.prepare(what, meant_for, self.clock.now(), 1) {
            Ok(prepared) if prepared.is_change && self.is_in_kernel => {
                let why = "links inside the kernel (--backend kernel) do not change while they run; \
                           start the run with another backend";
                return Ok(Err(Reply::Error(why.into())));
            }
            Ok(prepared) if prepared.is_change => let_others_run(),
            Ok(prepared) => {
                let text = self.print(prepared.prints, hurry)?;
                return Ok(Ok(Changed { generation: self.plan.generation(), at_ns: None, text }));
            }
            Err(refusal) => return Ok(Err(refusal.into())),
        }
        let mut lead = if time_is_virtual() { LEAD_IN_VIRTUAL_TIME } else { LEAD };
        for _ in 0..TRIES {
            let begun = self.clock.now();
            let mut prepared = match self.plan.prepare(what, meant_for, begun + lead, self.pool.len()) {
                Ok(prepared) => prepared,
                Err(refusal) => return Ok(Err(refusal.into())),
            };
            if self.tell(&mut prepared) {
                self.sleep_until(prepared.at)?;
                let (generation, at_ns) = (prepared.generation(), Some(prepared.at.nanos()));
                let text = self.changed(prepared, hurry)?;
                return Ok(Ok(Changed { generation, at_ns, text }));
            }
            let took = self.clock.now().since(begun);
            lead = took + took + LEAD;
        }
        let busy = "this host is too busy to make the change everywhere at one instant; try again";
        Ok(Err(Reply::Error(busy.into())))
    }

    /// Tells all packet threads of a change; returns whether each knew it before its instant, so that it is made.
    fn tell(&mut self, prepared: &mut Prepared) -> bool {
        let decision = Decision::default();
        let (first, mut steps) = (prepared.first_packet(), std::mem::take(&mut prepared.steps).into_iter());
        let mut first = Some(first);
        self.pool.tell(|_| {
            // There are as many as packet threads.
            let (step, then) = steps.next().expect("steps were made for each thread");
            let (decision, first) = (decision.clone(), first.take().flatten());
            Order::Ask(Box::new(Asked { step, decision, then, first }))
        });
        // Sleeping threads wake up for it; a thread that reached the instant first has cancelled it.
        self.pool.call();
        if self.clock.now() < prepared.at { decision.make() } else { decision.give_up() }
    }

    fn sleep_until(&self, at: Time) -> Result<(), LoopError> {
        if self.clock.now() < at {
            wait(&mut [], Some(self.clock.reading(at))).map_err(LoopError::Wait)?;
        }
        Ok(())
    }

    /// A change has been made. Returns the output of its commands.
    fn changed(&mut self, mut prepared: Prepared, hurry: Hurry<'_>) -> Result<String, LoopError> {
        let feeds_before = feeds_of(self.plan.scenario());
        let (at, prints) = (prepared.at, prepared.prints.take());
        let generation = self.plan.generation();
        self.plan.commit(prepared);
        let_others_run();
        let mut changes = self.plan.changes_since(generation);
        // Timeline steps before it are applied with it.
        let own = changes.pop();
        changes.into_iter().for_each(|step| self.happened(Happening::Timeline, step));
        own.into_iter().for_each(|change| self.happened(Happening::Changed, change));
        if feeds_before != feeds_of(self.plan.scenario()) {
            self.update_feeds(at, hurry)?;
        }
        self.print(prints, hurry)
    }

    /// The output of commands on the rules at a link.
    fn print(
        &mut self,
        prints: Option<(String, Vec<Command>)>,
        hurry: Hurry<'_>,
    ) -> Result<String, LoopError> {
        let Some((link, commands)) = prints.filter(|(_, commands)| !commands.is_empty()) else {
            return Ok(String::new());
        };
        let counted = self.rules_sample(&link, hurry)?;
        let printer =
            Printer { scenario: self.plan.scenario(), clock: self.clock, link: &link, counted: &counted };
        Ok(commands.iter().filter_map(|command| printer.print(command)).collect())
    }

    /// Asks packet threads which feeds exist from an instant on, and creates the sockets of new ones.
    fn update_feeds(&mut self, at: Time, hurry: Hurry<'_>) -> Result<(), LoopError> {
        self.pool.tell(|_| Order::Feeds(at));
        self.pool.call();
        let mut missing = self.pool.len();
        self.gather(hurry, |director, number, answer| {
            missing -= usize::from(matches!(answer, Answer::Feeds(_)));
            director.take(number, answer)?;
            Ok(missing == 0)
        })
    }

    fn rules_sample(&mut self, link: &str, hurry: Hurry<'_>) -> Result<RulesSample, LoopError> {
        self.pool.tell(|_| Order::Rules(link.to_owned()));
        self.pool.call();
        let (mut missing, mut found) = (self.pool.len(), RulesSample::default());
        self.gather(hurry, |director, number, answer| {
            match answer {
                Answer::Rules(rules) => {
                    missing -= 1;
                    if !rules.rules.is_empty() {
                        found = *rules;
                    }
                }
                other => director.take(number, other)?,
            }
            Ok(missing == 0)
        })?;
        Ok(found)
    }

    /// Takes answers until `take` says that all are there, the threads' time is over, or the run is to end.
    pub(super) fn gather(
        &mut self,
        hurry: Hurry<'_>,
        mut take: impl FnMut(&mut Self, usize, Answer) -> Result<bool, LoopError>,
    ) -> Result<(), LoopError> {
        let give_up = self.clock.now() + PATIENCE;
        loop {
            while let Some((number, answer)) = self.pool.next() {
                if take(self, number, answer)? {
                    return Ok(());
                }
            }
            let called = self.pool.called().clone();
            let mut waiting = vec![Waiting::readable(&*called), Waiting::readable(hurry.signals)];
            waiting.extend(hurry.ready.iter().map(Waiting::readable));
            wait(&mut waiting, Some(self.clock.reading(give_up))).map_err(LoopError::Wait)?;
            let is_over = waiting[1..].iter().any(Waiting::is_ready);
            if is_over || self.clock.now() >= give_up {
                return Ok(());
            }
        }
    }
}
