//! The classes of a direction's scheduler.

use narrows_core::queue::ClassCounters;
use narrows_core::{Counters, LinkView};
use serde::Serialize;

/// What was asked for of a class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassInfo {
    /// Its name.
    pub name: String,
    /// Its weight; nothing where the scheduler knows none.
    pub weight: Option<u32>,
    /// What belongs to it, in one line.
    pub matches: String,
}

/// What a class of a direction's scheduler has counted since that scheduler was put in place.
///
/// `arrived = sent + dropped + waiting`. Packets that waited when the scheduler took over have arrived in it; what left
/// the class is on the wire or beyond, and what became of it there, the direction says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassReport {
    /// Its name.
    pub name: String,
    /// Its weight at the end; nothing where the scheduler knows none.
    pub weight: Option<u32>,
    /// What belongs to it, in one line.
    pub matches: String,
    /// Packets that came to it.
    pub arrived_packets: u64,
    /// Their bytes from the network header on.
    pub arrived_bytes: u64,
    /// Packets that went to the transmitter.
    pub sent_packets: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Of the bytes that all classes sent.
    pub sent_share: f64,
    /// Packets dropped by the bound, by queue management or by the scheduler.
    pub dropped_packets: u64,
    /// Their bytes.
    pub dropped_bytes: u64,
    /// Packets marked with "congestion experienced".
    pub marked_packets: u64,
    /// Packets that wait.
    pub waiting_packets: u64,
    /// The mean time that those sent had waited.
    pub queueing_mean_ns: Option<u64>,
    /// The longest time that one of those had waited.
    pub queueing_max_ns: Option<u64>,
}

/// The classes of a link beside what was asked for. A class beyond those that were asked for goes by its number.
pub(crate) fn classes(asked: &[ClassInfo], view: &LinkView<'_>) -> Vec<ClassReport> {
    let sent_by_all = view.classes().iter().map(|class| class.sent.bytes).sum();
    let one = |(number, class): (usize, &ClassCounters)| {
        let by_number = || ClassInfo { name: format!("class {number}"), ..ClassInfo::default() };
        let info = asked.get(number).cloned().unwrap_or_else(by_number);
        ClassReport {
            name: info.name,
            weight: info.weight,
            matches: info.matches,
            arrived_packets: class.arrived.packets,
            arrived_bytes: class.arrived.bytes,
            sent_packets: class.sent.packets,
            sent_bytes: class.sent.bytes,
            sent_share: crate::build::share(class.sent.bytes, sent_by_all),
            dropped_packets: class.dropped.packets,
            dropped_bytes: class.dropped.bytes,
            marked_packets: class.marked,
            waiting_packets: u64::try_from(waiting(class)).unwrap_or(0),
            queueing_mean_ns: crate::build::mean(class.waited, class.sent.packets),
            queueing_max_ns: (class.sent.packets > 0).then(|| class.longest_wait.nanos()),
        }
    };
    view.classes().iter().enumerate().map(one).collect()
}

/// What the counters of a class say that waits there, which is negative if more left than came.
fn waiting(class: &ClassCounters) -> i128 {
    i128::from(class.arrived.packets) - i128::from(class.sent.packets) - i128::from(class.dropped.packets)
}

/// What does not add up in the classes of a link. Their counters begin with the scheduler: replacing it makes both sides
/// begin anew.
pub(crate) fn violations(view: &LinkView<'_>) -> Vec<String> {
    let classes = view.classes();
    if classes.is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    let (left, waits): (i128, _) = (classes.iter().map(waiting).sum(), view.backlog().packets);
    if left != i128::from(waits) {
        found.push(format!(
            "link {}: its classes leave {left} packets waiting, but {waits} wait",
            view.name()
        ));
    }
    for (number, class) in classes.iter().enumerate().filter(|(_, class)| waiting(class) < 0) {
        let (arrived, sent, dropped) = (class.arrived.packets, class.sent.packets, class.dropped.packets);
        found.push(format!(
            "link {}: {arrived} packets came to class {number}, but it sent {sent} and dropped {dropped}",
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
