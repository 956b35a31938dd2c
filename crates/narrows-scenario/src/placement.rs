//! Which node of a scenario is on which machine.
//!
//! Nodes joined by a link that cannot be cut form a group. Machines are filled one after another, each with the group
//! that has the highest total rate to those already there, up to an equal share of the hosts; then groups move as long
//! as that lowers the total rate of the cut links. The same input always gives the same placement.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use narrows_core::Duration;

use crate::link::{Link, Medium, Way};
use crate::part::plain_delay;
use crate::scenario::Scenario;

/// A link without a rate counts as this one, in bits per second.
const UNLIMITED: u64 = 100_000_000_000;
/// Local search ends after this many passes.
const MOST_PASSES: usize = 50;

/// The machine of each node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// Hosts, junctions, routers and switches, each with its machine.
    pub nodes: BTreeMap<String, String>,
}

/// A link between two machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutLink {
    /// The link.
    pub link: String,
    /// The machines of its first and second end.
    pub machines: [String; 2],
    /// The smaller delay of its directions.
    pub delay: Duration,
    /// Rate of both directions together, in bits per second.
    pub rate: u64,
    /// The largest packet that it carries, in bytes of IP.
    pub mtu: u32,
}

impl Placement {
    /// Places the nodes of a scenario on these machines. Hosts are where their `machine` says; with `auto`, those
    /// without it are placed like routers, junctions and switches. No link with a delay below `least` is cut where
    /// that can be avoided.
    ///
    /// # Errors
    /// What cannot be placed, and why.
    pub fn of(scenario: &Scenario, machines: &[String], auto: bool, least: Duration) -> Result<Self, String> {
        let mut fixed: BTreeMap<&str, usize> = BTreeMap::new();
        for host in &scenario.hosts {
            match &host.machine {
                Some(machine) => {
                    let at = machines.iter().position(|other| other == machine).ok_or_else(|| {
                        format!(
                            "host `{}` is on the machine `{machine}`, which is not among --machines {}",
                            host.name,
                            machines.join(",")
                        )
                    })?;
                    fixed.insert(&host.name, at);
                }
                None if auto => {}
                None => {
                    return Err(format!(
                        "host `{0}` has no machine: write machine = \"{1}\" in [hosts.{0}], or let narrows place \
                         it with --place auto",
                        host.name, machines[0]
                    ));
                }
            }
        }
        let groups = Groups::of(scenario, least);
        let mut at = groups.fixed(&fixed, machines, least)?;
        groups.fill(&mut at, machines.len());
        groups.improve(&mut at, &groups.held(&fixed), machines.len());
        let nodes = groups.of_node.iter().map(|(node, &group)| {
            let machine = at[group].unwrap_or_default();
            ((*node).to_owned(), machines[machine].clone())
        });
        let placement = Self { nodes: nodes.collect() };
        let has_host = |machine: &String| {
            scenario.hosts.iter().any(|host| placement.nodes.get(&host.name) == Some(machine))
        };
        match machines.iter().find(|machine| !has_host(machine)) {
            Some(machine) => Err(format!(
                "no host is on the machine `{machine}`: leave it out of --machines (links that cannot be cut keep \
                 their ends together: those with a delay below {least}, shared media, rules, traces)"
            )),
            None => Ok(placement),
        }
    }

    /// The links between machines, in the order of the scenario.
    ///
    /// # Errors
    /// If one of them cannot be cut.
    pub fn cut(&self, scenario: &Scenario) -> Result<Vec<CutLink>, String> {
        let machine = |node: &String| self.nodes.get(node).cloned().unwrap_or_default();
        let largest = scenario.ports().iter().map(|port| scenario.interface_mtu(port)).max().unwrap_or(1500);
        let mut cut = Vec::new();
        for link in &scenario.links {
            let machines = link.between.each_ref().map(machine);
            if machines[0] == machines[1] {
                continue;
            }
            let delay = cuttable(link).map_err(|why| {
                format!(
                    "the link `{}` cannot join two machines (`{}` and `{}`): it {why}",
                    link.name, machines[0], machines[1]
                )
            })?;
            let mtu = link.mtu(None).unwrap_or(largest);
            cut.push(CutLink { link: link.name.clone(), machines, delay, rate: rate(link), mtu });
        }
        Ok(cut)
    }
}

/// The smaller delay of a link's directions, or why it cannot be cut.
fn cuttable(link: &Link) -> Result<Duration, &'static str> {
    match &link.medium {
        Medium::Duplex { up, down } => Ok(plain_delay(up)?.min(plain_delay(down)?)),
        Medium::Shared(_) | Medium::Joined(_) => Err("is a shared medium"),
        Medium::Rules(_) => Err("has rules"),
    }
}

