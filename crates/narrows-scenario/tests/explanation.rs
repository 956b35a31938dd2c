//! What `narrows check` says.

use narrows_scenario::{LinkFlags, Scenario};

fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "net.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn link(lines: &str) -> Scenario {
    parse(&format!("[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\n{lines}\n"))
}

#[test]
fn the_whole_text() {
    let scenario = parse(
        r#"
seed = 7
duration = "31s"
[hosts.client]
[hosts.server]
[links.access]
between = ["client", "server"]
up = { rate = "0.5mbit", delay = "10ms" }
down = { rate = "1.5mbit", delay = "10ms", jitter = "2ms", queue = "13 packets", loss = "1%" }
[[traffic]]
name = "download"
from = "server"
to = "client"
constant = "100/s"
[[timeline]]
at = "5s"
every = "10s"
set = { "access.outage" = true }
"#,
    );
    // By hand: 64 bytes are 1.024 ms at 0.5 Mbit/s and 341.334 µs at 1.5 Mbit/s; 1500 bytes are 24 and 8 ms. Behind four
    // packets and the one on the wire: 5 · 24 ms and 10 ms. Behind thirteen: 14 · 8 ms, 10 ms and 3.09 · 2 ms.
    let expected = r#"
net.toml: seed 7, lasts 31s

access.up: client → server
  rate      500kbit
  counted   ip: the IP packet alone
  delay     10ms; packets keep their order
  queue     4 packets (default: one bandwidth-delay product, 500kbit × 20ms round trip, but at least 4, in packets of 1498 bytes), drops at the tail
  one way   11.024ms for 64 bytes, 34ms for 1500 bytes
  at most   41.7 packets of 1500 bytes a second
  longest   130ms behind a full queue of such packets

access.down: server → client
  rate      1.5mbit
  counted   ip: the IP packet alone
  delay     normal, 10ms ± 2ms; packets keep their order
  queue     13 packets (given), drops at the tail
  also      loses 1% of the packets on the wire
  one way   10.341ms for 64 bytes, 18ms for 1500 bytes
  at most   125 packets of 1500 bytes a second
  longest   128.18ms behind a full queue of such packets

client.access ↔ server.access
  round trip  21.365ms for 64 bytes, 52ms for 1500 bytes both ways, without waiting

traffic
  download: server.access → client.access: evenly 100 packets a second, 1498 bytes, about 1.20mbit

timeline
  at 5s, and every 10s from then on: access.outage=true
"#;
    assert_eq!(scenario.explain().to_string(), expected.trim_start(), "\n{}", scenario.explain());
}

#[test]
fn the_longest_delay_is_that_of_the_queue_and_one_packet_on_the_wire() {
    // 1 Mbit/s, 100 ms and ten packets: 100 ms and eleven packets' time, 12 ms each.
    let flags = LinkFlags {
        rate: Some("1mbit".into()),
        delay: Some("100ms".into()),
        queue: Some("10 packets".into()),
        ..LinkFlags::default()
    };
    let explanation = Scenario::from_flags(&flags).unwrap().explain();
    assert_eq!(explanation.links[1].full.longest_ns, Some(232_000_000));
    // In bytes there is room for nine of them.
    let bytes = link("rate = \"1mbit\"\nqueue = \"14kB\"\ndelay = \"100ms\"").explain();
    assert_eq!(bytes.links[0].full.longest_ns, Some(220_000_000));
}

#[test]
fn an_unlimited_link_and_one_that_is_down_have_what_can_be_said_of_them() {
    let unlimited = link("delay = \"10ms\"").explain();
    assert_eq!(unlimited.links[0].rate_bits_per_second, None);
    assert_eq!(unlimited.links[0].full.one_way_ns, Some(10_000_000));
    assert_eq!(unlimited.paths[0].round_trip_full_ns, Some(20_000_000));
    let down = link("up.rate = \"down\"").explain();
    assert_eq!(down.links[0].full.one_way_ns, None);
    assert_eq!(down.paths[0].round_trip_small_ns, None);
    assert!(down.to_string().contains("round trip  never"), "{down}");
}

#[track_caller]
fn warns(lines: &str, expected: &[&str]) {
    assert_eq!(link(lines).explain().warnings, expected, "{lines}");
}

#[test]
fn warnings() {
    warns("rate = \"1mbit\"\ndelay = \"10ms\"", &[]);
    // Φ(−1) = 15.87 %; a link without a rate holds back half of the packets.
    warns(
        "up.delay = { normal = { mean = \"2ms\", sd = \"2ms\" }, order = \"allow\" }",
        &["l.up: 16 % of the normal delays would be below zero and become zero, which raises the mean"],
    );
    // 10 Mbit/s: 1.2 ms apart, Φ(−1.2/(√2·2)) = Φ(−0.4243) = 33.57 %.
    warns(
        "up = { rate = \"10mbit\", delay = \"20ms\", jitter = \"2ms\" }",
        &[
            "l.up: of full packets in a row (1.2ms apart), 34 % are held back behind the one before, as order is kept: \
           delays come out longer and smoother than asked; `order = \"allow\"` lets packets overtake",
        ],
    );
    // 12 ms apart: more than any two delays differ.
    warns("up = { rate = \"1mbit\", delay = { uniform = { low = \"0ms\", high = \"10ms\" } } }", &[]);
    warns(
        "down.queue = \"1kB\"\ndown.rate = \"1mbit\"",
        &["l.down: the queue of 1000 bytes has no room for a packet of 1500 bytes: none gets through"],
    );
    warns("down.outage = true", &["l.down: the link is down: nothing gets through until that changes"]);
    warns("down.loss = { ingress = \"50%\", wire = \"50%\" }", &["l.down: 75 % of the packets are lost"]);
    warns("down.reorder = \"1%\"", &["l.down: `reorder` lets packets skip the delay, and there is none"]);
    let idle = parse(
        "duration = \"3s\"\n[hosts.a]\n[hosts.b]\n[hosts.c]\n[links.l]\nbetween = [\"a\", \"b\"]\n\
         [[timeline]]\nat = \"3s\"\nset = { l.rate = \"1mbit\" }\n\
         [[traffic]]\nfrom = \"a\"\nto = \"b\"\nconstant = \"1/s\"\nstart = \"4s\"\n",
    );
    assert_eq!(
        idle.explain().warnings,
        [
            "c: no link ends at this host",
            "traffic-1: begins at 4s, when the run has ended",
            "timeline: nothing happens at 3s, when the run has ended"
        ]
    );
    let endless = link("[[traffic]]\nfrom = \"a\"\nto = \"b\"\nconstant = \"1/s\"");
    let expected = ["traffic-1: never ends; say `stop` or `packets`, or a `duration` for the run"];
    assert_eq!(endless.explain().warnings, expected);
}

#[test]
fn it_is_there_for_programs_too() {
    let explanation = link("rate = \"1mbit\"\ndelay = \"10ms\"").explain();
    let json = serde_json::to_value(&explanation).unwrap();
    assert_eq!(json["links"][0]["name"], "l.up");
    assert_eq!(json["links"][0]["rate_bits_per_second"], 1_000_000);
    assert_eq!(json["links"][0]["queue_packets"], 4);
    assert_eq!(json["paths"][0]["round_trip_full_ns"], 44_000_000);
}
