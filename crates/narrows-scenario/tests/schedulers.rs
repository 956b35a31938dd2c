//! Schedulers and queues that are right: what they become, what changes, what is kept.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use narrows_core::queue::Bound;
use narrows_core::{Bytes, Change, DropReason, Engine, FlowKey, Packet, Protocol, Time};
use narrows_scenario::{Direction, Scenario, SchedulerKind, Way};
use proptest::prelude::*;

fn link(lines: &str) -> Scenario {
    let text = format!(
        "[hosts.client]\n[hosts.server]\n[links.access]\nbetween = [\"client\", \"server\"]\n{lines}\n"
    );
    Scenario::parse(&text, "net.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn down(scenario: &Scenario) -> &Direction {
    scenario.links[0].direction(Way::Down).expect("a wire")
}

const CLASSES: &str = r#"
rate = "1mbit"
queue = "20 packets"
[links.access.down]
scheduler = { type = "qfq", classes = [
    { name = "voip", weight = 8, match = { protocol = "udp", dscp = "ef", length = "..300 bytes" }, queue = "codel" },
    { name = "web", weight = 2, match = [{ port = [80, 443] }, { source = "10.9.0.0/16" }], queue = { type = "pie", bound = "7 packets" } },
    { name = "rest" },
] }
"#;

fn kinds(changes: &[(String, Change)]) -> Vec<String> {
    let kind =
        |change: &Change| format!("{change:?}").split(['(', ' ']).next().unwrap_or_default().to_string();
    changes.iter().map(|(link, change)| format!("{link} {}", kind(change))).collect()
}

#[test]
fn classes_for_reports() {
    let scenario = link(CLASSES);
    let classes = down(&scenario).classes();
    let found: Vec<(&str, u32, Bound, &str)> = classes
        .iter()
        .map(|class| (class.name.as_str(), class.weight.unwrap().get(), class.bound, class.matches.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            ("voip", 8, Bound::Packets(20), "udp, dscp ef, up to 300 bytes"),
            ("web", 2, Bound::Packets(7), "port 80 or 443; or from 10.9.0.0/16"),
            ("rest", 1, Bound::Packets(20), "every other packet"),
        ]
    );
    assert_eq!(down(&scenario).whole_bound(), None);
    assert!(scenario.links[0].direction(Way::Up).expect("a wire").classes().is_empty());
    let words = |classes: &str| -> Vec<String> {
        let scenario = link(&format!("scheduler = {{ type = \"drr\", classes = [{classes}] }}"));
        down(&scenario).classes().into_iter().map(|class| class.matches).collect()
    };
    assert_eq!(words(r#"{ name = "only" }"#), ["every packet"]);
    assert_eq!(
        words(r#"{ name = "voip", match = { dscp = "ef" } }, { name = "all" }"#),
        ["dscp ef", "every other packet"]
    );
}

#[test]
fn what_check_says() {
    let text = link(CLASSES).explain().to_string();
    for line in [
        "  queue     20 packets (given; each class without a bound), drops at the tail\n",
        "  scheduler qfq: quick fair queueing; bounded per class only\n",
        "    voip: udp, dscp ef, up to 300 bytes\n      weight 8 of 11: 72.7 %, 727kbit; packets up to 300 bytes; queue 20 packets, drops at the tail\n      CoDel, target 5ms, interval 100ms, longest 1500 bytes, ecn on\n",
        "    web: port 80 or 443; or from 10.9.0.0/16\n      weight 2 of 11: 18.2 %, 182kbit; packets up to 1500 bytes; queue 7 packets, drops at the tail\n      PIE, target 15ms,",
        "    rest: every other packet\n      weight 1 of 11: 9.1 %, 90.9kbit;",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let flows = link(
        "rate = \"10mbit\"\ndelay = \"10ms\"\nup.scheduler = \"fq_codel\"\ndown.scheduler = { type = \"drr\", flows = 16, by = \"source\" }",
    );
    let text = flows.explain().to_string();
    for line in [
        "  queue     10240 packets (default of fq_codel; all flows together), drops from the head of the longest flow\n",
        "  scheduler fq_codel: fair queueing with CoDel, quantum 1514 bytes; 1024 flows by 5-tuple\n            each flow: CoDel, target 5ms,",
        "  queue     20 packets (default: one bandwidth-delay product, 10mbit × 20ms round trip, but at least 20 because senders send in bursts, in packets of 1498 bytes; all flows together)",
        "  scheduler drr: deficit round robin, quantum 1500 bytes; 16 flows by source\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(flows.explain().warnings.is_empty());
}

#[test]
fn queues_against_flows_that_do_not_respond_are_explained() {
    let text = link("rate = \"10mbit\"\nup.queue = \"choke\"\ndown.queue = \"sfb\"").explain().to_string();
    for line in [
        "  managed   CHOKe, candidates 1, min 5 packets, max 15 packets, probability 10%, weight 0.002, ecn on, typical-packet 512 bytes",
        "  managed   SFB, bin-target 20 packets, bin-max 25 packets, increment 0.05%, decrement 0.005%, penalty-rate 10, penalty-burst 20, rehash 600s, warmup 60s, ecn on\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let text = link("rate = \"10mbit\"\nup.scheduler = { type = \"hhf\", weight = 4 }").explain().to_string();
    for line in [
        "  queue     1000 packets (default of hhf; all flows together), drops the oldest packet of heavy flows\n",
        "  scheduler hhf: flows that send much behind all others, quantum 1514 bytes; heavy beyond 131072 bytes in 40ms, until idle for 1s; light flows send 4 quanta per turn",
        "    heavy: flows that send much\n      quantum 1514 of 7570 bytes: 20.0 %, 2.00mbit; queue that of all\n",
        "    light: all other flows\n      quantum 6056 of 7570 bytes: 80.0 %, 8.00mbit; queue that of all\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    // RED's average cannot reach the upper threshold of CHOKe either.
    let small = link("rate = \"10mbit\"\nup.queue = { type = \"choke\", bound = \"15 packets\" }").explain();
    assert!(small.warnings.iter().any(|warning| warning.contains("is not above RED's `max`")), "{small}");
}

#[test]
fn warnings() {
    let warns = |lines: &str, expected: &[&str]| {
        assert_eq!(link(lines).explain().warnings, expected, "{lines}");
    };
    warns(
        "up.scheduler = \"sfq\"\ndown.queue = \"codel\"",
        &[
            "access.up: a link without a rate has no backlog, so `sfq` has no effect",
            "access.down: a link without a rate has no backlog, so `codel` has no effect",
        ],
    );
    let early = "the queue is full before its average reaches it";
    warns(
        "rate = \"1mbit\"\ndown.queue = { type = \"red\", bound = \"15 packets\" }",
        &[&format!("access.down: the bound, 15 packets, is not above RED's `max` of 15 packets: {early}")],
    );
    warns("rate = \"1mbit\"\ndown.queue = { type = \"red\", bound = \"16 packets\" }", &[]);
    warns(
        "rate = \"1mbit\"\ndown.scheduler = { type = \"prio\", classes = [{ name = \"all\", queue = { type = \"red\", max = \"30kB\", bound = \"29kB\" } }] }",
        &[&format!(
            "access.down: the bound of `all`, 29000 bytes, is not above RED's `max` of 30000 bytes: {early}"
        )],
    );
    warns(
        "rate = \"1mbit\"\ndown.scheduler = { type = \"prio\", classes = [{ name = \"all\", queue = \"1kB\" }] }",
        &["access.down: the queue of `all`, 1000 bytes, has no room for a packet of 1500 bytes"],
    );
    let shared = |bound: u32| {
        format!(
            "rate = \"1mbit\"\ndown.scheduler = {{ type = \"drr\", bound = \"{bound} packets\", classes = [{{ name = \"call\", queue = \"10 packets\", match = {{ dscp = \"ef\" }} }}, {{ name = \"rest\", queue = \"20 packets\" }}] }}"
        )
    };
    warns(
        &shared(20),
        &[
            "access.down: `rest` alone can fill the scheduler's bound of 20 packets; then packets of other classes are dropped",
        ],
    );
    warns(&shared(21), &[]);
    warns(
        "rate = \"11mbit\"\nscheduler = \"dcf\"",
        &[
            "access: the stations of each direction contend only with each other; for one medium set `shared = true`",
        ],
    );
    warns("rate = \"11mbit\"\nshared = true\nscheduler = \"dcf\"", &[]);
}

#[test]
fn a_change_of_weight_or_bound_keeps_the_scheduler() {
    for (text, expected) in [
        ("access.down.scheduler.voip.weight=4", vec!["access.down Weight"]),
        ("access.down.scheduler.rest.weight=1", vec![]), // as it was
        ("access.down.scheduler.bound=50 packets", vec!["access.down QueueBound"]),
        ("access.down.scheduler.rest.queue=codel", vec!["access.down Queue"]),
        ("access.down.scheduler.web.queue.bound=9 packets", vec!["access.down Queue"]),
        ("access.down.scheduler.voip.longest=200 bytes", vec!["access.down Queue"]),
        ("access.down.scheduler.voip.match={ dscp = \"va\" }", vec!["access.down Classifier"]),
        ("access.down.scheduler.type=drr", vec!["access.down Queue"]),
        ("access.down.scheduler=none", vec!["access.down Queue"]),
        ("access.up.scheduler=fq_codel", vec!["access.up Queue"]),
        ("access.queue=21 packets", vec!["access.up QueueBound", "access.down Queue"]),
        ("access.up.queue.type=codel", vec!["access.up Queue"]),
        ("access.down.overhead=ethernet", vec!["access.down Overhead"]),
    ] {
        let mut scenario = link(CLASSES);
        let changes = scenario.assign(text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(kinds(&changes), expected, "{text}");
    }
    let mut scenario = link(CLASSES);
    let changes = scenario.assign("access.down.scheduler.web.weight=5").unwrap();
    assert!(
        matches!(&changes[..], [(_, Change::Weight { class: 1, weight })] if weight.get() == 5),
        "{changes:?}"
    );
    let both = scenario
        .assign_all(&["access.down.scheduler.web.weight=6", "access.down.scheduler.voip.weight=7"])
        .unwrap();
    assert_eq!(both.len(), 2);
    // Nothing else of the class has changed.
    assert_eq!(down(&scenario).classes()[1].matches, "port 80 or 443; or from 10.9.0.0/16");
    let written = scenario.to_toml();
    assert!(Scenario::parse(&written, "net.toml").unwrap() == scenario, "{written}");

    let mut flows = link("rate = \"10mbit\"\nscheduler = \"sfq\"");
    assert_eq!(down(&flows).whole_bound(), Some(Bound::Packets(127)));
    let changes = flows.assign("access.down.queue=50 packets").unwrap();
    assert!(matches!(changes[..], [(_, Change::QueueBound(Bound::Packets(50)))]), "{changes:?}");
}

#[test]
fn a_part_of_a_queue_keeps_the_others() {
    let mut scenario =
        link("rate = \"1mbit\"\nqueue = { type = \"codel\", bound = \"9 packets\", target = \"7ms\" }");
    scenario.assign("access.down.queue.interval=200ms").unwrap();
    let managed = |scenario: &Scenario| scenario.explain().links[1].management.clone().unwrap_or_default();
    assert_eq!(managed(&scenario), "CoDel, target 7ms, interval 200ms, longest 1500 bytes, ecn on");
    scenario.assign("access.down.queue.type=pie").unwrap();
    assert!(managed(&scenario).starts_with("PIE, target 7ms, update 15ms"), "what both know is kept");
    for assignment in ["derandomize=true", "cap-drop=true", "high-delay-boost=250ms"] {
        scenario.assign(&format!("access.down.queue.{assignment}")).unwrap();
    }
    let refined = "max-ecn-threshold 10%, derandomize on, cap-drop on, high-delay-boost 250ms";
    assert!(managed(&scenario).ends_with(refined), "{}", managed(&scenario));
    assert_eq!(down(&scenario).bound(), Bound::Packets(9));
    scenario.assign("access.down.queue.type=fifo").unwrap();
    assert_eq!((managed(&scenario).as_str(), down(&scenario).bound()), ("", Bound::Packets(9)));
}

/// In bytes, instead of weights; `set` replaces the one by the other, and the scheduler stays.
#[test]
fn classes_of_drr_may_have_quanta() {
    let quanta = "rate = \"9mbit\"\nscheduler = { type = \"drr\", quantum = \"1000 bytes\", classes = [\n\
         { name = \"a\", quantum = \"2500 bytes\", match = { dscp = \"ef\" } },\n\
         { name = \"b\", weight = 2, match = { dscp = \"va\" } },\n{ name = \"c\", quantum = \"1 byte\" } ] }";
    let mut scenario = link(quanta);
    let text = scenario.explain().to_string();
    for line in [
        "quantum 2500 of 4501 bytes: 55.5 %, 5.00mbit",
        "quantum 2000 of 4501 bytes",
        "quantum 1 of 4501 bytes",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let change = |scenario: &mut Scenario, text: &str| {
        let changes = scenario.assign(text).unwrap_or_else(|error| panic!("{error}"));
        changes.into_iter().map(|(_, change)| format!("{change:?}")).collect::<Vec<_>>()
    };
    let found = change(&mut scenario, "access.down.scheduler.a.quantum=3000 bytes");
    assert_eq!(found, ["Class { class: 0, settings: Quantum(Bytes(3000)) }"]);
    let found = change(&mut scenario, "access.down.scheduler.a.weight=4");
    assert_eq!(found, ["Weight { class: 0, weight: Weight(4) }"]);
    let found = change(&mut scenario, "access.down.scheduler.a.quantum=4000 bytes");
    assert_eq!(found, ["Class { class: 0, settings: Quantum(Bytes(4000)) }"]);
    let written = scenario.to_toml();
    assert!(Scenario::parse(&written, "net.toml").unwrap() == scenario, "{written}");
    let found = change(&mut scenario, "access.down.scheduler.type=wf2q+");
    assert_eq!(found.len(), 1);
    assert!(!scenario.to_toml().contains("quantum = \"4000"), "{}", scenario.to_toml());
}

/// The first classes are strict; a change of a quantum keeps the scheduler, and one of `strict` does not.
#[test]
fn ets_has_strict_classes_and_quanta() {
    let mut scenario = link(
        "rate = \"9mbit\"\nscheduler = { type = \"ets\", strict = 1, classes = [{ name = \"a\", match = { dscp = \"ef\" } }, \
         { name = \"b\", quantum = \"3028 bytes\", match = { dscp = \"va\" } }, { name = \"c\" }] }",
    );
    let text = scenario.explain().to_string();
    for line in [
        "  scheduler ets: strict priority of the first classes, then deficit round robin, quantum 1514 bytes; the first class before all others;",
        "    a: dscp ef\n      queue ",
        "      strict priority\n",
        "      quantum 3028 of 4542 bytes: 66.7 %; queue",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let changes = scenario.assign("access.down.scheduler.c.quantum=9000 bytes").unwrap();
    assert_eq!(kinds(&changes), ["access.down Class"]);
    // Without its own it has the scheduler's.
    let classes = "[{ name = \"a\", match = { dscp = \"ef\" } }, { name = \"b\", quantum = \"3028 bytes\", match = { dscp = \"va\" } }, { name = \"c\" }]";
    let changes = scenario.assign(&format!("access.down.scheduler.classes={classes}")).unwrap();
    assert_eq!(format!("{:?}", changes[0].1), "Class { class: 2, settings: Quantum(Bytes(1514)) }");
    let changes = scenario.assign("access.down.scheduler.strict=2").unwrap_err().to_string();
    assert!(changes.contains("`quantum` in the class `b`, which is strict"), "{changes}");
    let changes = scenario.assign("access.down.scheduler.strict=0").unwrap();
    assert_eq!(kinds(&changes), ["access.down Queue"]);
    let written = scenario.to_toml();
    assert!(Scenario::parse(&written, "net.toml").unwrap() == scenario, "{written}");
}

/// Each flow at 1 Mbit/s on a link without a rate, and a band of its own for those that ask for low delay.
#[test]
fn fq_limits_each_flow() {
    let mut scenario = link(
        "overhead = \"frame\"\nscheduler = { type = \"fq\", max-rate = \"1mbit\", weights = [65536, 65536, 16384] }",
    );
    let text = scenario.explain().to_string();
    for line in [
        "  queue     10000 packets (default of fq; each of its bands), drops at the tail\n",
        "  scheduler fq: fair queueing with a maximum rate for each flow, quantum 3028 bytes; a flow has 1mbit at most, and up to 15140 bytes at first; up to 100 packets of a flow wait; bands share 65536 to 65536 to 16384; 1024 flows by 5-tuple\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(scenario.explain().warnings.is_empty(), "{text}");
    for (text, expected) in [
        ("access.down.scheduler.bound=50 packets", "access.down QueueBound"),
        ("access.down.scheduler.max-rate=2mbit", "access.down Queue"),
    ] {
        assert_eq!(kinds(&scenario.assign(text).unwrap()), [expected], "{text}");
    }
    let written = scenario.to_toml();
    assert!(Scenario::parse(&written, "net.toml").unwrap() == scenario, "{written}");
    let error = scenario.assign("access.down.queue=codel").unwrap_err().to_string();
    assert!(error.contains("`fq` manages its own queues, but the link's queue is `codel`"), "{error}");
}

#[test]
fn another_scheduler_with_the_same_classes() {
    let scenario = link(CLASSES);
    let direction = down(&scenario);
    for kind in SchedulerKind::ALL {
        let result = direction.with_scheduler(kind.name());
        if kind == SchedulerKind::Dcf {
            continue; // at 1 Mbit/s it is one of 802.11b's
        }
        if kind.name() == "plugin" {
            let error = result.expect_err("nothing says which").to_string();
            assert!(error.contains("`plugin` has no module"), "{error}");
            continue;
        }
        if kind == SchedulerKind::Taprio {
            let error = result.expect_err("nothing says when gates open").to_string();
            assert!(error.contains("`taprio` has no schedule"), "{error}");
            continue;
        }
        if kind.is_shaper() {
            let error = result.expect_err("nothing says the rates").to_string();
            assert!(
                [" has no rate", " has no service curve", " has no idle slope"]
                    .iter()
                    .any(|said| error.contains(said)),
                "{error}"
            );
            continue;
        }
        let other = result.unwrap_or_else(|error| panic!("{error}"));
        let names: Vec<String> = other.classes().into_iter().map(|class| class.name).collect();
        let expected: &[&str] = match kind.name() {
            "sfq" | "fq" | "fq_codel" | "fq_pie" => &[],
            "pfifo_fast" => &["band-0", "band-1", "band-2"],
            "abe" => &["green", "blue"],
            "hhf" => &["heavy", "light"],
            "cake" => &["best-effort", "bulk", "voice"],
            _ => &["voip", "web", "rest"],
        };
        assert_eq!(names, expected, "{}", kind.name());
        let weighted = matches!(kind.name(), "drr" | "wf2q+" | "qfq" | "gfq" | "kps");
        assert_eq!(
            other.classes().first().is_some_and(|class| class.weight.is_some()),
            weighted,
            "{}",
            kind.name()
        );
        // It is right as it stands in a file, too.
        let mut copy = scenario.clone();
        copy.assign(&format!("access.down.scheduler.type={}", kind.name())).unwrap();
        assert_eq!(down(&copy), &other, "{}", kind.name());
        let written = copy.to_toml();
        assert!(Scenario::parse(&written, "net.toml").unwrap() == copy, "{written}");
        Engine::<()>::new(copy.network()).unwrap();
    }
    let radio = link(
        "rate = \"11mbit\"\nscheduler = { type = \"dcf\", preamble = \"short\", classes = [{ name = \"all\" }] }",
    );
    let mut wired = radio.clone();
    wired.assign("access.scheduler.type=drr").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(down(&wired), &down(&radio).with_scheduler("drr").unwrap());
    assert_eq!(direction.with_scheduler("none").unwrap().scheduler, None);
    let error = direction.with_scheduler("wrr").unwrap_err().to_string();
    assert!(error.starts_with("error: `wrr` is not a scheduler"), "{error}");
    let plain = link("rate = \"10mbit\"");
    assert!(down(&plain).with_scheduler("fq_codel").is_ok());
    assert!(down(&plain).with_scheduler("prio").unwrap_err().to_string().contains("`prio` has no classes"));
    assert!(
        down(&plain)
            .with_scheduler("dcf")
            .unwrap_err()
            .to_string()
            .contains("`dcf` does not support the link's rate, 10mbit")
    );
}

/// What of these packets, sent at once from the server, each class got, and what became of those of no class.
fn sorted(scenario: &Scenario, packets: &[(FlowKey, u32)]) -> (Vec<u64>, u64) {
    let mut engine = Engine::<()>::new(scenario.network()).unwrap();
    let from = &scenario.ports().iter().find(|port| port.host == "server").unwrap().name;
    let port = engine.port(from).unwrap();
    for (key, length) in packets {
        let packet = Packet {
            length: *length,
            link_header: 14,
            network_header: 20,
            headers: Default::default(),
            key: *key,
            body: (),
        };
        engine.hand_in(Time::ZERO, port, packet);
    }
    // Arrivals are handled when something is asked for.
    while engine.poll(Time::ZERO).is_some() {}
    let view = engine.view(engine.link(&scenario.links[0].core_name(Way::Down)).unwrap());
    let arrived = view.classes().iter().map(|class| class.arrived.packets).collect();
    (arrived, view.counters()[0].dropped(DropReason::NoClass).packets)
}

fn v4(a: u8, b: u8, c: u8, d: u8) -> [u8; 16] {
    std::net::Ipv4Addr::new(a, b, c, d).to_ipv6_mapped().octets()
}

#[test]
fn packets_get_to_their_classes() {
    let key = |source, port, dscp: u8| FlowKey {
        source,
        destination: v4(10, 0, 0, 1),
        source_port: 9999,
        destination_port: port,
        network: Protocol::Ipv4,
        transport: 17,
        traffic_class: dscp << 2,
        ..FlowKey::default()
    };
    let (near, far) = (v4(192, 168, 0, 1), v4(10, 9, 8, 7));
    let packets = [
        (key(near, 7, 46), 300),
        (key(near, 7, 46), 301), // too long for voip
        (key(near, 443, 0), 1000),
        (key(far, 7, 0), 1000),
        (key(far, 7, 46), 100), // voip comes first
    ];
    assert_eq!(sorted(&link(CLASSES), &packets), (vec![2, 2, 1], 0));
    let without = CLASSES
        .replace("    { name = \"rest\" },\n", "")
        .replace("type = \"qfq\"", "type = \"qfq\", default = \"drop\"");
    assert_eq!(sorted(&link(&without), &packets), (vec![2, 2], 1));
}

#[test]
fn a_host_stands_for_its_addresses_even_when_they_are_numbered_anew() {
    let mut scenario = link(
        "rate = \"1mbit\"\ndown.scheduler = { type = \"fifo\", classes = [{ name = \"own\", match = { source = \"server\" } }, { name = \"rest\" }] }",
    );
    let of_server = |scenario: &Scenario| {
        let port = scenario.ports().iter().find(|port| port.host == "server").unwrap();
        match port.addresses[0].ip {
            std::net::IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
            std::net::IpAddr::V6(ip) => ip.octets(),
        }
    };
    let packet = |source| (FlowKey { source, network: Protocol::Ipv4, ..FlowKey::default() }, 100);
    let old = of_server(&scenario);
    assert_eq!(sorted(&scenario, &[packet(old)]).0, [1, 0]);
    scenario.renumber(|address| !address.to_string().starts_with("10.213.0."));
    let new = of_server(&scenario);
    assert_ne!(old, new);
    assert_eq!(sorted(&scenario, &[packet(old), packet(new)]).0, [1, 1]);
}

fn queue() -> impl Strategy<Value = String> {
    let bound = prop_oneof![
        Just(String::new()),
        (1u32..99).prop_map(|n| format!(", bound = \"{n} packets\"")),
        Just(", bound = \"64kB\", drop = \"head\"".into())
    ];
    let policy = proptest::sample::select(vec![
        "type = \"fifo\"",
        "type = \"red\"",
        "type = \"red\", min = \"3kB\", probability = 0.05, weight = 0.01, gentle = true, ecn = false",
        "type = \"gred\", max = \"30 packets\"",
        "type = \"codel\"",
        "type = \"codel\", target = \"1.5ms\", interval = \"20ms\", ecn = false",
        "type = \"pie\", alpha = 0.25, beta = 2, burst = \"0s\", max-ecn-threshold = \"12.5%\"",
        "type = \"pie\", derandomize = true, cap-drop = true, high-delay-boost = \"250ms\"",
    ]);
    (policy, bound).prop_map(|(policy, bound)| format!("{{ {policy}{bound} }}"))
}

fn condition() -> impl Strategy<Value = String> {
    let parts = proptest::sample::subsequence(
        vec![
            "protocol = [\"udp\", \"tcp\", 99]",
            "source = [\"client\", \"10.0.0.0/8\", \"fd00::/16\"]",
            "destination = \"server\"",
            "destination-port = [5060, \"6000-6100\"]",
            "dscp = [\"ef\", \"cs3\", 7]",
            "length = \"100..1000 bytes\"",
        ],
        1..5,
    );
    parts.prop_map(|parts| format!("{{ {} }}", parts.join(", ")))
}

fn scheduler() -> impl Strategy<Value = String> {
    let flows = (
        proptest::sample::select(vec![
            "drr", "wf2q+", "qfq", "gfq", "kps", "sfq", "fq_codel", "fq_pie", "fq",
        ]),
        proptest::option::of(1u32..2000),
        proptest::option::of(proptest::sample::select(vec!["5-tuple", "source", "destination", "addresses"])),
    )
        .prop_map(|(kind, flows, by)| {
            let flows = flows.map_or(String::new(), |flows| format!(", flows = {flows}"));
            let by = by.map_or(String::new(), |by| format!(", by = \"{by}\""));
            format!("{{ type = \"{kind}\"{flows}{by} }}")
        });
    let class = (condition(), proptest::option::of(1u32..1000), proptest::option::of(queue()));
    let classes = (
        proptest::sample::select(vec!["drr", "wf2q+", "qfq"]),
        proptest::collection::vec(class, 1..4),
        any::<bool>(),
    )
        .prop_map(|(kind, classes, drops)| {
            let mut items: Vec<String> = classes
                .into_iter()
                .enumerate()
                .map(|(n, (condition, weight, queue))| {
                    let weight = weight.map_or(String::new(), |weight| format!(", weight = {weight}"));
                    let queue = queue.map_or(String::new(), |queue| format!(", queue = {queue}"));
                    format!("{{ name = \"c{n}\", match = {condition}{weight}{queue} }}")
                })
                .collect();
            let default = if drops { ", default = \"drop\"" } else { "" };
            if !drops {
                items.push("{ name = \"rest\" }".into());
            }
            format!("{{ type = \"{kind}\"{default}, classes = [{}] }}", items.join(", "))
        });
    prop_oneof![flows, classes, Just("\"pfifo_fast\"".to_string()), Just("\"fifo\"".to_string())]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// What is read is written, and read again as the same; and what is built of it takes packets. Random classes may be
    /// refused because one covers another: that is an error and no panic.
    #[test]
    fn what_is_read_is_written(queue in queue(), scheduler in scheduler()) {
        let text = format!(
            "[hosts.client]\n[hosts.server]\n[links.access]\nbetween = [\"client\", \"server\"]\nrate = \"10mbit\"\nqueue = {queue}\nscheduler = {scheduler}\n"
        );
        match Scenario::parse(&text, "net.toml") {
            Ok(scenario) => {
                let written = scenario.to_toml();
                let again = Scenario::parse(&written, "net.toml").unwrap_or_else(|error| panic!("{error}\n{written}"));
                prop_assert!(again == scenario, "{text}\n{written}");
                prop_assert_eq!(again.to_toml(), written);
                sorted(&scenario, &[(FlowKey::default(), 100)]);
                scenario.explain().to_string();
            }
            Err(error) => {
                let error = error.to_string();
                prop_assert!(
                    error.contains("no packet reaches the class") || error.contains("manages its own queues"),
                    "{text}\n{error}"
                );
            }
        }
    }
}

/// The tins of each mode, the limit that follows from bandwidth and round-trip time, and what a change of each key comes to.
#[test]
fn cake_has_tins_and_one_bound() {
    let keys = r#"delay = "5ms"
[links.access.down]
scheduler = { type = "cake", bandwidth = "100mbit", rtt = "200ms", overhead = 18, mpu = "64 bytes" }"#;
    let scenario = link(keys);
    let direction = down(&scenario);
    let words: Vec<(String, String)> =
        direction.classes().into_iter().map(|class| (class.name, class.matches)).collect();
    let expected = [
        ("best-effort", "every other packet"),
        ("bulk", "dscp le or cs1"),
        ("voice", "dscp 4 or va or ef or cs6 or cs7"),
    ];
    assert_eq!(words, expected.map(|(name, matches)| (name.to_owned(), matches.to_owned())));
    // Four times 100 Mbit/s · 200 ms.
    assert_eq!(direction.whole_bound(), Some(Bound::Bytes(Bytes::new(10_000_000))));
    let written = scenario.to_toml();
    assert!(Scenario::parse(&written, "net.toml").unwrap() == scenario, "{written}");
    for (assignment, expected) in [
        ("access.queue=50 packets", vec!["access.up QueueBound"]),
        ("access.down.scheduler.bound=1MB", vec!["access.down QueueBound"]),
        ("access.down.scheduler.bandwidth=unlimited", vec!["access.down Queue"]),
        ("access.down.scheduler.tins=besteffort", vec!["access.down Queue"]),
        ("access.down.scheduler.overhead=18", vec![]), // as it was
    ] {
        let mut changed = scenario.clone();
        let changes = changed.assign(assignment).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(kinds(&changes), expected, "{assignment}");
    }
    let warnings = |keys: &str| link(keys).explain().warnings;
    assert!(warnings("scheduler = \"cake\"")[0].contains("`cake` has no effect"));
    assert!(warnings("scheduler = { type = \"cake\", bandwidth = \"1mbit\" }").is_empty());
}

/// Green packets by their DSCP, the bound of the virtual queue, and what a change of each key comes to.
#[test]
fn abe_has_two_colours_and_one_bound() {
    let keys = r#"rate = "8mbit"
queue = "40 packets"
[links.access.down]
scheduler = { type = "abe", green = ["ef", 44, "cs5"], max-delay = "5ms", bias = "75%" }"#;
    let scenario = link(keys);
    let direction = down(&scenario);
    let words: Vec<(String, String)> =
        direction.classes().into_iter().map(|class| (class.name, class.matches)).collect();
    assert_eq!(
        words,
        [
            ("green".into(), "dscp ef or va or cs5".into()),
            ("blue".to_string(), "every other packet".to_string())
        ]
    );
    assert_eq!(direction.whole_bound(), Some(Bound::Packets(40)));
    let written = scenario.to_toml();
    assert!(Scenario::parse(&written, "net.toml").unwrap() == scenario, "{written}");
    for (assignment, expected) in [
        ("access.queue=50 packets", vec!["access.up QueueBound", "access.down QueueBound"]),
        ("access.down.scheduler.bound=50 packets", vec!["access.down QueueBound"]),
        ("access.down.scheduler.max-delay=6ms", vec!["access.down Queue"]),
        ("access.down.scheduler.green=ef", vec!["access.down Queue"]),
        ("access.down.scheduler.bias=75%", vec![]), // as it was
    ] {
        let mut changed = scenario.clone();
        let changes = changed.assign(assignment).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(kinds(&changes), expected, "{assignment}");
    }
}

/// A link with the example in C, which is kept beside its source.
fn plugin(keys: &str) -> Result<Scenario, narrows_scenario::ScenarioError> {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/scheduler-c/alternate.wasm");
    let files = narrows_scenario::Files::given([
        ("alternate.wasm", std::fs::read(example).unwrap()),
        ("text.wasm", b"hello".to_vec()),
    ]);
    let text = format!(
        "[hosts.client]\n[hosts.server]\n[links.access]\nbetween = [\"client\", \"server\"]\nrate = \"10mbit\"\n\
         scheduler = {{ {keys} }}\n"
    );
    Scenario::parse_with(&text, "net.toml", files)
}

const CLASSES_OF_PLUGIN: &str =
    r#"classes = [{ name = "voip", weight = 3, match = { dscp = "ef" } }, { name = "rest" }]"#;

#[test]
fn a_scheduler_is_loaded() {
    for keys in [
        "plugin = \"alternate.wasm\"".to_string(),
        "type = \"plugin\", plugin = \"alternate.wasm\", fuel = 5000, flows = 16, by = \"source\""
            .to_string(),
        format!("plugin = \"alternate.wasm\", parameters = {{ burst = 2 }}, {CLASSES_OF_PLUGIN}"),
    ] {
        let scenario = plugin(&keys).unwrap_or_else(|error| panic!("{error}"));
        Engine::<()>::new(scenario.network()).unwrap();
        let files = narrows_scenario::Files::given(
            scenario.files().iter().map(|file| (file.name.clone(), file.contents.to_vec())),
        );
        let written = scenario.to_toml();
        assert!(Scenario::parse_with(&written, "net.toml", files).unwrap() == scenario, "{written}");
    }
    let mut scenario =
        plugin(&format!("plugin = \"alternate.wasm\", parameters = {{ burst = true }}, {CLASSES_OF_PLUGIN}"))
            .unwrap();
    let explained = scenario.explain().to_string();
    assert!(
        explained.contains(
            "a scheduler loaded from a WebAssembly module: alternate.wasm, burst 1, fuel 100000 a call"
        ),
        "{explained}"
    );
    let mut changes = |text: &str| kinds(&scenario.assign(text).unwrap_or_else(|error| panic!("{error}")));
    assert_eq!(changes("access.down.scheduler.voip.weight=5"), ["access.down Weight"]);
    assert_eq!(changes("access.down.scheduler.parameters={ burst = 3 }"), ["access.down Queue"]);
    assert_eq!(changes("access.down.scheduler.type=drr"), ["access.down Queue"]);
}

#[test]
fn what_cannot_be_loaded_is_said() {
    for (keys, says) in [
        ("plugin = \"none.wasm\"", &["the file `none.wasm` cannot be read", "net.toml:6:24"][..]),
        ("plugin = \"text.wasm\"", &["this is no WebAssembly module that can be used", "net.toml:6:24"]),
        ("type = \"plugin\"", &["`plugin` is missing"]),
        (
            "plugin = \"alternate.wasm\", parameters = { bursts = 2 }",
            &[
                "the module has no parameter `bursts`: it has `burst`",
                "did you mean `burst`?",
                "net.toml:6:57",
            ],
        ),
        (
            "plugin = \"alternate.wasm\", parameters = { burst = 2000 }",
            &[
                "the module refuses `burst = 2000`, with code 1",
                "net.toml:6:65",
                "scheduler.parameters.burst",
            ],
        ),
        (
            "plugin = \"alternate.wasm\", parameters = { burst = \"much\" }",
            &["expected a whole number, a boolean, a time, a size or a rate"],
        ),
        (
            "plugin = \"alternate.wasm\", fuel = 0",
            &["found `0`, expected an amount of fuel from 1 to 1000000000"],
        ),
        ("plugin = \"alternate.wasm\", flows = 2000", &["the plugin refuses the flow, with code 1"]),
    ] {
        let error = plugin(keys).expect_err(keys).to_string();
        for part in says {
            assert!(error.contains(part), "{part}\n{error}");
        }
    }
}
