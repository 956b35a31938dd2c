//! Shortest paths, against a plain slow search; default bounds; traffic between any two hosts.

use narrows_core::queue::Bound;
use narrows_scenario::{Scenario, TrafficSource, Way};
use proptest::prelude::*;

use super::{Run, parse};

/// Hosts, routers and links between them, each with its cost; the delay of a link in milliseconds is its cost.
#[derive(Clone, Debug)]
struct Graph {
    hosts: usize,
    nodes: usize,
    links: Vec<(usize, usize, u64)>,
}

impl Graph {
    fn name(&self, node: usize) -> String {
        if node < self.hosts { format!("h{node}") } else { format!("r{node}") }
    }

    fn text(&self, multipath: &str) -> String {
        let mut text = String::new();
        for node in 0..self.nodes {
            match node < self.hosts {
                true => text += &format!("[hosts.h{node}]\n"),
                false => text += &format!("[routers.r{node}]\nmultipath = \"{multipath}\"\n"),
            }
        }
        for (number, &(a, b, cost)) in self.links.iter().enumerate() {
            let (a, b) = (self.name(a), self.name(b));
            text += &format!(
                "[links.l{number}]\nbetween = [\"{a}\", \"{b}\"]\ncost = {cost}\ndelay = \"{cost}ms\"\n"
            );
        }
        text
    }

    /// How far it is between two nodes over routers only: every link is tried until nothing gets shorter.
    fn distances(&self, from: usize) -> Vec<Option<u64>> {
        let mut all = vec![None; self.nodes];
        all[from] = Some(0);
        loop {
            let mut changed = false;
            for &(a, b, cost) in &self.links {
                for (a, b) in [(a, b), (b, a)] {
                    // A host does not forward what comes to it.
                    let Some(here) = all[a].filter(|_| a == from || a >= self.hosts) else { continue };
                    if all[b].is_none_or(|there| there > here + cost) {
                        all[b] = Some(here + cost);
                        changed = true;
                    }
                }
            }
            if !changed {
                return all;
            }
        }
    }
}

