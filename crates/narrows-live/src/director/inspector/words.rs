//! What happened to a packet, in a sentence, and the settings behind it.

use narrows_core::DropReason;
use narrows_scenario::Scenario;

use crate::control::PacketRecord;

/// The settings of a link that can drop packets for a reason, as assignments.
pub(super) fn settings(scenario: &Scenario, link: &str, reason: DropReason) -> Vec<String> {
    let directions = scenario.links.iter().flat_map(|link| link.directions());
    let Some((_, direction)) = directions.into_iter().find(|(name, _)| name == link) else {
        return Vec::new();
    };
    let causes = direction.causes(reason).into_iter();
    causes.map(|(key, value)| format!("{link}.{key}={value}")).collect()
}

/// `delivered to server.access`.
pub(super) fn delivered(packet: &PacketRecord) -> String {
    let notes = [(packet.marked, "marked"), (packet.corrupted, "corrupted"), (packet.copy > 0, "a copy")];
    let notes: Vec<_> = notes.iter().filter(|(applies, _)| *applies).map(|(_, note)| *note).collect();
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
    format!("delivered to {}{notes}", packet.place)
}

/// `dropped by access.up: the queue was full (queue=50 packets)`. Settings that have changed since then are not known.
pub(super) fn dropped(packet: &PacketRecord, reason: DropReason, is_current: bool) -> String {
    let by = if packet.place.is_empty() { String::new() } else { format!(" by {}", packet.place) };
    let prefix = format!("{}.", packet.place);
    let keys = packet.settings.iter().map(|setting| setting.strip_prefix(&prefix).unwrap_or(setting));
    let keys = keys.collect::<Vec<_>>().join(" or ");
    let settings = match (keys.is_empty(), is_current) {
        (false, _) => format!(" ({keys})"),
        (true, true) => String::new(),
        (true, false) => " (the settings have changed since)".into(),
    };
    format!("dropped{by}: {}{settings}", why(reason))
}

fn why(reason: DropReason) -> &'static str {
    match reason {
        DropReason::IngressLoss => "lost before the queue",
        DropReason::QueueFull => "the queue was full",
        DropReason::WireLoss => "lost on the wire",
        DropReason::DelayModel => "lost by the delay model",
        DropReason::LineFull => "too many packets in flight",
        DropReason::TooLong => "longer than the MTU, and the sender is told",
        DropReason::BlackHole => "too long ever to be sent, and the sender is not told",
        DropReason::Loop => "it has crossed too many links",
        DropReason::Memory => "the network's limit on memory, or the packet's on copies, was reached",
        DropReason::QueueManagement => "queue management signals congestion",
        DropReason::NoClass => "it matches no class of the scheduler, and there is no default class",
        DropReason::Policed => "a policer or filter at the ingress drops it",
        DropReason::RetryLimit => "the retry limit of medium access was reached",
        DropReason::Collisions => "the limit on attempts after collisions was reached",
        DropReason::TooLate => "it would have waited longer than its class allows",
        DropReason::RedundantAck => "a later acknowledgement of its connection made it redundant",
        DropReason::Denied => "a rule denies it",
        DropReason::NoPipe => "a rule names a pipe or queue that does not exist",
        DropReason::NoRoute => "no route to its destination",
        DropReason::HopLimit => "its hop limit is exhausted",
        DropReason::Filtered => "no port of the switch is left for it, or the router is not its addressee",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drop_names_place_reason_and_settings() {
        let settings = vec!["access.up.loss=2%".into(), "access.up.trace=cell.csv".into()];
        let packet = PacketRecord { place: "access.up".into(), settings, ..PacketRecord::default() };
        assert_eq!(
            dropped(&packet, DropReason::WireLoss, true),
            "dropped by access.up: lost on the wire (loss=2% or trace=cell.csv)"
        );
        let packet = PacketRecord { settings: Vec::new(), ..packet };
        assert_eq!(
            dropped(&packet, DropReason::QueueFull, false),
            "dropped by access.up: the queue was full (the settings have changed since)"
        );
        assert_eq!(
            dropped(&packet, DropReason::HopLimit, true),
            "dropped by access.up: its hop limit is exhausted"
        );
        let nowhere = PacketRecord::default();
        assert!(dropped(&nowhere, DropReason::Memory, true).starts_with("dropped: the network's limit"));
    }

    #[test]
    fn a_delivery_names_its_port() {
        let packet = PacketRecord { place: "server.access".into(), ..PacketRecord::default() };
        assert_eq!(delivered(&packet), "delivered to server.access");
        let packet = PacketRecord { marked: true, copy: 1, ..packet };
        assert_eq!(delivered(&packet), "delivered to server.access (marked, a copy)");
    }
}
