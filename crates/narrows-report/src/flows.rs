//! Links and queues that masks create on first use, one for each flow.

use std::cmp::Reverse;
use std::fmt::{self, Formatter};
use std::net::Ipv6Addr;

use narrows_core::classify::{Flow, FlowMask};
use narrows_core::sched::{FlowSetCounts, MaskedFlow};
use narrows_core::{InstanceCounts, LinkView, Time};
use serde::{Deserialize, Serialize};

use crate::human::{bytes, count, packets};

/// The links or queues that a mask creates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowsReport {
    /// Created so far, counting repeated creation.
    #[serde(alias = "made")]
    pub created: u64,
    /// Those removed after a long time without packets.
    pub expired: u64,
    /// Packets that arrived when the maximum number existed, and shared an overflow one.
    pub overflowed_packets: u64,
    /// The existing ones, in order of their flows.
    #[serde(alias = "present")]
    pub active: Vec<FlowReport>,
}

/// A link or queue of one flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowReport {
    /// The flow, in the syntax of masks; `None` for the overflow queue.
    pub flow: Option<String>,
    /// Packets that arrived since it was created.
    pub arrived_packets: u64,
    /// Their bytes from the network header on.
    pub arrived_bytes: u64,
    /// Packets that were dropped.
    pub dropped_packets: u64,
    /// Packets waiting.
    #[serde(alias = "waiting_packets")]
    pub backlog_packets: u64,
}

/// The links created from a link with a mask, both lanes together.
pub(crate) fn of_link(view: &LinkView<'_>, mask: Option<&FlowMask>, now: Time) -> Option<FlowsReport> {
    let InstanceCounts { made, expired, overflowed } = view.instance_counts()?;
    let one = |(flow, link): (Flow, LinkView<'_>)| {
        let counters = link.counters();
        let sum = |of: fn(&narrows_core::Counters) -> u64| counters.iter().map(of).sum();
        FlowReport {
            flow: Some(text(&flow, mask)),
            arrived_packets: sum(|lane| lane.arrived.packets),
            arrived_bytes: sum(|lane| lane.arrived.bytes),
            dropped_packets: sum(|lane| lane.dropped_in_all().packets),
            backlog_packets: link.backlog().packets,
        }
    };
    let present = view.instances(now).into_iter().map(|instance| one((instance.flow, instance.link)));
    Some(FlowsReport { created: made, expired, overflowed_packets: overflowed, active: present.collect() })
}

/// The queues created for one flow set; `all` are those of all sets.
pub(crate) fn of_set(
    place: usize,
    counts: FlowSetCounts,
    all: &[MaskedFlow],
    mask: Option<&FlowMask>,
) -> FlowsReport {
    let FlowSetCounts { made, expired, overflowed, .. } = counts;
    let one = |masked: &MaskedFlow| FlowReport {
        flow: masked.flow.map(|flow| text(&flow, mask)),
        arrived_packets: masked.arrived.packets,
        arrived_bytes: masked.arrived.bytes,
        dropped_packets: masked.dropped.packets,
        backlog_packets: masked.backlog.packets,
    };
    let present = all.iter().filter(|masked| masked.set as usize == place).map(one);
    FlowsReport { created: made, expired, overflowed_packets: overflowed, active: present.collect() }
}

/// Conservation violations in the links and queues that masks created for a link.
pub(crate) fn violations(view: &LinkView<'_>, now: Time) -> Vec<String> {
    let name = view.name();
    if let Some(InstanceCounts { made, expired, .. }) = view.instance_counts() {
        let there = view.instances(now).len() as u64;
        let wrong = made.checked_sub(expired).is_none_or(|left| there > left);
        let words = || format!("link {name}: {made} links created and {expired} expired, but {there} exist");
        return wrong.then(words).into_iter().collect();
    }
    let sets = view.flow_sets();
    if sets.is_empty() {
        return Vec::new();
    }
    let (mut found, flows) = (Vec::new(), view.masked_flows(now));
    for FlowSetCounts { number, made, expired, .. } in sets.iter().filter(|set| set.expired > set.made) {
        found.push(format!("link {name}: queue {number} created {made} flows, but {expired} expired"));
    }
    let (by_flows, waits) =
        (flows.iter().map(|flow| flow.backlog.packets).sum::<u64>(), view.backlog().packets);
    if by_flows != waits {
        found.push(format!(
            "link {name}: {by_flows} packets are queued in its flows, but {waits} in the link"
        ));
    }
    for MaskedFlow { number, arrived, dropped, backlog, .. } in &flows {
        if dropped.packets + backlog.packets > arrived.packets {
            found.push(format!(
                "link {name}: {} packets arrived at a flow of queue {number}, but {} were dropped and {} are queued",
                arrived.packets, dropped.packets, backlog.packets
            ));
        }
    }
    found
}

