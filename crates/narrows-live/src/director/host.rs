//! The state of the host while the network ran, for the report.

use narrows_io::host::{ProcessorTime, timer_slack};
use narrows_io::privileges::in_effect;
use narrows_report::{HostReport, RunInfo, ThreadReport, Word};

use super::disturbance::Disturbances;
use crate::data::pace::{self, Pace, ProcessorShare};

/// The kernel's counters when the network started.
#[derive(Debug)]
pub(super) struct HostWatch {
    /// `None` if the kernel does not report it.
    pub(super) processors: Option<ProcessorTime>,
    pub(super) disturbances: Disturbances,
}

impl HostWatch {
    pub(super) fn report(
        &self,
        info: &RunInfo,
        pace: Pace,
        threads: Vec<ThreadReport>,
        mut backends: Vec<String>,
        confined: bool,
    ) -> HostReport {
        backends.sort();
        backends.dedup();
        let now = ProcessorTime::read().ok();
        let stolen = self.processors.zip(now);
        HostReport {
            backend: backends.join(", "),
            steal_share: stolen.map(|(before, now)| now.stolen_share_since(before)),
            steal_ns: stolen.map(|(before, now)| now.stolen_since(before)),
            run_queue_wait_ns: self.disturbances.around(info.span.0, info.span.1).waited,
            wait: pace.wait.name().into(),
            timer_slack_ns: timer_slack().ok(),
            processor: pace.processor,
            priority: pace::name(pace.priority).into(),
            max_processor_share: pace.max_share.map(ProcessorShare::fraction),
            capabilities: in_effect().unwrap_or_default().into_iter().map(Word::from).collect(),
            confined,
            throttle_pause_ns: threads.iter().map(|thread| thread.throttle_pause_ns).sum(),
            gather_ns: threads.iter().map(|thread| thread.gather_ns).sum(),
            loop_processor_ns: threads.iter().map(|thread| thread.processor_ns).sum(),
            loop_processor_share: threads.iter().map(|thread| thread.processor_share).sum(),
            threads,
            kernel_verdicts: None,
        }
    }
}