/// Rate of both directions, in bits per second.
fn rate(link: &Link) -> u64 {
    let of = |way| link.direction(way).map_or(UNLIMITED, |direction| direction.rate.bits_per_second());
    of(Way::Up).min(UNLIMITED) + of(Way::Down).min(UNLIMITED)
}

/// Nodes that stay together.
struct Groups<'a> {
    of_node: BTreeMap<&'a str, usize>,
    /// The number of hosts of each.
    hosts: Vec<usize>,
    /// For each, the others that links lead to, with their rates.
    links: Vec<BTreeMap<usize, u64>>,
}

impl<'a> Groups<'a> {
    fn of(scenario: &'a Scenario, least: Duration) -> Self {
        let hosts = scenario.hosts.iter().map(|host| host.name.as_str());
        let junctions = scenario.junctions.iter().map(String::as_str);
        let routers = scenario.routers.iter().map(|router| router.name.as_str());
        let switches = scenario.switches.iter().map(|switch| switch.name.as_str());
        let names: Vec<&str> = hosts.chain(junctions).chain(routers).chain(switches).collect();
        let number: BTreeMap<&str, usize> = names.iter().enumerate().map(|(at, &name)| (name, at)).collect();
        // Each node's group is the first node in it.
        let mut first: Vec<usize> = (0..names.len()).collect();
        let root = |first: &[usize], mut at: usize| {
            while first[at] != at {
                at = first[at];
            }
            at
        };
        let ends = |link: &Link| link.between.each_ref().map(|node| number.get(node.as_str()).copied());
        let mut join = |one: usize, other: usize| {
            let (one, other) = (root(&first, one), root(&first, other));
            first[one.max(other)] = one.min(other);
        };
        for link in &scenario.links {
            let can = cuttable(link).is_ok_and(|delay| delay >= least && delay > Duration::ZERO);
            if let ([Some(one), Some(other)], false) = (ends(link), can) {
                join(one, other);
            }
            // All stations of a medium are in one place.
            if let Medium::Joined(joined) = &link.medium
                && let Some(medium) = scenario.links.iter().find(|other| other.name == joined.medium)
                && let ([Some(one), _], [Some(other), _]) = (ends(link), ends(medium))
            {
                join(one, other);
            }
        }
        let roots: Vec<usize> = (0..names.len()).map(|at| root(&first, at)).collect();
        let places: BTreeSet<usize> = roots.iter().copied().collect();
        let places: BTreeMap<usize, usize> =
            places.into_iter().enumerate().map(|(place, root)| (root, place)).collect();
        let of_node: BTreeMap<&str, usize> =
            names.iter().zip(&roots).map(|(&name, root)| (name, places[root])).collect();
        let mut hosts = vec![0; places.len()];
        scenario.hosts.iter().for_each(|host| hosts[of_node[host.name.as_str()]] += 1);
        let mut links = vec![BTreeMap::new(); places.len()];
        for link in &scenario.links {
            let [one, other] = link.between.each_ref().map(|node| of_node.get(node.as_str()).copied());
            if let (Some(one), Some(other)) = (one, other)
                && one != other
            {
                *links[one].entry(other).or_insert(0) += rate(link);
                *links[other].entry(one).or_insert(0) += rate(link);
            }
        }
        Self { of_node, hosts, links }
    }

    /// The machines of groups with hosts whose machine is given.
    fn fixed(
        &self,
        fixed: &BTreeMap<&str, usize>,
        machines: &[String],
        least: Duration,
    ) -> Result<Vec<Option<usize>>, String> {
        let mut at: Vec<Option<(usize, &str)>> = vec![None; self.hosts.len()];
        for (&host, &machine) in fixed {
            let place = &mut at[self.of_node[host]];
            match *place {
                Some((other, first)) if other != machine => {
                    return Err(format!(
                        "host `{first}` is on `{}` and host `{host}` on `{}`, and no link between them can be cut: each \
                         has a delay below {least}, which the network between the machines takes (99th percentile), or is a \
                         shared medium, has rules, or follows a trace",
                        machines[other], machines[machine]
                    ));
                }
                _ => *place = Some((machine, host)),
            }
        }
        Ok(at.into_iter().map(|place| place.map(|(machine, _)| machine)).collect())
    }

    /// Whether each group has a given machine.
    fn held(&self, fixed: &BTreeMap<&str, usize>) -> Vec<bool> {
        let mut held = vec![false; self.hosts.len()];
        fixed.keys().for_each(|host| held[self.of_node[host]] = true);
        held
    }

