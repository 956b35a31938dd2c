//! What stands in files: written back, explained.

use narrows_core::queue::Bound;
use narrows_scenario::Scenario;

use crate::bed::{net, script};

const SCRIPTS: &[&str] = &[
    "adsl",
    "both-ways",
    "dynamic-pipes",
    "fair-queueing",
    "flowsets",
    "hops",
    "losses",
    "multipath",
    "opnsense",
    "per-flow",
    "queue",
    "reordering",
    "shared-medium",
    "shell",
    "states",
    "subnets",
    "tables",
    "thirds",
    "two-commands",
    "weights",
];

#[test]
fn every_script_is_a_scenario_and_is_written_back_as_it_was() {
    for name in SCRIPTS {
        let scenario = script(name);
        narrows_core::Engine::<()>::new(scenario.network()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let text = scenario.to_toml();
        let again =
            Scenario::parse(&text, &scenario.file).unwrap_or_else(|error| panic!("{name}\n{text}\n{error}"));
        assert_eq!(again, scenario, "{name}\n{text}");
        assert_eq!(again.to_toml(), text, "{name}");
        let explanation = scenario.explain();
        assert_eq!(explanation.rules.len(), 1);
        assert!(explanation.to_string().contains("packets that no rule accepts or denies pass"));
    }
}

#[test]
fn bounds_of_pipes_that_say_none() {
    let scenario = net(r#"rules = []
        pipes.1 = { rate = "10mbit", delay = "50ms" }
        pipes.2 = { rate = "10mbit" }
        pipes.3 = { rate = "10mbit", delay = "50ms", queue = "50 packets" }
        pipes.4 = { delay = "50ms" }"#);
    let rules = scenario.links[0].rules().unwrap();
    let bounds: Vec<Bound> = rules.pipes.values().map(|pipe| pipe.direction.bound()).collect();
    // 10 Mbit/s for 100 ms, there and back or assumed, in packets of 1498 bytes: 83.4.
    assert_eq!(bounds, [84, 84, 50, 1000].map(Bound::Packets));
}

#[test]
fn a_link_in_a_row_counts_for_the_bound() {
    let text = r#"
        [hosts.a]
        [hosts.b]
        [junctions.middle]
        [links.net]
        between = ["a", "middle"]
        rules = ["100 pipe 1 ip from any to any"]
        pipes.1 = { rate = "10mbit", delay = "50ms" }
        [links.far]
        between = ["middle", "b"]
        delay = "25ms"
    "#;
    let scenario = Scenario::parse(text, "net.toml").unwrap();
    let pipe = &scenario.links[0].rules().unwrap().pipes[&1];
    // 150 ms: 125.2 packets.
    assert_eq!(pipe.direction.bound(), Bound::Packets(126));
    // And packets get through both.
    let mut engine = narrows_core::Engine::<()>::new(scenario.network()).unwrap();
    let port = engine.port("a.net").unwrap();
    let packet = narrows_core::Packet {
        length: 1250,
        link_header: 14,
        network_header: 20,
        headers: Default::default(),
        key: crate::bed::from([10, 0, 0, 2]),
        body: (),
    };
    engine.hand_in(narrows_core::Time::ZERO, port, packet);
    let event = engine.poll(crate::bed::at(1_000_000)).unwrap();
    assert_eq!(event.at, crate::bed::at(1000 + 50_000 + 25_000));
    let path = &scenario.explain().paths[0];
    assert!(path.by_rules && path.round_trip_small_ns.is_none());
}

#[test]
fn explained() {
    let scenario = net(r#"one-pass = false
        disabled-sets = [3]
        rules = ["100 queue 10 out proto udp", "200 set 3 deny ip from any to any", "300 pipe 4 in"]
        tables.lab = ["10.0.0.0/8 5"]
        [links.net.pipes.4]
        rate = "1mbit"
        mask = { src-ip = "0xff" }
        most = 7
        [links.net.pipes.5]
        rate = "3mbit"
        delay = "10ms"
        [links.net.queues.10]
        pipe = 5
        weight = 20
        queue = "50 packets"
        [links.net.queues.11]
        pipe = 5
        weight = 10
        mask = { src-ip = "all", dst-port = "0xf000" }"#);
    let text = scenario.explain().to_string();
    for expected in [
        "net.4: client ↔ server, one medium for both directions\n",
        "  mask      one link for each the last 8 bits of the IPv4 source address; at most 7, each removed after 1s idle\n",
        "  queues    share it by wf2q+: worst-case fair weighted fair queueing\n",
        "    queue 10: weight 20 (2.00mbit while all have packets); queue 50 packets, drops at the tail\n",
        "    queue 11: one for each the IPv4 source address and the first 4 bits of the destination port, at most 65536; weight 10 each (1.00mbit while all have packets, as one flow); queue ",
        "net: rules at net; client → server is out, server → client is in\n",
        "  200 set 3 deny ip from any to any (its set is disabled)\n",
        "  a packet that leaves a pipe continues at the next rule\n",
        "  table lab: 1 entry\n",
        "  round trip  depends on the pipes that the rules choose\n",
        "warning: net: no rule leads to queue 11\n",
    ] {
        assert!(text.contains(expected), "{expected}\nis not in\n{text}");
    }
}
