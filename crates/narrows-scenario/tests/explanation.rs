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
            mean 10ms, sd 2ms; p1 5.347ms, p50 10ms, p90 12.563ms, p99 14.653ms, p99.9 16.18ms
            at most 0.23 % of back-to-back packets delayed to keep order
  queue     13 packets (given), drops at the tail
  also      loses 1% of the packets on the wire
  one way   10.341ms for 64 bytes, 18ms for 1500 bytes
  at most   125 packets of 1500 bytes a second
  longest   128.18ms behind a full queue of such packets

client.access ↔ server.access
  round trip  21.365ms for 64 bytes, 52ms for 1500 bytes both ways, without queueing

traffic
  download: server.access → client.access: evenly 100 packets a second, 1498 bytes, about 1.20mbit

timeline
  at 5s, then every 10s: access.outage=true
"#;
    assert_eq!(scenario.explain().to_string(), expected.trim_start(), "\n{}", scenario.explain());
}

#[test]
fn the_longest_delay_is_that_of_the_queue_and_one_packet_on_the_wire() {
    // 1 Mbit/s, 100 ms and ten packets: 100 ms and eleven packets' time, 12 ms each.
    let flags = LinkFlags::default().with("rate", "1mbit").with("delay", "100ms").with("queue", "10 packets");
    let explanation = Scenario::from_flags(&flags).unwrap().explain();
    assert_eq!(explanation.links[1].full.max_ns, Some(232_000_000));
    // In bytes there is room for nine of them.
    let bytes = link("rate = \"1mbit\"\nqueue = \"14kB\"\ndelay = \"100ms\"").explain();
    assert_eq!(bytes.links[0].full.max_ns, Some(220_000_000));
}

#[test]
fn an_unlimited_link_and_one_that_is_down_have_what_can_be_said_of_them() {
    let unlimited = link("delay = \"10ms\"").explain();
    assert_eq!(unlimited.links[0].rate_bps, None);
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
        &["l.up: 16 % of the normal delays would be negative and are clamped to zero, which raises the mean"],
    );
    // 10 Mbit/s: 1.2 ms apart, Φ(−1.2/(√2·2)) = Φ(−0.4243) = 33.57 %.
    warns(
        "up = { rate = \"10mbit\", delay = \"20ms\", jitter = \"2ms\" }",
        &[
            "l.up: 34 % of full packets in a row (1.2ms apart) are delayed to keep order, so delays are longer and smoother than \
             asked; `order = \"allow\"` permits reordering",
        ],
    );
    // 12 ms apart: more than any two delays differ.
    warns("up = { rate = \"1mbit\", delay = { uniform = { low = \"0ms\", high = \"10ms\" } } }", &[]);
    warns(
        "down.queue = \"1kB\"\ndown.rate = \"1mbit\"",
        &["l.down: the queue of 1000 bytes is too small for a packet of 1500 bytes: all are dropped"],
    );
    warns("down.outage = true", &["l.down: the link is down: packets wait in its queue until that changes"]);
    warns("down.loss = { ingress = \"50%\", wire = \"50%\" }", &["l.down: 75 % of the packets are lost"]);
    warns("down.reorder = \"1%\"", &["l.down: `reorder` lets packets skip the delay, but there is no delay"]);
    let idle = parse(
        "duration = \"3s\"\n[hosts.a]\n[hosts.b]\n[hosts.c]\n[links.l]\nbetween = [\"a\", \"b\"]\n\
         [[timeline]]\nat = \"3s\"\nset = { l.rate = \"1mbit\" }\n\
         [[traffic]]\nfrom = \"a\"\nto = \"b\"\nconstant = \"1/s\"\nstart = \"4s\"\n",
    );
    assert_eq!(
        idle.explain().warnings,
        [
            "c: no link ends at this host",
            "traffic-1: starts at 4s, after the end of the run",
            "timeline: the step at 3s is after the end of the run"
        ]
    );
    let endless = link("[[traffic]]\nfrom = \"a\"\nto = \"b\"\nconstant = \"1/s\"");
    let expected = ["traffic-1: never ends; set `stop` or `packets`, or the run's `duration`"];
    assert_eq!(endless.explain().warnings, expected);
}

