//! What the host did while the loop ran: what the report says of it.

use narrows_core::Time;
use narrows_io::clock::thread_processor_time;
use narrows_io::host::{ProcessorTime, timer_slack};
use narrows_io::privileges::in_effect;
use narrows_report::{HostReport, Report, RunInfo};

use super::disturbance::Disturbances;
use super::{PacketLoop, pace};
use crate::clock::Clock;

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
    /// The report as things stand; the engine has been brought up to `info.span`.
    pub(super) fn report(&self, info: &RunInfo) -> Report {
        let mut report = Report::new(info, &self.engine, &self.meter);
        self.report_feeds(&mut report);
        let disturbances = &self.before.disturbances;
        disturbances.look();
        for interval in report.untrue.iter_mut().flat_map(|untrue| &mut untrue.intervals) {
            let [start, end] = [interval.start_ns, interval.end_ns].map(Time::from_nanos);
            let taken = disturbances.around(start, end);
            (interval.stolen_ns, interval.waited_ns) = (taken.stolen, taken.waited);
        }
        report.host = Some(self.host(info));
        report.trains = self.trains();
        report
    }

    fn host(&self, info: &RunInfo) -> HostReport {
        let now = ProcessorTime::read().ok();
        let stolen = self.before.processors.zip(now);
        let used = thread_processor_time().saturating_sub(self.before.own);
        let span = info.span.1.since(info.span.0).nanos().max(1);
        let mut backends: Vec<String> = self.cables().map(|cable| cable.end.description()).collect();
        backends.sort();
        backends.dedup();
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
            rested_ns: self.rest.rested.nanos(),
            loop_processor_ns: used,
            loop_processor_share: used as f64 / span as f64,
        }
    }
}
