//! What the host did while the loop ran: what the report says of it.

use narrows_io::clock::thread_processor_time;
use narrows_io::host::{ProcessorTime, timer_slack};
use narrows_io::privileges::in_effect;
use narrows_report::{HostReport, Report, RunInfo};

use super::{PacketLoop, pace};

/// What the kernel had counted when the loop began.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostBefore {
    /// Nothing where the kernel does not say.
    processors: Option<ProcessorTime>,
    /// Of this thread, in nanoseconds.
    own: u64,
}

impl HostBefore {
    /// To be called by the thread that runs the loop.
    pub(super) fn read() -> Self {
        Self { processors: ProcessorTime::read().ok(), own: thread_processor_time() }
    }
}

impl PacketLoop {
    /// The report as things stand; the engine has been brought up to `info.span`.
    pub(super) fn report(&self, info: &RunInfo) -> Report {
        let mut report = Report::new(info, &self.engine, &self.meter);
        self.report_feeds(&mut report);
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
