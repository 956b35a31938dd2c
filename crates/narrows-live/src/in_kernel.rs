//! A link inside the kernel, watched: the packet loop hands the kernel's records to the engine and compares what both decided.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use narrows_core::{DropReason, Duration, Event, Verdict};
use narrows_io::kernel_end::{KernelEnd, KernelFate, KernelVerdict};
use narrows_report::KernelVerdicts;

use crate::clock::Clock;

/// How long the loop waits between looks at the records: nothing waits for it, and the ring has room for longer.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Counts of comparisons, shared with the packet thread.
#[derive(Debug, Default)]
pub(crate) struct Agreement {
    compared: AtomicU64,
    differing: AtomicU64,
    trains: AtomicU64,
    unsupported: AtomicU64,
    no_room: AtomicU64,
    bypassed: AtomicU64,
}

impl Agreement {
    pub(crate) fn shared() -> Arc<Self> {
        Arc::default()
    }

    /// Compares the engine's event with what the kernel did. If they differ, the event becomes the kernel's: reports and logs are
    /// about what happened.
    pub(crate) fn compare<B>(&self, event: &mut Event<'_, B>, end: &mut KernelEnd, clock: &Clock) {
        let Some(fate) = end.take_fate(event.id.number()) else { return };
        self.compared.fetch_add(1, Relaxed);
        let at = clock.instant(fate.at);
        let is_same = is_same(event.verdict, fate);
        if is_same && at == event.at {
            return;
        }
        self.differing.fetch_add(1, Relaxed);
        event.at = at;
        if !is_same && let Some(reason) = reason(fate.verdict) {
            event.verdict = Verdict::Dropped { at: None, reason };
        }
    }

    /// Takes over the counters of an end.
    pub(crate) fn count(&self, ends: &[&KernelEnd]) {
        let sum = |of: fn(&KernelEnd) -> u64| ends.iter().map(|end| of(end)).sum();
        self.trains.store(sum(KernelEnd::trains), Relaxed);
        self.bypassed.store(sum(KernelEnd::bypassed), Relaxed);
        self.no_room.store(sum(|end| end.refused()[0]), Relaxed);
        self.unsupported.store(sum(|end| end.refused()[1]), Relaxed);
    }

    /// How many verdicts were compared, and differ.
    pub(crate) fn verdicts(&self) -> KernelVerdicts {
        let of = |count: &AtomicU64| count.load(Relaxed);
        KernelVerdicts { compared_packets: of(&self.compared), differing_packets: of(&self.differing) }
    }

    /// For the report.
    pub(crate) fn notes(&self) -> Vec<String> {
        let of = |count: &AtomicU64| count.load(Relaxed);
        let compared = of(&self.compared);
        let differ = match of(&self.differing) {
            0 => "all agree".to_owned(),
            some => format!("{some} DIFFER; please report this as a bug of narrows"),
        };
        let mut notes =
            vec![format!("kernel backend: {compared} verdicts compared with the engine's: {differ}")];
        for (count, what) in [
            (&self.no_room, "did not enter the link: no room for their records, or in the delay line"),
            (
                &self.unsupported,
                "did not enter the link: VLAN tags and frames below 34 bytes are not supported",
            ),
            (&self.trains, "crossed as trains: longer than the MTU, segmented behind the link"),
        ] {
            if of(count) > 0 {
                notes.push(format!("kernel backend: {} packets {what}", of(count)));
            }
        }
        notes
    }
}

fn reason(verdict: KernelVerdict) -> Option<DropReason> {
    match verdict {
        KernelVerdict::Delivered => None,
        KernelVerdict::IngressLoss => Some(DropReason::IngressLoss),
        KernelVerdict::QueueFull => Some(DropReason::QueueFull),
        KernelVerdict::WireLoss => Some(DropReason::WireLoss),
    }
}

fn is_same(verdict: Verdict, fate: KernelFate) -> bool {
    match (verdict, reason(fate.verdict)) {
        (Verdict::Delivered(_), None) => true,
        (Verdict::Dropped { reason, .. }, Some(kernels)) => reason == kernels,
        _ => false,
    }
}