    /// The number of hosts on each machine.
    fn on(&self, at: &[Option<usize>], machines: usize) -> Vec<usize> {
        let mut on = vec![0; machines];
        for (hosts, machine) in self.hosts.iter().zip(at) {
            machine.iter().for_each(|&machine| on[machine] += hosts);
        }
        on
    }

    /// The rate of a group's links to each machine that they lead to.
    fn towards(&self, group: usize, at: &[Option<usize>]) -> BTreeMap<usize, u64> {
        let mut rates = BTreeMap::new();
        for (&other, rate) in &self.links[group] {
            at[other].iter().for_each(|&machine| *rates.entry(machine).or_insert(0) += rate);
        }
        rates
    }

    /// Places the groups that have no machine.
    fn fill(&self, at: &mut [Option<usize>], machines: usize) {
        let mut on = self.on(at, machines);
        let mut left: usize = self
            .hosts
            .iter()
            .zip(&*at)
            .filter(|(_, machine)| machine.is_none())
            .map(|(hosts, _)| hosts)
            .sum();
        for machine in 0..machines {
            // The highest rate first, then the first group.
            let rate = |group| self.towards(group, at).get(&machine).copied().unwrap_or_default();
            let mut rates: Vec<u64> = (0..at.len()).map(rate).collect();
            let free = (0..at.len()).filter(|&group| at[group].is_none());
            let mut next: BTreeSet<(Reverse<u64>, usize)> =
                free.map(|group| (Reverse(rates[group]), group)).collect();
            let share = (left + on[machine..].iter().sum::<usize>()).div_ceil(machines - machine);
            while machine + 1 == machines || on[machine] < share {
                let Some((_, group)) = next.pop_first() else { break };
                at[group] = Some(machine);
                on[machine] += self.hosts[group];
                left -= self.hosts[group];
                for (&other, &more) in self.links[group].iter().filter(|(other, _)| at[**other].is_none()) {
                    next.remove(&(Reverse(rates[other]), other));
                    rates[other] += more;
                    next.insert((Reverse(rates[other]), other));
                }
            }
        }
    }

