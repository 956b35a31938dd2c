//! A link inside the kernel, watched: the packet loop hands the kernel's records to the engine and compares what both decided.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use narrows_core::model::Feed;
use narrows_core::{DropReason, Duration, Engine, Event, FlowKey, Target, Time, Verdict};
use narrows_io::kernel_end::{KernelEnd, KernelFate, KernelVerdict};
use narrows_report::{KernelVerdicts, Report};
use narrows_scenario::Scenario;

use crate::clock::Clock;
use crate::feeds::Batch;

/// How long before they count values are given to the kernel, so that it has them in time.
const FED_AHEAD: Duration = Duration::from_millis(1);

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
    tagged: AtomicU64,
    late_values: AtomicU64,
    entered_link: AtomicU64,
    forgotten: AtomicU64,
    /// For each link's direction, its name and the index of the port where packets enter it.
    entered: Vec<(String, usize)>,
    /// For each port, the index of the one where packets leave that enter there.
    opposite: Vec<usize>,
}

/// Verdicts of the engine about packets of a port on which the kernel has not decided yet: it decides when it wakes, the engine at
/// the very instant. The oldest first.
#[derive(Debug, Default)]
pub(crate) struct Ahead(VecDeque<(u64, Decision)>);

/// A verdict, as the kernel gives it, and its instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Decision {
    dropped: Option<DropReason>,
    at: Time,
    /// It is delivered with the mark "congestion experienced", where packets are marked.
    has_mark: bool,
}

impl Agreement {
    /// Nothing was compared yet.
    pub(crate) fn of<B>(scenario: &Scenario, engine: &Engine<B>) -> Arc<Self> {
        let index = |name: &str| engine.port(name).map(|port| usize::from(port.index()));
        let mut agreement = Self { opposite: (0..engine.ports().count()).collect(), ..Self::default() };
        for port in scenario.ports() {
            let (Some(here), Some(there)) = (index(&port.name), index(&port.peer)) else { continue };
            agreement.opposite[here] = there;
            if let Some(Target::Link { name, .. }) = port.path.first() {
                agreement.entered.push((name.clone(), here));
            }
        }
        Arc::new(agreement)
    }

    /// The index of the port where packets enter a link.
    pub(crate) fn port_of(&self, link: &str) -> Option<usize> {
        self.entered.iter().find(|(entered, _)| entered == link).map(|(_, port)| *port)
    }

    /// The index of the port where packets leave that enter at a port.
    pub(crate) fn opposite(&self, port: usize) -> usize {
        self.opposite[port]
    }

    /// Compares the engine's event with what the kernel did. If they differ, the event's time and drop become the kernel's: reports and logs
    /// are about what happened, except for marks. If the kernel has not decided yet, the event stays as it is and is compared later.
    pub(crate) fn compare<B>(
        &self,
        event: &mut Event<'_, B>,
        end: &mut KernelEnd,
        ahead: &mut Ahead,
        clock: &Clock,
    ) {
        let number = event.id.number();
        let dropped = match event.verdict {
            Verdict::Delivered(_) => None,
            Verdict::Dropped { reason, .. } => Some(reason),
        };
        let has_mark = end.marks() && dropped.is_none() && event.key.ecn() == FlowKey::CONGESTION_EXPERIENCED;
        let engines = Decision { dropped, at: event.at, has_mark };
        let Some(fate) = end.fate(number) else { return ahead.0.push_back((number, engines)) };
        let Some(kernels) = Decision::of_kernel(fate, clock) else { return self.forget(end, number) };
        if !self.count_comparison(end, number, engines, kernels) {
            event.at = kernels.at;
            if let Some(reason) = kernels.dropped.filter(|_| kernels.dropped != engines.dropped) {
                event.verdict = Verdict::Dropped { at: None, reason };
            }
        }
    }

    /// Compares verdicts on which the kernel has decided by now.
    pub(crate) fn catch_up(&self, end: &mut KernelEnd, ahead: &mut Ahead, clock: &Clock) {
        while let Some(&(number, engines)) = ahead.0.front()
            && let Some(fate) = end.fate(number)
        {
            ahead.0.pop_front();
            match Decision::of_kernel(fate, clock) {
                Some(kernels) => drop(self.count_comparison(end, number, engines, kernels)),
                None => self.forget(end, number),
            }
        }
    }

    /// A packet went with its interface: there is nothing to compare.
    fn forget(&self, end: &mut KernelEnd, number: u64) {
        end.settle(number);
        self.forgotten.fetch_add(1, Relaxed);
    }

    /// Counts a comparison, and returns whether both are the same.
    fn count_comparison(
        &self,
        end: &mut KernelEnd,
        number: u64,
        engines: Decision,
        kernels: Decision,
    ) -> bool {
        end.settle(number);
        self.compared.fetch_add(1, Relaxed);
        let is_same = engines == kernels;
        self.differing.fetch_add(u64::from(!is_same), Relaxed);
        is_same
    }

