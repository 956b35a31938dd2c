use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::Scenario;
use crate::topology::Outcome;

/// Every path of every pair of ports, one by one.
fn by_pairs(topology: &Topology, links: &[Link]) -> RoundTrips {
    let mut longest = RoundTrips::new();
    let paths = |from: &Port, to: &Port| -> Vec<(Vec<Hop>, Line)> {
        let ways = topology.arriving(from, to).into_iter();
        ways.map(|way| (way.hops.clone(), Line::of(&way.hops, links))).collect()
    };
    let routed = || topology.ports.iter().filter(|port| topology.is_routed(port));
    for from in routed() {
        for to in routed().filter(|to| to.name != from.name) {
            let back = paths(to, from).iter().map(|(_, line)| *line).max().unwrap_or(Line::UNKNOWN);
            for (hops, line) in paths(from, to) {
                let round_trip = line.then(back).round_trip();
                for hop in hops {
                    let known = longest.entry((hop.link, hop.way)).or_insert(round_trip);
                    *known = (*known).max(round_trip);
                }
            }
        }
    }
    longest
}

/// Four hosts and five routers; links with a cost and a delay that are independent of each other; routes of a router to a host
/// by some of its links.
fn text(
    multipath: &str,
    links: &[(usize, usize, u64, usize)],
    routes: &[(usize, usize, Vec<usize>)],
) -> String {
    let name = |node: usize| if node < 4 { format!("h{node}") } else { format!("r{node}") };
    let mut text: String = (0..4).map(|host| format!("[hosts.h{host}]\n")).collect();
    // Each host has a link; the routers are in line, so that all are joined.
    let mut all: Vec<_> = (0..4).map(|host| (host, 4 + host, 1, host)).collect();
    all.extend((4..8).map(|router| (router, router + 1, 7, 2)));
    all.extend(links.iter().filter(|link| link.0 != link.1));
    for router in 4..9 {
        text += &format!("[routers.r{router}]\nmultipath = \"{multipath}\"\n");
    }
    for (router, host, via) in routes {
        let own: Vec<usize> =
            (0..all.len()).filter(|&at| all[at].0 == *router || all[at].1 == *router).collect();
        let via: BTreeSet<usize> = via.iter().map(|link| own[link % own.len()]).collect();
        let via: Vec<String> = via.iter().map(|link| format!("l{link}")).collect();
        text += &format!("[[routers.r{router}.routes]]\nto = \"h{host}\"\nvia = {via:?}\n");
    }
    for (number, &(a, b, cost, delay)) in all.iter().enumerate() {
        let (a, b) = (name(a), name(b));
        text += &format!("[links.l{number}]\nbetween = [\"{a}\", \"{b}\"]\ncost = {cost}\n");
        let delays = ["", "delay = \"0ms\"\n", "delay = \"3ms\"\n", "delay = \"10ms\"\n"];
        text += delays.get(delay).unwrap_or(&"delay = \"1s\"\n");
    }
    text
}

proptest! {
    #[test]
    fn two_passes_find_what_a_look_at_every_path_finds(
        multipath in prop::sample::select(vec!["none", "flow"]),
        links in prop::collection::vec((0usize..9, 4usize..9, 1u64..4, 0usize..5), 0..6),
        routes in prop::collection::btree_map((4usize..9, 0usize..4), prop::collection::vec(0usize..5, 1..4), 0..6),
    ) {
        let routes: Vec<_> = routes.into_iter().map(|((router, host), via)| (router, host, via)).collect();
        let text = text(multipath, &links, &routes);
        let scenario = Scenario::parse(&text, "test.toml").map_err(|error| TestCaseError::fail(format!("{error}")))?;
        let topology = &scenario.topology;
        prop_assert_eq!(topology.longest_round_trips(&scenario.links), by_pairs(topology, &scenario.links), "{}", text);
    }
}

#[test]
fn routes_that_lead_in_a_cycle_and_out_of_it_are_looked_at_by_path() {
    // To h3 at r7, r4 sends to r5 and by a link of its own, r5 to r4 and to r6. That link is behind r4 from h1 at r5.
    let text = text("none", &[(4, 7, 1, 4)], &[(4, 3, vec![1, 2]), (5, 3, vec![1, 2])]);
    let scenario = Scenario::parse(&text, "test.toml").unwrap();
    let topology = &scenario.topology;
    let port = |name: &str| topology.ports.iter().find(|port| port.host == name).unwrap();
    let ways = topology.ways(port("h1"), port("h3").addresses[0].ip);
    assert!(ways.iter().any(|way| matches!(way.outcome, Outcome::Loop(_))), "{text}");
    assert_eq!(topology.arriving(port("h1"), port("h3")).len(), 2, "{text}");
    let longest = topology.longest_round_trips(&scenario.links);
    assert_eq!(longest, by_pairs(topology, &scenario.links));
    // h1's own link (0 ms), l4 (3 ms), the link of 1 s, that of h3 (10 ms); back by the link of 1 s, l4, and as before.
    let link = scenario.links.iter().position(|link| link.name == "l1").unwrap();
    assert_eq!(longest[&(link, Way::Up)], Some(Duration::from_millis(2026)));
}

#[test]
fn every_path_counts_however_many() {
    // Seven pairs of links in a row, of 1 and 10 ms: 128 paths each way, of up to 70 ms.
    let mut text = String::from("[hosts.a]\n[hosts.b]\n");
    for router in 0..8 {
        text += &format!("[routers.r{router}]\nmultipath = \"flow\"\n");
    }
    for stage in 0..7 {
        for delay in [1, 10] {
            let between = format!("[\"r{stage}\", \"r{}\"]", stage + 1);
            text += &format!("[links.s{stage}-{delay}]\nbetween = {between}\ndelay = \"{delay}ms\"\n");
        }
    }
    text += "[links.a]\nbetween = [\"a\", \"r0\"]\n[links.b]\nbetween = [\"r7\", \"b\"]\n";
    let scenario = Scenario::parse(&text, "test.toml").unwrap();
    let longest = scenario.topology.longest_round_trips(&scenario.links);
    assert_eq!(longest.len(), 2 * 16);
    for (&(link, _), &round_trip) in &longest {
        let fast = scenario.links[link].name.ends_with("-1");
        let expected = Duration::from_millis(if fast { 131 } else { 140 });
        assert_eq!(round_trip, Some(expected), "{}", scenario.links[link].name);
    }
}