#[test]
fn it_is_there_for_programs_too() {
    let explanation = link("rate = \"1mbit\"\ndelay = \"10ms\"").explain();
    let json = serde_json::to_value(&explanation).unwrap();
    assert_eq!(json["links"][0]["name"], "l.up");
    assert_eq!(json["links"][0]["rate_bps"], 1_000_000);
    assert_eq!(json["links"][0]["queue_packets"], 4);
    assert_eq!(json["paths"][0]["round_trip_full_ns"], 44_000_000);
}

/// The whole text about `l.up` where nothing else is said.
#[track_caller]
fn says(lines: &str, expected: &[&str]) {
    let text = link(lines).explain().to_string();
    for line in expected {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn distributions_in_numbers() {
    // Exponential: −ln(1 − p) means; with order allowed nobody is delayed.
    says(
        "delay = { exponential = { mean = \"10ms\" }, order = \"allow\" }",
        &[
            "  delay     exponential, mean 10ms; packets may overtake",
            "mean 10ms, sd 10ms; p1 100.503us, p50 6.931ms, p90 23.026ms, p99 46.052ms, p99.9 69.078ms",
        ],
    );
    // Pareto with α = 1.5: the variance is infinite, the mean is 3 times the least.
    says("delay = { pareto = { shape = 1.5, minimum = \"1ms\" } }", &["mean 3ms, sd infinite"]);
    says(
        "delay = { mixture = [{ weight = 4, constant = \"1ms\" }, { weight = 1, constant = \"11ms\" }] }",
        // sd: √(0.2·0.8)·10 ms.
        &["mean 3ms, sd 4ms; p1 1ms, p50 1ms, p90 11ms, p99 11ms"],
    );
    says(
        "delay = { samples = { values = [\"1ms\", \"2ms\", \"3ms\"] }, per-byte = \"8ns\" }",
        &["the 3 samples, and 8ns a byte"],
    );
}

#[test]
fn who_is_delayed_to_keep_order() {
    let share = |delay: &str| {
        link(&format!("rate = \"12mbit\"\ndelay = {delay}")).explain().links[0].delayed_to_keep_order.unwrap()
    };
    // Full packets are 1 ms apart. The difference of two exponential delays of mean m is Laplace: P(D₁ − D₂ > g) = e^(−g/m)/2, here
    // e^(−1/2)/2 = 0.303265.
    let exponential = share("{ exponential = { mean = \"2ms\" } }");
    assert!((exponential - 0.303_265).abs() < 1e-3, "{exponential}");
    // A normal delay shifted by nothing goes the long way: Φ(−1/(√2·1)) = 0.23975. With rank correlation 0.25 the normal's is
    // 2·sin(π/24) = 0.26105, and the difference has a variance of 2·(1 − 0.26105): Φ(−1/1.21569) = 0.20538.
    let independent = share("{ normal = { mean = \"9ms\", sd = \"1ms\" }, maximum = \"1s\" }");
    assert!((independent - 0.23975).abs() < 1e-3, "{independent}");
    let correlated = share("{ normal = { mean = \"9ms\", sd = \"1ms\" }, correlation = \"25%\" }");
    assert!((correlated - 0.20538).abs() < 1e-3, "{correlated}");
    // In time: Φ(−ℓ/(√3·σ)), whatever the gap; 20 ms over 2 ms is far out, 2 ms over 2 ms is 0.2819.
    let smooth = share("{ normal = { mean = \"10ms\", sd = \"2ms\" }, correlation = \"20ms\" }");
    assert!(smooth < 1e-6, "{smooth}");
    let rough = share("{ normal = { mean = \"10ms\", sd = \"2ms\" }, correlation = \"2ms\" }");
    assert!(rough > 0.01, "{rough}");
    says(
        "delay = { normal = { mean = \"10ms\", sd = \"2ms\" }, correlation = \"2ms\" }",
        &["of packets close together", "a longer `correlation` delays fewer"],
    );
    let none =
        link("delay = { normal = { mean = \"10ms\", sd = \"2ms\" }, correlation = \"20ms\" }").explain();
    assert!(none.warnings.is_empty(), "{none}");
}

#[test]
fn losses_with_their_bursts() {
    // p/(p + r) = 1/31, 1/r = 3⅓ in a row.
    says(
        "loss = { gilbert-elliott = { p = 0.01, r = 0.3 } }",
        &[
            "loses packets on the wire, Gilbert-Elliott, p 1%, r 30%: 3.23 % of them, 3.33 in a row on average",
        ],
    );
    says(
        "loss = { ingress = { rate = \"2%\", correlation = \"25%\" }, wire = { rate = \"1%\", ecn = true } }",
        &[
            "loses packets before the queue, 2% (correlation 25%): 2.00 % of them",
            "marks (where it can, else loses) 1% of the packets on the wire",
        ],
    );
    says(
        "loss = { with-delay = [[\"20ms\", \"0%\"], [\"100ms\", \"10%\"]] }",
        &["loses 0% of the packets with a delay of 20ms, 10% with 100ms (2 points)"],
    );
    says("corrupt = { bit-errors = \"1e-6\" }", &["flips each bit with a probability of 0.0001%"]);
}

#[test]
fn traces_and_feeds() {
    use narrows_scenario::Files;
    let text = |lines: &str| format!("[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\n{lines}\n");
    let files = || {
        Files::given([
            ("cell.down", b"1\n2\n2\n6\n".to_vec()),
            ("path.csv", b"time_s,rate_mbit,delay_ms\n0,10,20\n1,5,40\n3,,\n".to_vec()),
        ])
    };
    let explain = |lines: &str| Scenario::parse_with(&text(lines), "net.toml", files()).unwrap().explain();
    // 4 · 1504 bytes in 6 ms.
    let cell = explain("trace = \"cell.down\"");
    let trace = cell.links[0].trace.as_ref().unwrap();
    assert_eq!((trace.mean_rate_bps, trace.length_ns, trace.then), (Some(8_021_333), 6_000_000, "loop"));
    assert!(cell.to_string().contains("by the trace cell.down, 8.021333mbit on average"), "{cell}");
    // 10 for 1 s and 5 for 2 s: 20/3; 20 and twice 40: 100/3 ms. The default bound: 6.667 Mbit/s · 66.667 ms are 444,444 bits,
    // 37.1 packets of 1498 bytes.
    let path = explain("trace = \"path.csv\"");
    let [first, _] = &path.links[..] else { panic!("{path}") };
    assert_eq!(first.mean_delay_ns, Some(33_333_333));
    assert_eq!(first.queue_packets, Some(38));
    assert!(first.queue_reason.contains("one bandwidth-delay product, 6.666667mbit × 66.666666ms"), "{path}");
    assert!(path.to_string().contains("path.csv: rate, delay for 3s, then keeps its last values"), "{path}");

    let fed = explain("down.delay = { feed = \"radio\", on_empty = \"last\" }").to_string();
    assert!(
        fed.contains("fed as `radio`, at most 4096 values ahead, the last delay when there are none"),
        "{fed}"
    );
    assert!(fed.contains("narrows feed l.down"), "{fed}");
}

#[test]
fn the_single_queue_of_netem_is_told_as_one() {
    let told = link(r#"up.exact-netem = "delay 100ms 20ms rate 1mbit limit 50""#).explain().to_string();
    // A frame of 1514 bytes takes 12.112 ms at 1 Mbit/s, one of 78 bytes 624 µs.
    for line in [
        "  rate      1mbit\n",
        "  counted   frame: the IP packet and its link header (14 bytes for Ethernet)\n",
        "  delay     NetEm's single queue: limit 50 delay 100ms 20ms rate 1mbit; packets may be reordered by their delays\n",
        "  queue     50 packets (single queue: waiting packets and packets in flight together), drops at the tail\n",
        "  one way   100.624ms for 64 bytes, 112.112ms for 1500 bytes\n",
    ] {
        assert!(told.contains(line), "{line}\n{told}");
    }
    let scenario = link(r#"up.exact-netem = "delay 10ms 2ms rate 1mbit 4 48 5""#).explain();
    // 64 + 14 + 4 bytes are two cells of 48, each 53 on the wire.
    assert_eq!(scenario.links[0].small.transmission_ns, Some(2 * 53 * 8 * 1000));
    assert_eq!(scenario.links[0].queue_packets, Some(1000));
    assert_eq!(scenario.links[0].order, "keep");
    assert_eq!(link(r#"exact-netem = "delay 10ms 2ms""#).explain().links[0].order, "allow");
}

#[test]
fn a_feed_is_named_where_there_are_several() {
    let classes =
        r#"{ classes = [{ match = "udp", delay = { feed = "one" } }, { delay = { feed = "two" } }] }"#;
    let told = link(&format!("up.delay = {classes}")).explain().to_string();
    assert!(told.contains("  feed      one: narrows feed l.up/one ("), "{told}");
    assert!(told.contains("  feed      two: narrows feed l.up/two ("), "{told}");
    let told = link(r#"up.delay = { feed = "one" }"#).explain().to_string();
    assert!(told.contains("  feed      one: narrows feed l.up ("), "{told}");
}

#[test]
fn what_has_no_mean_is_not_said_to_be_never() {
    for delay in [r#"{ feed = "one" }"#, r#"{ pareto = { shape = 1, minimum = "1ms" } }"#] {
        let told = link(&format!("up.delay = {delay}")).explain().to_string();
        assert!(told.contains("one way   unknown mean for 64 bytes"), "{told}");
        assert!(told.contains("round trip  unknown mean"), "{told}");
        assert!(!told.contains("never"), "{told}");
    }
    let told = link(r#"up = { rate = "down", delay = { feed = "one" } }"#).explain().to_string();
    assert!(told.contains("one way   never for 64 bytes"), "{told}");
    assert!(told.contains("round trip  never: a link is down"), "{told}");
    // A mean beyond all times.
    let told = link(r#"up.delay = { log-normal = { median = "10ms", sigma = 20 } }"#).explain().to_string();
    assert!(told.contains("mean more than 584 years, sd infinite"), "{told}");
}

#[test]
fn losses_that_never_end_and_shares_of_next_to_nothing() {
    let told = link(r#"up.loss = { conditional = ["1%", 1] }"#).explain().to_string();
    assert!(told.contains("100 % of them, permanently once they begin"), "{told}");
    let smooth = r#"up.delay = { gamma = { mean = "32ms", sd = "4ms" }, correlation = "40ms" }"#;
    let told = link(smooth).explain().to_string();
    assert!(told.contains("gamma, shape 64, scale 500us") && !told.contains("0.00 %"), "{told}");
}

/// What tc has as `netem` with a `pfifo` in it: the queue that is shown is the one in it.
#[test]
fn a_queue_in_netems_single_queue_is_shown() {
    let link = |more: &str| {
        let text = format!(
            "[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\nup = {{ exact-netem = \"delay 20ms limit 400\"{more} }}\n"
        );
        narrows_scenario::Scenario::parse(&text, "t").unwrap().explain().to_string()
    };
    assert!(link("").contains("400 packets (single queue"), "{}", link(""));
    let inside = link(", queue = \"10 packets\"");
    assert!(inside.contains("10 packets (given)") && inside.contains("limit 400"), "{inside}");
}

#[test]
fn delays_of_classes_are_beside_those_of_the_link() {
    let of = |inside: &str| {
        let text = format!(
            "[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\n[links.l.up.scheduler]\ntype = \"prio\"\n\
             classes = [{{ name = \"x\", match = {{ protocol = \"udp\" }}{inside} }}, {{ name = \"y\" }}]\n"
        );
        Scenario::parse(&text, "x").unwrap_or_else(|error| panic!("{error}")).explain().to_string()
    };
    let beside =
        |told: &str| told.lines().filter(|line| line.ends_with(", and the delays in classes")).count();
    assert_eq!(beside(&of("")), 0);
    assert_eq!(beside(&of(", netem = \"delay 5ms\"")), 2, "one way by l.up, and the round trip");
    let nested = ", scheduler = { type = \"drr\", classes = [{ name = \"z\", quantum = \"1500 B\", netem = \"delay 5ms\" }] }";
    assert_eq!(beside(&of(nested)), 2);
    // Another path has none.
    let two = "[hosts.a]\n[hosts.b]\n[hosts.c]\n[links.l]\nbetween = [\"a\", \"b\"]\n[links.ll]\nbetween = [\"a\", \"c\"]\n\
               [links.l.up.scheduler]\ntype = \"prio\"\nclasses = [{ name = \"x\", netem = \"delay 5ms\" }]\n";
    let told = Scenario::parse(two, "x").unwrap_or_else(|error| panic!("{error}")).explain().to_string();
    assert_eq!((beside(&told), told.matches("round trip").count()), (2, 2), "{told}");
}