fn graphs() -> impl Strategy<Value = Graph> {
    (2..5usize, 1..7usize).prop_flat_map(|(hosts, routers)| {
        let nodes = hosts + routers;
        // Each host is on one router, and routers are joined at random.
        let leaves = proptest::collection::vec((hosts..nodes, 1..9u64), hosts);
        let inner = proptest::collection::vec((hosts..nodes, hosts..nodes, 1..9u64), 0..12);
        (leaves, inner).prop_map(move |(leaves, inner)| {
            let mut links: Vec<_> =
                leaves.into_iter().enumerate().map(|(host, (router, cost))| (host, router, cost)).collect();
            links.extend(inner.into_iter().filter(|(a, b, _)| a != b));
            Graph { hosts, nodes, links }
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn packets_take_a_shortest_path(graph in graphs(), multipath in prop_oneof![Just("none"), Just("flow"), Just("packet")]) {
        let mut run = Run::new(&graph.text(multipath));
        for from in 0..graph.hosts {
            let distances = graph.distances(from);
            // The link of a host has its number.
            for to in (0..graph.hosts).filter(|to| *to != from) {
                let outcome = run.travel(&format!("h{from}.l{from}"), &format!("h{to}.l{to}"));
                match distances[to] {
                    Some(distance) => {
                        prop_assert_eq!(&outcome.place, &format!("h{to}.l{to}"));
                        prop_assert_eq!(outcome.nanos, distance * 1_000_000);
                    }
                    None => prop_assert!(outcome.place.ends_with(": no route"), "{:?}", outcome),
                }
            }
        }
        prop_assert!(run.scenario.explain().warnings.iter().all(|warning| warning.contains("no link ends")));
        let again = Scenario::parse(&run.scenario.to_toml(), "net.toml").unwrap();
        prop_assert!(again == run.scenario);
    }
}

#[test]
fn default_bounds_go_by_the_longest_round_trip_over_a_link() {
    let scenario = parse(
        "[hosts.a]\n[hosts.b]\n[hosts.c]\n[routers.r]\n[routers.s]\nmultipath = \"flow\"\n\
         [links.a]\nbetween = [\"a\", \"r\"]\nrate = \"10mbit\"\ndelay = \"1ms\"\n\
         [links.b]\nbetween = [\"b\", \"r\"]\nrate = \"10mbit\"\ndelay = \"4ms\"\n\
         [links.c]\nbetween = [\"c\", \"s\"]\nrate = \"10mbit\"\n\
         [links.near]\nbetween = [\"r\", \"s\"]\nrate = \"10mbit\"\ndelay = \"5ms\"\n\
         [links.off]\nbetween = [\"r\", \"s\"]\nrate = \"10mbit\"\ndelay = \"50ms\"\n\
         [links.idle]\nbetween = [\"r\", \"s\"]\nrate = \"10mbit\"\ncost = 9\ndelay = \"20ms\"\n",
    );
    let bound = |link: &str, way| {
        let link = scenario.links.iter().find(|own| own.name == link).unwrap();
        match link.direction(way).expect("a wire").bound() {
            Bound::Packets(packets) => packets,
            other => panic!("{other:?}"),
        }
    };
    let packets = |round_trip_ms: u64| (round_trip_ms * 10_000u64).div_ceil(1498 * 8).max(20);
    // b to c by near (9 ms; r does not spread), back by off (54 ms).
    assert_eq!(bound("b", Way::Up), packets(63));
    assert_eq!(bound("b", Way::Down), packets(63));
    assert_eq!(bound("near", Way::Up), packets(63));
    assert_eq!(bound("near", Way::Down), packets(18));
    assert_eq!(bound("off", Way::Down), packets(63));
    // Nobody's packets go up there: there and back by itself.
    assert_eq!(bound("off", Way::Up), packets(100));
    assert_eq!(bound("idle", Way::Up), packets(40));
    // a to c and back is 6 + 51 ms; a to b only 10 ms.
    assert_eq!(bound("a", Way::Up), packets(57));
}

const TRAFFIC: &str = r#"
[hosts.a]
[hosts.b]
[hosts.c]
[routers.r]
[links.one]
between = ["a", "r"]
[links.two]
between = ["b", "r"]
[links.three]
between = ["b", "r"]
[links.four]
between = ["c", "r"]
[[traffic]]
constant = "1/s"
"#;

#[test]
fn traffic_is_addressed_to_the_host_where_it_is_to_get() {
    let scenario = parse(&format!("{TRAFFIC}from = \"a\"\nto = \"c\"\n"));
    let traffic = &scenario.traffic[0];
    assert_eq!((traffic.from.as_str(), traffic.to.as_str()), ("a.one", "c.four"));
    let TrafficSource::Generated { key, .. } = &traffic.source else { panic!("{traffic:?}") };
    assert_eq!(key.source[12..], [10, 213, 0, 1]);
    assert_eq!(key.destination[12..], [10, 213, 3, 1]);
    assert!(Scenario::parse(&format!("{TRAFFIC}from = \"b.three\"\nto = \"a\"\n"), "t").is_ok());
}

#[test]
fn traffic_by_more_than_one_port_must_say_which() {
    let error = |ends: &str| Scenario::parse(&format!("{TRAFFIC}{ends}"), "t").unwrap_err().to_string();
    let text = error("from = \"a\"\nto = \"b\"\n");
    assert!(text.contains("more than one path leads from `a` to `b`"), "{text}");
    assert!(text.contains("name the port where they get: to = \"b.two\" or to = \"b.three\""), "{text}");
    let text = error("from = \"b\"\nto = \"a\"\n");
    assert!(
        text.contains("name the port where they enter: from = \"b.two\" or from = \"b.three\""),
        "{text}"
    );
    let text = error("from = \"a\"\nto = \"r\"\n");
    assert!(text.contains("there is no host or port `r`"), "{text}");
}

#[test]
fn a_large_network_is_read_in_time_and_a_larger_one_needs_queues() {
    let text = |hosts: usize, keys: &str| {
        let mut text = String::from("[routers.r]\n");
        for host in 0..hosts {
            text += &format!("[hosts.h{host}]\n[links.l{host}]\nbetween = [\"h{host}\", \"r\"]\n{keys}");
        }
        text
    };
    let scenario = parse(&text(200, "rate = \"1mbit\"\n"));
    assert_eq!(scenario.explain().paths.len() + scenario.explain().paths_left_out, 200 * 199 / 2);
    // Without defaults that depend on all paths it may be larger.
    let error = Scenario::parse(&text(1001, "rate = \"1mbit\"\n"), "t").unwrap_err().to_string();
    assert!(error.contains("`l0` and 1000 other links need a `queue`"), "{error}");
    assert!(error.contains("this network has 1001 links from hosts to routers and switches"), "{error}");
    parse(&text(1001, "rate = \"1mbit\"\nqueue = \"100 packets\"\n"));
    let mut scenario = parse(&text(1001, "delay = \"1ms\"\n"));
    assert_eq!(scenario.explain().paths.len() + scenario.explain().paths_left_out, 1001 * 1000 / 2);
    let before = scenario.clone();
    let error = scenario.set(&["l7.rate=1mbit"]).unwrap_err().to_string();
    assert!(error.contains("`l7` needs a `queue`"), "{error}");
    assert_eq!(scenario, before);
    scenario.set(&["l7.rate=1mbit", "l7.queue=10 packets"]).unwrap();
    // These have bounds of their own.
    parse(&text(1001, "rate = \"1mbit\"\nscheduler = \"fq_codel\"\n"));
    parse(&text(1001, "exact-netem = \"rate 1mbit\"\n"));
}
