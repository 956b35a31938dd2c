//! What the host did while the loop ran: what the report says of it.

use narrows_core::Time;
use narrows_io::clock::thread_processor_time;
use narrows_io::host::{ProcessorTime, timer_slack};
use narrows_io::privileges::in_effect;
use narrows_report::{HostReport, Part, Report, RunInfo, ThreadReport};

use super::crew::Account;
use super::disturbance::Disturbances;
use super::{PacketLoop, pace};
use crate::clock::Clock;
use crate::feeds::Feeds;

/// What the kernel had counted when the loop began.
#[derive(Debug)]
pub(super) struct HostBefore {
    /// Nothing where the kernel does not say.
    processors: Option<ProcessorTime>,
    /// Of this thread, in nanoseconds.
    own: u64,
    disturbances: Disturbances,
}

impl HostBefore {
    /// To be called by the thread that runs the loop.
    pub(super) fn read(clock: Clock) -> Self {
        Self {
            processors: ProcessorTime::read().ok(),
            own: thread_processor_time(),
            disturbances: Disturbances::watch(clock),
        }
    }
}

impl PacketLoop {
    /// The report of all loops.
    pub(super) fn report(&self, info: &RunInfo, own: Account, others: Vec<Account>) -> Report {
        let (mut threads, mut parts, mut trains) = (vec![own.thread], Vec::new(), own.trains);
        let mut backends = own.backends;
        for account in others {
            backends.extend(account.backends);
            threads.push(account.thread);
            parts.push(account.part);
            match (&mut trains, account.trains) {
                (Some(sum), Some(more)) => sum.add(&more),
                (sum, more) => *sum = sum.take().or(more),
            }
        }
        let mut report = Report::of_parts(info, own.part, parts);
        let disturbances = &self.before.disturbances;
        disturbances.look();
        for interval in report.untrue.iter_mut().flat_map(|untrue| &mut untrue.intervals) {
            let [start, end] = [interval.start_ns, interval.end_ns].map(Time::from_nanos);
            let taken = disturbances.around(start, end);
            (interval.stolen_ns, interval.waited_ns) = (taken.stolen, taken.waited);
        }
        report.host = Some(self.host(info, threads, backends));
        report.trains = trains;
        report
    }

    /// What this loop has of the report; the engine has been brought up to `info.span`.
    pub(super) fn part(&self, info: &RunInfo) -> Part {
        let mut part = Part::new(info, &self.engine, &self.meter, &|place| self.share.has(place));
        self.feeds.iter().flat_map(Feeds::writers).for_each(|writers| part.met(writers));
        part
    }

    /// What this loop has used. To be called by its thread.
    pub(super) fn thread_report(&self, info: &RunInfo) -> ThreadReport {
        let used = thread_processor_time().saturating_sub(self.before.own);
        let span = info.span.1.since(info.span.0).nanos().max(1);
        ThreadReport {
            ports: self.ports.iter().filter(|port| port.cable.is_some()).count() as u64,
            processor: self.pace.processor,
            processor_ns: used,
            processor_share: used as f64 / span as f64,
            rested_ns: self.rest.rested.nanos(),
        }
    }

    /// How frames come and go at its ports.
    pub(super) fn backends(&self) -> Vec<String> {
        let cables = self.ports.iter().filter_map(|port| port.cable.as_ref());
        cables.map(|cable| cable.end.description()).collect()
    }

    fn host(&self, info: &RunInfo, threads: Vec<ThreadReport>, mut backends: Vec<String>) -> HostReport {
        backends.sort();
        backends.dedup();
        let now = ProcessorTime::read().ok();
        let stolen = self.before.processors.zip(now);
        HostReport {
            backend: backends.join(", "),
            stolen_share: stolen.map(|(before, now)| now.stolen_share_since(before)),
            stolen_ns: stolen.map(|(before, now)| now.stolen_since(before)),
            waited_ns: self.before.disturbances.around(info.span.0, info.span.1).waited,
            wait: self.pace.wait.name(),
            timer_slack_ns: timer_slack().ok(),
            processor: self.pace.processor,
            priority: pace::name(self.pace.priority),
            capabilities: in_effect().unwrap_or_default(),
            rested_ns: threads.iter().map(|thread| thread.rested_ns).sum(),
            loop_processor_ns: threads.iter().map(|thread| thread.processor_ns).sum(),
            loop_processor_share: threads.iter().map(|thread| thread.processor_share).sum(),
            threads,
        }
    }
}
