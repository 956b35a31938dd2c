//! What a scenario becomes in the engine, seen from outside: packets and their instants.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use narrows_core::queue::Bound;
use narrows_core::{Bytes, Duration, Engine, FlowKey, Packet, Protocol, Target, Time, Verdict};
use narrows_scenario::{AimdConfig, Marks, Scenario, TrafficSource, Way};

fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "net.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn packet(length: u32) -> Packet<()> {
    Packet {
        length,
        link_header: 14,
        network_header: 20,
        headers: Default::default(),
        key: FlowKey::default(),
        body: (),
    }
}

/// Hands packets of 1000 bytes in at these ports at time zero; gives the port and instant, in microseconds, of each
/// that comes out.
fn travel(scenario: &Scenario, ports: &[&str]) -> Vec<(String, u64)> {
    let mut engine = Engine::new(scenario.network()).unwrap();
    for port in ports {
        let port = engine.port(port).expect("a port of the scenario");
        engine.hand_in(Time::ZERO, port, packet(1000));
    }
    let mut out = Vec::new();
    while let Some(event) = engine.poll(Time::from_nanos(10_000_000_000)) {
        match event.verdict {
            Verdict::Delivered(port) => out.push((port, event.at.nanos() / 1000)),
            other => panic!("{other:?}"),
        }
    }
    let name =
        |id| scenario.ports().iter().find(|port| engine.port(&port.name) == Some(id)).unwrap().name.clone();
    out.into_iter().map(|(port, at)| (name(port), at)).collect()
}

const CHAIN: &str = r#"
[hosts.left]
[hosts.right]
[junctions.one]
[junctions.two]
[links.first]
between = ["left", "one"]
rate = "8mbit"
delay = "1ms"
[links.second]                  # the other way round
between = ["two", "one"]
up = { rate = "4mbit" }
down = { rate = "2mbit", delay = "2ms" }
[links.third]
between = ["two", "right"]
shared = true
rate = "1mbit"
"#;

#[test]
fn packets_go_straight_through_junctions_both_ways() {
    let scenario = parse(CHAIN);
    // 1 ms on the wire and 1 ms of delay; 4 ms and 2 ms down the second; 8 ms on the shared medium.
    assert_eq!(travel(&scenario, &["left.first"]), [("right.third".into(), 16_000)]);
    // 8 ms; 2 ms up the second; 1 ms and 1 ms.
    assert_eq!(travel(&scenario, &["right.third"]), [("left.first".into(), 12_000)]);
    let left = &scenario.ports()[0];
    assert_eq!((left.name.as_str(), left.peer.as_str()), ("left.first", "right.third"));
    let lane = |name: &str, lane| Target::Link { name: name.into(), lane };
    assert_eq!(left.path, [lane("first.up", 0), lane("second.down", 0), lane("third", 0)]);
    assert_eq!(scenario.ports()[1].path, [lane("third", 1), lane("second.up", 0), lane("first.down", 0)]);
}

#[test]
fn a_shared_medium_serves_one_packet_at_a_time() {
    let both = "[hosts.a]\n[hosts.b]\n[links.air]\nbetween = [\"a\", \"b\"]\nrate = \"1mbit\"\n";
    let duplex = travel(&parse(both), &["a.air", "b.air"]);
    assert_eq!(duplex.iter().map(|(_, at)| *at).collect::<Vec<_>>(), [8_000, 8_000]);
    let shared = travel(&parse(&format!("{both}shared = true\n")), &["a.air", "b.air"]);
    assert_eq!(shared, [("b.air".into(), 8_000), ("a.air".into(), 16_000)]);
}