    /// Moves groups while that lowers the rate of the cut links.
    fn improve(&self, at: &mut [Option<usize>], held: &[bool], machines: usize) {
        let mut on = self.on(at, machines);
        let share = self.hosts.iter().sum::<usize>().div_ceil(machines);
        let most = share + share.div_ceil(4);
        for _ in 0..MOST_PASSES {
            let mut moved = false;
            for group in (0..at.len()).filter(|&group| !held[group]) {
                let Some(now) = at[group] else { continue };
                let (hosts, rates) = (self.hosts[group], self.towards(group, at));
                let rate = rates.get(&now).copied().unwrap_or_default();
                let better = rates.into_iter().filter(|&(to, more)| {
                    let fits = hosts == 0 || (on[to] + hosts <= most && on[now] > hosts);
                    to != now && fits && more > rate
                });
                // The first of those with the highest rate.
                if let Some((to, _)) = better.max_by_key(|&(to, more)| (more, Reverse(to))) {
                    (at[group], moved) = (Some(to), true);
                    on[now] -= hosts;
                    on[to] += hosts;
                }
            }
            if !moved {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machines(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.into()).collect()
    }

    /// Two pairs of hosts with fast links, joined by a slow one through two routers.
    const TWO_SITES: &str = "\
hosts.a = {}\nhosts.b = {}\nhosts.c = {}\nhosts.d = {}\nrouters.r = {}\nrouters.s = {}
[links.ar]\nbetween = [\"a\", \"r\"]\nrate = \"1gbit\"\ndelay = \"5ms\"
[links.cs]\nbetween = [\"c\", \"s\"]\nrate = \"1gbit\"\ndelay = \"5ms\"
[links.br]\nbetween = [\"b\", \"r\"]\nrate = \"1gbit\"\ndelay = \"5ms\"
[links.ds]\nbetween = [\"d\", \"s\"]\nrate = \"1gbit\"\ndelay = \"5ms\"
[links.rs]\nbetween = [\"r\", \"s\"]\nrate = \"10mbit\"\ndelay = \"20ms\"
";

    #[test]
    fn the_slow_link_is_cut() {
        let scenario = Scenario::parse(TWO_SITES, "t").unwrap();
        let least = Duration::from_millis(1);
        let placement = Placement::of(&scenario, &machines(&["m", "n"]), true, least).unwrap();
        let cut = placement.cut(&scenario).unwrap();
        assert_eq!(cut.len(), 1, "{placement:?}");
        assert_eq!((cut[0].link.as_str(), cut[0].rate), ("rs", 20_000_000));
        assert_eq!((cut[0].delay, cut[0].mtu), (Duration::from_millis(20), 1500));
        let again = Placement::of(&scenario, &machines(&["m", "n"]), true, least).unwrap();
        assert_eq!(placement, again);
    }

    /// A ring of routers with some hosts each, the first of each ring position first.
    fn ring(routers: usize, hosts: usize) -> String {
        let mut text = String::new();
        for router in 0..routers {
            let next = (router + 1) % routers;
            text += &format!(
                "routers.r{router} = {{}}\nlinks.l{router} = {{ between = [\"r{router}\", \"r{next}\"], rate = \
                 \"100mbit\", delay = \"20ms\" }}\n"
            );
        }
        for host in 0..routers * hosts {
            let router = host % routers;
            text += &format!(
                "hosts.h{host} = {{}}\nlinks.e{host} = {{ between = [\"h{host}\", \"r{router}\"], rate = \"1gbit\", \
                 delay = \"1ms\" }}\n"
            );
        }
        text
    }

    #[test]
    fn each_site_of_a_ring_is_on_one_machine() {
        let scenario = Scenario::parse(&ring(8, 12), "t").unwrap();
        let names: Vec<String> = (0..8).map(|number| format!("m{number}")).collect();
        let placement = Placement::of(&scenario, &names, true, Duration::from_millis(1)).unwrap();
        let cut: Vec<String> = placement.cut(&scenario).unwrap().into_iter().map(|cut| cut.link).collect();
        let expected: Vec<String> = (0..8).map(|number| format!("l{number}")).collect();
        assert_eq!(cut, expected);
        for machine in &names {
            let hosts = scenario.hosts.iter().filter(|host| placement.nodes[&host.name] == *machine);
            assert_eq!(hosts.count(), 12);
        }
    }

    #[test]
    fn what_cannot_be_placed_is_told() {
        let scenario = Scenario::parse(TWO_SITES, "t").unwrap();
        let both = machines(&["m", "n"]);
        let error = Placement::of(&scenario, &both, false, Duration::ZERO).unwrap_err();
        assert!(error.contains("host `a` has no machine: write machine = \"m\" in [hosts.a]"), "{error}");
        // No link may be cut.
        let error = Placement::of(&scenario, &both, true, Duration::from_millis(50)).unwrap_err();
        assert!(error.contains("no host is on the machine `n`"), "{error}");
        let text = TWO_SITES.replace("hosts.a = {}", "hosts.a.machine = \"m\"");
        let text = text.replace("hosts.b = {}", "hosts.b.machine = \"n\"");
        let scenario = Scenario::parse(&text, "t").unwrap();
        let error = Placement::of(&scenario, &both, true, Duration::from_millis(50)).unwrap_err();
        assert!(error.contains("host `a` is on `m` and host `b` on `n`"), "{error}");
        let error = Placement::of(&scenario, &machines(&["m", "o"]), true, Duration::ZERO).unwrap_err();
        assert!(error.contains("`n`, which is not among --machines m,o"), "{error}");
    }

    #[test]
    fn a_machine_has_the_links_it_sends_into() {
        let mut scenario = Scenario::parse(TWO_SITES, "t").unwrap();
        let least = Duration::from_millis(1);
        let placement = Placement::of(&scenario, &machines(&["m", "n"]), true, least).unwrap();
        let subtract = BTreeMap::from([("rs".to_owned(), Duration::from_micros(300))]);
        scenario.on_machine("m", &placement.nodes, &subtract).unwrap();
        assert!(scenario.is_here("a") && !scenario.is_here("c"));
        let config = scenario.network();
        let port = config.ports.iter().find(|port| port.name == "tunnel:rs").unwrap();
        assert_eq!(port.entry, narrows_core::Target::Router("r".into()));
        let up = config.links.iter().find(|link| link.name == "rs.up").unwrap();
        assert_eq!(up.lanes, [narrows_core::Target::Port("tunnel:rs".into())]);
        let delay = scenario.links[4].direction(Way::Up).unwrap().mean_delay();
        assert_eq!(delay, Some(Duration::from_micros(19_700)));
        let error = scenario.assign("rs.delay=30ms").unwrap_err().to_string();
        assert!(error.contains("the delay of `rs` is fixed during this run"), "{error}");
        scenario.assign("rs.rate=5mbit").unwrap();
        scenario.assign("ar.delay=30ms").unwrap();
    }
}
