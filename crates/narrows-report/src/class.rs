//! The classes of a direction's scheduler.

use narrows_core::queue::ClassCounters;
use narrows_core::sched::{ClassState, DelayState};
use narrows_core::{Counters, LinkView, Time};
use narrows_scenario::mask_words;
use serde::{Deserialize, Serialize};

use crate::flows::{self, FlowsReport};
use crate::info::{ClassInfo, DirectionInfo, QueueInfo};

/// The counters of a class of a direction's scheduler since that scheduler was installed.
///
/// `arrived = sent + dropped + waiting`. Packets that were waiting when the scheduler was installed count as arrived.
/// What happens to a packet after it leaves the class, on the wire or later, is counted by the direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassReport {
    /// Its name.
    pub name: String,
    /// Its weight at the end; `None` if the scheduler has no weights.
    pub weight: Option<u32>,
    /// The packets that belong to it, in one line.
    pub matches: String,
    /// Packets that arrived in it.
    pub arrived_packets: u64,
    /// Their bytes from the network header on.
    pub arrived_bytes: u64,
    /// Packets that went to the transmitter.
    pub sent_packets: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Its share of the bytes sent by all classes.
    pub sent_share: f64,
    /// Packets dropped by the limit, by queue management or by the scheduler.
    pub dropped_packets: u64,
    /// Their bytes.
    pub dropped_bytes: u64,
    /// TCP acknowledgements among them that a later one made redundant.
    #[serde(default)]
    pub redundant_acks: u64,
    /// Packets marked with "congestion experienced".
    pub marked_packets: u64,
    /// Packets waiting: the backlog.
    #[serde(alias = "waiting_packets")]
    pub backlog_packets: u64,
    /// Their bytes from the network header on.
    #[serde(default)]
    #[serde(alias = "waiting_bytes")]
    pub backlog_bytes: u64,
    /// The mean queueing delay of packets sent.
    pub queueing_mean_ns: Option<u64>,
    /// The maximum queueing delay of packets sent.
    pub queueing_max_ns: Option<u64>,
    /// The state of the class in a delay-based scheduler.
    pub delay: Option<ClassDelayReport>,
    /// The number of a pipe's queue; 0 for packets that rules send to the pipe itself; `None` for other classes.
    pub queue: Option<u32>,
    /// The queues that a mask created from a pipe's queue, if it has a mask.
    pub flows: Option<FlowsReport>,
}

/// The state of a class in a delay-based scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassDelayReport {
    /// The average delay of the class, as estimated by the scheduler; it decides which class is served.
    pub average_ns: u64,
    /// How long its first packet has waited; 0 if none is waiting.
    pub hold_ns: u64,
    /// How often it was served because its delay limit was about to be exceeded.
    pub over_limit: u64,
}

impl ClassDelayReport {
    fn of(state: &ClassState) -> Option<Self> {
        match state {
            ClassState::Delay(DelayState { hold, average, over_limit }) => {
                Some(Self { average_ns: average.nanos(), hold_ns: hold.nanos(), over_limit: *over_limit })
            }
            _ => None,
        }
    }
}