#[test]
fn the_default_bound_is_one_product_of_rate_and_the_round_trip_of_the_whole_path() {
    let scenario = parse(CHAIN);
    // The path's round trip is 1 + 1 + 2 ms: 8 Mbit/s · 4 ms / (8 · 1498 bytes) = 2.67, at least what
    // leaves within 25 ms: 16.7.
    assert_eq!(scenario.links[0].direction(Way::Up).expect("a wire").bound(), Bound::Packets(17));
    let bound = |lines: &str| {
        let text = format!("[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\n{lines}\n");
        let direction = parse(&text).links[0].direction(Way::Down).expect("a wire").clone();
        (direction.bound(), direction.default_bound.to_string())
    };
    // The queues of the latency matrix: 10 Mbit/s with 20, 100 and 400 ms.
    for (delay, packets) in [("10ms", 20), ("50ms", 84), ("200ms", 334)] {
        assert_eq!(bound(&format!("rate = \"10mbit\"\ndelay = \"{delay}\"")).0, Bound::Packets(packets));
    }
    // One way only, and a mean.
    assert_eq!(bound("rate = \"10mbit\"\nup.delay = \"100ms\"").0, Bound::Packets(84));
    let uniform = "rate = \"10mbit\"\ndelay = { uniform = { low = \"0ms\", high = \"100ms\" } }";
    assert_eq!(bound(uniform).0, Bound::Packets(84));
    assert_eq!(
        bound("rate = \"10mbit\""),
        (
            Bound::Packets(84),
            "default: one bandwidth-delay product, 10mbit × 100ms round trip (assumed, as no delay is given), in packets of 1498 bytes".into()
        )
    );
    assert_eq!(
        bound("rate = \"10mbit\"\ndelay = \"0ms\""),
        (
            Bound::Packets(20),
            "default: one bandwidth-delay product, 10mbit × 0s round trip, but at least 20 because senders send in bursts, in packets of 1498 bytes".into()
        )
    );
    // The floor: 4 packets, 25 ms up to 20 packets, 10 ms.
    for (rate, packets) in
        [("1mbit", 4), ("4mbit", 9), ("10mbit", 20), ("20mbit", 20), ("100mbit", 84), ("1gbit", 835)]
    {
        assert_eq!(
            bound(&format!("rate = \"{rate}\"\ndelay = \"0.1ms\"")).0,
            Bound::Packets(packets),
            "{rate}"
        );
    }
    for rate in ["unlimited", "down"] {
        assert_eq!(
            bound(&format!("rate = \"{rate}\"\ndelay = \"10ms\"")),
            (Bound::Packets(1000), "default without a rate".into())
        );
    }
    assert_eq!(bound("rate = \"1000tbit\"\ndelay = \"876000h\"").0, Bound::Packets(1_000_000_000));
}

#[test]
fn every_key_reaches_the_engine() {
    let text = r#"
[hosts.a]
[hosts.b]
[links.l]
between = ["a", "b"]
rate = "1mbit"
overhead = "ethernet"
delay = { uniform = { low = "1ms", high = "2ms" }, order = "allow" }
queue = { bound = "2000 bytes", drop = "head" }
loss = { ingress = "1%", wire = "2%" }
duplicate = "3%"
corrupt = "4%"
reorder = "5% gap 6"
mtu = { bytes = 999, policy = "black-hole" }
line-limit = "70 packets"
"#;
    let network = parse(text).network();
    let link = format!("{:?}", network.links[0]);
    for part in [
        "name: \"l.up\"",
        "Bytes(Bytes(2000))",
        "drop_at: Head",
        "ConstantRate(Rate(1000000))",
        "Overhead { link_header: true, extra: 24, minimum: 84, cells: None }",
        "low: Duration(1000000), high: Duration(2000000)",
        "order: Allow",
        "gap: 6",
        "line_limit: Some(70)",
        "Mtu { bytes: 999, policy: BlackHole }",
    ] {
        assert!(link.contains(part), "{part} is not in {link}");
    }
    let link = &network.links[0];
    let shares = [
        (link.ingress_loss.as_ref().map(|loss| loss.selector.mean()), 0.01),
        (link.wire_loss.as_ref().map(|loss| loss.selector.mean()), 0.02),
        (link.duplication.as_ref().map(|selector| selector.mean()), 0.03),
    ];
    for (is, should) in shares {
        assert!(is.is_some_and(|is| (is - should).abs() < 1e-15), "{is:?}, not {should}");
    }
}

#[test]
fn ports_have_addresses_in_a_network_of_their_own_unless_they_are_given() {
    let scenario = parse(
        "[hosts.a]\naddresses = { one = [\"192.0.2.1/24\"] }\n[hosts.b]\naddresses = [\"192.0.2.9/24\"]\n[hosts.c]\n\
         [links.one]\nbetween = [\"a\", \"b\"]\n[links.two]\nbetween = [\"c\", \"a\"]\n",
    );
    let addresses = |port: &str| -> Vec<String> {
        let port = scenario.ports().iter().find(|p| p.name == port).unwrap();
        port.addresses.iter().map(ToString::to_string).collect()
    };
    assert_eq!(addresses("a.one"), ["192.0.2.1/24"]);
    assert_eq!(addresses("b.one"), ["192.0.2.9/24"]);
    assert_eq!(addresses("a.two"), ["10.213.1.1/24", "fd6e:6172:726f:1::1/64"]);
    assert_eq!(addresses("c.two"), ["10.213.1.2/24", "fd6e:6172:726f:1::2/64"]);
}

#[test]
fn given_addresses_must_reach_each_other() {
    let text = |b: &str| {
        format!(
            "[hosts.a]\naddresses = [\"192.0.2.1/24\"]\n[hosts.b]\n{b}\n[links.one]\nbetween = [\"a\", \"b\"]\n"
        )
    };
    for wrong in [
        "",
        "addresses = [\"192.0.3.1/24\"]",
        "addresses = [\"192.0.2.2/25\"]",
        "addresses = [\"192.0.2.1/24\"]",
    ] {
        let error = Scenario::parse(&text(wrong), "t").unwrap_err().to_string();
        let same = wrong.contains("192.0.2.1/24");
        let title = if same {
            "`b` and `a` have the address 192.0.2.1"
        } else {
            "`a` and `b` cannot reach each other"
        };
        assert!(error.contains(title), "{error}");
    }
    assert!(Scenario::parse(&text("addresses = [\"192.0.2.2/24\", \"fd00::2/64\"]"), "t").is_ok());
}

