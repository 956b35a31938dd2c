//! Counters of switches.

use std::fmt::{self, Formatter};

use narrows_core::{Element, Engine, SwitchCounters, SwitchId};
use serde::{Deserialize, Serialize};

use crate::human::{count, packets};

/// A switch's counters. Packets that arrived, and copies made by flooding, were forwarded or dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchReport {
    /// Its name.
    pub name: String,
    /// Packets that arrived there.
    pub arrived_packets: u64,
    /// Packets created by flooding: a packet flooded to n ports has n − 1 copies.
    pub copied_packets: u64,
    /// Packets sent out of a port, copies included.
    pub forwarded_packets: u64,
    /// Packets flooded: to a group or to an unknown destination.
    pub flooded_packets: u64,
    /// Packets dropped because no port was left for them.
    pub filtered_packets: u64,
    /// Packets dropped because they reached the limit on visited elements.
    pub looped_packets: u64,
    /// Copies dropped because the network had reached its memory limit.
    pub refused_packets: u64,
    /// Packets from an address that the full table had no room for.
    pub not_learned_packets: u64,
    /// Link addresses that the switch knows now.
    pub known_addresses: u64,
}

/// All switches, in the order of their names.
pub(crate) fn switches<B>(engine: &Engine<B>) -> Vec<SwitchReport> {
    let report = |switch| {
        let SwitchCounters { arrived, copied, forwarded, flooded, filtered, looped, refused, not_learned } =
            engine.switch_counters(switch);
        SwitchReport {
            name: engine.element_name(Element::Switch(switch)).to_owned(),
            arrived_packets: arrived.packets,
            copied_packets: copied.packets,
            forwarded_packets: forwarded.packets,
            flooded_packets: flooded.packets,
            filtered_packets: filtered.packets,
            looped_packets: looped.packets,
            refused_packets: refused.packets,
            not_learned_packets: not_learned,
            known_addresses: engine.known_addresses(switch) as u64,
        }
    };
    engine.switches().map(report).collect()
}

/// Conservation violations at a switch.
pub(crate) fn violation<B>(switch: SwitchId, engine: &Engine<B>) -> Option<String> {
    let SwitchCounters { arrived, copied, forwarded, filtered, looped, refused, .. } =
        engine.switch_counters(switch);
    let [arrived, copied] = [arrived, copied].map(|tally| tally.packets);
    let [forwarded, filtered, looped, refused] =
        [forwarded, filtered, looped, refused].map(|tally| tally.packets);
    (arrived + copied != forwarded + filtered + looped + refused).then(|| {
        format!(
            "switch {}: {arrived} arrived and {copied} copied are not {forwarded} forwarded, {filtered} filtered, \
             {looped} looped and {refused} refused",
            engine.element_name(Element::Switch(switch)),
        )
    })
}

/// Prints a line for each switch that packets arrived at, up to `most`.
pub(crate) fn print(switches: &[SwitchReport], most: usize, f: &mut Formatter<'_>) -> fmt::Result {
    let with: Vec<&SwitchReport> = switches.iter().filter(|switch| switch.arrived_packets > 0).collect();
    if !with.is_empty() {
        writeln!(f)?;
    }
    for switch in with.iter().take(most) {
        write!(f, "switch {}: {} arrived", switch.name, packets(switch.arrived_packets))?;
        for (what, number) in [
            ("flooded", switch.flooded_packets),
            ("copies", switch.copied_packets),
            ("filtered", switch.filtered_packets),
            ("dropped: loop", switch.looped_packets),
            ("dropped: memory", switch.refused_packets),
            ("from addresses that the table had no room for", switch.not_learned_packets),
        ] {
            if number > 0 {
                write!(f, ", {} {what}", count(number))?;
            }
        }
        writeln!(f)?;
    }
    if with.len() > most {
        writeln!(f, "and {} more switches", with.len() - most)?;
    }
    Ok(())
}
