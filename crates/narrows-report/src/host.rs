//! What the host did while a live run went on, besides the run.

use std::fmt::{self, Formatter};

use serde::{Deserialize, Serialize};

use crate::human::{percent, run_span, span};
use crate::info::{Kind, Word};

/// What the host did meanwhile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostReport {
    /// The part of all processors' time that the hypervisor gave to others while this host had work for it; nothing where
    /// the kernel does not say.
    pub stolen_share: Option<f64>,
    /// The same as time, added up over all processors; the kernel counts in steps of 10 ms.
    pub stolen_ns: Option<u64>,
    /// How frames came from the kernel and went back: `af_packet`, `af_xdp (native mode, copied by the kernel)`.
    pub backend: String,
    /// How long the packet loop was ready to run while others of this host had its processor; nothing where the kernel does
    /// not say.
    pub waited_ns: Option<u64>,
    /// How the packet loop waited for events: `hybrid`, `spin`, `timer`.
    pub wait: Word,
    /// How late the kernel might wake it to join timers; nothing where the kernel does not say.
    pub timer_slack_ns: Option<u64>,
    /// The processor that it, or its first thread, was bound to, if it was.
    pub processor: Option<usize>,
    /// Before whom it ran: `usual`, `high`, `real-time`.
    pub priority: Word,
    /// The capabilities that the packet loop kept once all was set up; `all others` where it could give up none.
    pub capabilities: Vec<Word>,
    /// How long it paused so that the kernel would not stop it: what real-time priority costs.
    pub rested_ns: u64,
    /// Processor time that the packet loop used, all its threads together.
    pub loop_processor_ns: u64,
    /// Of the time that the run took: more than 1 where several threads used more than one processor.
    pub loop_processor_share: f64,
    /// Each thread of the loop.
    pub threads: Vec<ThreadReport>,
}

/// A thread of the packet loop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadReport {
    /// The ports that it moved packets of.
    pub ports: u64,
    /// The processor that it was bound to, if it was.
    pub processor: Option<usize>,
    /// Processor time that it used.
    pub processor_ns: u64,
    /// Of the time that the run took.
    pub processor_share: f64,
    /// How long it paused so that the kernel would not stop it.
    pub rested_ns: u64,
}

/// What a report tells of waiting for a processor.
pub(crate) const WORTH_TELLING: u64 = 1_000_000;

pub(crate) fn print(host: &HostReport, kind: Kind, f: &mut Formatter<'_>) -> fmt::Result {
    writeln!(f, "  frames by {}", host.backend)?;
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
    if host.rested_ns > 0 {
        writeln!(f, "  paused for {} to stay below the kernel's real-time limit", span(host.rested_ns))?;
    }
    if let Some(waited) = host.waited_ns.filter(|waited| *waited >= WORTH_TELLING) {
        writeln!(f, "  run-queue wait: {}", span(waited))?;
    }
    match (host.stolen_ns, host.stolen_share) {
        (Some(stolen), Some(share)) if stolen > 0 => {
            let (stolen, share) = (span(stolen), percent(share));
            writeln!(f, "  CPU steal: {stolen}, {share} of the processors")
        }
        _ => Ok(()),
    }
}
