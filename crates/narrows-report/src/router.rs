//! Counters of routers.

use std::fmt::{self, Formatter};

use narrows_core::{Element, Engine, RouterCounters, RouterId};
use serde::{Deserialize, Serialize};

use crate::human::{count, packets};

/// A router's counters. Packets that arrived were forwarded, addressed to the router itself, or dropped, or they wait for
/// their next hop. Only the router of `narrows route` resolves and translates addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouterReport {
    /// Its name.
    pub name: String,
    /// Packets that arrived there, and packets that the router itself sent.
    pub arrived_packets: u64,
    /// Packets forwarded.
    pub forwarded_packets: u64,
    /// Packets addressed to the router itself.
    pub local_packets: u64,
    /// Packets dropped because their hop limit was exceeded.
    pub hop_limit_packets: u64,
    /// Packets dropped because there was no route.
    pub no_route_packets: u64,
    /// Packets dropped because they came from a switch and were addressed to others.
    #[serde(default)]
    pub filtered_packets: u64,
    /// Packets dropped because the next hop did not answer address resolution, or too many waited for that.
    #[serde(default)]
    pub unresolved_packets: u64,
    /// Packets dropped because their IP header is damaged.
    #[serde(default)]
    pub malformed_packets: u64,
    /// Packets dropped because address translation has no mapping for them.
    #[serde(default)]
    pub untranslated_packets: u64,
    /// How often address translation forgot its mappings.
    #[serde(default)]
    pub rebindings: u64,
    /// Packets that wait for the answer of their next hop.
    #[serde(default)]
    pub waiting_packets: u64,
}

/// All routers, in the order of their names.
pub(crate) fn routers<B>(engine: &Engine<B>) -> Vec<RouterReport> {
    let report = |router| {
        let RouterCounters { arrived, forwarded, local, no_route, hop_limit, filtered } =
            engine.router_counters(router);
        RouterReport {
            name: engine.element_name(Element::Router(router)).to_owned(),
            arrived_packets: arrived.packets,
            forwarded_packets: forwarded.packets,
            local_packets: local.packets,
            hop_limit_packets: hop_limit.packets,
            no_route_packets: no_route.packets,
            filtered_packets: filtered.packets,
            ..RouterReport::default()
        }
    };
    engine.routers().map(report).collect()
}

/// Conservation violations at a router.
pub(crate) fn violation<B>(router: RouterId, engine: &Engine<B>) -> Option<String> {
    let RouterCounters { arrived, forwarded, local, no_route, hop_limit, filtered } =
        engine.router_counters(router);
    let went = [forwarded, local, no_route, hop_limit, filtered].map(|tally| tally.packets);
    let [forwarded, local, no_route, hop_limit, filtered] = went;
    (arrived.packets != went.iter().sum::<u64>()).then(|| {
        format!(
            "router {}: {} packets came, which are not {forwarded} forwarded, {local} for itself, {no_route} without \
             a route, {hop_limit} beyond their hop limit and {filtered} addressed to others",
            engine.element_name(Element::Router(router)),
            arrived.packets
        )
    })
}

/// Prints a line for each router that packets arrived at, up to `most`.
pub(crate) fn print(routers: &[RouterReport], most: usize, f: &mut Formatter<'_>) -> fmt::Result {
    let with: Vec<&RouterReport> = routers.iter().filter(|router| router.arrived_packets > 0).collect();
    if !with.is_empty() {
        writeln!(f)?;
    }
    for router in with.iter().take(most) {
        write!(f, "router {}: {} arrived", router.name, packets(router.arrived_packets))?;
        for (what, number) in [
            ("addressed to it", router.local_packets),
            ("dropped: hop limit", router.hop_limit_packets),
            ("dropped: no route", router.no_route_packets),
            ("addressed to others", router.filtered_packets),
            ("dropped: next hop not resolved", router.unresolved_packets),
            ("dropped: malformed", router.malformed_packets),
            ("dropped: not translated", router.untranslated_packets),
            ("NAT rebindings", router.rebindings),
            ("waiting for their next hop", router.waiting_packets),
        ] {
            if number > 0 {
                write!(f, ", {} {what}", count(number))?;
            }
        }
        writeln!(f)?;
    }
    if with.len() > most {
        writeln!(f, "and {} more routers", with.len() - most)?;
    }
    Ok(())
}
