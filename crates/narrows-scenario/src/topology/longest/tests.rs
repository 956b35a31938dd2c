use proptest::prelude::*;

use super::*;
use crate::Scenario;

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

/// Four hosts and five routers; links with a cost and a delay that have nothing to do with each other; routes to hosts.
fn text(multipath: &str, links: &[(usize, usize, u64, usize)], routes: &[(usize, usize, usize)]) -> String {
    let name = |node: usize| if node < 4 { format!("h{node}") } else { format!("r{node}") };
    let mut text: String = (0..4).map(|host| format!("[hosts.h{host}]\n")).collect();
    // Each host has a link; the routers are in line, so that all are joined.
    let mut all: Vec<_> = (0..4).map(|host| (host, 4 + host, 1, host)).collect();
    all.extend((4..8).map(|router| (router, router + 1, 7, 2)));
    all.extend(links.iter().filter(|link| link.0 != link.1));
    for router in 4..9 {
        text += &format!("[routers.r{router}]\nmultipath = \"{multipath}\"\n");
    }
    for &(router, host, link) in routes {
        let own: Vec<usize> =
            (0..all.len()).filter(|&at| all[at].0 == router || all[at].1 == router).collect();
        let link = own[link % own.len()];
        text += &format!("[[routers.r{router}.routes]]\nto = \"h{host}\"\nvia = \"l{link}\"\n");
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
        routes in prop::collection::btree_map((4usize..9, 0usize..4), 0usize..5, 0..5),
    ) {
        let routes: Vec<_> = routes.into_iter().map(|((router, host), link)| (router, host, link)).collect();
        let text = text(multipath, &links, &routes);
        let scenario = Scenario::parse(&text, "test.toml").map_err(|error| TestCaseError::fail(format!("{error}")))?;
        let topology = &scenario.topology;
        prop_assert_eq!(topology.longest_round_trips(&scenario.links), by_pairs(topology, &scenario.links), "{}", text);
    }
}

#[test]
fn given_routes_in_a_cycle_are_looked_at_by_path() {
    // What r4 and r5 send to h3 goes to and fro between them; what r6 and r7 send arrives.
    let text = text("none", &[], &[(4, 3, 1), (5, 3, 1)]);
    let scenario = Scenario::parse(&text, "test.toml").unwrap();
    let topology = &scenario.topology;
    let port = |name: &str| topology.ports.iter().find(|port| port.host == name).unwrap();
    assert!(topology.arriving(port("h0"), port("h3")).is_empty(), "{text}");
    assert!(!topology.arriving(port("h2"), port("h3")).is_empty(), "{text}");
    let longest = topology.longest_round_trips(&scenario.links);
    assert_eq!(longest, by_pairs(topology, &scenario.links));
    assert!(longest.values().any(Option::is_some));
}