/// What the packets of a flow have in common: `src-ip 10.0.0.7 dst-port 80`. Without the mask, fields that are zero
/// are omitted.
fn text(flow: &Flow, mask: Option<&FlowMask>) -> String {
    let counts = |of: fn(&FlowMask) -> bool, is_there: bool| mask.map_or(is_there, of);
    let address = |name: &str, bits: u128| {
        let address = Ipv6Addr::from(bits);
        // Addresses of the other family do not count; an IPv4 address is mapped if any of its bits counts.
        match (bits, address.to_ipv4_mapped()) {
            (0, _) => None,
            (_, Some(four)) => Some(format!("{name} {four}")),
            _ => Some(format!("{name}6 {address}")),
        }
    };
    let number = |name: &str, counts: bool, number: u32| counts.then(|| format!("{name} {number}"));
    let protocol = counts(|mask| mask.protocol > 0, flow.protocol > 0);
    let parts = [
        number("proto", protocol, flow.protocol.into()),
        address("src-ip", flow.source),
        number(
            "src-port",
            counts(|mask| mask.source_port > 0, flow.source_port > 0),
            flow.source_port.into(),
        ),
        address("dst-ip", flow.destination),
        number(
            "dst-port",
            counts(|mask| mask.destination_port > 0, flow.destination_port > 0),
            flow.destination_port.into(),
        ),
        number("flow-id", flow.flow_label > 0, flow.flow_label),
        number("queue", counts(|mask| mask.queue, flow.queue > 0), flow.queue),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "all others".into() } else { parts.join(" ") }
}

/// How many flows are shown.
const FEW_FLOWS: usize = 5;

/// Prints the totals, and the flows with the most bytes. `what` says what they are: links, or queues of a queue.
pub(crate) fn print(what: &str, flows: &FlowsReport, f: &mut Formatter<'_>) -> fmt::Result {
    let FlowsReport { created, expired, overflowed_packets, active } = flows;
    if *created == 0 && *overflowed_packets == 0 {
        return Ok(());
    }
    write!(f, "  {what}: {} created, {} expired", count(*created), count(*expired))?;
    if *overflowed_packets > 0 {
        write!(f, ", {} shared the overflow one", packets(*overflowed_packets))?;
    }
    writeln!(f)?;
    let mut rows: Vec<&FlowReport> = active.iter().collect();
    rows.sort_by_key(|row| Reverse(row.arrived_bytes));
    rows.truncate(FEW_FLOWS);
    let label = |row: &FlowReport| row.flow.clone().unwrap_or_else(|| "overflow".into());
    let width = rows.iter().map(|row| label(row).chars().count()).max().unwrap_or(0).max(16);
    for row in &rows {
        let (number, sum) = (packets(row.arrived_packets), bytes(row.arrived_bytes));
        write!(f, "    {:<width$}{number:>20}{sum:>12}", label(row))?;
        for (word, number) in [("dropped", row.dropped_packets), ("backlog", row.backlog_packets)] {
            if number > 0 {
                write!(f, "  {word} {}", count(number))?;
            }
        }
        writeln!(f)?;
    }
    if active.len() > rows.len() {
        writeln!(f, "    and {} more", count((active.len() - rows.len()) as u64))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn flows_in_the_words_of_masks() {
        let mapped = |four: [u8; 4]| u128::from(Ipv4Addr::from(four).to_ipv6_mapped());
        let mask =
            FlowMask { source_v4: 0xff, source_v6: 0xff, destination_port: u16::MAX, ..FlowMask::NONE };
        let flow = Flow { source: mapped([0, 0, 0, 7]), destination_port: 80, ..Flow::default() };
        assert_eq!(text(&flow, Some(&mask)), "src-ip 0.0.0.7 dst-port 80");
        let flow = Flow { source: mapped([0; 4]), ..Flow::default() };
        assert_eq!(text(&flow, Some(&mask)), "src-ip 0.0.0.0 dst-port 0", "zero tells flows apart too");
        assert_eq!(text(&flow, None), "src-ip 0.0.0.0");
        let flow = Flow { source: 7, ..Flow::default() };
        assert_eq!(text(&flow, Some(&mask)), "src-ip6 ::7 dst-port 0");
        assert_eq!(text(&Flow::default(), None), "all others");
        let flow = Flow { protocol: 6, queue: 2, flow_label: 9, ..Flow::default() };
        let mask = FlowMask { protocol: 0xff, queue: true, flow_label: 0xff, ..FlowMask::NONE };
        assert_eq!(text(&flow, Some(&mask)), "proto 6 flow-id 9 queue 2");
    }
}
