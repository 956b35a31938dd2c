//! The state of the host during a live run.

use std::fmt::{self, Formatter};

use serde::{Deserialize, Serialize};

use crate::human::{percent, run_span, span};
use crate::info::{Kind, Word};

/// The state of the host during a live run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostReport {
    /// CPU steal: the share of all processors' time that the hypervisor gave to other guests while this host had
    /// work; `None` if the kernel does not report it.
    #[serde(alias = "stolen_share")]
    pub steal_share: Option<f64>,
    /// CPU steal as time, summed over all processors; the kernel counts in steps of 10 ms.
    #[serde(alias = "stolen_ns")]
    pub steal_ns: Option<u64>,
    /// The packet I/O backend: `af_packet`, `af_xdp (native mode, copied by the kernel)`.
    pub backend: String,
    /// Run-queue wait of the packet loop: how long it was ready to run while other tasks had its processor; `None` if
    /// the kernel does not report it.
    #[serde(alias = "waited_ns")]
    pub run_queue_wait_ns: Option<u64>,
    /// How the packet loop waits for events: `hybrid`, `spin`, `timer`.
    pub wait: Word,
    /// The timer slack: how late the kernel may wake the loop to coalesce timers; `None` if the kernel does not
    /// report it.
    pub timer_slack_ns: Option<u64>,
    /// The processor that the loop, or its first thread, was pinned to, if any.
    pub processor: Option<usize>,
    /// Its scheduling priority: `usual`, `high`, `real-time`.
    pub priority: Word,
    /// The largest share of a processor that each of its threads may use, if limited.
    #[serde(default)]
    pub max_processor_share: Option<f64>,
    /// The capabilities that the packet loop kept after set-up; `all others` if it could drop none.
    pub capabilities: Vec<Word>,
    /// Whether the kernel keeps it to descriptors that are open.
    #[serde(default)]
    pub confined: bool,
    /// How long it paused so that the kernel would not throttle it at real-time priority, or to keep within
    /// `max_processor_share`.
    #[serde(alias = "rested_ns")]
    pub throttle_pause_ns: u64,
    /// For how long, over all its threads, it waited to gather packets because other programs wanted its processor.
    #[serde(default)]
    pub gather_ns: u64,
    /// CPU time of the packet loop, over all its threads.
    pub loop_processor_ns: u64,
    /// CPU time as a share of the run's duration: above 1 if several threads used more than one processor.
    pub loop_processor_share: f64,
    /// Each thread of the loop.
    pub threads: Vec<ThreadReport>,
    /// For links inside the kernel: its verdicts, compared with the engine's.
    #[serde(default)]
    pub kernel_verdicts: Option<KernelVerdicts>,
}

/// Verdicts of a link inside the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelVerdicts {
    /// Packets whose verdict and instant were compared with the engine's.
    pub compared_packets: u64,
    /// Those of which either differed.
    pub differing_packets: u64,
}

/// A thread of the packet loop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadReport {
    /// How many ports it served.
    pub ports: u64,
    /// The processor that it was pinned to, if any.
    pub processor: Option<usize>,
    /// The CPU time that it used.
    pub processor_ns: u64,
    /// CPU time as a share of the run's duration.
    pub processor_share: f64,
    /// How long it paused so that the kernel would not throttle it, or because of a limit.
    #[serde(alias = "rested_ns")]
    pub throttle_pause_ns: u64,
    /// For how long it waited to gather packets because other programs wanted its processor.
    #[serde(default)]
    pub gather_ns: u64,
}

/// The shortest run-queue wait that a report mentions.
pub(crate) const WORTH_TELLING: u64 = 1_000_000;

pub(crate) fn print(host: &HostReport, kind: Kind, f: &mut Formatter<'_>) -> fmt::Result {
    writeln!(f, "  packet I/O: {}", host.backend)?;
    if kind == Kind::ExactVirtual {
        return writeln!(
            f,
            "  the clock stands still while programs compute; each read advances it by some nanoseconds"
        );
    }
    let (used, share) = (run_span(host.loop_processor_ns), percent(host.loop_processor_share));
    let wait = &host.wait;
    writeln!(f, "  packet thread ({wait}): {used} CPU time, {share} of the run")?;
    if host.threads.len() > 1 {
        let threads = host.threads.iter().map(|thread| {
            let processor = thread.processor.map(|processor| format!(" on processor {processor}"));
            format!("{}{}", percent(thread.processor_share), processor.unwrap_or_default())
        });
        let threads: Vec<_> = threads.collect();
        writeln!(f, "  in {} threads: {}", threads.len(), threads.join(", "))?;
    }
    let processor = host
        .processor
        .filter(|_| host.threads.len() < 2)
        .map(|processor| format!("on processor {processor}"));
    let priority = (host.priority != "usual").then(|| format!("with {} priority", host.priority));
    let place: Vec<_> = processor.into_iter().chain(priority).collect();
    if !place.is_empty() {
        writeln!(f, "  it ran {}", place.join(", "))?;
    }
    if host.throttle_pause_ns > 0 {
        let limit = match host.max_processor_share {
            Some(share) => format!("--max-cpu {}%", (share * 1000.0).round() / 10.0),
            None => "the kernel's real-time limit".to_owned(),
        };
        writeln!(f, "  paused for {} to stay below {limit}", span(host.throttle_pause_ns))?;
    }
    if host.gather_ns > 0 {
        let gathered = span(host.gather_ns);
        writeln!(
            f,
            "  gathered packets for {gathered}, 0.1 ms at a time: other programs wanted its processor"
        )?;
    }
    if let Some(waited) = host.run_queue_wait_ns.filter(|waited| *waited >= WORTH_TELLING) {
        writeln!(f, "  run-queue wait: {}", span(waited))?;
    }
    match (host.steal_ns, host.steal_share) {
        (Some(stolen), Some(share)) if stolen > 0 => {
            let (stolen, share) = (span(stolen), percent(share));
            writeln!(f, "  CPU steal: {stolen}, {share} of the processors")
        }
        _ => Ok(()),
    }
}
