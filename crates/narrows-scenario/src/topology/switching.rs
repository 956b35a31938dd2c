//! Switches between ends: which ends their VLANs connect, and the way from one to another.
//!
//! The links between switches form trees, because there is no spanning tree protocol that would break a ring.

use std::collections::VecDeque;

use narrows_core::{LinkAddress, SwitchConfig, SwitchPort, Target};

use super::Fault;
use super::segments::{End, Owner};
use crate::problem::Problem;
use crate::switch::{PortVlans, Switch};

/// The ports of all switches, and how the switches are connected.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Switching {
    /// By switch: its ends, in order of its ports.
    ports: Vec<Vec<usize>>,
    /// By end at a switch, in order: its port, and the VLANs of the port.
    of_end: Vec<(usize, Port)>,
    /// By switch: the end by which it leads towards the root of its tree, and its distance from there.
    up: Vec<Option<(usize, u32)>>,
}

#[derive(Clone, Debug, PartialEq)]
struct Port {
    number: u16,
    vlans: PortVlans,
}

/// Where frames that are flooded from an end get to.
#[derive(Debug, Default)]
pub(super) struct Flood {
    /// The ends at hosts and routers, without the first.
    pub(super) ends: Vec<usize>,
    /// The switches, each with the VLAN there and the port that leads back.
    passed: Vec<(usize, u16, u16)>,
}

impl Switching {
    /// Finds the ports of the switches. Switches must not form a ring.
    pub(super) fn new(ends: &[End], switches: &[Switch]) -> Result<Self, Vec<Fault>> {
        let mut switching = Self { ports: vec![Vec::new(); switches.len()], ..Self::default() };
        for (index, end) in ends.iter().enumerate() {
            let Owner::Switch(switch) = end.owner else { continue };
            let ports = &mut switching.ports[switch];
            let number = u16::try_from(ports.len()).unwrap_or(u16::MAX);
            ports.push(index);
            let vlans = switches[switch].vlans_of(&end.link, &ends[end.peer].owner_name);
            let between = matches!(ends[end.peer].owner, Owner::Switch(_));
            let vlans = vlans.cloned().unwrap_or_else(|| PortVlans::usual(between));
            switching.of_end.push((index, Port { number, vlans }));
        }
        switching.up = vec![None; switches.len()];
        let mut seen = vec![false; switches.len()];
        let mut faults = Vec::new();
        for root in 0..switches.len() {
            if !seen[root] {
                switching.grow(root, ends, &mut seen, &mut faults);
            }
        }
        if faults.is_empty() { Ok(switching) } else { Err(faults) }
    }

    /// Finds the tree of a switch.
    fn grow(&mut self, root: usize, ends: &[End], seen: &mut [bool], faults: &mut Vec<Fault>) {
        seen[root] = true;
        let mut open = VecDeque::from([(root, 0)]);
        while let Some((switch, depth)) = open.pop_front() {
            let way_up = self.up[switch].map(|(end, _)| end);
            for &end in self.ports[switch].iter().filter(|&&end| Some(end) != way_up) {
                let peer = ends[end].peer;
                let Owner::Switch(next) = ends[peer].owner else { continue };
                if seen[next] {
                    // Both ends of the link find this: the first one says it.
                    if end <= peer {
                        faults.push(Fault::Link(ends[end].hops[0].link, ring(&ends[end].link)));
                    }
                    continue;
                }
                seen[next] = true;
                self.up[next] = Some((peer, depth + 1));
                open.push_back((next, depth + 1));
            }
        }
    }

    fn port(&self, end: usize) -> Option<&Port> {
        let found = self.of_end.binary_search_by_key(&end, |(end, _)| *end);
        found.ok().map(|at| &self.of_end[at].1)
    }

    /// The VLANs of the port at this end of a link, if a switch is there.
    pub(super) fn vlans(&self, end: usize) -> Option<&PortVlans> {
        self.port(end).map(|port| &port.vlans)
    }