/// The classes of a link, with their configuration. A class without configuration is named by its number. Links
/// created on first use have separate classes, which are left out.
pub(crate) fn classes(asked: &DirectionInfo, view: &LinkView<'_>, now: Time) -> Vec<ClassReport> {
    if view.instance_counts().is_some() {
        return Vec::new();
    }
    let (sets, masked) = (view.flow_sets(), view.masked_flows(now));
    let states = view.class_states(now);
    let sent_by_all = view.classes().iter().map(|class| class.sent.bytes).sum();
    let one = |(number, class): (usize, &ClassCounters)| {
        let by_number = || ClassInfo { name: format!("class {number}"), ..ClassInfo::default() };
        let set = sets.get(number);
        let queue = asked.queues.iter().find(|queue| set.is_some_and(|set| set.number == queue.number));
        let info = match set {
            Some(set) => of_set(set.number, queue),
            None => asked.classes.get(number).cloned().unwrap_or_else(by_number),
        };
        let mask = queue.and_then(|queue| queue.mask);
        let flows = set.filter(|_| mask.is_some());
        ClassReport {
            name: info.name,
            weight: info.weight,
            matches: info.matches,
            arrived_packets: class.arrived.packets,
            arrived_bytes: class.arrived.bytes,
            sent_packets: class.sent.packets,
            sent_bytes: class.sent.bytes,
            sent_share: crate::figures::share(class.sent.bytes, sent_by_all),
            dropped_packets: class.dropped.packets,
            dropped_bytes: class.dropped.bytes,
            redundant_acks: class.redundant,
            marked_packets: class.marked,
            backlog_packets: u64::try_from(waiting(class)).unwrap_or(0),
            backlog_bytes: class.arrived.bytes.saturating_sub(class.sent.bytes + class.dropped.bytes),
            queueing_mean_ns: crate::figures::mean(class.waited, class.sent.packets),
            queueing_max_ns: (class.sent.packets > 0).then(|| class.longest_wait.nanos()),
            delay: states.get(number).and_then(ClassDelayReport::of),
            queue: set.map(|set| set.number),
            flows: flows.map(|set| flows::of_set(number, *set, &masked, mask.as_ref())),
        }
    };
    view.classes().iter().enumerate().map(one).collect()
}

/// Why a loaded scheduler has been disabled.
pub(crate) fn failure(asked: &DirectionInfo, view: &LinkView<'_>, now: Time) -> Option<String> {
    let failed = |state| match state {
        ClassState::Failed(failure) => Some(failure.to_string()),
        _ => None,
    };
    if asked.lane == 0 { view.class_states(now).into_iter().find_map(failed) } else { None }
}

/// What is known of a queue of a pipe; 0 stands for packets that rules send to the pipe itself.
fn of_set(number: u32, queue: Option<&QueueInfo>) -> ClassInfo {
    let name = match number {
        0 => "the pipe itself".into(),
        number => format!("queue {number}"),
    };
    let matches = queue
        .and_then(|queue| queue.mask)
        .map_or(String::new(), |mask| format!("a queue for each flow ({})", mask_words(&mask)));
    ClassInfo { name, weight: queue.and_then(|queue| queue.weight), matches }
}

/// How many packets wait according to the counters of a class; negative if more left than arrived.
fn waiting(class: &ClassCounters) -> i128 {
    i128::from(class.arrived.packets) - i128::from(class.sent.packets) - i128::from(class.dropped.packets)
}

/// Conservation violations in the classes of a link. The counters start with the scheduler: replacing it resets both
/// sides.
pub(crate) fn violations(view: &LinkView<'_>) -> Vec<String> {
    let classes = view.classes();
    // The classes of links created on first use come and go with those links.
    if classes.is_empty() || view.instance_counts().is_some() {
        return Vec::new();
    }
    let mut found = Vec::new();
    let (left, waits): (i128, _) = (classes.iter().map(waiting).sum(), view.backlog().packets);
    if left != i128::from(waits) {
        found.push(format!(
            "link {}: {left} packets are queued in its classes, but {waits} in the link",
            view.name()
        ));
    }
    for (number, class) in classes.iter().enumerate().filter(|(_, class)| waiting(class) < 0) {
        let (arrived, sent, dropped) = (class.arrived.packets, class.sent.packets, class.dropped.packets);
        found.push(format!(
            "link {}: {arrived} packets arrived at class {number}, but it sent {sent} and dropped {dropped}",
            view.name()
        ));
    }
    let sum = |of: fn(&ClassCounters) -> u64| classes.iter().map(of).sum::<u64>();
    let lanes = |of: fn(&Counters) -> u64| view.counters().iter().map(of).sum::<u64>();
    for (what, by_classes, by_link) in [
        ("sent", sum(|c| c.sent.packets), lanes(|c| c.sent.packets) + u64::from(view.is_transmitting())),
        ("marked", sum(|c| c.marked), lanes(|c| c.marked)),
        ("dropped", sum(|c| c.dropped.packets), lanes(|c| c.dropped_in_all().packets)),
    ] {
        if by_classes > by_link {
            found.push(format!(
                "link {}: its classes {what} {by_classes} packets, but it {what} {by_link}",
                view.name()
            ));
        }
    }
    found
}
