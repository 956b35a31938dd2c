//! Schedulers in virtual time, as a report tells of them.
#![expect(
    clippy::unwrap_used,
    reason = "tests may unwrap, and the lint does not see that helpers here are tests"
)]

use narrows_report::{ClassReport, Report};
use narrows_scenario::Scenario;
use narrows_sim::{SimOptions, simulate};

/// Two constant sources, each of which alone would take the whole of 8 Mbit/s, for ten seconds.
const SCENARIO: &str = r#"
    duration = "10s"
    [hosts.client]
    [hosts.server]
    [links.access]
    between = ["client", "server"]
    rate = "8mbit"
    queue = "10 packets"
    [links.access.up]
    scheduler = { type = "qfq", classes = [
        { name = "left", weight = 3, match = { destination-port = 1 } },
        { name = "right", weight = 1 },
    ] }
    [[traffic]]
    name = "left"
    from = "client"
    to = "server"
    constant = "8mbit"
    length = "1000 bytes"
    destination-port = 1
    [[traffic]]
    name = "right"
    from = "client"
    to = "server"
    constant = "8mbit"
    length = "1000 bytes"
    destination-port = 2
"#;

fn report(timeline: &str, set: &[&str]) -> Report {
    let mut scenario = Scenario::parse(&format!("{SCENARIO}{timeline}"), "test.toml").unwrap();
    scenario.set(set).unwrap();
    let report = simulate(&scenario, &SimOptions::default()).unwrap().report;
    assert_eq!(report.conservation.violations, [""; 0]);
    report
}

fn up(report: &Report) -> [&ClassReport; 2] {
    let [left, right] = &report.directions[0].classes[..] else { panic!("{:?}", report.directions[0]) };
    assert_eq!((left.name.as_str(), right.name.as_str()), ("left", "right"));
    assert!(report.directions[1].classes.is_empty());
    [left, right]
}

#[test]
fn each_class_gets_its_share_and_the_report_says_so() {
    let report = report("", &[]);
    let [left, right] = up(&report);
    assert_eq!((left.weight, right.weight), (Some(3), Some(1)));
    // 10 s of 8 Mbit/s are 10,000 packets of 1000 bytes; a few wait at the end. QFQ's B-WFI is a few packets.
    assert!((left.sent_packets as i64 - 7500).abs() < 20, "{left:?}");
    assert!((left.sent_share - 0.75).abs() < 0.002, "{left:?}");
    for class in [left, right] {
        assert_eq!(class.arrived_packets, class.sent_packets + class.dropped_packets + class.backlog_packets);
        // Ten wait, and with each of them the class's share of the wire: 10 · 1000 · 8 / (8 Mbit/s · share), and some.
        let longest = 10_000_000.0 / class.sent_share + 10_000_000.0;
        assert!((class.queueing_max_ns.unwrap() as f64) < longest, "{class:?}");
        assert!(class.queueing_mean_ns < class.queueing_max_ns);
    }
    let by_reason: Vec<_> =
        report.directions[0].drops.iter().map(|d| (d.reason.as_ref(), d.packets)).collect();
    assert_eq!(by_reason, [("queue full", left.dropped_packets + right.dropped_packets)]);
}

#[test]
fn a_weight_changes_on_the_way_and_the_figures_go_on() {
    let change = r#"
        [[timeline]]
        at = "5s"
        set = { "access.up.scheduler.left.weight" = 1 }
    "#;
    let report = report(change, &[]);
    let [left, right] = up(&report);
    assert_eq!((left.weight, right.weight), (Some(1), Some(1)), "those at the end");
    // Three quarters of the first half, and half of the second.
    assert!((left.sent_packets as i64 - 6250).abs() < 30, "{left:?}");
    assert_eq!(left.arrived_packets, 10_000);
}

#[test]
fn another_scheduler_takes_over_and_counts_anew() {
    let change = r#"
        [[timeline]]
        at = "5s"
        set = { "access.up.scheduler.type" = "prio" }
    "#;
    let report = report(change, &[]);
    let [left, right] = up(&report);
    assert_eq!((left.weight, right.weight), (None, None));
    // From 5 s on, with what waited then, which fills half of `right`'s queue at most: `left` takes the whole wire.
    assert!((left.arrived_packets as i64 - 5000).abs() <= 20, "{left:?}");
    assert!(right.sent_packets < 20 && right.dropped_packets > 4900, "{right:?}");
}

#[test]
fn the_same_file_under_another_scheduler() {
    let report = report("", &["access.up.scheduler.type=fifo"]);
    let [left, right] = up(&report);
    assert!((left.sent_share - 0.5).abs() < 0.01, "{left:?} {right:?}");
    assert!(report.directions[0].asked.contains("fifo of left, right"), "{}", report.directions[0].asked);
    assert_eq!(report.title, "test.toml --set access.up.scheduler.type=fifo");

    let report = self::report("", &["access.up.scheduler=fq_codel"]);
    let up = &report.directions[0];
    assert!(up.asked.contains("fq_codel") && up.classes.is_empty(), "flows have no counters of their own");
    assert!(up.drops.iter().any(|drop| drop.reason == "queue management"), "{:?}", up.drops);
}