    /// Feeds the kernel what a batch has, and delays the batch to the instant from which its values count there. With values that
    /// counted before the kernel had them, it may have decided otherwise.
    pub(crate) fn feed(&self, batch: &mut Batch, end: &mut KernelEnd, clock: &Clock) {
        let from = clock.now() + FED_AHEAD;
        let possible: Vec<i64> = batch.values.iter().map(|&value| Feed::possible(value)).collect();
        end.feed(clock.reading(from), &possible);
        if clock.now() >= from {
            self.late_values.fetch_add(possible.len() as u64, Relaxed);
        }
        batch.at = from;
    }

    /// Takes over the counters of an end.
    pub(crate) fn count(&self, ends: &[&KernelEnd]) {
        let sum = |of: fn(&KernelEnd) -> u64| ends.iter().map(|end| of(end)).sum();
        self.entered_link.store(sum(KernelEnd::entered), Relaxed);
        self.trains.store(sum(KernelEnd::trains), Relaxed);
        self.bypassed.store(sum(KernelEnd::bypassed), Relaxed);
        self.tagged.store(sum(KernelEnd::tagged), Relaxed);
        self.no_room.store(sum(|end| end.refused()[0]), Relaxed);
        self.unsupported.store(sum(|end| end.refused()[1]), Relaxed);
    }

    /// Packets that entered, and whose verdicts should have been compared, as no more than `inside` were still in the network.
    fn missed(&self, inside: u64) -> u64 {
        let of = |count: &AtomicU64| count.load(Relaxed);
        of(&self.entered_link).saturating_sub(of(&self.compared) + of(&self.forgotten) + inside)
    }

    /// How many verdicts were compared, and differ; or were not compared, which is no better.
    fn verdicts(&self, inside: u64) -> KernelVerdicts {
        let of = |count: &AtomicU64| count.load(Relaxed);
        let differing_packets = of(&self.differing) + self.missed(inside);
        KernelVerdicts { compared_packets: of(&self.compared), differing_packets }
    }

    /// Adds to the report of a run how many verdicts were compared, and what happened beside.
    pub(crate) fn conclude(&self, report: &mut Report) {
        let inside = report.conservation.inside_packets;
        report.notes.extend(self.notes(inside));
        if let Some(host) = &mut report.host {
            host.kernel_verdicts = Some(self.verdicts(inside));
        }
    }

    /// For the report.
    fn notes(&self, inside: u64) -> Vec<String> {
        let of = |count: &AtomicU64| count.load(Relaxed);
        let compared = of(&self.compared);
        let differ = match (of(&self.differing), of(&self.forgotten)) {
            (0, _) => "all agree".to_owned(),
            (some, 0) => format!("{some} DIFFER; please report this as a bug of narrows"),
            (some, _) => {
                format!("{some} differ, since an interface went down, which the engine does not know")
            }
        };
        let mut notes =
            vec![format!("kernel backend: {compared} verdicts compared with the engine's: {differ}")];
        let missed = self.missed(inside);
        if missed > 0 {
            notes.push(format!("kernel backend: {missed} verdicts could not be compared"));
        }
        for (count, what) in [
            (&self.forgotten, "packets were inside when an interface went down, and are lost"),
            (&self.no_room, "packets did not enter the link: no room for their records, or in the link"),
            (&self.unsupported, "packets did not enter the link: frames below 34 bytes are not supported"),
            (
                &self.late_values,
                "values were fed too late to be sure that they count from the same packet on",
            ),
            (
                &self.tagged,
                "frames with a VLAN tag passed beside the link, without its delay, rate and losses",
            ),
            (&self.trains, "packets crossed as trains: longer than the MTU, segmented behind the link"),
        ] {
            if of(count) > 0 {
                notes.push(format!("kernel backend: {} {what}", of(count)));
            }
        }
        notes
    }
}

impl Decision {
    /// `None` if the kernel has decided nothing, because the packet went with its interface.
    fn of_kernel(fate: KernelFate, clock: &Clock) -> Option<Self> {
        let dropped = match fate.verdict {
            KernelVerdict::Forgotten => return None,
            KernelVerdict::Delivered => None,
            KernelVerdict::IngressLoss => Some(DropReason::IngressLoss),
            KernelVerdict::QueueFull => Some(DropReason::QueueFull),
            KernelVerdict::WireLoss => Some(DropReason::WireLoss),
            KernelVerdict::NoClass => Some(DropReason::NoClass),
            KernelVerdict::DelayModel => Some(DropReason::DelayModel),
            KernelVerdict::QueueManagement => Some(DropReason::QueueManagement),
        };
        Some(Self { dropped, at: clock.instant(fate.at), has_mark: fate.has_mark })
    }
}