#[test]
fn a_packet_may_take_the_longest_path() {
    let mut text = String::from("[hosts.h0]\n[hosts.end]\n");
    let node = |n: usize| {
        if n == 0 {
            "h0".into()
        } else if n == 100 {
            "end".into()
        } else {
            format!("j{n}")
        }
    };
    for n in 1..100 {
        text += &format!("[junctions.j{n}]\n");
    }
    for n in 0..100 {
        text += &format!("[links.l{n}]\nbetween = [\"{}\", \"{}\"]\n", node(n), node(n + 1));
    }
    assert_eq!(parse(&text).network().visits, 100);
}

#[test]
fn traffic_has_flows_of_its_own_and_captures_lie_beside_the_file() {
    let text = r#"
[hosts.a]
[hosts.b]
[links.l]
between = ["a", "b"]
[[traffic]]
from = "a"
to = "b"
constant = "3/10ms"
[[traffic]]
from = "b"
to = "a"
constant = "1mbit"
dscp = 46
[[traffic]]
from = "a"
to = "b"
capture = "trace.pcap"
start = "2s"
"#;
    let scenario = Scenario::parse(text, "some/where/net.toml").unwrap_or_else(|error| panic!("{error}"));
    let keys: Vec<FlowKey> = scenario
        .traffic
        .iter()
        .filter_map(|traffic| match &traffic.source {
            TrafficSource::Generated { key, .. } => Some(*key),
            _ => None,
        })
        .collect();
    assert_eq!(keys.len(), 2);
    assert_eq!(keys[0].source, keys[1].destination);
    assert_eq!((keys[0].source_port, keys[1].source_port), (49_152, 49_153));
    assert_eq!((keys[0].dscp(), keys[1].dscp()), (0, 46));
    assert_eq!(scenario.traffic[1].from, "b.l");
    let played = TrafficSource::Capture {
        file: "some/where/trace.pcap".into(),
        start: Time::ZERO + Duration::from_secs(2),
    };
    assert_eq!(scenario.traffic[2].source, played);
}

#[test]
fn traffic_that_responds_is_tcp_that_may_be_marked_or_not() {
    let text = r#"
[hosts.a]
[hosts.b]
[links.l]
between = ["a", "b"]
[[traffic]]
from = "a"
to = "b"
aimd = {}
[[traffic]]
from = "b"
to = "a"
aimd = { ecn = true, size = "3 kB", window = 2 }
length = "1000 bytes"
dscp = "ef"
start = "1s"
stop = "2s"
[[traffic]]
from = "a"
to = "b"
aimd = { scalable = true }
protocol = "udp"
source = "fd00::1"
destination = "fd00::2"
[[traffic]]
from = "a"
to = "b"
constant = "1/s"
protocol = "icmp"
ecn = "ect0"
"#;
    let scenario = Scenario::parse(text, "net.toml").unwrap_or_else(|error| panic!("{error}"));
    let sources: Vec<_> = scenario.traffic.iter().map(|traffic| &traffic.source).collect();
    let [
        TrafficSource::Aimd { config: one, key: tcp },
        TrafficSource::Aimd { config: two, key: marked },
        TrafficSource::Aimd { config: three, key: wide },
        TrafficSource::Generated { key: icmp, .. },
    ] = sources[..]
    else {
        panic!("{sources:?}")
    };
    let (start, stop) = (Time::ZERO, Time::NEVER);
    assert_eq!(*one, AimdConfig { length: 1498, size: None, start, stop, window: 10, marks: Marks::None });
    let second = Duration::from_secs(1);
    let (start, stop) = (start + second, start + second + second);
    let size = Some(Bytes::new(3000));
    assert_eq!(*two, AimdConfig { length: 1000, size, start, stop, window: 2, marks: Marks::Classic });
    assert_eq!(three.marks, Marks::Scalable);
    // RFC 3168: ECT(0) is 2; RFC 9331: ECT(1) is 1.
    assert_eq!((tcp.transport, tcp.traffic_class, tcp.network), (6, 0, Protocol::Ipv4DontFragment));
    assert_eq!((tcp.source_port, tcp.destination_port), (49_152, 9));
    assert_eq!((marked.transport, marked.traffic_class), (6, 46 << 2 | 2));
    assert_eq!((wide.transport, wide.traffic_class, wide.network), (17, 1, Protocol::Ipv6));
    assert_eq!((icmp.transport, icmp.traffic_class, icmp.source_port, icmp.destination_port), (1, 2, 0, 0));
}