    /// Where frames without a tag get to if they are flooded from an end at a host or a router.
    pub(super) fn flood(&self, from: usize, ends: &[End]) -> Flood {
        let mut flood = Flood::default();
        // Ends at switches where frames arrive, with their tags.
        let mut open = VecDeque::from([(ends[from].peer, 0)]);
        while let Some((at, tag)) = open.pop_front() {
            let (Owner::Switch(switch), Some(port)) = (ends[at].owner, self.port(at)) else { continue };
            let Some(vlan) = port.vlans.vlan_of(tag) else { continue };
            flood.passed.push((switch, vlan, port.number));
            for &out in self.ports[switch].iter().filter(|&&out| out != at) {
                let Some(tag) = self.port(out).and_then(|port| port.vlans.tag_of(vlan)) else { continue };
                let peer = ends[out].peer;
                match ends[peer].owner {
                    Owner::Switch(_) => open.push_back((peer, tag)),
                    // Hosts and routers use no tags.
                    _ if tag == 0 => flood.ends.push(peer),
                    _ => {}
                }
            }
        }
        flood
    }

    /// The ends by which packets from one end leave on their way to another, the first one among them.
    pub(super) fn legs(&self, from: usize, to: usize, ends: &[End]) -> Vec<usize> {
        let switch = |end: usize| match ends[end].owner {
            Owner::Switch(switch) => switch,
            _ => usize::MAX,
        };
        let last = ends[to].peer;
        let (mut here, mut there) = (switch(ends[from].peer), switch(last));
        let (mut legs, mut down) = (vec![from], vec![last]);
        let up = |switch: usize| self.up.get(switch).copied().flatten();
        let depth = |switch: usize| up(switch).map_or(0, |(_, depth)| depth);
        while here != there {
            let climbs = depth(here) >= depth(there);
            let Some((end, _)) = up(if climbs { here } else { there }) else { break };
            let peer = ends[end].peer;
            if climbs {
                legs.push(end);
                here = switch(peer);
            } else {
                down.push(peer);
                there = switch(peer);
            }
        }
        legs.extend(down.into_iter().rev());
        legs
    }

    /// The engine's switches. `exit` is the entry to the first link behind an end, `address` the link address
    /// of an end.
    pub(super) fn configs(
        &self,
        ends: &[End],
        switches: &[Switch],
        exit: &dyn Fn(&End) -> Target,
        address: &dyn Fn(usize) -> LinkAddress,
    ) -> Vec<SwitchConfig> {
        let mut configs: Vec<SwitchConfig> = switches
            .iter()
            .zip(&self.ports)
            .map(|(switch, ports)| SwitchConfig {
                name: switch.name.clone(),
                ports: (ports.iter())
                    .filter_map(|&end| {
                        let PortVlans { untagged, tagged } = self.vlans(end)?;
                        Some(SwitchPort { exit: exit(&ends[end]), untagged: *untagged, tagged: tagged.set() })
                    })
                    .collect(),
                known: Vec::new(),
                ageing: switch.ageing,
                room: switch.table_size,
            })
            .collect();
        for (index, end) in ends.iter().enumerate() {
            let is_router = match end.owner {
                Owner::Host(_) => false,
                Owner::Router(_) => true,
                Owner::Switch(_) => continue,
            };
            for (switch, vlan, port) in self.flood(index, ends).passed {
                // A router answers no address resolution, so switches would never learn where it is.
                if is_router || switches[switch].known_hosts {
                    configs[switch].known.push((vlan, address(index), port));
                }
            }
        }
        configs
    }

    /// The port of a switch at this end.
    pub(super) fn target(&self, end: usize, switches: &[Switch], ends: &[End]) -> Option<Target> {
        let Owner::Switch(switch) = ends[end].owner else { return None };
        Some(Target::Switch { name: switches[switch].name.clone(), port: self.port(end)?.number })
    }
}

fn ring(link: &str) -> Problem {
    Problem::new(format!("`{link}` closes a ring of switches"))
        .help("frames would circulate: there is no spanning tree protocol; remove one link of the ring")
}
