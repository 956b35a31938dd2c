//! Shapers, what stands in classes, filters and policers: what is read, written, explained and refused.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use narrows_core::queue::Bound;
use narrows_core::{Bytes, DropReason, Engine, FlowKey, Packet, Protocol, Rate, Time};
use narrows_scenario::{Child, Direction, Scenario, SchedulerKind, ShapedBy, Way};

/// A scenario whose link has these lines, the first of which is line 6.
fn with(lines: &str) -> String {
    format!("[hosts.client]\n[hosts.server]\n\n[links.access]\nbetween = [\"client\", \"server\"]\n{lines}\n")
}

fn link(lines: &str) -> Scenario {
    Scenario::parse(&with(lines), "net.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn down(scenario: &Scenario) -> &Direction {
    scenario.links[0].direction(Way::Down).expect("a wire")
}

/// One problem with this title that points at this, the last of its like in the text, and says all of these things.
#[track_caller]
fn fails(lines: &str, title: &str, at: &str, says: &[&str]) {
    let whole = with(lines);
    let error = Scenario::parse(&whole, "net.toml").expect_err("it is wrong");
    let text = error.to_string();
    assert_eq!(error.count(), 1, "{text}");
    assert_eq!(text.lines().next(), Some(format!("error: {title}").as_str()), "{text}");
    let before = &whole[..whole.rfind(at).expect("it stands there")];
    let (line, column) = (before.matches('\n').count() + 1, before.lines().last().map_or(0, str::len) + 1);
    let column = if before.ends_with('\n') { 1 } else { column };
    assert!(text.contains(&format!("--> net.toml:{line}:{column}\n")), "{line}:{column}\n{text}");
    for part in says {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

const TREE: &str = r#"
[links.access.down]
scheduler = { type = "htb", classes = [
    { name = "1:1", rate = "10mbit" },
    { name = "voice", parent = "1:1", rate = "2mbit", ceil = "10mbit", match = { dscp = "ef" }, queue = "20 packets" },
    { name = "office", parent = "1:1", rate = "5mbit", ceil = "8mbit", burst = "20kB", cburst = "2kB" },
    { name = "web", parent = "office", rate = "4mbit", ceil = "8mbit", priority = 2, quantum = "3kB", match = { port = 80 }, scheduler = { type = "prio", classes = [
        { name = "short", match = { length = "..200 bytes" } },
        { name = "long", netem = "limit 30 delay 5ms" },
    ] } },
    { name = "rest", parent = "office", rate = "1mbit", mpu = "64 bytes" },
] }
"#;

/// The default of `mpu` may be written.
#[test]
fn zero_is_a_minimum_length() {
    let scenario = link(
        "[links.access.down]\npolicer = { rate = \"1mbit\", burst = \"10kB\", mpu = \"0 bytes\" }\nscheduler = { type = \"tbf\", rate = \"1mbit\", burst = \"5kB\", latency = \"70ms\", mpu = \"0 bytes\" }",
    );
    assert!(down(&scenario).policer.is_some() && down(&scenario).scheduler.is_some());
}

#[test]
fn a_tree() {
    let scenario = link(TREE);
    let scheduler = down(&scenario).scheduler.as_ref().unwrap();
    assert_eq!(scheduler.kind, SchedulerKind::Htb);
    // Those with packets, in the order of their numbers.
    let classes = down(&scenario).classes();
    let names: Vec<&str> = classes.iter().map(|class| class.name.as_str()).collect();
    assert_eq!(names, ["voice", "web", "rest"]);
    assert_eq!(classes[0].bound, Bound::Packets(20));
    assert_eq!(classes[1].matches, "port 80");
    assert_eq!(classes[2].matches, "every other packet");
    let narrows_scenario::Division::Classes { classes, .. } = &scheduler.serves else { panic!("classes") };
    let ShapedBy::Htb(office) = classes[2].shape.unwrap() else { panic!("of an htb") };
    assert_eq!((office.burst(), office.cburst()), (Bytes::new(20_000), Bytes::new(2_000)));
    let ShapedBy::Htb(rest) = classes[4].shape.unwrap() else { panic!("of an htb") };
    assert_eq!(rest.ceil(), Rate::from_bits_per_second(1_000_000));
    // 10 ms of 1 Mbit/s are 1250 bytes: less than a packet.
    assert_eq!((rest.burst(), rest.quantum()), (Bytes::new(1600), Bytes::new(12_500)));
    let Some(Child::Scheduler(inner)) = &classes[3].child else { panic!("a scheduler") };
    assert_eq!(inner.kind, SchedulerKind::Prio);
}

#[test]
fn what_is_written_is_read_again() {
    for lines in [
        TREE,
        r#"scheduler = { type = "tbf", rate = "1mbit", burst = "5kB", latency = "70ms", peakrate = "2mbit", mtu = "1540 bytes", mpu = "64 bytes" }"#,
        r#"scheduler = { type = "tbf", rate = "1mbit", burst = "5kB", bound = "10 packets", classes = [{ name = "10:1", scheduler = "fq_codel" }] }"#,
        r#"scheduler = { type = "cbq", bandwidth = "10mbit", avpkt = "1000 bytes", classes = [
            { name = "all", rate = "10mbit", bounded = true, isolated = true },
            { name = "a", parent = "all", rate = "7mbit", priority = 5, allot = "1600 bytes", avpkt = "900 bytes", weight = 3, maxburst = 4, minburst = 2, minidle = "1ms", mpu = "64 bytes", match = { dscp = 3 } },
            { name = "b", parent = "all", rate = "3mbit", exempt = true, netem = "delay 10ms" },
        ] }"#,
        r#"scheduler = { type = "prio", classes = [{ name = "a" }, { name = "b" }], filters = [{ match = { port = 22 }, class = "b" }, { match = [{ dscp = 1 }, { dscp = 2 }], class = "a" }], default = "b" }"#,
        r#"scheduler = { type = "prio", classes = [{ name = "a" }], filters = [{ match = { port = 22 }, class = "a" }], default = "drop" }"#,
        r#"policer = { rate = "1mbit", burst = "10kB", peakrate = "2mbit", mtu = "1500 bytes", mpu = "64 bytes", exceed = "mark" }"#,
    ] {
        let scenario = link(lines);
        let again =
            Scenario::parse(&scenario.to_toml(), "again.toml").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(scenario.links, again.links, "{}", scenario.to_toml());
    }
}

#[test]
fn what_check_says() {
    let text = link(TREE).explain().to_string();
    for lines in [
        "  scheduler htb: a tree of token buckets that borrow from their parents; bounded per class only\n    1:1: the classes below it\n      rate 10mbit (burst 12500 bytes), ceiling 10mbit (burst 12500 bytes)\n",
        "      voice: dscp ef\n        rate 2mbit (burst 2500 bytes), ceiling 10mbit (burst 12500 bytes), priority 0, quantum 25000 bytes; queue 20 packets, drops at the tail\n",
        "        web: port 80\n",
        "priority 2, quantum 3000 bytes; in `prio`, below\n          scheduler prio: strict priority, the first class first; bounded per class only\n            short: up to 200 bytes\n",
        "            long: every other packet\n              netem limit 30 delay 5ms\n",
    ] {
        assert!(text.contains(lines), "{lines}\n{text}");
    }
    assert!(!text.contains("nothing ever waits"), "{text}");
    let text = link(r#"scheduler = { type = "tbf", rate = "1mbit", burst = "5kB", latency = "70ms", peakrate = "2mbit", mtu = "1540 bytes" }"#).explain().to_string();
    // 1 Mbit/s for 70 ms are 8750 bytes.
    let line = "  scheduler tbf: a token bucket, 1mbit, burst 5000 bytes, at most 2mbit over more than 1540 bytes; at most 13750 bytes in all\n";
    assert!(text.contains(line), "{text}");
    let text = link(r#"policer = { rate = "1mbit", burst = "10kB" }"#).explain().to_string();
    assert!(
        text.contains("polices arriving packets to 1mbit, burst 10000 bytes: excess packets are dropped"),
        "{text}"
    );
}

#[test]
fn warnings_of_rates() {
    let text = link(
        r#"rate = "5mbit"
scheduler = { type = "htb", classes = [
    { name = "all", rate = "4mbit" },
    { name = "a", parent = "all", rate = "3mbit", ceil = "6mbit", match = { dscp = "ef" } },
    { name = "other", rate = "2mbit", match = { dscp = 3 } },
    { name = "b", parent = "all", rate = "2mbit" },
] }"#,
    )
    .explain()
    .to_string();
    for part in [
        "the classes below `all` have rates of 5mbit in total, above its own 4mbit",
        "the ceiling of `a`, 6mbit, is above that of its parent `all`, 4mbit",
        "the classes of `htb` have rates of 6mbit in total, above the link's 5mbit",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn bad_trees() {
    let tree = |classes: &str| format!("scheduler = {{ type = \"htb\", classes = [\n{classes}\n] }}");
    fails(
        &tree("{ name = \"all\", rate = \"1mbit\" },\n{ name = \"a\", parent = \"al\", rate = \"1mbit\" }"),
        "there is no class `al`",
        "\"al\"",
        &["did you mean `all`?", "in `links.access.scheduler.classes.parent`"],
    );
    fails(
        &tree(
            "{ name = \"a\", parent = \"b\", rate = \"1mbit\" },\n{ name = \"b\", parent = \"a\", rate = \"1mbit\" }",
        ),
        "`a` is its own ancestor: its parent is `b`, whose parent is `a`",
        "\"b\", rate",
        &["one of them has no parent"],
    );
    fails(
        &tree("{ name = \"a\", parent = \"a\", rate = \"1mbit\" }"),
        "`a` is its own ancestor: its parent is `a`",
        "\"a\", rate",
        &[],
    );
    fails(
        &tree("{ name = \"a\", parent = \"b\", rate = \"1mbit\" },\n{ name = \"b\", rate = \"1mbit\" }"),
        "`b` follows its child `a`",
        "\"b\", rate = \"1mbit\" },",
        &["put a class before its children"],
    );
    fails(
        &tree(
            "{ name = \"a\", rate = \"1mbit\", queue = \"3 packets\" },\n{ name = \"b\", parent = \"a\", rate = \"1mbit\" }",
        ),
        "`queue` in the class `a`, which has children",
        "queue = ",
        &["only leaf classes hold packets"],
    );
    fails(
        &tree("{ name = \"a\", rate = \"2mbit\", burst = \"1kB\" }"),
        "a burst of 1000 bytes is less than one packet of 1500 bytes, which could never go",
        "\"1kB\"",
        &[],
    );
    fails(&tree("{ name = \"a\" }"), "`rate` is missing", "{ name = \"a\" }", &[]);
    fails(
        &tree("{ name = \"a\", rate = \"2mbit\", priority = 8 }"),
        "found `8`, expected a priority from 0 to 7",
        "8 }",
        &[],
    );
    fails(
        &tree("{ name = \"a\", rate = \"1mbit\", bounded = true }"),
        "unknown key `bounded`",
        "bounded",
        &["`bounded` applies to classes of `cbq`"],
    );
    fails(
        &tree(
            "{ name = \"all\", rate = \"1mbit\" },\n{ name = \"a\", parent = \"all\", rate = \"1mbit\", match = { dscp = 1 } }",
        ),
        "unmatched packets have no class",
        "[\n{ name",
        &["default = \"drop\""],
    );
    fails(
        &tree("{ name = \"a\", rate = \"1mbit\", queue = \"codel\", netem = \"delay 1ms\" }"),
        "both `queue` and `netem` in one class",
        "netem",
        &["use one of them"],
    );
    fails("scheduler = \"htb\"", "`htb` has no classes", "\"htb\"", &["parent = \"all\""]);
    fails(
        "scheduler = { type = \"cbq\", classes = [{ name = \"a\", rate = \"1mbit\" }] }",
        "`bandwidth` is missing",
        "{ type",
        &[],
    );
    // The inner place is pointed at, however deep.
    fails(
        &tree(
            "{ name = \"a\", rate = \"1mbit\", scheduler = { type = \"htb\", classes = [{ name = \"x\", rate = \"2mbit\", burst = \"1kB\" }] } }",
        ),
        "a burst of 1000 bytes is less than one packet of 1500 bytes, which could never go",
        "\"1kB\" }] }",
        &["in `links.access.scheduler.classes.scheduler.classes.burst`"],
    );
}

#[test]
fn bad_buckets() {
    let tbf = |keys: &str| format!("scheduler = {{ type = \"tbf\", {keys} }}");
    fails("scheduler = \"tbf\"", "`rate` is missing", "\"tbf\"", &[]);
    fails(&tbf("rate = \"1mbit\""), "`burst` is missing", "{ type", &[]);
    fails(
        &tbf("rate = \"1mbit\", burst = \"1kB\""),
        "a burst of 1000 bytes is less than one packet of 1500 bytes, which could never go",
        "\"1kB\"",
        &["in `links.access.scheduler.burst`"],
    );
    fails(
        &tbf("rate = \"1mbit\", burst = \"5kB\", peakrate = \"1mbit\""),
        "`peakrate`, 1mbit, is not above `rate`, 1mbit",
        "\"1mbit\" }",
        &[],
    );
    fails(
        &tbf("rate = \"1mbit\", burst = \"5kB\", latency = \"1ms\", bound = \"9kB\""),
        "both `latency` and `bound`",
        "latency",
        &["use one of the two"],
    );
    fails(
        &tbf("rate = \"unlimited\", burst = \"5kB\""),
        "found `unlimited`, expected a rate above zero, such as \"1mbit\"",
        "\"unlimited\"",
        &[],
    );
    fails(
        &tbf(
            "rate = \"1mbit\", burst = \"5kB\", classes = [{ name = \"a\", match = { dscp = 1 } }, { name = \"b\" }]",
        ),
        "`tbf` with 2 classes",
        "\"b\"",
        &["it limits all of them together"],
    );
    fails(
        "policer = { rate = \"1mbit\", burst = \"100 bytes\" }",
        "a burst of 100 bytes is less than one packet of 1500 bytes, which could never go",
        "\"100 bytes\"",
        &["in `links.access.policer.burst`"],
    );
    fails(
        "policer = { rate = \"1mbit\", burst = \"10kB\", exceed = \"shape\" }",
        "`shape` is not a way to treat excess packets",
        "\"shape\"",
        &["allowed: `drop`, `mark` or `pass`"],
    );
}

#[test]
fn bad_filters() {
    let prio = |rest: &str| {
        format!(
            "scheduler = {{ type = \"prio\", classes = [{{ name = \"low\" }}, {{ name = \"high\" }}], {rest} }}"
        )
    };
    fails(
        &prio("filters = [{ match = { dscp = 1 }, class = \"hihg\" }], default = \"low\""),
        "there is no class `hihg`",
        "\"hihg\"",
        &["did you mean `high`?"],
    );
    fails(
        &prio("filters = [{ match = { dscp = 1 }, class = \"high\" }]"),
        "packets that no filter takes have no class",
        "filters",
        &["default = \"NAME\""],
    );
    fails(
        &prio("default = \"low\""),
        "no packet reaches the class `high`: `low` takes every packet",
        "\"high\"",
        &[],
    );
    fails(
        "scheduler = { type = \"prio\", classes = [{ name = \"a\", match = { dscp = 1 } }, { name = \"b\" }], filters = [] , default = \"b\" }",
        "both `filters` and a class with a `match`",
        "[] ,",
        &[],
    );
}

#[test]
fn assignments() {
    let mut scenario = link(TREE);
    for (assignment, part) in [
        ("access.down.scheduler.voice.ceil=4mbit", "ceil = \"4mbit\""),
        ("access.down.scheduler.1:1.rate=20mbit", "{ name = \"1:1\", rate = \"20mbit\" }"),
        ("access.down.scheduler.web.scheduler.long.netem=delay 7ms", "netem = \"delay 7ms\""),
        ("access.down.scheduler.web.scheduler.short.queue=7 packets", "queue = \"7 packets\""),
        ("access.down.scheduler.rest.scheduler=fq_codel", "scheduler = \"fq_codel\""),
        ("access.down.scheduler.rest.queue.bound=9kB", "queue = \"9000 bytes\""),
        ("access.down.policer={ rate = \"1mbit\", burst = \"9kB\" }", "policer = { rate = \"1mbit\""),
        ("access.down.policer.exceed=pass", "exceed = \"pass\""),
        ("access.down.policer.overhead=frame", "overhead = \"frame\", exceed = \"pass\""),
    ] {
        scenario.assign(assignment).unwrap_or_else(|error| panic!("{error}"));
        let toml = scenario.to_toml();
        assert!(toml.contains(part), "{assignment}\n{toml}");
    }
    let wrong = scenario.clone().assign("access.down.scheduler.voice.burst=1kB").unwrap_err().to_string();
    assert!(wrong.contains("a burst of 1000 bytes is less than one packet"), "{wrong}");
    let wrong =
        scenario.assign("access.down.scheduler.voice.scheduler.x.rate=1mbit").unwrap_err().to_string();
    assert!(wrong.contains("there is no scheduler in the class `voice`"), "{wrong}");
}

/// How many of these packets, by destination port and DSCP, each class got when they were sent at once from the server.
fn sorted(scenario: &Scenario, packets: &[(u16, u8)]) -> (Vec<u64>, u64) {
    let mut engine = Engine::<()>::new(scenario.network()).unwrap();
    let from = &scenario.ports().iter().find(|port| port.host == "server").unwrap().name;
    let port = engine.port(from).unwrap();
    for &(destination_port, dscp) in packets {
        let key = FlowKey {
            network: Protocol::Ipv4,
            transport: 17,
            destination_port,
            traffic_class: dscp << 2,
            ..FlowKey::default()
        };
        let headers = Default::default();
        engine.hand_in(
            Time::ZERO,
            port,
            Packet { length: 1000, link_header: 14, network_header: 20, headers, key, body: () },
        );
    }
    while engine.poll(Time::ZERO).is_some() {}
    let view = engine.view(engine.link(&scenario.links[0].core_name(Way::Down)).unwrap());
    let arrived = view.classes().iter().map(|class| class.arrived.packets).collect();
    (arrived, view.counters()[0].dropped(DropReason::NoClass).packets)
}

/// The order in which filters stand is what counts, not that of the classes.
#[test]
fn filters_before_classes() {
    let prio = |default: &str| {
        link(&format!(
            r#"rate = "1mbit"
scheduler = {{ type = "prio", classes = [{{ name = "high" }}, {{ name = "low" }}],
    filters = [{{ match = {{ destination-port = 22 }}, class = "low" }}, {{ match = {{ dscp = 16 }}, class = "high" }}], default = "{default}" }}"#
        ))
    };
    let packets = [(22, 16), (22, 0), (80, 16), (80, 0), (443, 0)];
    assert_eq!(sorted(&prio("drop"), &packets), (vec![1, 2], 2));
    assert_eq!(sorted(&prio("low"), &packets), (vec![1, 4], 0));
    assert_eq!(sorted(&prio("high"), &packets), (vec![3, 2], 0));
}

/// Without any filter the default is what counts: a class gets all packets, or none does.
#[test]
fn no_filters_at_all() {
    let drr = |default: &str| {
        link(&format!(
            r#"rate = "1mbit"
scheduler = {{ type = "drr", classes = [{{ name = "a" }}, {{ name = "b" }}], filters = [], default = "{default}" }}"#
        ))
    };
    let packets = [(22, 16), (80, 0), (443, 0)];
    for (default, gets) in [("drop", (vec![0, 0], 3)), ("b", (vec![0, 3], 0))] {
        let scenario = drr(default);
        assert_eq!(sorted(&scenario, &packets), gets, "{default}");
        let again = Scenario::parse(&scenario.to_toml(), "again.toml").unwrap();
        assert_eq!(scenario.links, again.links, "{}", scenario.to_toml());
    }
}
